#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A fast tier with a large reserve is full when the rest is in use: the janitor makes room then, and new writes slow down where shelves run out.
# vm: mode=functional memory=3G timeout=600
# shellcheck disable=SC2119,SC2034
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

fill() { dd if=/dev/zero of="$VOL" bs=64k seek=$(($1 * 16)) count=$((($2 - $1) * 16)) oflag=direct status=none; }
used() { vol_tier 0 used | cut -d/ -f1; }
at() { cat /sys/fs/terrace/*/"$1"; }

vol_ram 64 576
vol_format --reserve 20 --tier "optane:slots:atomic=/dev/ram/fast" --tier "hdd:shelves:atomic=/dev/ram/slow"
vol_up stream_kb=0 throttle_us=4000
all=$(at tier0/blocks)
reserve=$(at tier0/reserve_blocks)
check_eq "the reserve" "$reserve" $(((all + 4) / 5))
fill 0 80
for ((i = 0; i < 60 && $(vol_get moved) == 0; i++)); do sleep 1; done
[ "$(vol_get moved)" -gt 0 ] || die "$(used) of $all blocks are in use, all but the reserve of $reserve, and the janitor moved none"
for ((i = 0; i < 60 && $(used) >= all - reserve; i++)); do sleep 1; done
[ "$(used)" -lt $((all - reserve)) ] || die "$(used) of $all blocks are in use, all but the reserve of $reserve"
# janitor_high - janitor_low below it, less what it moves at a time
[ "$(used)" -ge $((all - reserve - all * 30 / 1000 - 1024 - 256)) ] || die "the janitor left $(used) of $all blocks"
pass "the janitor made room below the reserve: $(used) of $all blocks"

size=$(($(sectors "$VOL") / 2048))
for ((at = 80; at < size - 16 && $(vol_get throttled) == 0; at += 8)); do fill $at $((at + 8)); done
[ "$(vol_get throttled)" -gt 0 ] || die "no new write was delayed although $(vol_tier 1 free_shelves) shelves are free"
pass "delays begin with $(vol_tier 1 free_shelves) free shelves"
vol_down
vol_check
