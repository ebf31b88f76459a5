#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# However much of a volume is touched, what it keeps in memory stays below its limit: regions, table pages, chunks; and what it counts is what the allocator gave.
# vm: mode=functional memory=2G timeout=600
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

LIMIT=4		# MiB
used() { vol_status | tr ' ' '\n' | awk -F'[=/]' '$1 == "used" { n += $2 } END { print n }'; }
# stays_below BYTES: after the workers have had their time
stays_below() {
	local i
	for ((i = 0; i < 20; i++)); do
		[ "$(vol_get memory)" -gt "$1" ] || return 0
		sleep 0.5
	done
	die "$(vol_get memory) bytes in memory, wanted $1 at most: $(vol_status)"
}

# slabs: bytes of whole slabs that regions and their arrays take
slabs() { awk '/^terrace_(region|array)/ { n += $15 * $6 * 4096 } END { print n + 0 }' /proc/slabinfo; }

vol_ram 256 256
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --overcommit 8T
vol_up memory_mb=$LIMIT

# a block of every table page: 4 KiB for each, 16 MiB without the limit
python3 - "$VOL" << 'PYTHON'
import mmap
import os
import sys
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
buf = mmap.mmap(-1, 4096)
for i in range(4096):
    os.preadv(fd, [buf], i << 31)
    assert not any(buf[:64])
PYTHON
stays_below $(((LIMIT + 1) << 20))
pass "table pages: $(vol_get memory) bytes"

# chunks leave when their pages say all, and come back with what was in them
dd if=/dev/urandom of=/dev/shm/data bs=1M count=16 status=none
dd if=/dev/shm/data of="$VOL" bs=1M oflag=direct conv=fsync status=none
dd if=/dev/shm/data of="$VOL" bs=1M oflag=direct,seek_bytes conv=fsync seek=$((1 << 40)) status=none
full=$(used)
before=$(vol_get memory)
vol_message checkpoint
vol_message evict
echo "memory: $before bytes, $(vol_get memory) after checkpoint and evict"
blkdiscard -o 0 -l $((16 << 20)) "$VOL"
sync "$VOL"
for ((i = 0; i < 20; i++)); do
	[ "$(used)" != $((full - 4096)) ] || break
	sync "$VOL"
	sleep 0.5
done
check_eq "blocks in use" "$(used)" $((full - 4096))
vol_message checkpoint
vol_message evict
dd if=/dev/shm/data of="$VOL" bs=1M oflag=direct,seek_bytes conv=fsync seek=$((1 << 41)) status=none
for at in $((1 << 40)) $((1 << 41)); do
	dd if="$VOL" bs=1M iflag=direct,skip_bytes skip=$at count=16 status=none | cmp - /dev/shm/data
done
check_eq "blocks in use" "$(used)" "$full"
vol_down
vol_check
pass "chunks"

# A block each of many regions, half full ones among them; then full and half full ones: the
# count is near what the slabs take. (Slabs that are partly empty are the share of a
# quarter; a slab of each size and CPU, and the reserves, the MiB.)
near() {	# WHAT BYTES
	local got
	sleep 8		# what is on its way back by RCU; a tick gives back empty slabs
	got=$(slabs)
	echo "memory: $1: $got bytes in slabs, $(vol_get memory) counted"
	[ "$got" -gt $(($2 / 2)) ] || die "$1: $got bytes in slabs of regions, at least $(($2 / 2)) were expected: is that what they are called?"
	[ "$got" -le $(($2 * 5 / 4 + (1 << 20))) ] || die "$1: $got bytes in slabs of regions, of which $2 are accounted for"
}

vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --overcommit 8T
vol_up age_s=2
python3 - "$VOL" << 'PYTHON'
import mmap
import os
import sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
one = mmap.mmap(-1, 4096)
half = mmap.mmap(-1, 2048 << 10)
for i in range(1500):
    os.pwritev(fd, [one], i << 22)
    if i % 125 == 0:
        os.pwritev(fd, [half], (i << 22) + (1 << 20))
os.fsync(fd)
PYTHON
vol_message checkpoint
near "a block each of 1500 regions" "$(vol_get memory)"
vol_down

vol_format
vol_up age_s=2
dd if=/dev/zero of="$VOL" bs=1M count=160 oflag=direct conv=fsync status=none
for ((i = 0; i < 40; i += 4)); do blkdiscard -o $((i << 22)) -l $((2 << 20)) "$VOL"; done
sync "$VOL"
vol_message checkpoint
vol_message evict
dd if="$VOL" of=/dev/null bs=1M count=160 iflag=direct status=none	# every region is back
near "full and half full regions" "$(vol_get memory)"
vol_down
pass "what is counted is what is taken"
