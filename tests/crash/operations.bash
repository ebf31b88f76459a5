# SPDX-License-Identifier: GPL-2.0-or-later
# What is done to a volume while its drives fail or lose their power; sourced after
# tests/vm/volume.bash, with SEED set. LAYOUTS: shared (metadata on the fast drive,
# lazy mirror), sync (mirrored on a second fast drive), apart (a drive of their own),
# torn (blocks are torn and written out of place).
#
# lay LAYOUT, strike	drives, a volume that is up and a ledger; take all of it away
# before_OP, do_OP	of each operation, what comes before and what is interrupted
# off, on		the power, of all drives
# seen WHAT		the oracle hears that the power went: what is there now must be allowed, and is what must stay
# sized WHAT		a size that was acknowledged stays
# in_turn		each OP UNTIL, which the script has, of all OPS on all LAYOUTS; they
#			share LIMIT seconds. COUNT[OP] is what it has done
#
# shellcheck shell=bash disable=SC2034,SC2119

RANDOM=$SEED
PATH=$TERRACE_TREE/build:$PATH in_ram orders dmsetup
dmsetup() { from_ram dmsetup "$@"; }
klog_allow 'drive (fast|next|slow|meta)'
BLOCKS=12288		# the oracle's: 12 regions
UP=(stream_kb=0 commit_ms=60000 janitor_high=1000 janitor_low=990)
MIB=2048		# sectors

# ---- the layouts ----

# lay NAME: drives, a volume on them that is up, a new ledger
lay() {
	local atomic=atomic
	PARAMS=(seed="$SEED") fast_mb=64
	DRIVES=(fast:64 slow:448)
	case $1 in
	sync)	DRIVES=(fast:64 next:64 slow:448) ;;
	apart)	DRIVES=(meta:16 fast:64 slow:448) ;;
	torn)	PARAMS+=(atom=512) atomic=noatomic ;;
	esac
	vol_models "$SEED" "${DRIVES[@]}" "${PARAMS[@]:1}"
	DRIVES=("${DRIVES[@]%:*}")
	local tiers=(--tier "optane:slots:$atomic=/dev/mapper/fast" --tier "hdd:shelves:$atomic=/dev/mapper/slow" --journal 1M --size 200M)
	case $1 in
	shared | torn)	vol_format "${tiers[@]}" ;;
	sync)	vol_format "${tiers[@]:0:2}" --tier "nvme:slots:atomic=/dev/mapper/next" "${tiers[@]:2}" ;;
	apart)	vol_format --meta /dev/mapper/meta "${tiers[@]}" ;;
	esac
	SHELVES=1
	[ "$1" != sync ] || SHELVES=2
	size=200 granted=200
	vol_up "${UP[@]}"
	oracle_new "$SEED"
	work 60
}
strike() {
	local d
	dmr vol
	for d in "${DRIVES[@]}"; do rmdrive "$d"; done
}

# ---- the operations: what comes before, and what is cut ----

# only what goes down has a tier to go to: other orders are refused with one
order() {
	local to=()
	[[ $2 = raise || $2 = drop ]] || to=(tier_down="$SHELVES")
	from_ram orders /dev/terrace/vol move "$@" "${to[@]}" > /dev/shm/order 2>&1
}
# goes on until an operation fails: then the power is off
work() {
	local status=0
	oracle run --ledger "$LEDGER" --device "$VOL" --seed "$RANDOM" --ops "$1" --depth 4 --max-kb 64 --max-discard-kb 256 --blocks $BLOCKS --hot 30 "${@:2}" > /dev/shm/run 2>&1 || status=$?
	[ $status != 1 ] || { cat /dev/shm/run; oracle_keep 1 || true; die "$layout: a read was wrong (seed $SEED)"; }
}
small() { work 25 --max-kb 16; }
region() { echo $((RANDOM % 12)); }

before_append() { small; }
do_append() { order "$(region)" append codec=lz4; vol_message commit; vol_message checkpoint; }
before_merge() { small; at=$(region); order "$at" append codec=lz4 || true; small; order "$at" append codec=none || true; small; }
do_merge() { order "$at" merge codec=zstd shift=2 up=0-99; vol_message commit; vol_message checkpoint; }
before_raise() { small; at=$(region); order "$at" append codec=lz4 || true; vol_message commit; }
do_raise() { order "$at" raise up=0-511; vol_message commit; vol_message checkpoint; }
before_drop() { before_raise; order "$at" raise up=0-511 || true; vol_message commit; }
do_drop() { order "$at" drop; vol_message commit; small; vol_message checkpoint; }
before_clean() { before_merge; shelf=$((RANDOM % 3)); }
do_clean() { order "$shelf" clean; vol_message commit; vol_message checkpoint; }
before_janitor() { small; }
do_janitor() { vol_reload stream_kb=0 commit_ms=60000 janitor_high=20 janitor_low=10; small; vol_message commit; vol_message checkpoint; }
before_discard() { small; }
do_discard() { work 12 --weights discard=10,zero=3,flush=6,write=4 --max-discard-kb 32768; vol_message checkpoint; }
before_checkpoint() { small; vol_message checkpoint; small; }
do_checkpoint() { vol_message checkpoint; work 4 --weights fua=1; vol_message checkpoint; }
# 256 journal blocks: a commit of one record each
before_wrap() { small; }
do_wrap() { work 150 --weights write=6,fua=2,flush=2 --max-kb 8 --depth 2; }
# the power has gone whether what is to be interrupted is reached or not: $crashed
before_recovery() { small; vol_message commit; small; off; on; down=1 crashed=1; }
do_recovery() { vol_up "${UP[@]}" && down=0; work 4 --weights fua=1,write=1; vol_message checkpoint; }
before_resize() { small; }
# a drive that has become larger
before_grow() { small; fast_mb=$((fast_mb + 1)); redrive fast ram $fast_mb lbs=4096 group=pc "${PARAMS[@]}"; }
do_grow() { vol_message grow_tier 0; small; vol_message checkpoint; }
do_resize() { if vol_message resize $(((size + 1) * MIB)); then granted=$((size + 1)); fi; small; vol_message checkpoint; }

# ---- the power ----

off() {
	drive_cut fast
	[ "$down" = 1 ] || dmr vol || true
	down=0
}
on() {
	local d
	drive_revive fast
	for d in "${DRIVES[@]}"; do drive "$d" disarm; done
}
seen() { oracle_crash --touched --sample 64 > /dev/shm/verified || { cat /dev/shm/verified; die "$1 (seed $SEED)"; }; }
# sized WHAT: a size that was acknowledged stays (the table is as it was formatted)
sized() {
	size=$(($(cat /sys/fs/terrace/*/virtual_blocks) * 8 / MIB))
	[ "$size" -ge "$granted" ] || die "$1: $granted MiB were granted, now there are $size"
}

# ---- all of it ----

in_turn() {
	local ops layouts op share until
	read -ra ops <<< "$OPS"
	read -ra layouts <<< "$LAYOUTS"
	share=$((LIMIT / (${#ops[@]} * ${#layouts[@]})))
	until=$SECONDS
	for layout in "${layouts[@]}"; do
		lay "$layout"
		for op in "${ops[@]}"; do
			until=$((until + share))
			each "$op" $until
		done
		oracle_crash > /dev/shm/verified || { cat /dev/shm/verified; die "$layout, at the end"; }
		vol_down
		vol_check
		vol_up
		strike
	done
	for op in "${ops[@]}"; do echo "$op: ${COUNT[$op]:-0}"; done
}
