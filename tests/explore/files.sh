#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A filesystem on a volume, for tests/crash/files-long.sh; runs inside the machine:
#
#	FS=ext4 COUNT=80 tests/explore/files.sh record	$OUT/FS.record, $OUT/FS.log
#	FS=ext4 STATES=FOLDER tests/explore/files.sh recover	what build/explore --save left there
#
# LIE=1: on drives that do not flush, and a state that is wrong is no failure.
#
# Recovering is what a machine does that boots: the module, the filesystem's own
# journal, then fsck, which must find nothing.
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

FS=${FS:-ext4}
SEED=${SEED:-1}
RECORD=/sys/module/dm_drive/parameters/record
M=/dev/shm/mnt
FILES="$TERRACE_TREE/tests/explore/files.py"
PATH=$TERRACE_TREE/build:$PATH in_ram dmsetup dd
dmsetup() { from_ram dmsetup "$@"; }
need "$FS"
mkdir -p $M

fsck_n() {
	if [ "$FS" = ext4 ]; then e2fsck -fn "$VOL"; else xfs_repair -n "$VOL"; fi > /dev/shm/fsck 2>&1 || { cat /dev/shm/fsck; return 1; }
}

record() {
	load_drive
	echo 448m > $RECORD
	local slow=448
	[ "$FS" != xfs ] || slow=640		# it takes nothing below 300 MiB
	vol_models "$SEED" fast:32 slow:$slow write_lat=100us flush_lat=1ms channels=8
	vol_format --tier optane:slots:atomic=/dev/mapper/fast --tier hdd:shelves:atomic=/dev/mapper/slow --journal 1M
	vol_up commit_ms=200 stream_kb=256
	if [ "$FS" = ext4 ]; then mkfs.ext4 -q -F -J size=8 "$VOL"; else mkfs.xfs -q -f -s size=4096 "$VOL"; fi
	mount -t "$FS" -o discard "$VOL" $M
	sync $M
	if [ "${LIE:-}" ]; then
		vol_message commit
		for drive in fast slow; do drive $drive set lie_flush=on lie_fua=on; done
	fi
	echo explore > /dev/drive-record
	/usr/bin/python3 "$FILES" work $M "$OUT/$FS.log" /dev/drive-record "$SEED" "${COUNT:-80}"
	cp /dev/drive-record "$OUT/$FS.record"
	cat $RECORD
	umount $M
	fsck_n || die "$FS: fsck after a clean stop"
	dmr vol
}

bring() {
	local image name first nr
	VOL_DRIVES=()
	for image in "$state"*.img; do
		name=${image##*/} name=${name%.img}
		mkdrive "$name" ram $(($(stat -c %s "$image") >> 20)) lbs=4096 group=pc
		while read -r first nr; do
			from_ram dd if="$image" of="/dev/mapper/$name" bs=1M skip="$first" seek="$first" count="$nr" oflag=direct status=none
		done < "${image%.img}.used"
		VOL_DRIVES+=("/dev/mapper/$name")
	done
}

# why the state is not as it should be: says WHAT: REASON
judge() {
	terracectl activate --as vol "${VOL_DRIVES[@]}" > /dev/shm/said 2>&1 || { echo "activate: $(cat /dev/shm/said)"; return 1; }
	mount -t "$FS" "$VOL" $M > /dev/shm/said 2>&1 || { echo "mount: $(cat /dev/shm/said)"; return 1; }
	/usr/bin/python3 "$FILES" verify $M "$LOG" "$(cat "$state/note")" > /dev/shm/said 2>&1 || { echo "files: $(cat /dev/shm/said)"; return 1; }
	files=$((files + $(awk 'END { print $1 }' /dev/shm/said)))
	umount $M
	fsck_n > /dev/null || { echo "fsck: $(cat /dev/shm/fsck)"; return 1; }
}
put_away() {
	local name
	! mountpoint -q $M || umount $M
	[ ! -e "$VOL" ] || dmr vol
	for name in "${VOL_DRIVES[@]}"; do rmdrive "${name##*/}"; done
}

# $OUT/recovered: states, of which so many are not as they should be, synced files that were compared
recover() {
	local state nr=0 bad=0 files=0
	load_drive
	load_terrace
	for state in "$STATES"/*/; do
		[ -e "$state/note" ] || continue	# nothing was promised yet
		bring
		nr=$((nr + 1))
		judge > /dev/shm/why || { bad=$((bad + 1)); echo "$(basename "$state"): $(cat /dev/shm/why)"; [ "${LIE:-}" ] || die "$state: see above"; }
		put_away
	done
	echo "$nr $bad $files" > "$OUT/recovered"
	pass "$FS: $nr power cuts, $files files as they were synced, $bad states wrong"
}

"$1"
