#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Records what a volume asks of its drives, for build/explore; runs inside the
# machine (tests/crash/explore.sh starts it):
#
#	LAYOUTS="shared sync" WORK="append merge" ROUNDS=3 tests/explore/record.sh
#
# One record per layout, $OUT/LAYOUT.record. Layouts: shared (metadata on the
# fast drive, lazy mirror), sync (mirrored on a second fast drive), apart (on a
# drive of its own), torn (drives that tear blocks, which are then written out
# of place), home (a home tier), tight (a fast drive that overflows, so that
# free places are taken again at once), wide (60 regions), ranges (64, and discards of 17 to
# 60 of them at once), uncached (drives without a volatile cache), added (a tier comes, and is
# emptied again), replaced (the fast drive becomes another one), liar (drives that do not flush). Each round does each piece of work
# once, with the oracle beside or before it; with SHARE=2 only every second, of
# the second layout the others. Ranges and liar have work of their own. Marks say which (kinds.c).
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}
ROUNDS=${ROUNDS:-2}
LAYOUTS=${LAYOUTS:-shared}
WORK=${WORK:-append merge raise drop clean random discard checkpoint janitor wrap cut reset resize pages add evacuate replace}
RECORD=/sys/module/dm_drive/parameters/record
MARKS=/dev/drive-record
RANDOM=$SEED
UP=(stream_kb=64 commit_ms=60000 janitor_high=1000 janitor_low=990)
MIB=2048		# sectors
PATH=$TERRACE_TREE/build:$PATH in_ram orders dmsetup dd
dmsetup() { from_ram dmsetup "$@"; }
klog_allow 'drive (fast|next|slow|meta|other)'

say() { echo "$*" > $MARKS; }

# ---- the layouts ----

lay() {
	BLOCKS=4096
	size=120
	case $1 in tight) BLOCKS=8192 ;; wide) size=240 ;; ranges) size=256 BLOCKS=65536 ;; esac
	# slow enough that writes end while others, and flushes, are under way
	local params=(write_lat=200us flush_lat=3ms channels=8) atomic=atomic fast
	DRIVES=(fast:32 slow:448)
	case $1 in
	sync)	DRIVES=(fast:32 next:32 slow:448) ;;
	apart)	DRIVES=(meta:16 fast:32 slow:448) ;;
	home)	DRIVES=(fast:32 next:128 slow:448) ;;
	added)	DRIVES=(fast:32 slow:448 extra:448) ;;
	replaced) DRIVES=(fast:32 slow:448 other:32) ;;
	tight)	DRIVES=(fast:18 slow:448) ;;
	torn)	params+=(atom=512) atomic=noatomic ;;
	uncached) params+=(cache=off) ;;
	esac
	echo 384m > $RECORD
	vol_models "$SEED" "${DRIVES[@]}" "${params[@]}"
	DRIVES=("${DRIVES[@]%:*}")
	[[ $1 != added && $1 != replaced ]] || VOL_DRIVES=("${VOL_DRIVES[@]:0:2}")	# not yet
	fast=(--tier "optane:slots:$atomic=/dev/mapper/fast")
	SHELVES=1 LEAST=1		# tiers that orders move down to
	case $1 in
	sync)	fast+=(--tier "nvme:slots:$atomic=/dev/mapper/next") SHELVES=2 LEAST=2 ;;
	apart)	fast=(--meta /dev/mapper/meta "${fast[@]}") ;;
	home)	fast+=(--tier "csd:home:$atomic=/dev/mapper/next") SHELVES=2 ;;
	esac
	vol_format "${fast[@]}" --tier "hdd:shelves:$atomic=/dev/mapper/slow" --journal 1M --size ${size}M
	FAST=fast META=fast
	[ "$1" != apart ] || META=meta
	JOURNAL=$(vol_layout "$META" journal)
	vol_up "${UP[@]}"
	oracle_new "$SEED"
	[ "$1" != liar ] || for d in "${DRIVES[@]}"; do drive "$d" set lie_flush=on lie_fua=on; done
	say explore
}
strike() {
	local d
	dmr vol
	cp $MARKS "$OUT/$1.record"
	cat $RECORD
	for d in "${DRIVES[@]}"; do rmdrive "$d"; done
	echo 0 > $RECORD
}

# ---- the work ----

order() { from_ram orders /dev/terrace/vol move "$@" > /dev/shm/order 2>&1; }
down() { order "$@" tier_down=$((LEAST + RANDOM % (SHELVES - LEAST + 1))); }
region() { echo $((RANDOM % 4)); }
writes() {
	local status=0
	oracle run --ledger "$LEDGER" --device "$VOL" --marks $MARKS --seed "$RANDOM" --depth 6 --max-kb 32 --max-discard-kb 256 --blocks "$BLOCKS" \
		--hot 30 --weights write=40,fua=2,read=4,discard=3,zero=2,flush=2,stream=1 --ops "$@" > /dev/shm/run 2>&1 || status=$?
	[ $status != 1 ] || { cat /dev/shm/run; die "$layout: a read was wrong (seed $SEED)"; }
}
# beside CMD...: while the oracle writes
beside() {
	start writes "$count" --threads 2
	"$@" || true
	wait "$JOB" || true
}
commit() { vol_message commit || true; }
checkpoint() { vol_message checkpoint || true; }

do_append() { down "$(region)" append codec=lz4 || true; commit; beside down "$(region)" append codec=zstd shift=2; commit; }
do_merge() { down "$(region)" append codec=none || true; writes 10; beside down "$(region)" merge codec=zstd shift=4 up=0-99; commit; }
do_raise() { at=$(region); down "$at" append codec=lz4 || true; commit; order "$at" raise up=0-511 || true; commit; beside order "$(region)" raise up=0-200; commit; }
do_drop() { at=$(region); order "$at" raise up=all || true; commit; beside order "$at" drop; commit; writes 10; }
do_clean() { beside down $((RANDOM % 3)) clean; commit; checkpoint; }
do_random() { beside from_ram orders /dev/terrace/vol random 24 "$RANDOM" 4 tier_down="$LEAST-$SHELVES" > /dev/shm/random 2>&1; commit; }
do_discard() { writes "$count" --weights discard=10,zero=4,flush=4,write=16 --max-discard-kb 32768; checkpoint; writes 10; }
# Only more than 16 regions at once are discarded by one record, and only those that are
# not loaded wait for their turn: reads of pages are slow, so that checkpoints, newer
# writes and another range come before the walk ends.
do_range() {
	local pages n
	read -r -a pages <<< "$(vol_layout "$META" pages)"
	writes $((2 * count)) --hot 0
	commit
	checkpoint
	vol_message evict
	drive "$META" error add read "${pages[@]}" delay=40ms status=ok
	start writes $((2 * count)) --threads 2 --depth 3 --hot 0 --overlap 60 --weights write=20,fua=2,flush=3,discard=2,read=1 --min-discard-kb $((17 * 4096)) --max-discard-kb $((60 * 4096))
	for ((n = 0; n < 6; n++)); do checkpoint; sleep 0.2; done
	wait "$JOB" || true
	checkpoint
	drive "$META" error clear
	writes 10 --hot 0
	commit
}
# so many that the pages go round their area
checkpoints() { local n; for ((n = 0; n < 30; n++)); do checkpoint; done; }
do_checkpoint() { count=$((4 * count)) beside checkpoints; }
# Pages are taken in a circle. Thirty regions are written once, one in each checkpoint, and
# left alone until the circle comes back to them; a dozen others are in each checkpoint.
# The second time round some are in it whose pages lie just ahead.
do_pages() {
	local n region circle
	[ "$layout" = wide ] || return 0
	circle=$(($(vol_layout fast pages | cut -d' ' -f2) / 8 / 16 - 1))
	for ((n = 0; n < circle + 30; n++)); do
		for ((region = 4; region < 16; region++)); do touch_region $region; done
		if [ $n -lt 30 ]; then
			touch_region $((16 + n))
		elif [ $n -ge $circle ]; then
			for ((region = 0; region < 4; region++)); do touch_region $((16 + n - circle + region)); done
		fi
		checkpoint
	done
}
touch_region() { from_ram dd if=/dev/zero of="$VOL" bs=4k count=1 seek=$(($1 * 1024 + RANDOM % 1024)) oflag=direct conv=notrunc status=none; }
do_janitor() { vol_reload stream_kb=64 commit_ms=200 janitor_high=20 janitor_low=10; writes $((2 * count)); commit; vol_reload "${UP[@]}"; }
do_wrap() { writes $((4 * count)) --weights write=6,fua=6,flush=2 --max-kb 8 --depth 3; }
up_again() {
	vol_up "${UP[@]}"
	oracle_crash --touched --marks $MARKS > /dev/shm/verified || { cat /dev/shm/verified; die "$layout, $work (seed $SEED)"; }
}
# the power goes while the oracle writes; what recovery does is recorded as well
do_cut() {
	vol_reload stream_kb=64 commit_ms=300	# a tier that does not flush is tried again so often
	drive "$FAST" arm write $((RANDOM % 200 + 20))
	start writes $((4 * count))
	wait "$JOB" || true
	drive_cut "$FAST"
	dmr vol
	drive_revive "$FAST"
	drive "$FAST" disarm
	up_again
	writes 10 --weights fua=1,write=2
}
# the machine goes while a journal block is under way, the drives do not: what is in
# their caches is still not durable
do_reset() {
	local d
	vol_reload stream_kb=64 commit_ms=300
	writes "$count" --weights write=10,flush=1
	commit
	# shellcheck disable=SC2086 # two words
	drive "$META" error add write $JOURNAL delay=3s
	start writes 200 --weights write=10,fua=2
	sleep 1
	for d in "${DRIVES[@]}"; do drive "$d" dead on; done
	wait "$JOB" || true
	dmr vol
	say crash
	for d in "${DRIVES[@]}"; do drive "$d" dead off; done
	drive "$META" error clear
	up_again
	writes 10 --weights fua=2,write=2,flush=1
	checkpoint
}
# once; the table is another one from then on
do_add() {
	[ "$layout" = added ] && [ "$SHELVES" = 1 ] || return 0
	start writes "$count"
	terracectl add vol --yes --force --tier hdd:shelves:atomic=/dev/mapper/extra > /dev/shm/added 2>&1 || { cat /dev/shm/added; die "$layout: add"; }
	wait "$JOB" || true
	export VOL_TABLE; VOL_TABLE=$(dmsetup table vol)
	SHELVES=2
	writes 10
	down "$(region)" append codec=lz4 || true
	checkpoint
}
do_evacuate() {
	[ "$layout" = added ] && [ "$SHELVES" = 2 ] || return 0
	order "$(region)" append codec=none tier_down=2 || true
	start writes "$count"
	terracectl evacuate vol 2 > /dev/shm/evacuated 2>&1 || { cat /dev/shm/evacuated; die "$layout: evacuate"; }
	wait "$JOB" || true
	checkpoint
	terracectl evacuate --undo vol 2 > /dev/null
	writes 10
}
# once: the tier with the metadata
do_replace() {
	[ "$layout" = replaced ] && [ "$FAST" = fast ] || return 0
	start writes "$count"
	terracectl replace --yes --force --to /dev/mapper/other vol 0 > /dev/shm/replaced 2>&1 || { cat /dev/shm/replaced; die "$layout: replace"; }
	wait "$JOB" || true
	export VOL_TABLE; VOL_TABLE=$(dmsetup table vol)
	VOL_DRIVES[0]=/dev/mapper/other FAST=other META=other
	writes 10
	checkpoint
}
do_resize() {
	vol_message resize $(((size + 1) * MIB)) && size=$((size + 1)) && say size $((size << 20))
	writes 10
	checkpoint
}

# ---- all of it ----

load_drive
read -ra layouts <<< "$LAYOUTS"
at=0
for layout in "${layouts[@]}"; do
	lay "$layout"
	works=$WORK share=${SHARE:-1}
	case $layout in
	liar)	works=discard share=1 ;;
	ranges)	works="range cut range reset" share=1 ;;
	esac
	for ((round = 0; round < ROUNDS; round++)); do
		for work in $works; do
			# one of the layouts does it, or all
			[ $((at++ % share)) = 0 ] || continue
			count=$((20 + RANDOM % 20))
			say mode none
			writes "$count"
			say mode "$work"
			"do_$work"
		done
	done
	at=1
	strike "$layout"
done
