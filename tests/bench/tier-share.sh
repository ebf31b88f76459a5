#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A disk with 2, 5, 10, 20 % of NVMe before it: what each share of the fast drive is worth, beside the peers.
# bench: mode=vtime memory=4500M timeout=21600 parts=PART:2-zipf-read,2-hotspot-mixed,5-zipf-read,5-hotspot-mixed,10-zipf-read,10-hotspot-mixed,20-zipf-read,20-hotspot-mixed
# seeds: SEED + 1 and up, one for each pass, to warm up, SEED - 1 to measure; SEED = 1000
# packages: fio bcache-tools
#
# A pass is as many accesses as the fast drive has blocks, so the larger shares take longer to warm up. Bars are
# those of a tenth: tier-nvme-hdd has them. Both loads of the largest would not end in one machine's time.
# shellcheck disable=SC2034
FAST=${FAST:-nvme-tlc} SLOW=${SLOW:-hdd-simple}
LOADS=${LOADS:-zipf-read hotspot-mixed}
[ -z "${PART:-}" ] || SHARE=${PART%%-*} LOADS=${PART#*-}
. "$TERRACE_TREE/tests/bench/tier.bash"

for load in ${LOADS//,/ }; do
	TABLE="$SHARE % $load" tier_table "$load"
	[ "$(got terrace iops)" ] || continue
	[ -z "$(got ideal iops)" ] || figure "$SHARE % $load: terrace, of the best static placement" $(($(got terrace iops) * 1000 / $(got ideal iops))) o/oo
	[ "$(best_peer)" = 0 ] || figure "$SHARE % $load: terrace, of the best of $(the_peers)" $(($(got terrace iops) * 1000 / $(best_peer))) o/oo
done
bars_end
