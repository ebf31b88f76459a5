#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# 20,000 random orders of every mode carried out, half under fio verify, half under the oracle, with a reopening after every thousand; to shelves and to homes.
# vm: mode=functional memory=4G timeout=7800 build=oracle,orders long
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
give_orders() { from_ram orders "${@:3}" /dev/terrace/vol random "$1" "$2" $REGIONS tier_down=1-2 shelves=14 > /dev/shm/orders 2>&1; }
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

# The load lies in 24 regions, in the first 16, 32, ... 1,024 blocks of them, seven in turn: so orders are of all sizes, and
# most are over soon.
REGIONS=24
load_table() {
	local region n at=0
	[ "$STAY_MB" != 0 ] || { echo "0 $(sectors "$VOL") linear $VOL 0"; return; }
	for ((region = 0; region < REGIONS; region++)); do
		n=$((128 << region % 7))
		echo "$at $n linear $VOL $((region * 8192))"
		at=$((at + n))
	done
}
load_up() { load_table | DM_DISABLE_UDEV=1 dmsetup create load; }
load_down() { DM_DISABLE_UDEV=1 dmsetup remove load; }
LOAD=/dev/mapper/load
fio_seed=
# by_fio SEED [OPTION...]
by_fio() {
	fio_seed=$1
	DEV=$LOAD ENGINE=io_uring SEED=$1 SIZE=$(($(sectors $LOAD) / 2))k OFFSET=0 fio_ --output-format=terse "${@:2}" "$TERRACE_TREE/fio-jobs/verify-random.fio" > /dev/shm/fio 2>&1 ||
		{ tail -20 /dev/shm/fio; die "fio failed"; }
	! grep -qi 'verify:' /dev/shm/fio || { cat /dev/shm/fio; die "fio: verify errors"; }
}
sum_of() { dd if=$LOAD bs=1M iflag=direct status=none | sha256sum; }
by_oracle() { oracle_run --seed "$1" --ops 600 --threads 2 --depth 8 --max-kb 128 --hot 50 --max-discard-kb 512; }

# Behind what is worked on: data that stay, five shelves full. An order that cleans then has something to move, each
# time: without them a shelf is soon dead by itself, and a few in a thousand orders found one that was in use.
# STAY_MB=0: none of it, and the load has all there is: then many orders find no room.
LOAD_MB=128
STAY_MB=${STAY_MB:-320}
stays() { dd if="$VOL" bs=1M skip=$LOAD_MB iflag=direct status=none; }
fresh() {
	local region size=()
	[ "$STAY_MB" = 0 ] || size=(--size "$((LOAD_MB + STAY_MB))M")
	vol_format "${size[@]}" --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "csd:home:atomic=${VOL_DRIVES[1]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[2]}"
	vol_up stream_kb=0 commit_ms=200
	[ "$STAY_MB" != 0 ] || LOAD_MB=$(($(sectors "$VOL") / 2048))
	for ((region = LOAD_MB / 4; region < (LOAD_MB + STAY_MB) / 4; region++)); do
		head -c 4M /dev/urandom | dd of="$VOL" bs=1M seek=$((region * 4)) iflag=fullblock oflag=direct status=none
		from_ram orders /dev/terrace/vol move $region append tier_down=2 codec=none > /dev/null
	done
	stays=$(stays | sha256sum)	# of nothing, if there is none
	load_up
	reopen
}
# what nobody wrote to meanwhile is what it was
reopen() {
	load_down
	vol_down
	vol_check
	vol_up stream_kb=2048 commit_ms=200
	check_eq "what stays, after an opening" "$(stays | sha256sum)" "$stays"
	load_up
}

vol_models "$SEED" fast:96 mid:256 slow:1024
fresh
while more "$FIO_SHARE"; do
	step by_fio
	before=$(sum_of)
	reopen
	check_eq "what fio wrote, after an opening" "$(sum_of)" "$before"
	by_fio "$fio_seed" --verify_only
done
load_down
vol_down
fresh
on_load() { VOL=$LOAD "$@"; }
on_load oracle_new "$SEED"
while more 100; do
	step on_load by_oracle
	reopen
	on_load oracle_clean --touched --sample 4
done
on_load oracle_clean
load_down
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
