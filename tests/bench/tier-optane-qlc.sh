#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# QLC with a tenth of Optane before it: never below the QLC alone, 85 % of the Optane alone
# bench: mode=vtime memory=4500M timeout=21600 parts=LOADS:zipf-read,hotspot-read,zipf-mixed,hotspot-mixed
# seeds: SEED + 1 and up, one for each pass, to warm up, SEED - 1 to measure; SEED = 1000
# packages: fio bcache-tools
#
# At depth 32: with one access at a time no placement could reach 85 % of the Optane,
# as each miss takes 391 us.
# shellcheck disable=SC2034
FAST=${FAST:-optane} SLOW=${SLOW:-qlc} DEPTH=${DEPTH:-32}
LOADS=${LOADS:-zipf-read hotspot-read zipf-mixed hotspot-mixed}
. "$TERRACE_TREE/tests/bench/tier.bash"

for load in ${LOADS//,/ }; do
	tier_table "$load"
	[ "$(got terrace iops)" ] || continue
	warm_bar "$load"
	[ -z "$(got fast iops)" ] || bar "$load: terrace, of the fast drive alone" $(($(got terrace iops) * 1000 / $(got fast iops))) o/oo -850
	[ -z "$(got slow iops)" ] || bar "$load: terrace, of the slow drive alone" $(($(got terrace iops) * 1000 / $(got slow iops))) o/oo -1000
done
bars_end
