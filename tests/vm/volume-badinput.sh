#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Bad tables, wrong devices and damaged metadata get a precise message, and nothing on any drive is changed.
# vm: mode=functional cpus=1 memory=3G timeout=700 build=oracle
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

ALL_DRIVES=(fast slow third stray small_base)
F=/dev/mapper/fast S=/dev/mapper/slow T=/dev/mapper/third X=/dev/mapper/stray

# commands that have changed a drive, all drives together
changes() {
	dmsetup status --noflush --target drive | tr ' ' '\n' | awk -F= '/^(writes|zeroes|discards)=/ { n += $2 } END { print n }'
}

# unchanged WHAT BEFORE
unchanged() { check_eq "commands that changed a drive by $1" "$(changes)" "$2"; }

# the log since the last mark
mark() { dmesg -C; }
said() { dmesg; }

# refuse PATTERN TABLE: creating it fails, the log says why
refuse() {
	local pattern=$1 table=$2 log
	mark
	if dmsetup create --noudevsync --noudevrules vol --table "$table" > /dev/null 2>&1; then die "accepted: $table"; fi
	log=$(said)
	[[ $log =~ terrace:\ [^$'\n']*($pattern) ]] || die "wanted '$pattern' for '$table', the log says: $log"
}

# patch DEVICE BLOCK CRC_AT OFFSET HEX: change bytes of a block and make its CRC right again (CRC_AT -: leave it wrong)
patch() {
	/usr/bin/python3 -IS - "$@" <<-'PYTHON'
	import sys, os
	dev, block, crc_at, offset, data = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), bytes.fromhex(sys.argv[5])
	table = []
	for i in range(256):
	    c = i
	    for _ in range(8):
	        c = c >> 1 ^ (0x82f63b78 if c & 1 else 0)
	    table.append(c)
	fd = os.open(dev, os.O_RDWR)
	b = bytearray(os.pread(fd, 4096, block * 4096))
	def crc():
	    c = 0xffffffff
	    for x in b:
	        c = c >> 8 ^ table[(c ^ x) & 255]
	    return c
	if crc_at != '-':
	    at = int(crc_at)
	    old = b[at:at + 4]
	    b[at:at + 4] = bytes(4)
	    if crc().to_bytes(4, 'little') != old:
	        sys.exit('patch: this is not how the CRC is computed')
	b[offset:offset + len(data)] = data
	if crc_at != '-':
	    b[at:at + 4] = crc().to_bytes(4, 'little')
	os.pwrite(fd, b, block * 4096)
	os.fsync(fd)
	PYTHON
}

# save and restore the head of a drive: labels and metadata
save() { dd if="$1" of=/dev/shm/saved bs=1M count=6 iflag=direct status=none; }
restore() { dd if=/dev/shm/saved of="$1" bs=1M oflag=direct conv=fsync status=none; }

mkdrive fast ram 64 lbs=4096
mkdrive slow ram 256 lbs=4096
mkdrive third ram 256 lbs=4096
mkdrive stray ram 64 lbs=4096
mkdrive small_base ram 64 lbs=4096
load_terrace
VOL_DRIVES=("$F" "$S" "$T")
vol_format --tier optane:slots:atomic=$F --tier qlc:shelves=$S --tier hdd:shelves=$T
N=$(cut -d' ' -f2 <<< "$VOL_TABLE")
GOOD="- 3 $F optane slots $S qlc shelves $T hdd shelves"
check_eq "table of terracectl" "$(tr -s ' ' <<< "$VOL_TABLE" | sed 's/ 0 *$//')" "0 $N terrace $GOOD"

# ---- tables ----
before=$(changes)
refuse "Too few arguments" "0 $N terrace"
refuse "Too few arguments" "0 $N terrace -"
refuse "tiers is not a number from 2 to 8" "0 $N terrace - 1 $F optane slots 0"
refuse "tiers is not a number from 2 to 8" "0 $N terrace - 9 $GOOD 0"
refuse "tiers is not a number from 2 to 8" "0 $N terrace - three $F optane slots 0"
refuse "tiers is not a number from 2 to 8" "0 $N terrace - -1 $F optane slots 0"
refuse "each tier is <dev> <class> <kind>" "0 $N terrace - 3 $F optane slots $S qlc"
refuse "each tier is <dev> <class> <kind>" "0 $N terrace - 3 $F optane slots $S qlc shelves"
refuse "Class is not one of" "0 $N terrace - 3 $F floppy slots $S qlc shelves $T hdd shelves 0"
refuse "Kind is not one of" "0 $N terrace - 3 $F optane drawers $S qlc shelves $T hdd shelves 0"
refuse "formatted as another class" "0 $N terrace - 3 $F optane slots $S csd home $T hdd shelves 0"
refuse "formatted as another kind" "0 $N terrace - 3 $F optane slots $S qlc home $T hdd shelves 0"
refuse "Cannot open device" "0 $N terrace - 3 /dev/mapper/nothing optane slots $S qlc shelves $T hdd shelves 0"
refuse "[Nn]umber of options" "0 $N terrace $GOOD many"
refuse "[Nn]umber of options" "0 $N terrace $GOOD -1"
refuse "[Nn]umber of options" "0 $N terrace $GOOD 65"
refuse "[Nn]umber of options|fewer" "0 $N terrace $GOOD 2 queue_if_full=1"
refuse "More arguments than the number of options" "0 $N terrace $GOOD 0 queue_if_full=1"
refuse "Option is not of the form name=value" "0 $N terrace $GOOD 1 fast"
refuse "Unknown option" "0 $N terrace $GOOD 1 speed=11"
refuse "Option value is out of range" "0 $N terrace $GOOD 1 commit_ms=1"
refuse "Option value is not a number" "0 $N terrace $GOOD 1 commit_ms=1s"
refuse "Option value is not a number" "0 $N terrace $GOOD 1 commit_ms="
refuse "names no tier" "0 $N terrace $GOOD 1 atomic=no:3"
refuse "Unknown option|names no tier|value" "0 $N terrace $GOOD 1 atomic=no:x"
refuse "Length is beyond the volume's size" "0 $((N + 8)) terrace $GOOD 0"
refuse "Length is not a multiple of 8" "0 $((N - 1)) terrace $GOOD 0"
mark
expect_fail . dmc vol "0 8 zero
8 $((N - 8)) terrace $GOOD 0"
said | grep -E 'singleton|from sector 0' > /dev/null || die "a table with two targets: $(said)"
unchanged "malformed tables" "$before"
pass "malformed tables"

# ---- devices ----
refuse "carries no Terrace label" "0 $N terrace - 3 $F optane slots $S qlc shelves $X hdd shelves 0"
refuse "wrong order" "0 $N terrace - 3 $F optane slots $T qlc shelves $S hdd shelves 0"
refuse "wrong order" "0 $N terrace - 3 $F optane slots $S qlc shelves $S qlc shelves 0"
refuse "formatted as another class" "0 $N terrace - 3 $F optane slots $S hdd shelves $T hdd shelves 0"
refuse "formatted as another kind" "0 $N terrace - 3 $F optane shelves $S qlc shelves $T hdd shelves 0"
refuse "Number of tiers is not the volume's" "0 $N terrace - 2 $F optane slots $S qlc shelves 0"
refuse "Every tier is missing" "0 $N terrace - 3 missing optane slots missing qlc shelves missing hdd shelves 0"
refuse "is a tier, not a metadata device" "0 $N terrace $F 3 $F optane slots $S qlc shelves $T hdd shelves 0"
dmc short "0 $((32 * 2048)) linear $F 0"
refuse "smaller than its label says" "0 $N terrace - 3 /dev/mapper/short optane slots $S qlc shelves $T hdd shelves 0"
dmr short
unchanged "wrong devices" "$before"
terracectl format --force --tier optane:slots=$X --tier hdd:shelves=/dev/mapper/small_base --overcommit 1G > /dev/shm/said 2>&1 || true
if grep -q 'dmsetup create' /dev/shm/said; then
	refuse "belongs to another volume" "0 $N terrace - 3 $X optane slots $S qlc shelves $T hdd shelves 0"
	refuse "belongs to another volume" "0 $N terrace - 3 $F optane slots $S qlc shelves $X hdd shelves 0"
else
	# too small for a volume of its own: make it belong to another by hand
	dd if=$F of=$X bs=4k count=2 oflag=direct status=none
	patch $X 0 12 16 00112233445566778899aabbccddeeff
	patch $X 1 12 16 00112233445566778899aabbccddeeff
	refuse "belongs to another volume" "0 $N terrace - 3 $F optane slots $X qlc shelves $T hdd shelves 0"
fi
# of the volume, by its label, and that tier, but not what the superblock says the tier is made of
uuid=$(od -An -tx1 -j32 -N16 $S | tr -d ' \n')
for k in 0 1; do patch $S $k 12 32 00112233445566778899aabbccddeeff; done
before=$(changes)
refuse "is not the device that tier 1 is made of" "0 $N terrace $GOOD 0"
refuse "is not the device that tier 1 is made of" "0 $N terrace $GOOD 1 read_only"
unchanged "a stranger" "$before"
for k in 0 1; do patch $S $k 12 32 "$uuid"; done
pass "wrong devices"

# ---- damaged metadata ----
dd if=/dev/urandom of=/dev/shm/data bs=1M count=2 status=none
vol_up
for region in 0 5 9; do dd if=/dev/shm/data of="$VOL" bs=1M seek=$((region * 4)) oflag=direct status=none; done
mark
expect_fail . dmc other "0 $N terrace $GOOD 0"
said | grep -E 'already open' > /dev/null || die "a second open: $(said)"
vol_down
vol_check
save $F
# Where it opens all the same, it opens read-only: what is restored then still fits the mirror.
patch $F 0 - 200 ff		# one label copy: the other serves
vol_up read_only
vol_down
restore $F
patch $F 0 - 200 ff
patch $F 1 - 200 ff
before=$(changes)
refuse "Both copies of the device's label are damaged" "0 $N terrace $GOOD 0"
unchanged "opening without labels" "$before"
restore $F
patch $F 0 12 8 02000000
patch $F 1 12 8 02000000
refuse "formatted by a newer version" "0 $N terrace $GOOD 0"
restore $F
meta=$(od -An -td8 -j104 -N8 $F | tr -d ' ')
for k in 0 1; do patch $F $((meta + k)) 12 56 0100000000000000; done
before=$(changes)
refuse "features that this version does not know|newer format than this module" "0 $N terrace $GOOD 0"
unchanged "opening a newer volume" "$before"
restore $F
dd if=/dev/zero of=$F bs=4k seek="$meta" count=2 oflag=direct conv=fsync status=none
before=$(changes)
refuse "superblock|[Ll]azy|mirror" "0 $N terrace $GOOD 0"
unchanged "opening without superblocks" "$before"
restore $F
patch $F "$meta" - 300 ff	# the older or the newer of the two superblocks
if vol_up read_only 2> /dev/null; then
	dd if="$VOL" bs=1M count=2 iflag=direct status=none | cmp - /dev/shm/data
	vol_down
else
	klog_has "superblock . of metadata copy 0 is not usable" || die "a damaged superblock is not named in the log"
fi
restore $F
pass "damaged labels and superblocks"

# a map page: its region gives EIO, the others their data
/usr/bin/python3 -IS - $F <<-'PYTHON'
	import os, sys
	fd = os.open(sys.argv[1], os.O_RDWR)
	n = 0
	for block in range(6 << 8):
	    b = os.pread(fd, 4096, block * 4096)
	    if b[:4] == b'TMAP' and int.from_bytes(b[8:16], 'little') == 5:
	        os.pwrite(fd, b[:100] + bytes([b[100] ^ 1]) + b[101:], block * 4096)
	        n += 1
	os.fsync(fd)
	sys.exit(0 if n else 'no map page of region 5')
PYTHON
expect_fail "." terracectl check --full "${VOL_DRIVES[@]}"
# the lazy mirror may still have it: without it the region is lost
before=$(changes)
vol_up read_only
if dd if="$VOL" bs=1M skip=20 count=2 iflag=direct of=/dev/shm/got status=none 2> /dev/null; then
	cmp /dev/shm/got /dev/shm/data || die "a damaged map page gives wrong data"
	echo "region 5 came from the mirror"
else
	klog_has "terrace: .*region 5" || die "the lost region is not named in the log: $(dmesg | tail -5)"
fi
for region in 0 9; do dd if="$VOL" bs=1M skip=$((region * 4)) count=2 iflag=direct status=none | cmp - /dev/shm/data; done
vol_down
[ "$(changes)" = "$before" ] || die "a read-only open has written"
restore $F
vol_check
vol_up
for region in 0 5 9; do dd if="$VOL" bs=1M skip=$((region * 4)) count=2 iflag=direct status=none | cmp - /dev/shm/data; done

# ---- a damaged journal block: nothing behind it is believed, nothing before it lost ----
for k in 1 2 3 4; do
	dd if=/dev/shm/data of="$VOL" bs=64k count=1 seek=$((2000 + k)) oflag=direct status=none
	sync "$VOL"
done
for d in "${ALL_DRIVES[@]}"; do drive_cut "$d"; done
dmr vol
for d in "${ALL_DRIVES[@]}"; do drive_revive "$d"; done
at=$(/usr/bin/python3 -IS - $F <<-'PYTHON'
	import os, sys
	fd = os.open(sys.argv[1], os.O_RDONLY)
	found = []
	for block in range(6 << 8):
	    b = os.pread(fd, 4096, block * 4096)
	    if b[:4] == b'TJNL':
	        found.append((int.from_bytes(b[8:16], 'little'), block))
	print(sorted(found)[-1][1])
PYTHON
)
patch $F "$at" - 70 ff
vol_up
for k in 1 2 3; do dd if="$VOL" bs=64k count=1 skip=$((2000 + k)) iflag=direct status=none | cmp -n 65536 - /dev/shm/data; done
vol_down
vol_check
pass "damaged pages and journal blocks"
