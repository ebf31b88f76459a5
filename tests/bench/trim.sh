#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What it costs to trim a dead table's range on a fragmented filesystem: all free extents looked at, or the long ones.
# bench: mode=vtime memory=3G timeout=3600 parts=PARTS:small,large
# seeds: nothing is drawn
# packages: xfsprogs e2fsprogs
#
# small	FILES files of 4 KiB, every second of which is deleted; then tables of 8 MiB are written and deleted. Each one's range
#	is trimmed as terraced does it first (no free extent shorter than the range), another's with all free extents looked at.
# large	an xfs of GIB GiB with SHORT free extents of 4 KiB and LONG of 16 MiB, in FULL groups (0: all; tools/fragments.py): tables of 8 and 64 MiB, one in 64
#	pieces, and ranges that are partly in use again, each trimmed by terraced's own code (tools/deaths.c), and what a
#	file of 16 KiB and its fsync take meanwhile. Afterwards each living file and the filesystem are as they should be.
# shellcheck disable=SC2034,SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"

need_cmd python3 mkfs.xfs mkfs.ext4 xfs_repair
PARTS=${PARTS:-small large}
FILES=${FILES:-20000} M=/dev/shm/m
GIB=${GIB:-128} SHORT=${SHORT:-520000} LONG=${LONG:-1200} FULL=${FULL:-0}
mkdir -p $M
modprobe -q xfs || true

small() {
	local fs long all extents
	vol_ram 640 256
	for fs in xfs ext4; do
		vol_format
		vol_up stream_kb=0
		if [ $fs = xfs ]; then mkfs.xfs -qfK "$VOL"; else mkfs.ext4 -q -E nodiscard,lazy_itable_init=0 -N $((FILES * 2)) "$VOL"; fi
		mount "$VOL" $M
		read -r long all extents <<< "$(python3 "$TERRACE_TREE/tests/bench/tools/trim.py" $M "$FILES")"
		figure "$fs: free extents" "$extents" "extents"
		figure "$fs: a trim of 8 MiB, all free extents looked at" "$all" "us"
		bar "$fs: a trim of 8 MiB, as terraced does it first" "$long" "us" 200
		umount $M
		vol_down
	done
	rmram fast
	rmram slow
}

large() {
	local number unit what
	PATH=$TERRACE_TREE/build/bench:$PATH in_ram deaths
	mkdrive fast optane 1152 lbs=4096 powercut=off
	mkdrive slow ram 256 lbs=4096 cache=off powercut=off
	VOL_DRIVES=(/dev/mapper/fast /dev/mapper/slow)
	vol_format --tier optane:slots:atomic=/dev/mapper/fast --tier hdd:shelves:atomic=/dev/mapper/slow --overcommit "${GIB}G"
	vol_up stream_kb=0
	mkfs.xfs -qfK -l size=64m "$VOL"
	mount "$VOL" $M
	python3 "$TERRACE_TREE/tests/bench/tools/fragments.py" $M "$SHORT" "$LONG" "$FULL" env "LD_LIBRARY_PATH=$RAM/lib" "$RAM/deaths" |
		while read -r number unit what; do
			echo "$number $unit $what" >> /dev/shm/rows
			echo "# $number $unit: $what"
		done
	while read -r number unit what; do
		case $what in
		"free extents, before")		bar "large: $what" "$number" "$unit" "-$SHORT" ;;
		"8 MiB: mean trim")		bar "large: $what" "$number" "$unit" 200 ;;
		"living files that are wrong")	bar "large: $what" "$number" "$unit" 0 ;;
		*)				figure "large: $what" "$number" "$unit" ;;
		esac
	done < /dev/shm/rows
	umount $M
	xfs_repair -n "$VOL" > /dev/shm/repair 2>&1 || { cat /dev/shm/repair; die "xfs_repair -n finds problems"; }
	vol_down
	vol_check
}

for part in ${PARTS//,/ }; do
	case $part in
	small|large)	$part ;;
	*)		die "no part called $part" ;;
	esac
done
bars_end
