#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A disk with a tenth of NVMe before it: uniform, in order, bursts, discards, fsyncs, mixed sizes.
# bench: mode=vtime memory=4500M timeout=21600 parts=LOADS:uniform-read,uniform-write,sequential-read,sequential-write,burst,discard,fsync,sizes
# seeds: SEED + 1 and up, one for each pass, to warm up, SEED - 1 to measure; SEED = 1000
# packages: fio bcache-tools
#
# The drives have volatile caches where such drives have one, so that fsync means something.
# shellcheck disable=SC2034
FAST=${FAST:-nvme-tlc} SLOW=${SLOW:-hdd}
SLOW_OPTS=${SLOW_OPTS:-lbs=4096 cache=on}
PASSES=${PASSES:-1} IOS=${IOS:-10000}
LOADS=${LOADS:-uniform-read uniform-write sequential-read sequential-write burst discard fsync sizes}
. "$TERRACE_TREE/tests/bench/tier.bash"

# beside SYSTEM LEAST: terrace's IOPS, of that system's
beside() { [ -z "$(got "$1" iops)" ] || bar "$load: terrace, of $1" $(($(got terrace iops) * 1000 / $(got "$1" iops))) o/oo "-$2"; }
# tail_beside SYSTEM WORD: terrace's percentile, of that system's
tail_beside() { [ -z "$(got "$1" "$2")" ] || bar "$load: terrace, $2 of $1's" $(($(got terrace "$2") * 1000 / ($(got "$1" "$2") + 1))) o/oo 2000; }

for load in ${LOADS//,/ }; do
	case $load in
	sequential-*)	PASS_IOS=$VOLUME_MB IOS=$VOLUME_MB tier_table "$load" ;;
	discard)	PASSES=0 tier_table "$load" ;;
	*)		tier_table "$load" ;;
	esac
	[ "$(got terrace iops)" ] || continue
	case $load in
	uniform-read)	beside slow 970 ;;
	uniform-write)	beside slow 1000 ;;
	sequential-*)	beside slow 900 ;;
	burst)		tail_beside fast p99 ;;
	discard)	tail_beside slow p99 ;;
	fsync)		beside fast 900 ;;
	sizes)		[ "$(best_peer)" = 0 ] || of_peers "$load: terrace, of the best of the peers" $(($(got terrace iops) * 1000 / $(best_peer))) -1000 ;;
	esac
done
bars_end
