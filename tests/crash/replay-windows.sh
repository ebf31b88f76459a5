#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A journal of several windows is replayed after a power cut, newest record first across all of them: each block is as it must be, no place is lost or taken twice.
# vm: mode=functional memory=2G timeout=300 build=oracle,orders
#
# A window is 128 journal blocks where there are two CPUs (kmod/replay.c). Each FUA
# seals a block, and blocks are written out of place: some hundred of them name most
# of what there is, some of it in one window only, some in all of them.
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}
ROUNDS=${ROUNDS:-2}
WINDOW=128
RANDOM=$SEED
UP=(stream_kb=0 commit_ms=60000 janitor_high=1000 janitor_low=990)
PATH=$TERRACE_TREE/build:$PATH in_ram orders dmsetup
dmsetup() { from_ram dmsetup "$@"; }
klog_allow 'drive (fast|slow)'

journal() { local j; j=$(vol_get journal); echo "${j%/*}"; }
work() { oracle_run --seed "$RANDOM" --max-kb 16 --hot 20 --blocks 8192 "$@" > /dev/shm/run || { cat /dev/shm/run; die "round $round: the oracle's run (seed $SEED)"; }; }
# where few others write: what it has is in one window
once() { work --ops 60 --first $((8192 + 1024 * $1)) --blocks 1024 --hot 0 --weights write=1; }
# of a region whose blocks were all discarded there is nothing to move
order() {
	if from_ram orders /dev/terrace/vol move "$@" > /dev/shm/order; then
		moves=$((moves + 1))
	else
		grep -q ENOENT /dev/shm/order || die "order $*: $(cat /dev/shm/order)"
	fi
}
# the last activation: records and blocks
replayed() { sed -nE 's/.*replayed ([0-9]+) records in ([0-9]+) blocks.*/\1 \2/p' <<< "$(dmesg)" | tail -1; }

vol_drives 96 448 seed="$SEED"
vol_format --tier "optane:slots:noatomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --journal 16M --size 128M
vol_up "${UP[@]}"
oracle_new "$SEED"
round=0
work --ops 200 --depth 8 --weights write=1
for ((round = 1; round <= ROUNDS; round++)); do
	vol_message checkpoint
	generation=$(vol_get generation) moves=0
	for ((part = 0; $(journal) < 3 * WINDOW; part++)); do
		[ $part -lt 24 ] || die "round $round: the journal has $(vol_get journal) blocks only"
		once $part
		work --ops 120 --depth 1 --weights write=4,fua=6,discard=1,zero=1
		work --ops 20 --first 4096 --blocks 4096 --hot 0 --min-discard-kb $((2 * 4096)) --max-discard-kb $((4 * 4096)) --weights write=10,fua=2,discard=1
		order $((part % 8)) append codec=lz4 tier_down=1 up=0-499
		order $((part % 8)) raise up=0-799
	done
	check_eq "round $round: checkpoints meanwhile" "$(($(vol_get generation) - generation))" 0
	[ $moves -gt 2 ] || die "round $round: $moves orders found something to do"
	used=$(journal) records=$(vol_get records)
	work --ops 1 --weights flush=1		# the ledger's: all before it is promised
	work --ops 20 --weights write=1		# and some that nobody flushes
	vol_cut
	vol_check
	vol_up "${UP[@]}"
	read -r nr_records nr_blocks <<< "$(replayed)"
	if [ "$nr_blocks" -lt "$used" ] || [ "$nr_blocks" -le $((2 * WINDOW)) ]; then
		die "round $round: of $used journal blocks (records up to $records) $nr_records records in $nr_blocks blocks were replayed"
	fi
	oracle_crash || die "round $round: of what $nr_blocks journal blocks say"
	# what was replayed of space goes into pages, and must agree with the map's
	vol_message checkpoint
	work --ops 100 --depth 8 --weights write=8,discard=1,fua=1
	vol_down
	vol_check
	vol_up "${UP[@]}"
	oracle_clean
	pass "round $round: $nr_records records in $nr_blocks blocks, $(((nr_blocks + WINDOW - 1) / WINDOW)) windows, $moves moves"
done
vol_down
