# SPDX-License-Identifier: GPL-2.0-or-later
# A filesystem's life on a volume; sourced after volume.bash.
#
# fs_life ext4|xfs	mkfs, work, clean stop, three power cuts; fsck and every synced file after each
#
# Beside the work, WORKERS processes (stress.py) map, punch, zero, truncate and rename files
# of their own, with direct I/O among it: STEPS of it each, and when the power goes.
#
# shellcheck shell=bash

in_ram xfs_io
FILES=${FILES:-30}
WORKERS=${WORKERS:-3}
STEPS=${STEPS:-40}
M=/dev/shm/mnt
SYNCED=/dev/shm/synced	# of each synced file its sum
mkdir -p $M

make_fs() {
	if [ "$1" = ext4 ]; then mkfs.ext4 -q -F "$VOL"; else mkfs.xfs -q -f -s size=4096 "$VOL"; fi
}

check_fs() {
	if [ "$1" = ext4 ]; then
		e2fsck -fn "$VOL" > /dev/shm/fsck 2>&1 || { cat /dev/shm/fsck; die "e2fsck $2"; }
	else
		xfs_repair -n "$VOL" > /dev/shm/fsck 2>&1 || { cat /dev/shm/fsck; die "xfs_repair $2"; }
	fi
}

# files of all sizes; some synced, and then entered in the list
work() {
	local i name size
	for ((i = 0; i < $1; i++)); do
		name=$M/d$((RANDOM % 5))/f$((RANDOM % 40))
		size=$((RANDOM % 3 ? RANDOM % 64 + 1 : RANDOM % 2048 + 1))
		mkdir -p "${name%/*}"
		case $((RANDOM % 8)) in
		0)	forget "$name"
			rm -f "$name" ;;
		1)	[ ! -f "$name" ] || { forget "$name"; mv "$name" "$name.moved"; rm -f "$name.moved"; } ;;
		2)	if [ -f "$name" ]; then
				forget "$name"
				from_ram xfs_io -c "fpunch $((RANDOM % 16 * 4096)) 65536" -c "pwrite -q $((RANDOM * 100)) 5000" \
					-c "truncate $((RANDOM * 50))" "$name"
			fi ;;
		*)	forget "$name"
			head -c $((size * 1024)) /dev/urandom > "$name"
			((RANDOM % 3)) || { from_ram xfs_io -c fsync "$name"; remember "$name"; } ;;
		esac
	done
}

stress() { /usr/bin/python3 -IS /dev/shm/stress.py "$1" $M/s /dev/shm/stress "$WORKERS" "${@:2}"; }
# until it is stopped
both() {
	{ stress work "$1" 0 || touch /dev/shm/stress.failed; } &
	work 1000000
}
# waits until all workers have begun
begun() {
	local i
	for ((i = 0; i < 300; i++)); do
		[ "$(stat -c %s /dev/shm/stress.begun 2> /dev/null)" != "$WORKERS" ] || return 0
		sleep 0.1
	done
	die "the workers did not begin"
}

forget() { sed -i "\\, $1\$,d" $SYNCED; }
remember() { md5sum "$1" >> $SYNCED; }
# all_there WHEN [all]: after a clean stop the workers have nothing else
all_there() {
	md5sum --quiet -c $SYNCED || die "$1: synced files are damaged"
	stress check "${@:2}" || die "$1: a worker's files"
}

fs_life() {
	local fs=$1 cut
	RANDOM=${SEED:-1}
	vol_drives 96 512
	: > $SYNCED
	cp "$TERRACE_TREE/tests/vm/stress.py" /dev/shm/
	vol_format
	vol_up stream_kb=4096
	make_fs "$fs"
	check_fs "$fs" "after mkfs"
	mount -t "$fs" -o discard "$VOL" $M
	start stress work "$RANDOM" "$STEPS"
	work "$FILES"
	wait "$JOB" || die "$fs: a worker failed"
	umount $M
	check_fs "$fs" "after work"
	vol_down
	vol_check
	vol_up
	mount -t "$fs" "$VOL" $M
	all_there "after a clean stop" all
	fstrim $M
	pass "$fs: $(wc -l < $SYNCED) synced files after a clean stop"

	for cut in 1 2 3; do
		rm -f /dev/shm/stress.begun
		start both "$RANDOM"
		begun
		sleep $((RANDOM % 3)).$((RANDOM % 10))
		kill -STOP -- "-$JOB"	# what it has begun may end, nothing new begins
		[ ! -e /dev/shm/stress.failed ] || die "$fs: a worker failed before cut $cut"
		drive_cut fast
		kill_all "$JOB"
		umount $M
		dmr vol
		drive_revive fast
		vol_check
		vol_up
		mount -t "$fs" "$VOL" $M
		all_there "cut $cut"
		umount $M
		check_fs "$fs" "after cut $cut"
		mount -t "$fs" -o discard "$VOL" $M
	done
	umount $M
	vol_down
	vol_check
	pass "$fs: three power cuts"
}
