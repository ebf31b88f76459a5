#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A full volume refuses no write while a discard that was acknowledged is still giving its room back.
# vm: mode=functional memory=3G timeout=300
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

mkdrive fast ram 64 lbs=4096
mkram slow 448
export VOL_DRIVES=(/dev/mapper/fast /dev/ram/slow)
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --overcommit 1G
vol_up stream_kb=0 commit_ms=50
dd if=/dev/urandom of=/dev/shm/noise bs=1M count=16 status=none
write() { dd if=/dev/shm/noise of="$VOL" bs=1M seek="$1" count="$2" oflag=direct status=none; }
for ((at = 0; at < 1024; at += 16)); do write $at 16 2> /dev/shm/why || break; done
grep -q 'No space left' /dev/shm/why || die "not full after $at MiB: $(cat /dev/shm/why)"
[ $at -ge 160 ] || die "full after $at MiB already"
# its verdict stands, and nothing is being freed
sleep 2
! write 1200 4 2> /dev/null || die "there was room: $(vol_status)"
vol_message checkpoint
vol_message evict
# what was written last is on the shelves; its regions must be loaded before anything is free
drive fast error add read 0 0 delay=300ms status=ok
blkdiscard -o $(((at - 96) << 20)) -l $((96 << 20)) "$VOL"
write 1200 4 || die "refused while a discard was at work: $(vol_status)"
drive fast error clear
cmp -n $((4 << 20)) -i 0:$((1200 << 20)) /dev/shm/noise "$VOL"
vol_down
vol_check
pass "full after $at MiB, and a write waited for a discard"
