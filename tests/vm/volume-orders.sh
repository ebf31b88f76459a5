#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Random orders of every mode under a random workload, with clean stops and power cuts: the oracle finds every block.
# vm: mode=functional memory=3G timeout=950 build=oracle,orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}
STEPS=${STEPS:-4}
ORDERS=${ORDERS:-120}
RANDOM=$SEED
PATH=$TERRACE_TREE/build:$PATH in_ram orders
# give_orders COUNT SEED [--uring]
give_orders() { from_ram orders "${@:3}" /dev/terrace/vol random "$1" "$2" 24 > /dev/shm/orders 2>&1; }
vol_drives 96 768
vol_format
vol_up stream_kb=2048 commit_ms=200
oracle_new "$SEED"
total=0
for ((step = 0; step < STEPS; step++)); do
	((step / 2 % 2)) && by=(--uring) || by=()
	start give_orders "$ORDERS" $((SEED * 100 + step)) "${by[@]}"
	oracle_run --seed $((SEED + step)) --ops 600 --threads 2 --depth 8 --max-kb 128 --hot 50 --max-discard-kb 512
	if ((step % 2)); then
		vol_cut_under "$JOB"
		vol_check
		vol_up stream_kb=2048 commit_ms=200
		oracle_crash
	else
		wait "$JOB" || { cat /dev/shm/orders; die "an order failed"; }
		total=$((total + ORDERS))
		cat /dev/shm/orders
		vol_down
		vol_check
		vol_up stream_kb=2048
		oracle_clean --touched --sample 2
	fi
done
# a client that is killed at any instant leaves nothing behind: neither orders nor a use of the volume
for ((turn = 0; turn < 4; turn++)); do
	((turn % 2)) && by=() || by=(--uring)
	start give_orders 100000 $((SEED + turn)) "${by[@]}"
	oracle_run --seed $((SEED + STEPS + turn)) --ops 80 --threads 2 --depth 8 --max-kb 128 --hot 50
	sleep "0.$((RANDOM % 900 + 100))"
	kill_all "$JOB"
done
for ((tries = 0; tries < 300; tries++)); do	# those under way come to their end
	[ "$(cat /sys/fs/terrace/*/tier1/orders)" != 0 ] || break
	sleep 0.2
done
check_eq "orders of nobody" "$(cat /sys/fs/terrace/*/tier1/orders)" 0
oracle_clean
vol_down
vol_check
for ((tries = 0; tries < 300; tries++)); do	# io_uring takes its leave in the background
	! rmmod dm_terrace 2> /dev/null || break
	sleep 0.2
done
[ ! -d /sys/module/dm_terrace ] || die "the module is still in use"
pass "$total orders to their end, $((STEPS / 2)) power cuts between orders"
