#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A drive that compresses inside (zram) with a tenth of NVMe before it: what is in use inside it, and what is written to it.
# bench: mode=vtime memory=4500M timeout=21600 parts=LOADS:zipf-mixed,hotspot-mixed
# seeds: SEED + 1 and up, one for each pass, to warm up, SEED - 1 to measure; SEED = 1000
# packages: fio bcache-tools
#
# zram has no latency, only the instructions that it takes to compress and to decompress: IOPS say nothing of a drive, and
# have no bar. All data compress by half, and each system is filled with them, so that the drive holds the same of each. "used" is
# zram's own mm_stat, when everything dirty has been written down. No bar of DESIGN is of such a drive.
# shellcheck disable=SC2034
FAST=${FAST:-nvme-tlc} SLOW=csd SLOW_KIND=home COMPRESS=${COMPRESS:-50}
LOADS=${LOADS:-zipf-mixed hotspot-mixed}
SYSTEMS=${SYSTEMS:-slow cache-32 cache-64 cache-256 writecache bcache terrace}
VOLUME_MB=${VOLUME_MB:-1024}	# the machine's memory holds it
. "$TERRACE_TREE/tests/bench/tier.bash"

SLOW_DEV=/dev/ram/slowd
declare -A BASE

# disk WORD: 1 reads, 5 writes, 7 sectors written, of /sys/block/…/stat
disk() { awk -v n="$1" '{ print $n }' "/sys/block/$(basename "$(readlink -f $SLOW_DEV)")/stat"; }
since() { echo $(($(disk "$1") - ${BASE[$1]})); }

# What systems.bash and tier.bash ask of a model, of the zram device by its own counters
eval "$(declare -f drive_get | sed '1s/drive_get/model_get/')"
drive_get() {
	case $1-$2 in
	slowd-reads)	since 1 ;;
	slowd-write_bytes | slowd-programmed)	echo $(($(since 7) * 512)) ;;
	slowd-erases)	echo 0 ;;
	*)		model_get "$@" ;;
	esac
}

drives() {
	# shellcheck disable=SC2086
	mkdrive fastd "$FAST" "$1" $FAST_OPTS
	mkzram slowd "$SLOW_MB"
}
drives_off() {
	local node
	rmdrive fastd
	node=$(readlink -f $SLOW_DEV)
	echo "${node#/dev/zram}" > /sys/class/zram-control/hot_remove
	rm $SLOW_DEV
}
drives_reset() {
	# Terrace's volume is filled already
	case $TESTED in terrace | janitor) ;; *) fill "$DEV" ;; esac
	drive fastd reset
	BASE=([1]=$(disk 1) [7]=$(disk 7))
}

# the same as ever, and what is in use inside the drive, beside what it was given
eval "$(declare -f system_up | sed '1s/system_up/system_set_up/')"
eval "$(declare -f system_down | sed '1s/system_down/system_take_down/')"
system_up() { TESTED=$1; system_set_up "$1"; }
system_down() {
	USED[$1]=$(($(csd_used slowd) / 1048576))
	STORED[$1]=$(($(csd_stored slowd) / 1048576))
	system_take_down "$1"
}
declare -A USED STORED

for load in ${LOADS//,/ }; do
	tier_table "$load"
	for s in $SYSTEMS; do
		[ "${USED[$s]:-}" ] || continue
		bars_row "$BARS_SCRIPT" "$load; $s; stored" "${STORED[$s]}" MiB "" "" ""
		bars_row "$BARS_SCRIPT" "$load; $s; used" "${USED[$s]}" MiB "" "" ""
		echo "$load $s: ${STORED[$s]} MiB in the drive take ${USED[$s]} MiB inside it"
	done
done
bars_end
