#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Writers within the virtual size are not refused while the writes that use up the last shelf are still under way.
# vm: mode=functional memory=3G timeout=300 long
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

in_ram fio
mkdrive slow ram 384
mkram fast 64
export VOL_DRIVES=(/dev/ram/fast /dev/mapper/slow)
vol_format
# the slots are full first, and stay so: what is on shelves is overwritten on shelves
vol_up stream_kb=0 janitor_high=1000 trim_ms=1
size=$(($(sectors "$VOL") / 2048))
dd if=/dev/zero of="$VOL" bs=1M count=$size oflag=direct status=none || die "refused: $(vol_status)"
vol_message commit
sleep 2
vol_status
drive slow error add write 0 0 hold
fio_ --name=x --filename="$VOL" --direct=1 --ioengine=libaio --rw=write --bs=64k --offset=96m --size=96m --iodepth=1536 > /dev/shm/said 2>&1 &
writer=$!
drive_wait_held slow
for ((last = 0, now = 1; now != last; )); do
	last=$now
	sleep 2
	now=$(drive_get slow held)
done
[ "$now" -lt 1536 ] || die "none of the writes had to wait: $(vol_status)"
sleep 5
vol_status
drive slow error clear
drive slow release
wait $writer || die "refused while $now writes were under way: $(head -1 /dev/shm/said) $(vol_status)"
dd if=/dev/zero of="$VOL" bs=1M seek=64 count=$((size - 64)) oflag=direct status=none || die "refused: $(vol_status)"
vol_down
vol_check
pass "$now writes were under way, the others waited"
