#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The control device: versions and fields that are refused, a program of 32 bits; the janitor stays out while somebody drives, and is at work when he has gone; a volume that goes.
# vm: mode=functional cpus=1 memory=1G timeout=600 build=orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/orders.bash"


vol_ram 64 512
vol_format
vol_up stream_kb=0 janitor_high=1000 janitor_low=990
ask abi || die "a call took what it should refuse, or refused what it should take"
pass "versions, sizes, flags and reserved fields of each call"

dd if=/dev/urandom of="$VOL" bs=1M count=24 oflag=direct status=none
order 0 append tier_down=1 codec=lz4
status=0
"$TERRACE_TREE/build/narrow" /dev/terrace/vol > /dev/shm/said || status=$?
case $status in
0) check_eq "what a program of 32 bits brought up" "$(ask show 0)" "present=1 fast=1 packed=1024 packs=1"
   pass "a program of 32 bits" ;;
77) echo "without a program of 32 bits: $(cat /dev/shm/said)" ;;
*) die "a program of 32 bits: step $status (tests/narrow/narrow.c)" ;;
esac

# ---- who drives ----

# What it would move at once, 24 MiB being on the fast tier and a tenth of it being too much
MOST=100
used() { local blocks; blocks=$(vol_tier 0 used); echo "${blocks%/*}"; }
is_empty() { [ "$(used)" -le $((total * MOST / 1000)) ] && echo yes; }
total=$(vol_tier 0 used) total=${total#*/}
# settled: nothing that a commit lets go of is counted as used any more
settled() { local was; was=$(used); vol_message commit; sleep 0.3; [ "$(used)" = "$was" ] && echo yes; }
# driven TIMES WHAT [MILLISECONDS]: writes of new blocks kick it, so do commits
driven() {
	local before moved k began
	dd if=/dev/urandom of="$VOL" bs=1M count=24 oflag=direct status=none
	start ask hold "${@:3}" > /dev/shm/held
	began=$SECONDS
	until_says held cat /dev/shm/held
	until_says yes settled
	before=$(used) moved=$(vol_get moved)
	vol_message set janitor_low=$((MOST / 2))
	vol_message set janitor_high=$MOST
	for ((k = 0; k < $1; k++)); do
		dd if=/dev/urandom of="$VOL" bs=4k seek=$((next++)) count=1 oflag=direct status=none
		vol_message commit
		[ $# -gt 2 ] || sleep 0.3
	done
	moved=$(($(vol_get moved) - moved))
	if [ $# -gt 2 ] && [ $((SECONDS - began)) -ge $(($3 / 1000 - 1)) ]; then
		echo "a slow machine: the claim may have ended already"
		return 0
	fi
	check_eq "blocks that the janitor moved while $2" $moved 0
	[ "$(used)" -ge "$before" ] || die "the fast tier emptied while $2"
}
# ended: nothing is written from here on, so nothing but the end itself tells the janitor
ended() {
	until_says yes is_empty
	vol_message set janitor_high=1000
	vol_message set janitor_low=990
}
next=12000
driven 6 "somebody drives"
kill -KILL -- "-$JOB"
wait "$JOB" 2> /dev/null || true
ended
pass "the janitor stays out while driven, and is at work after kill -9"

driven 1 "somebody drives who is about to say nothing for 12 s" 12000
ended
kill -0 "$JOB" || die "who lost his claim is no more"
kill_all "$JOB"
pass "and after a claim that nobody renewed"

# ---- a volume that goes while a program has it open ----
start ask events 60 > /dev/shm/events
until_says listening head -n 1 /dev/shm/events
vol_down
until_says "ENODEV POLLHUP" tail -n 1 /dev/shm/events
wait "$JOB"
vol_check
pass "who has the device of a volume that goes is told"
