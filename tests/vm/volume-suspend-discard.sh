#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Nothing is written to the drives of a volume that is suspended in the middle of a large discard, whoever asks where its blocks are; the discard ends when it is resumed.
# vm: mode=functional memory=1G timeout=300 build=orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/orders.bash"

IDLE_S=30	# from a commit to a checkpoint, checkpoint.c
NR=60		# regions with a block each
GONE=50		# of these are discarded
drives() { echo "$(drive_get fast writes) $(drive_get fast discards) $(drive_get slow writes) $(drive_get slow discards)"; }
unchanged() { check_eq "writes and discards of both drives, $1" "$(drives)" "$before"; }

mkdrive fast ram 64 lbs=4096
mkdrive slow ram 384 lbs=4096		# with the lazy copy of the metadata
export VOL_DRIVES=(/dev/mapper/fast /dev/mapper/slow)
vol_format
vol_up commit_ms=100
used=$(vol_tier 0 used)
left=$((${used%/*} + NR - GONE))/${used#*/}
/usr/bin/python3 -ISc '
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
for region in range(int(sys.argv[2])):
    os.pwrite(fd, b"%04096d" % region, region << 22)
os.fsync(fd)' "$VOL" $NR
vol_message checkpoint
vol_message evict
one="present=1 fast=1 packed=0 packs=0"
check_eq "a region beside the discard, which is loaded now" "$(ask show $((NR - 1)))" "$one"

# each page takes its time to be read: the discard is acknowledged, and most regions have their blocks
read -r at nr <<< "$(vol_layout fast pages)"
drive fast error add read "$at" "$nr" status=ok delay=500ms
blkdiscard -l $((GONE << 22)) "$VOL"
dmsetup suspend --noudevsync vol
before=$(drives)
drive fast error clear

check_eq "the loaded region of the suspended volume" "$(ask show $((NR - 1)))" "$one"
asked=$(ask show $((GONE - 2)) || true)
sleep 2
unchanged "after a region of the discard was asked for"
check_eq "a region of the discard, while the volume is suspended" "$asked" EBUSY

for message in commit evict evict_indexes trim trim_homes "set trim_ms=1" "set memory_mb=32"; do
	vol_message "$message"
done
sleep 2
unchanged "after messages"
sleep $((IDLE_S + 5))
unchanged "after half a minute"
expect_fail 'busy' vol_message checkpoint
klog_has 'checkpoint: the volume is suspended' || die "refused without a word"
unchanged "after a checkpoint that was refused"
[ "$(vol_tier 0 used)" != "$left" ] || die "the discard had ended before the volume was suspended"

# who has to know waits, and says so
start terracectl which vol $(((GONE - 2) * 1024)) > /dev/shm/which 2>&1
sleep 5
kill -0 "$JOB" || die "terracectl which has not waited: $(cat /dev/shm/which)"
unchanged "after terracectl which"
dmsetup resume --noudevsync --noudevrules vol
wait "$JOB" || die "terracectl which: $(cat /dev/shm/which)"
for said in 'the volume is suspended, waiting' 'nowhere'; do
	grep -q "$said" /dev/shm/which || die "terracectl which: $(cat /dev/shm/which)"
done
for ((i = 0; i < 100; i++)); do
	[ "$(vol_tier 0 used)" != "$left" ] || break
	sleep 0.2
done
check_eq "blocks in use after the discard" "$(vol_tier 0 used)" "$left"
vol_message checkpoint
vol_down
vol_check
pass "a volume that was suspended in the middle of a discard was left alone, and ended it when it was resumed"
