#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A map page that must be changed and stays unreadable: after a minute the volume is read-only, and nobody waits for ever; what it holds is read, and when the drive answers again nothing is lost.
# vm: mode=vtime memory=2G timeout=600
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

REGION=1024		# blocks
put() { dd if=/dev/shm/data of="$VOL" bs=4k seek="$1" skip="$1" count="${2:-1}" oflag=direct,dsync conv=notrunc status=none; }
same() { dd if="$VOL" bs=4k iflag=direct skip="$1" count="${2:-1}" status=none | cmp -i 0:$(($1 * 4096)) -n $((${2:-1} * 4096)) - /dev/shm/data; }

vol_drives 64 256
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --journal 1M --mirror none
# each block's record shall be in the journal when its turn comes: nothing is prepared
vol_up append_kb=0
dd if=/dev/urandom of=/dev/shm/data bs=1M count=12 status=none
put 0 $((REGION + 500))
vol_message checkpoint

# another block of region 1 is in the journal, its page cannot be read
put $((REGION + 700))
vol_cut
dd if=/dev/mapper/fast of=/dev/shm/meta bs=1M count=32 iflag=direct status=none
while read -r block; do drive fast error add read $((block * 8)) 8; done < <(vol_map_pages /dev/shm/meta 1)
klog_allow 'drive fast'
klog_expect 'number 1 at meta block .*: the drive of copy 0 cannot be read'
klog_expect 'no checkpoint has succeeded for a minute .*: the volume is read-only'
vol_up commit_ms=100 append_kb=0
# a journal block for each write: half of it, and a checkpoint comes; all of it, and writers wait
began=$(date +%s) at=0
while [ "$(vol_get mode)" = write ] && [ $(($(date +%s) - began)) -lt 200 ]; do
	timeout 150 dd if=/dev/shm/data of="$VOL" bs=4k skip=$at seek=$((2 * REGION + at)) count=40 oflag=direct,dsync conv=notrunc status=none 2> /dev/null || true
	at=$((at + 40))
	sleep 1
done
took=$(($(date +%s) - began))
check_eq "mode" "$(vol_get mode)" read-only
[ $took -ge 30 ] || die "read-only after $took s: a drive may be away for a moment"
expect_fail 'Input/output error|Read-only' put 5
same 0 100
expect_fail 'Input/output error' same $((REGION + 700))
vol_down
drive fast error clear
vol_up
check_eq "mode" "$(vol_get mode)" write
same 0 $((REGION + 500))
same $((REGION + 700))
vol_down
vol_check
pass "read-only after $took s, nothing lost"
