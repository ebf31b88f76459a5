#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What the janitor could not pack while a drive could not be read, it packs once it can.
# vm: mode=functional memory=3G timeout=600 long
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

STEP=16		# MiB
OVER=512
mkram fast 64
mkdrive slow ram 512
export VOL_DRIVES=(/dev/ram/fast /dev/mapper/slow)
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --overcommit ${OVER}M
data=$(vol_layout slow data) data=${data% *}
vol_up stream_kb=0 commit_ms=100 janitor_high=1000
room=$(($(sectors "$VOL") / 2048 - OVER))
early=$((room * 9 / 10 / STEP)) steps=$((room * 15 / 10 / STEP))
/usr/bin/python3 -ISc '
import os, sys
for block in range(int(sys.argv[1]) * 256):
    sys.stdout.buffer.write(os.urandom(2048) + bytes(2048))' $STEP > /dev/shm/data
put() { dd if=/dev/shm/data of="$VOL" bs=256k seek=$(($1 * STEP * 4)) oflag=direct status=none; }

drive slow error add read "$data" 0
for ((k = 0; k < early; k++)); do
	put $k || die "refused after $((k * STEP)) MiB: $(vol_status)"
done
for ((i = 0; i < 60; i++)); do
	was=$(drive_get slow reads)
	sleep 2
	[ "$(drive_get slow reads)" != "$was" ] || break
done
echo "after $((early * STEP)) MiB: $(vol_status), reads $was"
drive slow error clear
for (( ; k < steps; k++)); do
	put $k || die "refused after $((k * STEP)) MiB of $((steps * STEP)), the raw room is $room MiB: $(vol_status)"
done
for ((k = 0; k < steps; k++)); do
	cmp -i 0:$((k * STEP << 20)) -n $((STEP << 20)) /dev/shm/data "$VOL" || die "other data at $((k * STEP)) MiB"
done
vol_down
vol_check
pass "$((steps * STEP)) MiB in a raw room of $room"
