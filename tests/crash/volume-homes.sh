#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Random orders to homes, to shelves and back under a random workload, with power cuts: the oracle finds every block. A home that is being trimmed is not handed out.
# vm: mode=functional memory=2G timeout=950 build=oracle,orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}
STEPS=${STEPS:-2}
ORDERS=${ORDERS:-60}
RANDOM=$SEED
PATH=$TERRACE_TREE/build:$PATH in_ram orders
give_orders() { from_ram orders /dev/terrace/vol random "$1" "$2" 24 tier_down=1-2 > /dev/shm/orders 2>&1; }
for drive in fast:64 home:96 slow:640; do
	mkdrive "${drive%:*}" ram "${drive#*:}" lbs=4096 group=pc
done
VOL_DRIVES=(/dev/mapper/fast /dev/mapper/home /dev/mapper/slow)
# a home that is not overwritten in place every other seed
((SEED % 2)) && atomic=:atomic || atomic=:noatomic
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "csd:home$atomic=${VOL_DRIVES[1]}" \
	--tier "hdd:shelves:atomic=${VOL_DRIVES[2]}"
vol_up stream_kb=2048 commit_ms=200
oracle_new "$SEED"
# something to move, and some of it at home before writes and discards race with orders
oracle_run --seed "$SEED" --ops 400 --threads 2 --depth 8 --max-kb 128 --hot 50
# (a region without blocks is an error)
for region in 0 1 2 3 4 5 6 7; do from_ram orders /dev/terrace/vol move $region append tier_down=1 > /dev/null 2>&1 || true; done
used=$(vol_tier 1 used)
[ "${used%/*}" -gt 0 ] || die "nothing is at home"
for ((step = 0; step < STEPS; step++)); do
	start give_orders "$ORDERS" $((SEED * 100 + step))
	oracle_run --seed $((SEED + step)) --ops 500 --threads 2 --depth 8 --max-kb 128 --hot 50 --max-discard-kb 512
	if ((step % 2)); then
		vol_cut_under "$JOB"
		vol_check
		vol_up stream_kb=2048 commit_ms=200
		oracle_crash
	else
		wait "$JOB" || { cat /dev/shm/orders; die "an order failed"; }
		cat /dev/shm/orders
		vol_down
		vol_check
		vol_up stream_kb=2048
		oracle_clean --touched --sample 2
	fi
done
oracle_clean

# a home whose trim is under way is not handed out: the trim would take the new value
block=$((20 * 1024))
put() { head -c 4096 /dev/zero | tr '\0' "$1" | dd of="$VOL" bs=4k seek=$block oflag=direct status=none; }
order() { from_ram orders /dev/terrace/vol move 20 append tier_down=1 > /dev/shm/order; }
blkdiscard -o $((block * 4096)) -l $((4 << 20)) "$VOL"
put a
vol_message commit
order || die "$(cat /dev/shm/order)"
at=$(vol_layout home data)
drive home error add discard $((${at% *} + block * 8)) 8 count=1 hold
blkdiscard -o $((block * 4096)) -l 4096 "$VOL"
vol_message commit
drive_wait_held home
put b
start order
for ((i = 0; i < 15; i++)); do kill -0 "$JOB" 2> /dev/null || break; sleep 0.1; done
drive home release
wait "$JOB" || true	# it may have found no home
vol_message commit
sleep 0.3
dd if="$VOL" bs=4k skip=$block count=1 iflag=direct status=none | cmp -n 4096 - <(head -c 4096 /dev/zero | tr '\0' b) || die "a trim took what was written after it"
pass "a home waits for its trim"
vol_down
vol_check
pass "$STEPS rounds of orders, every other one ended by a power cut"
