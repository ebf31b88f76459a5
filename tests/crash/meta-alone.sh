#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Started with one metadata copy missing, a volume forgets nothing when that copy comes back after a power cut, however much it had.
# vm: mode=functional cpus=1 memory=3G timeout=600
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SUPER="128 16"		# sectors of the two superblocks
put() { head -c 4096 /dev/zero | tr '\0' "$2" | dd of="$VOL" bs=4k oflag=direct conv=fsync seek="$1" status=none; }
get() { dd if="$VOL" bs=4k iflag=direct skip="$1" count=1 status=none | head -c 1; }
# the superblocks of drive $1 take their time
slow_super() {
	# shellcheck disable=SC2086 # two words
	drive "$1" error add write $SUPER delay=4s status=ok
}

mkdrive fast ram 64 lbs=4096 group=pc
mkdrive next ram 64 lbs=4096 group=pc
mkdrive slow ram 256 lbs=4096 group=pc
VOL_DRIVES=(/dev/mapper/fast /dev/mapper/next /dev/mapper/slow)
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "nvme:slots:atomic=${VOL_DRIVES[1]}" \
	--tier "hdd:shelves:atomic=${VOL_DRIVES[2]}" --journal 1M
whole=$VOL_TABLE
vol_up commit_ms=100
check_eq "mirror" "$(vol_get mirror)" sync
put 1 a
generation=$(vol_get generation)

# Two journals that part: the first copy goes back to what it was, its twin has gone on.
klog_allow 'drive (fast|next|slow)'
vol_cut
dd if=/dev/mapper/fast of=/dev/shm/fast bs=1M iflag=direct status=none
vol_up commit_ms=100
dd if=/dev/urandom of="$VOL" bs=4k oflag=direct,dsync seek=10 count=8 status=none	# a journal block each
# the superblock is as old as the first copy's will be, or this shows nothing
[ "$(vol_get generation)" = "$generation" ] || skip "too slow: a checkpoint came between, after 30 s"
vol_cut
dd if=/dev/shm/fast of=/dev/mapper/fast bs=1M oflag=direct conv=fsync status=none

# the twin is away: what it alone had is gone, but what is written now must stay
VOL_TABLE=${whole/\/dev\/mapper\/next/missing}
if grep -q ' missing ' <<< "$VOL_TABLE"; then :; else die "no missing tier in: $VOL_TABLE"; fi
slow_super fast
vol_up commit_ms=100
put 50 c
put 51 c
vol_cut
drive fast error clear

klog_expect 'is stale .*: not used'
VOL_TABLE=$whole
vol_up commit_ms=100
check_eq "block 50" "$(get 50)" c
check_eq "block 51" "$(get 51)" c
check_eq "block 1" "$(get 1)" a
check_eq "mirror" "$(vol_get mirror)" degraded
put 52 d
vol_cut
vol_up commit_ms=100
check_eq "block 50" "$(get 50)" c
check_eq "block 52" "$(get 52)" d
vol_down
pass "the journal of the copy that was away is not believed"

# ... nor its map, when it is the only one that can be read
klog_expect 'Only a stale metadata copy can be read'
drive fast error add read 128 16
expect_fail '' vol_up
drive fast error clear
vol_up
check_eq "block 52" "$(get 52)" d
vol_down
pass "the copy that was away is not believed by itself"
