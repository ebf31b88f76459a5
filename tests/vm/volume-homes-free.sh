#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# With everything else full, writers whose own homes are free get them, though none of the bitmaps that say so is in memory.
# vm: mode=functional memory=1G timeout=300 build=orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

PATH=$TERRACE_TREE/build:$PATH in_ram orders fio dmsetup
write() { fio_ --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --bs=4k --rw=randwrite "$@" > /dev/shm/fio 2>&1; }

# ten chunks of homes, and a volume that goes beyond them
mkram fast 32
mkram csd 640
VOL_DRIVES=(/dev/ram/fast /dev/ram/csd)
vol_format --size 1G --overcommit 1G --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "csd:atomic=${VOL_DRIVES[1]}"
vol_up commit_ms=100

# The slots are full, and stay so: what is there is pinned, or has no home.
from_ram orders /dev/terrace/vol range 0 8192 pin-fast > /dev/shm/pinned || die "pin: $(cat /dev/shm/pinned)"
dd if=/dev/zero of="$VOL" bs=1M count=32 oflag=direct conv=fsync status=none
expect_fail "No space left" dd if=/dev/zero of="$VOL" bs=64k seek=12000 oflag=direct

for ((round = 1; round <= ${ROUNDS:-40}; round++)); do
	vol_message checkpoint
	vol_message evict
	write --offset=64m --size=512m --number_ios=64 --iodepth=32 --norandommap --randrepeat=0 --randseed=$round ||
		die "round $round: $(grep -m3 -i error /dev/shm/fio)"
done
expect_fail "No space left" dd if=/dev/zero of="$VOL" bs=4k count=1 seek=250000 oflag=direct
vol_down
vol_check
pass "$round rounds of 64 writers found their homes"
