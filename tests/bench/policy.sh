#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Ablations: the same load with one technique switched at a time, and what that changes
# bench: mode=vtime memory=4500M timeout=21600 parts=VARIANTS:default,heat-clock,heat-lru,sense-none,rule-precise,rule-random,rule-oldest,rule-hotrap,no-retention,no-fill,no-first-sight,no-neighbours,candidates-1,promotion-cache-off,no-clean-slots,no-early-termination,no-streams,no-packing,lz4-only,zstd-only,zstd-4,zstd-1,append-cheap,append-dear,wear-dear,no-governor,no-brake
# seeds: SEED + 1 and up, one for each pass, to warm up, SEED - 1 to measure; SEED = 1000
# packages: fio bcache-tools
#
# Data compress by half. A switch that changes neither throughput nor reads and writes of the
# slow drive by one part in a hundred is on the page as a bar that was missed: its technique is
# not at work. What each sets is in the list below.
# shellcheck disable=SC2034
FAST=${FAST:-nvme-tlc} SLOW=${SLOW:-hdd} COMPRESS=${COMPRESS:-50}
LOADS=${LOADS:-zipf-mixed}
. "$TERRACE_TREE/tests/bench/tier.bash"

base_options=$VOL_OPTIONS
# name	lines of [policy], separated by ;	| options of the table
variants="
default
heat-clock		heat = clock
heat-lru		heat = lru
sense-none		sense = none
rule-precise		rule = precise
rule-random		rule = random
rule-oldest		rule = oldest
rule-hotrap		rule = hotrap
no-retention		retain = no
no-fill			fill = 0
no-first-sight		admit.fill = 0
no-neighbours		flush.neighbours = 2
candidates-1		choose.candidates = 1
promotion-cache-off	|cache_mb=0
no-clean-slots		|$base_options clean_slots=0
no-early-termination	|$base_options early_termination=0
no-streams		|$base_options stream_kb=0
no-packing		codec.min_gain = 10
lz4-only		codec.zstd_gain = 10
zstd-only		codec.frozen = 0
zstd-4			codec.frozen = 0;codec.most_cluster = 4
zstd-1			codec.frozen = 0;codec.most_cluster = 1
append-cheap		msc.append_debt = 0
append-dear		msc.append_debt = 4
wear-dear		msc.wear_price = 20
no-governor		governor.max_regret = 1;governor.min_return = 0
no-brake		brake.tolerance = 100
"

for LOAD in ${LOADS//,/ }; do
	IDEAL=
	echo "# $(models)"
	echo "# $LOAD: $FAST_MB MiB before $VOLUME_MB MiB, $COMPRESS % compressible; $base_options; warmed up by $PASSES passes of $PASS_IOS accesses, seeds $((SEED + 1)) to $((SEED + PASSES)); measured: $IOS, seed $((SEED - 1))"
	while read -r name set; do
		[ "$name" ] || continue
		[[ ,${VARIANTS:-$name}, = *,$name,* ]] || continue
		CONF_LINES=${set%%|*} VOL_OPTIONS=$base_options
		[[ $set != *\|* ]] || VOL_OPTIONS=${set#*|}
		SETTINGS_SHOWN["terrace"]=yes
		run_system terrace
		printf '%-12s %-22s %7s IOPS  p99 %7s  p99.9 %7s us  slow reads %4s o/oo  written, MiB: fast %6s slow %6s\n' "$LOAD" "$name" "${GOT[terrace-iops]}" \
			"${GOT[terrace-p99]}" "${GOT[terrace-p999]}" "${GOT[terrace-slow_reads]}" "${GOT[terrace-fast]}" "${GOT[terrace-slow]}"
		system_rows "$LOAD" "$name" terrace
	done <<< "$variants"
done
bars_end
