#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A map page that cannot be read for a while is not called damaged: its region is served again, and discards of it hold, when the drive answers.
# vm: mode=functional cpus=1 memory=2G timeout=600
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

REGION=$((4 << 20))
at() { dd if="$VOL" bs=4k iflag=count_bytes,skip_bytes,direct skip="$1" count="$2" status=none; }
used() { vol_status | tr ' ' '\n' | awk -F'[=/]' '$1 == "used" { n += $2 } END { print n }'; }
# unread: no map page of region 1 can be read
unread() {
	local block
	dd if=/dev/mapper/fast of=/dev/shm/meta bs=1M count=32 iflag=direct status=none
	while read -r block; do drive fast error add read $((block * 8)) 8; done < <(vol_map_pages /dev/shm/meta 1)
}

vol_drives 64 256
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --journal 1M
vol_up
empty=$(used)
dd if=/dev/urandom of=/dev/shm/data bs=1M count=12 status=none
dd if=/dev/shm/data of="$VOL" bs=1M count=12 oflag=direct status=none
vol_down

klog_allow 'drive fast'
klog_expect 'number 1 at meta block .*: the drive of copy 0 cannot be read'
unread
vol_up
at 0 $REGION | cmp -n $REGION - /dev/shm/data
expect_fail 'Input/output error' at $REGION 4096
expect_fail 'Input/output error' at $REGION 4096
check_eq "mode" "$(vol_get mode)" write
klog_has 'region 1 is damaged' && die "a page that could not be read is called damaged"
drive fast error clear
at $REGION $REGION | cmp -i 0:$REGION -n $REGION - /dev/shm/data
pass "served again when the drive answers"

# a range discard meets it meanwhile; -f: do not look for a filesystem in it
vol_message checkpoint
vol_message evict
unread
blkdiscard -f -o 0 -l $((20 * REGION)) "$VOL"
sync "$VOL"
sleep 1
[ "$(used)" -gt "$empty" ] || die "a page that cannot be read was emptied"
drive fast error clear
for ((i = 0; i < 20; i++)); do
	vol_message checkpoint
	[ "$(used)" != "$empty" ] || break
	sync "$VOL"
	sleep 0.5
done
check_eq "blocks in use" "$(used)" "$empty"
at 0 $((3 * REGION)) | cmp -n $((3 * REGION)) - /dev/zero
vol_down
vol_check
pass "discards hold"

# a page that looks damaged for a while, as after a bad read, below a range discard: what was discarded must not come back
vol_up
dd if=/dev/shm/data of="$VOL" bs=1M count=12 oflag=direct status=none
vol_down
klog_expect 'map page of region 1 is damaged'
dd if=/dev/mapper/fast of=/dev/shm/meta bs=1M count=32 iflag=direct status=none
pages=$(vol_map_pages /dev/shm/meta 1)
[ "$pages" ] || die "no map page of region 1 found"
for block in $pages; do dd if=/dev/urandom of=/dev/mapper/fast bs=4k seek="$block" count=1 oflag=direct conv=notrunc status=none; done
vol_up
blkdiscard -f -o 0 -l $((20 * REGION)) "$VOL"
sync "$VOL"
for ((i = 0; i < 3; i++)); do	# the range ends, but for that region; the journal's tail passes its record
	sleep 1
	vol_message checkpoint
done
at 0 $REGION | cmp -n $REGION - /dev/zero
at $((2 * REGION)) $REGION | cmp -n $REGION - /dev/zero
expect_fail 'Input/output error' at $REGION 4096
check_eq "mode" "$(vol_get mode)" write
vol_down
for block in $pages; do dd if=/dev/shm/meta of=/dev/mapper/fast bs=4k skip="$block" seek="$block" count=1 oflag=direct conv=notrunc status=none; done
vol_up
at 0 $((3 * REGION)) | cmp -n $((3 * REGION)) - /dev/zero || die "what was discarded has come back"
for ((i = 0; i < 20; i++)); do
	[ "$(used)" != "$empty" ] || break
	vol_message checkpoint
	sleep 0.5
done
check_eq "blocks in use" "$(used)" "$empty"
vol_down
vol_check
pass "discards below a damaged page hold"
