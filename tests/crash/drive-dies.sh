#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A drive dies, fails reads, writes or flushes, or takes five seconds while the volume is in use, of each kind of tier and of the metadata: exactly the blocks that lie only there give EIO, all others hold what they must; well again, and after a restart, all do.
# vm: mode=functional memory=2G timeout=900 build=oracle,orders
#
# FAULTS= (dead writes reads flush slow) and DRIVES= (the metadata's, of slots, homes, shelves) say
# which; IN_USE= how long, in seconds, each is in use. All of them: crash/drive-dies-long.
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}
FAULTS=${FAULTS:-dead}
IN_USE=${IN_USE:-2}
DRIVES=${DRIVES:-fast slow}
RANDOM=$SEED
UP=(stream_kb=64 commit_ms=300 janitor_high=1000 janitor_low=990 cache_mb=0)	# what is in memory is served, whatever died
BLOCKS=8192
PATH=$TERRACE_TREE/build:$PATH in_ram orders dmsetup
dmsetup() { from_ram dmsetup "$@"; }
klog_allow 'device-mapper: .*drive (fast|next|slow|meta)'
klog_allow 'device-mapper: terrace: .*(I/O error|cannot be|failed|fails|read-only|lost|is not)'

orders_() { from_ram orders /dev/terrace/vol "$@"; }
run_() {
	local status=0
	oracle run --ledger "$LEDGER" --device "$VOL" --seed "$RANDOM" --depth 4 --max-kb 32 --max-discard-kb 256 --blocks $BLOCKS --hot 20 --eio-ok \
		--weights write=30,fua=4,read=30,discard=2,zero=1,flush=4,stream=1 "$@" > /dev/shm/run 2>&1 || status=$?
	[ $status = 0 ] || { cat /dev/shm/run; die "$what: in use: exit status $status"; }
}
# neither the use nor these orders meet the last two regions: what is packed there stays packed
random() {
	while :; do vol_message checkpoint || true; vol_message evict || true; orders_ random 16 "$RANDOM" 6 tier_down="1-2" > /dev/shm/random 2>&1 || true; done
}
# something of everything: in slots, at home, packed, loose, clean
order() { orders_ move "$@" > /dev/shm/order || die "$what: order $*: $(cat /dev/shm/order)"; }
spread() {
	vol_format --meta /dev/mapper/meta --tier optane:slots:atomic=/dev/mapper/fast --tier csd:home:atomic=/dev/mapper/next \
		--tier hdd:shelves:atomic=/dev/mapper/slow --size 64M
	vol_up "${UP[@]}"
	oracle_new "$SEED"
	run_ --ops 300 --hot 0 --weights write=1
	for region in 0 1 2 6 7; do order $region append codec=lz4 tier_down=2 up=0-300; done
	order 1 raise tier_up=0 up=0-600
	for region in 3 4; do order $region append tier_down=1 up=0-200; done
	run_ --ops 40
	sync "$VOL"
}
inject() {
	case $2 in
	dead)	drive "$1" dead on ;;
	writes)	drive "$1" error add write 0 0 ;;
	reads)	drive "$1" error add read 0 0 ;;
	flush)	drive "$1" error add flush 0 0 ;;
	slow)	drive "$1" error add all 0 0 delay=5s status=ok count=8 ;;
	esac
}
# Only a tier that was written to is flushed, metadata are read where they have been evicted:
# the use goes on until the fault has met a command, one that is only late as well.
until_met() {
	local n
	for ((n = 0; n < 20; n++)); do
		struck=$(($(drive_get "$1" struck) - before))
		[ $struck = 0 ] || return 0
		vol_message checkpoint || true
		vol_message evict || true
		orders_ random 16 "$RANDOM" 6 tier_down="1-2" > /dev/shm/random 2>&1 || true
		run_ --ops 20 --threads 1 --blocks 6144
		sync "$VOL" 2> /dev/null || true
	done
	die "$what: the fault met nothing"
}
heal() { drive "$1" dead off; drive "$1" error clear; }
tier_of() { case $1 in fast) echo 0 ;; next) echo 1 ;; slow) echo 2 ;; esac; }

# one DRIVE FAULT
one() {
	local writer orders expected=/dev/null
	what="$1 $2"
	spread
	before=$(drive_get "$1" struck)
	start run_ --seconds "$IN_USE" --ops 100000 --threads 2 --blocks 6144
	writer=$JOB
	start random
	orders=$JOB
	sleep 1
	inject "$1" "$2"
	wait "$writer" || die "$what: see above"
	kill_all "$orders"
	until_met "$1"
	# what is lost with it, block for block
	if [ "$1" != meta ] && [[ $2 = dead || $2 = reads ]]; then
		orders_ only "$(tier_of "$1")" > /dev/shm/expected || die "$what: cannot be listed"
		expected=/dev/shm/expected
	fi
	oracle_clean --keep --eio /dev/shm/eio > /dev/shm/verified || { cat /dev/shm/verified; die "$what: what is elsewhere"; }
	cmp -s $expected /dev/shm/eio || { diff $expected /dev/shm/eio | head -20; die "$what: what gives EIO (>) is not what lies there only (<)"; }
	nr=$(awk '{ n += $2 } END { print n + 0 }' /dev/shm/eio)
	mode=$(vol_get mode)
	[ $expected = /dev/null ] || [ "$nr" -gt 50 ] || die "$what: only $nr blocks lie there"
	heal "$1"
	oracle_clean --keep > /dev/shm/verified || { cat /dev/shm/verified; die "$what: well again"; }
	dmr vol
	vol_up "${UP[@]}"
	# what was acknowledged and flushed; a volume that could still write has forgotten nothing
	if [ "$mode" = write ]; then how=oracle_clean; else how=oracle_crash; fi
	$how > /dev/shm/verified || { cat /dev/shm/verified; die "$what: after a restart"; }
	check_eq "$what: mode after a restart" "$(vol_get mode)" write
	vol_down
	vol_check > /dev/null
	echo "ok: $what: $nr blocks gave EIO, $struck commands met it, mode $mode, $(tail -1 /dev/shm/run)"
}

vol_models "$SEED" meta:16 fast:32 next:64 slow:448
for drive in $DRIVES; do
	for fault in $FAULTS; do one "$drive" "$fault"; done
done
pass "drives that die: $DRIVES; each: $FAULTS"
