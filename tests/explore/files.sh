#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A filesystem on a volume, for tests/crash/files-long.sh; runs inside the machine:
#
#	FS=ext4 COUNT=80 tests/explore/files.sh record	$OUT/FS.record, $OUT/FS.log
#	FS=ext4 STATES=FOLDER tests/explore/files.sh recover	what build/explore --save left there
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
	echo explore > /dev/drive-record
	/usr/bin/python3 "$FILES" work $M "$OUT/$FS.log" /dev/drive-record "$SEED" "${COUNT:-80}"
	cp /dev/drive-record "$OUT/$FS.record"
	cat $RECORD
	umount $M
	fsck_n || die "$FS: fsck after a clean stop"
	dmr vol
}

recover() {
	local state image name nr=0
	load_drive
	load_terrace
	for state in "$STATES"/*/; do
		[ -e "$state/note" ] || continue	# nothing was promised yet
		VOL_DRIVES=()
		for image in "$state"*.img; do
			name=${image##*/} name=${name%.img}
			mkdrive "$name" ram $(($(stat -c %s "$image") >> 20)) lbs=4096 group=pc
			from_ram dd if="$image" of="/dev/mapper/$name" bs=1M conv=sparse oflag=direct status=none
			VOL_DRIVES+=("/dev/mapper/$name")
		done
		terracectl activate --as vol "${VOL_DRIVES[@]}" > /dev/shm/said 2>&1 || { cat /dev/shm/said; die "$state: does not come up"; }
		mount -t "$FS" "$VOL" $M || die "$state: $FS cannot be mounted"
		/usr/bin/python3 "$FILES" verify $M "$LOG" "$(cat "$state/note")" > /dev/shm/said || { cat /dev/shm/said; die "$state"; }
		umount $M
		fsck_n || die "$state: fsck finds problems"
		dmr vol
		for name in "${VOL_DRIVES[@]}"; do rmdrive "${name##*/}"; done
		nr=$((nr + 1))
	done
	pass "$FS: $nr power cuts: $(cat /dev/shm/said) in the last"
}

"$1"
