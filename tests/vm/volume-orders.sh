#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Random orders of every mode under a random workload, with clean stops and power cuts: the oracle finds every block.
# vm: mode=functional memory=3G timeout=300 build=oracle,orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}
STEPS=${STEPS:-8}
ORDERS=${ORDERS:-120}
RANDOM=$SEED
PATH=$TERRACE_TREE/build:$PATH in_ram orders
give_orders() { from_ram orders /dev/terrace/vol random "$ORDERS" "$1" 24 > /dev/shm/orders 2>&1; }
vol_drives 96 768
vol_format
vol_up stream_kb=2048 commit_ms=200
oracle_new "$SEED"
total=0
for ((step = 0; step < STEPS; step++)); do
	start give_orders $((SEED * 100 + step))
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
oracle_clean
vol_down
vol_check
pass "$total orders to their end, $((STEPS / 2)) power cuts between orders"
