#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A shelf whose old owner table cannot be erased is not opened, the next one is; it is tried anew later.
# vm: mode=functional memory=2G timeout=300
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

# shelves that loose blocks of the volume lie in
shelves() {
	terracectl dump --json map "${VOL_DRIVES[@]}" | /usr/bin/python3 -ISc '
import json, sys
regions = [i for i in json.load(sys.stdin)["items"] if i["item"] == "region"]
print(*sorted({run["place"] // 16384 for region in regions for run in region["run"] if run["tier"] == 1}))'
}

mkdrive slow ram 512
mkram fast 64
export VOL_DRIVES=(/dev/ram/fast /dev/mapper/slow)
vol_format
fuas=$(drive_get slow fuas)
vol_up stream_kb=0 janitor_high=1000 age_s=1 throttle_us=0
dd if=/dev/zero of="$VOL" bs=1M count=80 oflag=direct status=none
[ "$(drive_get slow fuas)" -gt "$fuas" ] || die "shelves were opened, and nothing was durable before"
vol_down
used=$(shelves)
vol_check

vol_format
data=$(vol_layout slow data) data=${data% *}
klog_expect 'old owner table of shelf \d+ on tier 1 not erased'
for shelf in $used; do
	drive slow error add write $((data + ((shelf + 1) * 16384 - 33) * 8)) $((33 * 8))
done
vol_up stream_kb=0 janitor_high=1000 age_s=2 throttle_us=0
dd if=/dev/zero of="$VOL" bs=1M count=150 oflag=direct status=none
vol_message checkpoint
vol_down
now=$(shelves)
for shelf in $used; do
	[[ " $now " != *" $shelf "* ]] || die "shelf $shelf was opened: loose blocks lie in $now"
done
vol_check
pass "loose blocks lie in shelves $now, not in $used"

# a volume within its virtual size needs all of them
vol_up stream_kb=0 janitor_high=1000 age_s=2 throttle_us=0
dd if=/dev/zero of="$VOL" bs=1M seek=150 count=100 oflag=direct status=none
drive slow error clear
sleep 5
size=$(($(sectors "$VOL") / 2048))
dd if=/dev/zero of="$VOL" bs=1M seek=250 count=$((size - 250)) oflag=direct status=none || die "refused: $(vol_status)"
vol_down
now=$(shelves)
for shelf in $used; do
	[[ " $now " == *" $shelf "* ]] || die "shelf $shelf was not tried anew: loose blocks lie in $now"
done
vol_check
pass "then in $now"

# a drive that refuses writes for a moment costs no more than that
vol_format
vol_up stream_kb=0 janitor_high=1000 age_s=3600 throttle_us=0
dd if=/dev/zero of="$VOL" bs=1M count=60 oflag=direct status=none
drive slow error add write 0 "$(sectors /dev/mapper/slow)"
for ((i = 0; i < 60; i++)); do	# until the shelves that stand open are used up
	dd if=/dev/zero of="$VOL" bs=4M seek=$((15 + i)) count=1 oflag=direct status=none 2> /dev/null && die "not refused: $(vol_status)"
done
drive slow error clear
sleep 5
dd if=/dev/zero of="$VOL" bs=1M seek=60 count=30 oflag=direct status=none || die "still refused: $(vol_status)"
vol_down
vol_check
pass "refused for a moment, then not"
