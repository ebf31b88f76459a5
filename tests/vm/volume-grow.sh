#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A volume and both its tiers grow while it is written: nothing is refused or lost, what is new is used, and all of it is there after a power cut and a clean stop.
# vm: mode=functional memory=2G timeout=300 build=oracle
#
# The short one; vm/volume-resize has refusals, deeper trees, and all of it filled.
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}
MIB=2048	# sectors
RANDOM=$SEED
klog_allow 'drive (fast|slow)'
in_ram dmsetup
dmsetup() { from_ram dmsetup "$@"; }

at() { cat /sys/fs/terrace/*/"$1"; }
sizes() { echo "$(at virtual_blocks) $(at tier0/blocks) $(at tier1/blocks)"; }
grow_drive() { redrive "$1" ram "$2" lbs=4096 group=pc; }
# to_size MIB: message, longer table
to_size() {
	vol_message resize $(($1 * MIB))
	VOL_TABLE="0 $(($1 * MIB)) ${VOL_TABLE#0 * }"
	vol_reload stream_kb=0 commit_ms=100
	check_eq "size of the device" "$(sectors "$VOL")" $(($1 * MIB))
}
# until the power goes
load() {
	local status=0
	while [ $status = 0 ]; do
		oracle run --ledger "$LEDGER" --device "$VOL" --seed "$RANDOM" --seconds 3 --ops 10000000 --threads 2 --depth 4 --max-kb 64 --max-discard-kb 256 || status=$?
	done
	[ $status = 3 ] || oracle_keep $status
}
# under_load WHEN: the oracle has written since the last time
under_load() {
	local now i
	for ((i = 0; i < 100; i++)); do
		now=$(at records)
		[ "$now" -le "$seen" ] || break
		sleep 0.1
	done
	kill -0 "$load" 2> /dev/null || { cat /dev/shm/run; die "$1: the oracle does not run any more"; }
	[ "$now" -gt "$seen" ] || die "$1: nothing is written any more"
	seen=$now
}
# of what is new: its own data
put() { head -c 8M /dev/urandom | tee "/dev/shm/at.$1" | dd of="$VOL" bs=1M iflag=fullblock oflag=direct conv=fsync,notrunc seek="$1" status=none; }
all_there() {
	local f
	for f in /dev/shm/at.*; do
		cmp -i "0:$((${f##*.} << 20))" -n $((8 << 20)) "$f" "$VOL" || die "$1: 8 MiB from ${f##*.} MiB on"
	done
	check_eq "$1: sizes" "$(sizes)" "$grown"
}

vol_drives 32 256 seed="$SEED"
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --journal 1M --size 24M
vol_up stream_kb=0 commit_ms=100
oracle_new "$SEED"
before=$(sizes)
seen=0
start load > /dev/shm/run 2>&1
load=$JOB
under_load "at the beginning"
read -r _ fast slow <<< "$before"
for step in 1 2; do
	grow_drive fast $((32 + 32 * step))
	vol_message grow_tier 0
	check_eq "blocks of tier 0" "$(at tier0/blocks)" $((fast + step * 32 * 256))
	under_load "tier 0 has grown"
	grow_drive slow $((256 + 64 * step))
	vol_message grow_tier 1
	check_eq "blocks of tier 1" "$(at tier1/blocks)" $((slow + step * 64 * 256))
	under_load "tier 1 has grown"
	to_size $((40 * step))
	put $((40 * step - 8))
	put $((40 * step - 16))
	under_load "the volume has grown"
done
[ "$(at tier0/used_blocks)" -gt "$fast" ] || die "tier 0 uses $(at tier0/used_blocks) blocks, of old it had $fast"
grown=$(sizes)
drive_cut fast
wait "$load" || { cat /dev/shm/run; die "the oracle, while the volume grew (seed $SEED)"; }
dmr vol
drive_revive fast
vol_check
vol_up stream_kb=0
oracle_crash
all_there "after a power cut"
vol_down
vol_check
vol_up stream_kb=0
oracle_clean
all_there "after a clean stop"
vol_down
pass "grown twice under load, from ${before// /, } blocks to ${grown// /, }"
