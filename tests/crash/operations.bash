# SPDX-License-Identifier: GPL-2.0-or-later
# What is done to a volume while its drives fail or lose their power; sourced after
# tests/vm/volume.bash, with SEED set. LAYOUTS: shared (metadata on the fast drive,
# lazy mirror), sync (mirrored on a second fast drive), apart (a drive of their own),
# torn (blocks are torn and written out of place).
#
# lay LAYOUT, strike	drives, a volume that is up and a ledger; take all of it away
# before_OP, do_OP	of each operation, what comes before and what is interrupted
# beside OP		a drive that is none of the layout's but has a part in the operation
# off, on		the power, of all drives
# opens OP WHAT		what the operation left is sound, and comes up, or is a plain device
# seen WHAT		the oracle hears that the power went: what is there now must be allowed, and is what must stay
# sized WHAT		a size that was acknowledged stays
# in_turn STEP		each OP UNTIL, which the script has, of all OPS on all LAYOUTS: the cells
# row OP UNTIL DRIVE KIND [SIDE]	of a cell: STEP OP DRIVE KIND N [SIDE] with N = 1, 2, 3 ... until it fails
# judge WHAT COUNT	how many cells are complete, and whether that is enough; COUNT: the word for tests/run --made
#
# The cells that are not complete yet share LIMIT seconds. How far each row has come
# is kept in $OUT/kept/cells, which tests/run leaves where it is: the next run goes on
# there, until the sources of the module, of terracectl or of the operation are others.
# With COMPLETE=1 there is no limit, and fewer than all cells are a failure. When all
# are complete the next run begins anew.
#
# shellcheck shell=bash disable=SC2034,SC2119,SC2153

LIMIT=${LIMIT:-${COMPLETE:+1000000000}}
LIMIT=${LIMIT:-2400}
LEAST=${LEAST:-$((LIMIT / 20))}	# fewer is a failure, where not all cells are complete

RANDOM=$SEED
PATH=$TERRACE_TREE/build:$PATH in_ram orders dmsetup
dmsetup() { from_ram dmsetup "$@"; }
klog_allow 'drive (fast|next|slow|meta|spare)'
klog_allow 'device-mapper: raid1: '
BLOCKS=12288		# the oracle's: 12 regions
UP=(stream_kb=0 commit_ms=60000 janitor_high=1000 janitor_low=990)
MIB=2048		# sectors

# ---- the layouts ----

# lay NAME [MB]: drives, a volume on them that is up, a new ledger; the one of no writes yet is kept
lay() {
	atomic=atomic VOL=/dev/mapper/vol
	PARAMS=(seed="$SEED") fast_mb=64
	DRIVES=(fast:64 slow:448)
	case $1 in
	sync)	DRIVES=(fast:64 next:64 slow:448) ;;
	apart)	DRIVES=(meta:16 fast:64 slow:448) ;;
	torn)	PARAMS+=(atom=512) atomic=noatomic ;;
	esac
	vol_models "$SEED" "${DRIVES[@]}" "${PARAMS[@]:1}"
	DRIVES=("${DRIVES[@]%:*}")
	local tiers=(--tier "optane:slots:$atomic=/dev/mapper/fast" --tier "hdd:shelves:$atomic=/dev/mapper/slow" --journal 1M --size "${2:-200}M")
	case $1 in
	shared | torn)	FORMAT=("${tiers[@]}") ;;
	sync)	FORMAT=("${tiers[@]:0:2}" --tier "nvme:slots:atomic=/dev/mapper/next" "${tiers[@]:2}") ;;
	apart)	FORMAT=(--meta /dev/mapper/meta "${tiers[@]}") ;;
	esac
	vol_format "${FORMAT[@]}"
	SHELVES=1
	[ "$1" != sync ] || SHELVES=2
	size=${2:-200} granted=${2:-200}
	vol_up "${UP[@]}"
	oracle_new "$SEED"
	cp "$LEDGER" /dev/shm/ledger.empty
	work 60
}
strike() {
	local d
	unmap
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
# clean, and up again
before_stop() { small; }
do_stop() { dmr vol && down=1; }
before_start() { small; work 1 --weights flush=1; dmr vol; down=1; }
do_start() { vol_up "${UP[@]}" && down=0; work 4 --weights fua=1,write=1; vol_message checkpoint; }
do_resize() { if vol_message resize $(((size + 1) * MIB)); then granted=$((size + 1)); fi; small; vol_message checkpoint; }

# ---- management: what the tools write, and the module for them ----

# What is there afterwards is another volume: the layout is made anew for each.
MAKE_ANEW=" create add replace leave repair "
makes_anew() { [[ $MAKE_ANEW = *" $1 "* ]]; }
beside() { case $1 in add | replace | leave) echo spare ;; esac }
# fresh [SPARE_MB [MB]]: the layout, and a drive that is empty
fresh() {
	strike
	lay "$layout" "${@:2}"
	[ $# = 0 ] || { mkdrive spare ram "$1" lbs=4096 group=pc "${PARAMS[@]}"; DRIVES+=(spare); }
}
ctl() { terracectl "$@" > /dev/shm/ctl 2>&1 < /dev/null; }

# the first activation: on drives with what an older volume wrote
before_create() {
	dmr vol
	vol_format "${FORMAT[@]}"
	cp /dev/shm/ledger.empty "$LEDGER"
	rm -f "$LEDGER.log"
	size=200 granted=200 down=1
}
do_create() { vol_up "${UP[@]}" && down=0; work 10 --weights fua=1,write=4,flush=1; vol_message commit; vol_message checkpoint; }
# nothing waits for a volume that did not come back: no work then
before_add() { fresh 256; }
do_add() { ctl add vol --yes --tier "hdd:shelves:$atomic=/dev/mapper/spare" && { small; vol_message checkpoint; }; }
before_evacuate() { small; }
# Of a volume that does not write any more it would wait for places to become free.
do_evacuate() {
	ctl set vol commit_ms 100
	start from_ram terracectl evacuate vol 0 > /dev/shm/ctl 2>&1
	while kill -0 "$JOB" 2> /dev/null; do
		[ "$(vol_get mode)" = write ] || kill -INT -- "-$JOB" || true
		sleep 1
	done
	wait "$JOB" && { small; vol_message commit; vol_message checkpoint; ctl evacuate --undo vol 0; }
	ctl set vol commit_ms 60000
}
# the tier with the metadata, or the first of those with data
before_replace() { fresh 64; }
do_replace() { ctl replace --yes --to /dev/mapper/spare vol 0 && { small; vol_message checkpoint; }; }
before_leave() { fresh 80 64; }
do_leave() { ctl leave --yes --to /dev/mapper/spare vol && work 4 --weights fua=1,write=1; }
# a label with a damaged copy
before_repair() {
	fresh
	small
	vol_message checkpoint
	dmr vol
	down=1
	dd if=/dev/urandom of=/dev/mapper/slow bs=4k count=1 oflag=direct status=none
}
mend() { ctl repair --in-place "${VOL_DRIVES[@]}" && grep -q 'nothing lost' /dev/shm/ctl; }
do_repair() { mend && vol_up "${UP[@]}" && down=0; work 4 --weights fua=1,write=1; }

# what has a label is part of the volume
labelled() {
	local d
	VOL_DRIVES=()
	for d in "${DRIVES[@]}"; do
		cmp -s -n 8192 "/dev/mapper/$d" /dev/zero || VOL_DRIVES+=("/dev/mapper/$d")
	done
}
# of a volume that leaves a copy of a label is gone: then all of it is on the spare drive
has_left() {
	local d copy
	[ "$1" = leave ] || return
	for d in "${DRIVES[@]}"; do
		[ "$d" != spare ] || continue
		for copy in 0 4096; do ! cmp -s -n 512 -i $copy:0 "/dev/mapper/$d" /dev/zero || return 0; done
	done
	return 1
}
activate() {
	local options=("${UP[@]/#/--option=}")
	ctl activate --as vol "${options[@]}" "${VOL_DRIVES[@]}" || { cat /dev/shm/ctl; return 1; }
	VOL_TABLE=$(dmsetup table vol)
}
opens() {
	local activate=vol_up
	! makes_anew "$1" || { labelled; activate=activate; }
	if has_left "$1"; then
		VOL=/dev/mapper/spare
		return
	fi
	[ "$1" != repair ] || mend || { cat /dev/shm/ctl; die "$2: it cannot be repaired (seed $SEED)"; }
	(vol_check) > /dev/shm/checked || { cat /dev/shm/checked; oracle_keep 1 || true; die "$2: the check finds problems (seed $SEED)"; }
	"${3:-true}" "$2"
	"$activate" "${UP[@]}" || die "$2: the volume does not come up (seed $SEED)"
}

# ---- the power ----

off() {
	drive_cut fast
	[ "$down" = 1 ] || dmr vol || true
	unmap || true
	down=0
}
# what is there of a volume and of what the tools put above and below it
unmap() {
	local name
	for name in vol vol-terrace vol-replace; do
		[ ! -e /dev/mapper/$name ] || dmr $name || return
	done
	rm -f /run/terrace/vol.*
}
on() {
	local d
	drive_revive fast
	for d in "${DRIVES[@]}"; do drive "$d" disarm; done
}
seen() { oracle_crash --touched --sample 64 > /dev/shm/verified || { cat /dev/shm/verified; die "$1 (seed $SEED)"; }; }
# sized WHAT: a size that was acknowledged stays (the table is as it was formatted)
sized() {
	[ "$VOL" = /dev/mapper/vol ] || return 0	# it has left
	size=$(($(cat /sys/fs/terrace/*/virtual_blocks) * 8 / MIB))
	[ "$size" -ge "$granted" ] || die "$1: $granted MiB were granted, now there are $size"
}

# ---- what earlier runs did ----

KEPT=$OUT/kept/cells
declare -A COUNT		# by operation: what this run did
declare -A SOURCES		# by operation: what must be the same for a cell to stay complete
declare -A FAR ENDED		# by row: the last N; it is through
declare -A COMPLETE_CELLS	# by cell, LAYOUT OP

# The sources of each operation, as one word.
know_sources() {
	local op all
	all=$(cd "$TERRACE_TREE" && cat kmod/*.[ch] kmod/core/*.[ch] uapi/*.h daemon/ctl/*.[ch] | sha256sum)
	for op in "${ops[@]}"; do
		SOURCES[$op]=$(sha256sum <<< "$all $(uname -r) $(declare -f "$step" "before_$op" "do_$op")")
		SOURCES[$op]=${SOURCES[$op]:0:16}
	done
}
note() { echo "${SOURCES[$1]} $2" >> "$KEPT"; }
# Each line is SOURCES ROW = N|through, or SOURCES CELL = complete|anew; the last one counts.
recall() {
	local line sources key value op
	mkdir -p "${KEPT%/*}"
	[ -e "$KEPT" ] || return 0
	while read -r sources line; do
		key=${line% = *} value=${line##* = }
		read -r _ op _ <<< "$key"
		[ "$sources" = "${SOURCES[$op]:-}" ] || continue
		case $value in
		complete)	COMPLETE_CELLS[$key]=1 ;;
		through)	ENDED[$key]=1 ;;
		anew)		forget "$key" ;;
		*)		FAR[$key]=$value ENDED[$key]= ;;
		esac
	done < "$KEPT"
}
forget() {
	local row
	COMPLETE_CELLS[$1]=
	for row in "${!FAR[@]}"; do
		[[ $row != "$1 "* ]] || FAR[$row]=0 ENDED[$row]=
	done
}
begin_anew() {
	local op layout
	echo "all $cells cells are complete: begun anew"
	for layout in "${layouts[@]}"; do
		for op in "${ops[@]}"; do
			forget "$layout $op"
			note "$op" "$layout $op = anew"
		done
	done
}
complete_cells() {
	local op layout nr=0
	for layout in "${layouts[@]}"; do
		for op in "${ops[@]}"; do [ ! "${COMPLETE_CELLS[$layout $op]:-}" ] || nr=$((nr + 1)); done
	done
	echo $nr
}

# ---- all of it ----

row() {
	local op=$1 until=$2 drive=$3 kind=$4 side=${5:-} key n
	key="$layout $op $drive $kind${side:+ $side}"
	n=${FAR[$key]:-0}
	if [ ! "${ENDED[$key]:-}" ]; then
		while [ $SECONDS -lt "$until" ]; do
			# shellcheck disable=SC2086 # a word or none
			"$step" "$op" "$drive" "$kind" $((n + 1)) $side || { ENDED[$key]=1; break; }
			n=$((n + 1))
			COUNT[$op]=$((COUNT[$op] + 1))
		done
		note "$op" "$key = $n"
		[ ! "${ENDED[$key]:-}" ] || note "$op" "$key = through"
		FAR[$key]=$n
	fi
	said+=" $kind${side:+ $side} $n"
	[ "${ENDED[$key]:-}" ] || { said+=" (not all)" open=1; }
}
cell() {
	open=
	each "$op" "$1"
	! makes_anew "$op" || fresh
	[ "$open" ] || { COMPLETE_CELLS[$layout $op]=1; note "$op" "$layout $op = complete"; }
}
in_turn() {
	local op share until wanted
	step=$1
	read -ra ops <<< "$OPS"
	read -ra layouts <<< "$LAYOUTS"
	know_sources
	recall
	cells=$((${#ops[@]} * ${#layouts[@]}))
	[ "$(complete_cells)" != $cells ] || begin_anew
	share=$((LIMIT / (cells - $(complete_cells))))
	until=$SECONDS
	for layout in "${layouts[@]}"; do
		wanted=()
		for op in "${ops[@]}"; do [ "${COMPLETE_CELLS[$layout $op]:-}" ] || wanted+=("$op"); done
		[ ${#wanted[@]} -gt 0 ] || continue
		lay "$layout"
		for op in "${wanted[@]}"; do
			COUNT[$op]=${COUNT[$op]:-0}
			until=$((until + share))
			cell $until
		done
		oracle_crash > /dev/shm/verified || { cat /dev/shm/verified; die "$layout, at the end"; }
		vol_down
		vol_check
		vol_up
		strike
	done
	for op in "${!COUNT[@]}"; do echo "$op: ${COUNT[$op]}"; done
}
judge() {
	local op row complete made=0 all=0
	local -A met
	complete=$(complete_cells)
	for op in "${!COUNT[@]}"; do made=$((made + COUNT[$op])); done
	for row in "${!FAR[@]}"; do
		read -r _ op _ <<< "$row"
		met[$op]=$((${met[$op]:-0} + FAR[$row]))
		all=$((all + FAR[$row]))
	done
	echo "$complete of $cells cells are complete; $made $1, with those of earlier runs $all"
	for op in "${ops[@]}"; do [ "${met[$op]:-0}" -gt 0 ] || die "$op: none of $1"; done
	if [ "$complete" != "$cells" ]; then
		[ ! "${COMPLETE:-}" ] || die "$((cells - complete)) cells are not complete"
		[ "$made" -ge "$LEAST" ] || die "only $made $1 in $LIMIT seconds"
	fi
	pass "$made $1"
	counted $all "$2" kept
}
