#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Do no harm: with terraced no slower than the better of the janitor alone and of a placement that never changes
# bench: mode=vtime memory=4500M timeout=21600 parts=LOADS:uniform-read,uniform-mixed,uniform-write,zipf-read,zipf-mixed,hotspot-read,hotspot-mixed,all-hot-mixed
# seeds: SEED + 1 and up, one for each pass, to warm up, SEED - 1 to measure; SEED = 1000
# packages: fio bcache-tools
#
# One CPU has it all: what terraced takes of it is missing to the load. All start with the volume filled in order.
# shellcheck disable=SC2034
FAST=${FAST:-optane} SLOW=${SLOW:-qlc} DEPTH=${DEPTH:-32}
SYSTEMS=${SYSTEMS:-janitor frozen terrace}
PASSES=${PASSES:-6} WARM_S=${WARM_S:-10}
LOADS=${LOADS:-uniform-read uniform-mixed uniform-write zipf-read zipf-mixed hotspot-read hotspot-mixed all-hot-mixed}
. "$TERRACE_TREE/tests/bench/tier.bash"

for load in ${LOADS//,/ }; do
	tier_table "$load"
	if [ -z "$(got janitor iops)" ] || [ -z "$(got frozen iops)" ] || [ -z "$(got terrace iops)" ]; then continue; fi
	best=$(got janitor iops)
	[ "$best" -ge "$(got frozen iops)" ] || best=$(got frozen iops)
	bar "$load: terrace, of the better of the two" $(($(got terrace iops) * 1000 / best)) o/oo -980
done
bars_end
