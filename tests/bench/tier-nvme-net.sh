#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A network volume with a tenth of NVMe before it, beside the peers and the best static placement
# bench: mode=vtime memory=4500M timeout=21600 parts=LOADS:zipf-read,hotspot-read,zipf-mixed,hotspot-mixed
# seeds: SEED + 1 and up, one for each pass, to warm up, SEED - 1 to measure; SEED = 1000
# packages: fio bcache-tools
#
# The network volume serves 64 commands at a time: depth 8.
# shellcheck disable=SC2034
FAST=${FAST:-nvme-tlc} SLOW=${SLOW:-net} DEPTH=${DEPTH:-8}
LOADS=${LOADS:-zipf-read hotspot-read zipf-mixed hotspot-mixed}
. "$TERRACE_TREE/tests/bench/tier.bash"

for load in ${LOADS//,/ }; do
	tier_table "$load"
	[ "$(got terrace iops)" ] || continue
	[ -z "$(got ideal iops)" ] || bar "$load: terrace, of the best static placement" $(($(got terrace iops) * 1000 / $(got ideal iops))) o/oo -950
	[ "$(best_peer)" = 0 ] || figure "$load: terrace, of the best of $(the_peers)" $(($(got terrace iops) * 1000 / $(best_peer))) o/oo
done
bars_end
