#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# However much of a volume is touched, what it keeps in memory stays below its limit: regions, table pages, chunks.
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
