#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Allocations of the kernel's threads fail at random under I/O and orders: nobody reads what was not written there.
# vm: mode=functional memory=2G timeout=600 kernel=debug build=failnth,oracle,orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/faults/faults.bash"

SEED=${SEED:-1}
STEPS=${STEPS:-4}
PATH=$TERRACE_TREE/build:$PATH in_ram orders
give_orders() { from_ram orders /dev/terrace/vol random "$1" "$2" 24 > /dev/shm/orders 2>&1; }

# drives that need no memory once they are full: what fails is ours
modprobe brd rd_nr=2 rd_size=$((256 << 10))
VOL_DRIVES=(/dev/ram0 /dev/ram1)
for drive in "${VOL_DRIVES[@]}"; do dd if=/dev/zero of="$drive" bs=1M oflag=direct status=none 2> /dev/null || true; done
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --size 192M
vol_up stream_kb=2048 commit_ms=200
oracle_new "$SEED"

# those that cannot wait may fail at any time: nobody may notice
# all others fail hardly ever: an operation may, but none may go wrong
declare -A nr_failed=()
for ((step = 0; step < STEPS; step++)); do
	((step < STEPS / 2)) && how=(10 atomic) || how=(1)
	start give_orders 100000 $((SEED * 100 + step))
	random_on "${how[@]}"
	status=0
	oracle_run --seed $((SEED + step)) --ops 600 --threads 2 --depth 8 --max-kb 128 --hot 50 --max-discard-kb 512 || status=$?
	random_off
	nr_failed[${how[*]}]=$((${nr_failed[${how[*]}]:-0} + FAILED))
	kill_all "$JOB"
	[ $status = 0 ] || { [ $status = 3 ] && [ ${#how[@]} = 1 ]; } || die "step $step, failing ${how[*]}: the oracle ended with $status"
	echo "step $step, failing ${how[*]}: $FAILED failed, ended with $status, mode $(vol_get mode)"
	vol_down
	vol_check
	vol_up stream_kb=2048 commit_ms=200
	oracle_crash
done
vol_down
for kind in "${!nr_failed[@]}"; do
	[ "${nr_failed[$kind]}" -gt 0 ] || die "failing $kind: not one allocation did"
done
pass "allocations that failed: $(for kind in "${!nr_failed[@]}"; do echo "${nr_failed[$kind]} of $kind"; done | paste -sd,)"
