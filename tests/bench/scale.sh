#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What an I/O costs, what memory takes, how long opening lasts, against the volume's size, its regions in memory, and the queue's depth.
# bench: mode=vtime memory=3G timeout=1800
# seeds: one, in tools/each.c
#
# size	BLOCKS blocks, each in a region of its own, all over volumes of 1 GiB to 64 TiB
# regions	a volume of 64 TiB with more and more of its regions in memory
# depth	reads and writes in place, 1 to 256 at a time
# sparse	more regions than there is room for their map pages: writes may be refused, the volume stays writable
#
# Instructions (ns) above the RAM disk below at the same depth: tools/each.c.
# Activation is after a clean stop, and by the kernel's own clock.
# shellcheck disable=SC2034,SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"

IOS=${IOS:-20000}
BLOCKS=${BLOCKS:-256}		# a volume of 1 GiB has as many regions
SIZES=${SIZES:-1 16 256 4096 65536}	# GiB
REGIONS=${REGIONS:-256 1024 4096}
DEPTHS=${DEPTHS:-1 2 4 8 16 32 64 128 256}
PARTS=${PARTS:-size regions depth sparse}
MB=64				# of the RAM disk beside, and worked on by "depth"

PATH=$TERRACE_TREE/build/bench:$PATH in_ram each hits dmsetup
attr() { cat "/sys/fs/terrace/$(dmsetup info -c --noheadings -o blkdevname vol)/$1"; }
# cost DEVICE ARG...: tenths of a nanosecond
cost() { from_ram each "$@"; }
activated() { dmesg | sed -n 's/.*activated in \([0-9]*\) us$/\1/p' | tail -1; }

# row PART X WORD FIGURE UNIT
row() {
	printf '%-10s %8s  %-12s %9s %s\n' "$1" "$2" "$3" "$4" "$5"
	bars_row "$BARS_SCRIPT" "$1; $2; $3" "$4" "$5" "" "" ""
}

# There is room for the map pages of 4,096 regions, one block in each, and not of 16,384.
set_up() {
	mkram raw $MB
	mkram fast 4096
	mkram slow 4096
	VOL_DRIVES=(/dev/ram/fast /dev/ram/slow)
	dd if=/dev/zero of=/dev/ram/raw bs=1M oflag=direct status=none 2> /dev/null || true
}

format() { vol_format --tier optane:slots:atomic=/dev/ram/fast --tier hdd:shelves:atomic=/dev/ram/slow "$@"; }

# spread PART X GIB BLOCKS: so many blocks all over a volume of that size, in memory; cost and memory of it
spread() {
	local part=$1 x=$2 gib=$3 blocks=$4 empty stride memory read write
	stride=$(((gib << 30) / blocks))
	format --overcommit "${gib}G"
	vol_up stream_kb=0
	empty=$(attr memory)
	from_ram hits "$VOL" write "$stride" "$blocks"
	vol_message checkpoint
	sleep 5
	memory=$((($(attr memory) - empty) / blocks))
	row "$part" "$x" memory $memory "bytes a region"
	# 256 for a region and 6 for its one block
	bar "$part $x: memory of a region with one block" $memory bytes 262
	cost "$VOL" read "$blocks" 2000 1 "$stride" > /dev/null
	read=$((($(cost "$VOL" read "$blocks" "$IOS" 1 "$stride") - raw_read) / 10))
	write=$((($(cost "$VOL" write "$blocks" "$IOS" 1 "$stride") - raw_write) / 10))
	row "$part" "$x" read $read ns
	row "$part" "$x" write $write ns
	[ "$(vol_tier 1 reads)" = 0 ] || die "some reads were no hits: $(vol_status)"
	from_ram dmsetup remove --noudevsync vol
	from_ram dmsetup create vol --noudevsync --table "$(vol_table stream_kb=0)"
	row "$part" "$x" activation "$(activated)" us
	dmsetup mknodes vol
	bar "$part $x: read hit, above raw" $read ns 2400
	bar "$part $x: in-place write, above raw" $write ns 2500
	bar "$part $x: activation" "$(activated)" us 100000
	vol_down
}

size() {
	local gib
	for gib in ${SIZES//,/ }; do spread size "$gib" "$gib" "$BLOCKS"; done
}
regions() {
	local n
	for n in ${REGIONS//,/ }; do spread regions "$n" 65536 "$n"; done
}
depth() {
	local op depth
	format
	vol_up stream_kb=0
	dd if=/dev/zero of="$VOL" bs=1M count=$MB oflag=direct conv=fsync status=none
	vol_message checkpoint
	dmc lin "0 $((MB * 2048)) linear /dev/ram/raw 0"
	sleep 5
	for op in read write; do
		for depth in ${DEPTHS//,/ }; do
			local raw linear
			raw=$(cost /dev/ram/raw $op $((MB * 256)) "$IOS" "$depth")
			linear=$(($(cost /dev/mapper/lin $op $((MB * 256)) "$IOS" "$depth") - raw))
			row depth "$depth" $op $((($(cost "$VOL" $op $((MB * 256)) "$IOS" "$depth") - raw) / 10)) ns
			row depth "$depth" $op-linear $((linear / 10)) ns
		done
	done
	dmr lin
	vol_down
}

sparse() {
	local accepted
	format --overcommit 65536G
	vol_up stream_kb=0
	from_ram hits "$VOL" write $((65536 << 30 >> 14)) 16384 2> /dev/shm/e || echo "# sparse: $(cat /dev/shm/e)"
	accepted=$(vol_get new)
	figure "sparse: writes of one block that were accepted, of 16384" "$accepted" writes
	vol_message checkpoint 2> /dev/null || true
	bar "sparse: the volume is still writable (1: yes)" "$([ "$(vol_get mode)" = write ] && echo 1 || echo 0)" "" -1
	vol_down
}

set_up
raw_read=$(cost /dev/ram/raw read 4096 "$IOS" 1) raw_write=$(cost /dev/ram/raw write 4096 "$IOS" 1)
echo "# RAM disks of 4 GiB each, of which little is used, the volume over-committed; $BLOCKS blocks in as many regions for \"size\"; tools/each.c with its one seed, $IOS I/Os for each figure"
for part in ${PARTS//,/ }; do
	case $part in
	size|regions|depth|sparse)	$part ;;
	*)	die "no part called $part" ;;
	esac
done
bars_end
