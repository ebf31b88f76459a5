#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# 20,000 random orders of every mode carried out, half under fio verify, half under the oracle, with a reopening after every thousand; to shelves and to homes.
# vm: mode=functional memory=3G timeout=5400 build=oracle,orders long
#
# Orders that found nothing to do, or were refused, do not count. SECONDS_MOST=N: no step
# begins later than that (FIO_SHARE of it under fio), and what was reached is said: several
# such runs, with a SEED each, add up. What fio wrote last is read again after each
# opening, and the whole of what it writes to is what it was before.
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}
ORDERS=${ORDERS:-20000}
FIO_SHARE=${FIO_SHARE:-50}	# per cent of them; the rest under the oracle
STEP=${STEP:-1000}		# orders between two openings
SECONDS_MOST=${SECONDS_MOST:-100000}
RANDOM=$SEED
PATH=$TERRACE_TREE/build:$PATH in_ram orders fio
renice -n 19 $$ > /dev/null	# as nice as the orders' workers, or these would hardly run beside the load
give_orders() { from_ram orders "${@:3}" /dev/terrace/vol random "$1" "$2" 24 tier_down=1-2 > /dev/shm/orders 2>&1; }
steps=0 executed=0 given=0
declare -A by_mode
said() { sed -nE "s/.*\b$1=([0-9]+).*/\1/p" /dev/shm/orders; }

# step COMMAND...: orders while the command runs again and again; both must succeed
step() {
	local by=() mode
	((steps++ % 2)) && by=(--uring)
	start give_orders "$STEP" $((SEED * 100000 + steps)) "${by[@]}"
	while :; do
		"$@" $((SEED * 100000 + RANDOM))
		kill -0 "$JOB" 2> /dev/null || break
	done
	wait "$JOB" || { cat /dev/shm/orders; die "an order failed"; }
	executed=$((executed + $(said executed)))
	given=$((given + $(said orders)))
	for mode in append merge raise drop scrub clean; do by_mode[$mode]=$((${by_mode[$mode]:-0} + $(said $mode))); done
	echo "$SECONDS s: $(tail -1 /dev/shm/orders)"
}
# more SHARE: are there to be further steps, until that percentage is reached?
more() { [ $executed -lt $((ORDERS * $1 / 100)) ] && [ $SECONDS -lt $((SECONDS_MOST * $1 / 100)) ]; }

FIO_MB=64
fio_seed=
# by_fio SEED [OPTION...]
by_fio() {
	fio_seed=$1
	DEV=$VOL ENGINE=io_uring SEED=$1 SIZE=${FIO_MB}m OFFSET=0 fio_ --output-format=terse "${@:2}" "$TERRACE_TREE/fio-jobs/verify-random.fio" > /dev/shm/fio 2>&1 ||
		{ tail -20 /dev/shm/fio; die "fio failed"; }
	! grep -qi 'verify:' /dev/shm/fio || { cat /dev/shm/fio; die "fio: verify errors"; }
}
sum_of() { dd if="$VOL" bs=1M count=$FIO_MB iflag=direct status=none | sha256sum; }
by_oracle() { oracle_run --seed "$1" --ops 600 --threads 2 --depth 8 --max-kb 128 --hot 50 --max-discard-kb 512; }

vol_models "$SEED" fast:96 mid:256 slow:768
SIZE=${SIZE-128M}		# little of what there is; empty: all, and then many orders find no room
fresh() { vol_format ${SIZE:+--size "$SIZE"} --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "csd:home:atomic=${VOL_DRIVES[1]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[2]}"; }
fresh
vol_up stream_kb=2048 commit_ms=200
while more "$FIO_SHARE"; do
	step by_fio
	before=$(sum_of)
	vol_down
	vol_check
	vol_up stream_kb=2048 commit_ms=200
	check_eq "what fio wrote, after an opening" "$(sum_of)" "$before"
	by_fio "$fio_seed" --verify_only
done
vol_down
fresh
vol_up stream_kb=2048 commit_ms=200
oracle_new "$SEED"
while more 100; do
	step by_oracle
	vol_down
	vol_check
	vol_up stream_kb=2048 commit_ms=200
	oracle_clean --touched --sample 4
done
oracle_clean
homes=$(vol_tier 1 used) homes=${homes%/*}
vol_down
vol_check
for mode in "${!by_mode[@]}"; do
	echo "$mode: ${by_mode[$mode]}"
	# one in 33 of a few thousand is no accident; a mode that is never carried out is
	[ $executed -lt 500 ] || [ $((by_mode[$mode] * 33)) -ge $executed ] || die "of $executed orders carried out ${by_mode[$mode]} were of mode $mode"
done
[ "$homes" -gt 0 ] || die "nothing ever went home"
[ "$SECONDS_MOST" -lt 100000 ] || [ $executed -ge "$ORDERS" ] || die "$executed orders carried out"
pass "$executed orders carried out, $((given - executed)) had nothing to do, $steps openings, seed $SEED"
