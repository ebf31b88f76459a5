#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A disk with a tenth of NVMe before it and data that compress, beside the peers that compress: dm-vdo over dm-cache, bcachefs
# bench: mode=vtime memory=4500M timeout=21600 kernel=6.12 parts=LOADS:zipf-read,zipf-mixed,hotspot-mixed
# seeds: SEED + 1 and up, one for each pass, to warm up, SEED - 1 to measure; SEED = 1000
# packages: fio
#
# Only kernel 6.12 has them: scripts/setup --peers; make kmod drive KERNEL=6.12. Elsewhere their rows say that they are not
# available, and dm-cache is there alone.
#
# Data compress to two fifths (COMPRESS=60), so that dm-vdo gains: of what compresses to a half it can pack nothing.
# shellcheck disable=SC2034
FAST=${FAST:-nvme-tlc} SLOW=${SLOW:-hdd-simple} COMPRESS=${COMPRESS:-60}
LOADS=${LOADS:-zipf-read zipf-mixed hotspot-mixed}
PEERS="cache-64 vdo bcachefs"
SYSTEMS=${SYSTEMS:-cache-64 vdo bcachefs terrace}
. "$TERRACE_TREE/tests/bench/tier.bash"

for load in ${LOADS//,/ }; do
	tier_table "$load"
	[ "$(got terrace iops)" ] || continue
	case $load in *-mixed) beside_peers "$load" ;; esac
done
bars_end
