#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A disk with a tenth of NVMe before it: Zipf, hotspot, mixed, beside the peers and the best static placement.
# bench: mode=vtime memory=4500M timeout=21600 parts=LOADS:zipf-read,hotspot-read,zipf-mixed,hotspot-mixed
# seeds: SEED + 1 and up, one for each pass, to warm up, SEED - 1 to measure; SEED = 1000
# packages: fio bcache-tools
#
# SLOW=hdd has the disk seek; without, each access to it takes 6.6 ms.
# SYSTEMS=…, LOADS=… run a part: TERRACE_BENCH_ENV="LOADS=zipf-read SYSTEMS=bcache,terrace".
# shellcheck disable=SC2034
FAST=${FAST:-nvme-tlc} SLOW=${SLOW:-hdd-simple}
LOADS=${LOADS:-zipf-read hotspot-read zipf-mixed hotspot-mixed}
. "$TERRACE_TREE/tests/bench/tier.bash"

# beside_ideal LOAD: where both sides were measured
beside_ideal() { [ -z "$(got ideal iops)" ] || bar "$1: terrace, of the best static placement" $(($(got terrace iops) * 1000 / $(got ideal iops))) o/oo -950; }

for load in ${LOADS//,/ }; do
	tier_table "$load"
	[ "$(got terrace iops)" ] || continue
	warm_bar "$load"
	case $load in
	*-read)		beside_ideal "$load" ;;
	*-mixed)	beside_peers "$load" ;;
	esac
done
bars_end
