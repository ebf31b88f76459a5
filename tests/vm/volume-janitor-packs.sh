#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Without a daemon a volume that is larger than its drives packs: what compresses to a half fills it to 1.3 times its raw room.
# vm: mode=functional memory=3G timeout=600 long
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

STEP=16		# MiB, written and compared at a time
OVER=512	# MiB
vol_ram 64 512
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --overcommit ${OVER}M
vol_up stream_kb=0 commit_ms=100
room=$(($(sectors "$VOL") / 2048 - OVER))
steps=$((room * 13 / 10 / STEP))
/usr/bin/python3 -ISc '
import os, sys
for block in range(int(sys.argv[1]) * 256):
    sys.stdout.buffer.write(os.urandom(2048) + bytes(2048))' $STEP > /dev/shm/data
for ((k = 0; k < steps; k++)); do
	dd if=/dev/shm/data of="$VOL" bs=256k seek=$((k * STEP * 4)) oflag=direct status=none ||
		die "refused after $((k * STEP)) MiB of $((steps * STEP)), the raw room is $room MiB: $(vol_status)"
done
sync "$VOL"
for ((k = 0; k < steps; k++)); do
	cmp -i 0:$((k * STEP << 20)) -n $((STEP << 20)) /dev/shm/data "$VOL" || die "other data at $((k * STEP)) MiB"
done
check_eq "mode" "$(vol_get mode)" write
said=$(vol_status)
vol_down
vol_check
echo "$said"
pass "$((steps * STEP)) MiB in a raw room of $room"

# what does not compress is refused at the raw room, not before, and the janitor comes to an end
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --overcommit ${OVER}M
vol_up stream_kb=0 commit_ms=100
dd if=/dev/urandom of=/dev/shm/data bs=1M count=$STEP status=none
for ((k = 0; k < steps; k++)); do
	dd if=/dev/shm/data of="$VOL" bs=256k seek=$((k * STEP * 4)) oflag=direct status=none 2> /dev/null || break
done
[ $k -lt $steps ] || die "$((steps * STEP)) MiB of noise in a raw room of $room"
[ $((k * STEP)) -ge $((room * 85 / 100)) ] || die "refused after $((k * STEP)) MiB of noise, the raw room is $room MiB: $(vol_status)"
for ((i = 0; i < k; i++)); do
	cmp -i 0:$((i * STEP << 20)) -n $((STEP << 20)) /dev/shm/data "$VOL" || die "other data at $((i * STEP)) MiB"
done
sleep 5
before=$(vol_get records)
sleep 5
check_eq "records of a full volume that nobody writes to" "$(vol_get records)" "$before"
vol_down
vol_check
pass "noise was refused after $((k * STEP)) MiB of $room"
