#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Two fast tiers, two shelf tiers and the metadata on a drive of its own: thousands of operations, clean stops, power cuts.
# vm: mode=functional memory=3G timeout=800 build=oracle,orders
STEPS=${STEPS:-4}
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/volume-oracle.bash"

PATH=$TERRACE_TREE/build:$PATH in_ram orders
# the janitor fills one tier of shelves before the next: orders use both
# (looked at here and not at the end, for a power cut before the next commit takes moves back)
declare -A seen=()
between() {
	local tier said
	from_ram orders /dev/terrace/vol random 6 "$1" 40 tier_down=$((2 + $1 % 2))
	said=$(vol_status)
	for tier in 0 1 2 3; do
		[[ ! $said =~ \ $tier:[^\ ]*\ used=[1-9] ]] || seen[$tier]=yes
	done
}

VOL_DRIVES=()
for drive in meta:64 fast:32 next:64 flat:640 slow:640; do
	mkdrive "${drive%:*}" ram "${drive#*:}" lbs=4096 group=pc
	VOL_DRIVES+=("/dev/mapper/${drive%:*}")
done
new_volume() {
	vol_format --size 208M --meta "${VOL_DRIVES[0]}" --tier "optane:slots:atomic=${VOL_DRIVES[1]}" --tier "nvme:slots:atomic=${VOL_DRIVES[2]}" \
		--tier "qlc:shelves:atomic:align-16K=${VOL_DRIVES[3]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[4]}"
}
new_volume
oracle_life
check_eq "tiers that were used" "${#seen[@]}" 4
pass "all four tiers were used"

# on a new volume, blocks 0-99 of region 3 get clean copies on the first tier, then its drive is missing: their pack serves
new_volume
vol_up
dd if=/dev/urandom of=/dev/shm/data bs=1M count=4 status=none
dd if=/dev/shm/data of="$VOL" bs=1M seek=12 oflag=direct status=none
order() { from_ram orders /dev/terrace/vol move 3 "$@" > /dev/shm/order || die "$*: $(cat /dev/shm/order)"; }
whole() { dd if="$VOL" bs=1M skip=12 count=4 iflag=direct status=none | cmp - /dev/shm/data || die "$1"; }
order append tier_down=2
order raise up=0-99
grep -q ' up=100 ' /dev/shm/order || die "not raised: $(cat /dev/shm/order)"
whole "with clean copies"
# its drive fails while the volume runs: whole bios of clean copies, parts of bios, bios that were deferred
dd if=/dev/shm/data of="$VOL" bs=4k skip=104 seek=$((3 * 1024 + 104)) count=20 oflag=direct status=none
drive fast error add read 0 0
for first in 0 60 92; do
	dd if="$VOL" bs=48k skip=$((3 * 4096 + first * 4))k iflag=direct,skip_bytes count=1 status=none |
		cmp -n $((12 * 4096)) -i 0:$((first * 4096)) - /dev/shm/data || die "clean copies on a failing drive, from block $first on"
done
if dd if="$VOL" bs=48k skip=$((3 * 4096 + 96 * 4))k iflag=direct,skip_bytes count=1 status=none 2> /dev/null > /dev/null; then
	die "a block that is only on the failing drive was read"
fi
drive fast error clear
whole "with clean copies, the drive well again"
order append tier_down=2
order raise up=0-99
dd if=/dev/shm/data of="$VOL" bs=4k seek=5120 count=1 oflag=direct status=none	# on the first tier, and nowhere else
vol_down
table=$VOL_TABLE
VOL_TABLE=${VOL_TABLE/${VOL_DRIVES[1]}/missing}
vol_up
check_eq "first tier missing" "$(vol_tier 0 missing)" yes
whole "clean copies on a missing drive"
if dd if="$VOL" bs=4k skip=5120 count=1 iflag=direct status=none 2> /dev/null > /dev/null; then
	die "a block that is only on the missing drive was read"
fi
vol_down
VOL_TABLE=$table
vol_up
whole "with the drive again"
vol_down
pass "the pack serves when the drive of its clean copies is missing"

# ---- checksums of every block: a tier on dm-integrity. What it finds is EIO for just that block ----
need dm-integrity
mkram sum 64
integrity() { dmc sum "0 $1 integrity /dev/ram/sum 0 - J 2 internal_hash:crc32c block_size:4096"; }
integrity 8	# formats it, and then says how much it has room for
size=$(dmsetup status sum | awk '{ print $5 }')
dmr sum
integrity "$size"
dd if=/dev/zero of=/dev/mapper/sum bs=1M count=$((size / 2048)) oflag=direct status=none	# gives every block a checksum
slow=${VOL_DRIVES[4]}
vol_format --size 64M --tier optane:slots:atomic=/dev/mapper/sum --tier "hdd:shelves:atomic=$slow"
vol_up stream_kb=0
dd if=/dev/shm/data of="$VOL" bs=1M oflag=direct status=none
# block 77 lies on the drive as it was written
printf 'here it is: %4084d' 77 > /dev/shm/block
dd if=/dev/shm/block of="$VOL" bs=4k seek=77 oflag=direct status=none
vol_down
dmr sum
at=$(grep -abo -m1 'here it is: ' /dev/ram/sum | cut -d: -f1)
printf x | dd of=/dev/ram/sum bs=1 seek=$((at + 100)) conv=notrunc status=none
blockdev --flushbufs /dev/ram/sum
integrity "$size"
vol_up stream_kb=0
klog_allow "device-mapper: integrity: .*Checksum failed|INTEGRITY AREA ERROR|I/O error"
if dd if="$VOL" of=/dev/null bs=4k skip=77 count=1 iflag=direct status=none 2> /dev/null; then die "a damaged block was read"; fi
for part in "0 77" "78 946"; do
	read -r first count <<< "$part"
	dd if="$VOL" bs=4k skip="$first" count="$count" iflag=direct status=none | cmp -n $((count * 4096)) -i 0:$((first * 4096)) - /dev/shm/data ||
		die "$count blocks from $first on"
done
vol_down
pass "a tier on dm-integrity: a damaged block is an error, and no other"
