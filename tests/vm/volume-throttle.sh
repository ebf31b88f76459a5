#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# New writes are delayed when, and only when, the fast tier is nearly full and shelves run out; overwrites never are.
# vm: mode=functional cpus=1 memory=3G timeout=850 build=oracle
# shellcheck disable=SC2119,SC2034
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

# fill FROM TO: MiB of the volume, in 64k writes (a stream would go to the shelves by itself: that is off)
fill() { dd if=/dev/zero of="$VOL" bs=64k seek=$(($1 * 16)) count=$((($2 - $1) * 16)) oflag=direct status=none; }
slowed() { vol_get throttled; }

vol_ram 64 576
vol_format
vol_up stream_kb=0 throttle_us=4000 janitor_high=980 janitor_low=970
fill 0 50
check_eq "throttled below janitor_high" "$(slowed)" 0
fill 50 120
check_eq "throttled with a full fast tier and free shelves" "$(slowed)" 0

# The janitor takes down what it must, and at most a region more.
used() { vol_tier 0 used | cut -d/ -f1; }
all=$(vol_tier 0 used | cut -d/ -f2)
for ((i = 0, before = -1; i < 60; i++)); do
	[ "$(used)" -ge $((all * 980 / 1000)) ] || [ "$(vol_get moved)" != "$before" ] || break
	before=$(vol_get moved)
	vol_message set janitor_high=980	# has it look, should no write do so any more
	sleep 2
done
[ "$(used)" -lt $((all * 980 / 1000)) ] || die "the janitor left the fast tier full: $(vol_status)"
[ "$(used)" -ge $((all * 970 / 1000 - 1024 - 256)) ] || die "the janitor emptied the fast tier below its mark: $(vol_status)"
pass "the janitor stopped at $(used) of $all blocks"

# the last free shelves go
size=$(($(sectors "$VOL") / 2048))
for ((at = 120; at < size - 16 && $(slowed) == 0; at += 8)); do fill $at $((at + 8)); done
[ "$(slowed)" -gt 0 ] || die "no new write was delayed although $(vol_tier 1 free_shelves) shelves are free"
pass "delays begin with $(vol_tier 1 free_shelves) free shelves"
before=$(slowed)
dd if="$VOL" of=/dev/null bs=4k skip=100 count=64 iflag=direct status=none
check_eq "throttled reads" "$(slowed)" "$before"

# 0 switches it off; room again, and there is nothing to wait for
vol_message set throttle_us=0
before=$(slowed)
fill "$at" $((at + 8))
# what was decided before the message may still count
[ $(($(slowed) - before)) -le 16 ] || die "throttle_us=0 delayed $(($(slowed) - before)) writes"
vol_message set throttle_us=4000
blkdiscard -o 0 -l $((at << 20)) "$VOL"
room=$((all * 980 / 1000 - (230 - 200) * 256))	# so that what follows stays below janitor_high: shelves may still be few
for ((i = 0; i < 30 && $(used) > room; i++)); do sleep 1; vol_message commit; done
[ "$(used)" -le "$room" ] || die "$(used) of $all blocks used after all was discarded"
before=$(slowed)
fill 200 230
after=$(slowed)
[ $((after - before)) -le 16 ] || die "$((after - before)) of 480 writes delayed with $(used) of $all blocks used"
vol_down
vol_check
pass "delays end when there is room"

# a second tier of slots with room: nobody waits, be the first one full and the shelves gone
mkram middle 96
VOL_DRIVES=(/dev/ram/fast /dev/ram/middle /dev/ram/slow)	# vol_check reads it
vol_format --tier "optane:slots:atomic=/dev/ram/fast" --tier "nvme:slots:atomic=/dev/ram/middle" --tier "hdd:shelves:atomic=/dev/ram/slow"
vol_up stream_kb=256 throttle_us=4000 janitor_high=980 janitor_low=970
size=$(($(sectors "$VOL") / 2048))
few=$(($(vol_tier 2 free_shelves)))
for ((at = 0; at < size - 160 && few > 3; at += 8, few = $(vol_tier 2 free_shelves))); do fill $at $((at + 8)); done
vol_message set stream_kb=0
fill $((size - 150)) $((size - 80))
middle=$(vol_tier 1 used | cut -d/ -f1)
[ "$middle" -gt 0 ] || die "nothing went to the second tier: $(vol_status)"
check_eq "throttled with room on the second tier of slots ($(vol_tier 2 free_shelves) shelves free)" "$(slowed)" 0
vol_down
vol_check
pass "room on any tier of slots is room"
