#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A volume larger than its drives, full of noise: that it cannot be packed costs none of the room for cleaning, and what is deleted is room again.
# vm: mode=functional memory=4G timeout=600 long
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

# a region of each shelf, packed in vain, would fill more than one shelf
vol_ram 16 1344
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --overcommit 1G
vol_up stream_kb=0 commit_ms=100 janitor_high=1000 throttle_us=0
size=$(($(sectors "$VOL") / 2048)) room=$((size - 1024))
dd if=/dev/urandom of=/dev/shm/noise bs=1M count=32 status=none
for ((k = 0; k < size; k += 32)); do
	dd if=/dev/shm/noise of="$VOL" bs=1M seek=$k oflag=direct status=none 2> /dev/null || break
done
full=$(vol_status) least=$(vol_tier 1 free_shelves)
echo "refused after $k MiB of noise, the raw room is $room: $full"
[ $k -lt $((room * 11 / 10)) ] || die "$k MiB of noise in a raw room of $room"
for ((i = 0; i < k; i += 64)); do
	blkdiscard -o $((i << 20)) -l $((4 << 20)) "$VOL"
done
taken=
for ((i = 0; i < 60; i++)); do
	! dd if=/dev/shm/noise of="$VOL" bs=256k count=4 oflag=direct status=none 2> /dev/null || { taken=$i; break; }
	sleep 1
done
vol_status
[ "$taken" ] || die "a sixteenth was deleted, and nothing can be written"
[ "$least" -gt 0 ] || die "noise was refused, and no shelf was left for cleaning"
vol_down
vol_check
pass "refused after $k MiB of noise; a sixteenth deleted: written after $taken s"
