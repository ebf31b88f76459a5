#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A disk with three tenths of QLC and a tenth of Optane before it, beside the disk with the Optane alone
# bench: mode=vtime memory=4500M timeout=21600 parts=LOADS:zipf-read,hotspot-read,zipf-mixed,hotspot-mixed
# seeds: SEED + 1 and up, one for each pass, to warm up, SEED - 1 to measure; SEED = 1000
# packages: fio bcache-tools
#
# No peer has three tiers: each of them, and Terrace in the other script, has two.
# shellcheck disable=SC2034
FAST=${FAST:-optane} MID=${MID:-qlc} SLOW=${SLOW:-hdd} DEPTH=${DEPTH:-1}
LOADS=${LOADS:-zipf-read hotspot-read zipf-mixed hotspot-mixed}
. "$TERRACE_TREE/tests/bench/tier.bash"

for load in ${LOADS//,/ }; do
	tier_table "$load"
	[ "$(got terrace iops)" ] || continue
	[ "$(best_peer)" = 0 ] || of_peers "$load: terrace, of the best of the peers" $(($(got terrace iops) * 1000 / $(best_peer))) -1000
done
bars_end
