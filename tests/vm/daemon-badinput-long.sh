#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terraced with a state directory that is full, read-only, damaged; a clock that jumps; a rival; kills; a volume that goes while room is made.
# vm: mode=functional cpus=1 memory=3G timeout=900 build=daemon,orders,drive long
#
# Each time: what is wrong is told in the log, room is made all the same, and the data are right.
# shellcheck disable=SC2119,SC2086,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"

RANDOM=${SEED:-1}
STATE=/dev/shm/state DATA=/dev/shm/data
SIZE=96	# MiB of the volume that are used
at=0

at_least() { awk "BEGIN { exit !($(number "$1") >= $2) }"; }
said() { answers && grep -qE -e "$1" /dev/shm/status; }
times() { grep -cE -e "$1" $LOG || true; }
configure() {	# FILE SOCKET STATE
	cat > "$1" <<-EOF
		[daemon]
		state_directory = $3
		socket = $2
		tick_ms = 50
		[policy]
		watermark.high = 0.4
		watermark.low = 0.3
		admit.min_accesses = 100
		admit.uniform = 0
		ralt.buffer_records = 256
		# what is hot, and so stays, is less than what the marks leave: in the course of the test all of it is read again and again
		ralt.initial_hot_share = 0.1
		ralt.max_hot_share = 0.2
		fill = 0.2
		idle.idle_seconds = 1
		# who stops moves leaves room to the janitor, which is kept from making any here
		governor.epoch_ops = 1000000000
	EOF
}
# fill MIB: the next of them, round and round
fill() {
	dd if=$DATA of="$VOL" bs=1M seek=$at skip=$at count="$1" oflag=direct conv=notrunc status=none
	at=$(((at + $1) % SIZE))
}
room() {
	local used all
	IFS=/ read -r used all <<< "$(vol_tier 0 used)"
	[ $((used * 100)) -lt $((all * 42)) ]
}
# moves WHAT: room is made, by terraced.  What is written may be fast still, so once round the volume is allowed.
moves() {
	local before round
	before=$(number demoted_blocks)
	for ((round = 1; round <= 3 || round <= SIZE / 8; round++)); do
		fill 8
		dd if="$VOL" of=/dev/null bs=64k count=64 iflag=direct status=none
		until_ "$1: room, round $round" room
		if [ $round -ge 3 ] && at_least demoted_blocks $((before + 500)); then break; fi
	done
	at_least demoted_blocks $((before + 500)) || die "$1: demoted only $(number demoted_blocks), $before before"
	# busy: the block is being discarded, or the region moved
	check_eq "$1: orders that failed" "$(number failed)" 0
	cmp -n $((at << 20)) $DATA "$VOL" || die "$1: data differ"
}
restart() {
	[ -z "$daemon" ] || daemon_stop
	: > $LOG
	daemon_start
	until_ "driving" logged "vol: driving"
}
runs() { find $STATE -name 'run-*.ralt' | wc -l; }
heat_on_disk() { [ "$(runs)" -gt 0 ]; }

for ((i = 0; i < SIZE / 2; i++)); do head -c 1M /dev/urandom; head -c 1M /dev/zero; done > $DATA
configure $CONF /dev/shm/socket $STATE
mkdir $STATE
mount -t tmpfs -o size=4m state $STATE
# shelves enough: where they run short the janitor is let in, and makes room itself
vol_drives 64 1536
vol_format
vol_up stream_kb=0 janitor_high=1000 janitor_low=990 heat_sample=1
fill $SIZE

# ---- full: while it runs, and from the start ----
restart
moves "at first"
until_ "heat is kept on disk" heat_on_disk
dd if=/dev/zero of=$STATE/rubbish bs=64k status=none 2> /dev/null || true
moves "state directory full"
until_ "it is told that heat cannot be written" logged "heat store could not be written; tried again later: No space left on device"
[ "$(times 'No space left on device')" -le 4 ] || { cat $LOG; die "told again and again"; }
rm $STATE/rubbish
touch /dev/shm/then
newer() { find $STATE -name 'run-*.ralt' -newer /dev/shm/then | grep -q .; }
moves "room in the state directory again"
until_ "heat is written again" newer
daemon_stop
find $STATE -mindepth 1 -delete
dd if=/dev/zero of=$STATE/rubbish bs=64k status=none 2> /dev/null || true
dd if=/dev/zero of=$STATE/rubbish2 bs=1 count=65536 status=none 2> /dev/null || true
restart
logged "the heat store cannot be opened \(No space left on device\): heat is kept in memory" || { cat $LOG; die "not told that there is no room"; }
moves "state directory full from the start"
daemon_stop
rm $STATE/rubbish*
pass "a full state directory is told, and costs no moves"

# ---- read-only ----
restart
moves "before it is read-only"
until_ "heat is kept on disk" heat_on_disk
daemon_stop
mount -o remount,ro $STATE
restart
logged "the heat store cannot be opened \(Read-only file system\): heat is kept in memory" || { cat $LOG; die "not told that it is read-only"; }
moves "state directory read-only"
daemon_stop
mount -o remount,rw $STATE
restart
! logged "starts cold" || die "the heat of before is lost"
pass "a read-only state directory is told, and costs no moves; the heat of before is kept"

# ---- damaged files ----
moves "before the damage"
for what in run MANIFEST all; do
	daemon_stop
	heat_on_disk || die "no heat on disk to damage"
	for file in "$STATE"/*/ralt/run-*.ralt "$STATE"/*/ralt/MANIFEST; do
		case $what:$file in
		run:*run-*)	dd if=/dev/urandom of="$file" bs=1 count=8192 seek=16 conv=notrunc status=none ;;
		MANIFEST:*MANIFEST)	truncate -s 20 "$file" ;;
		all:*)		head -c 5000 /dev/urandom > "$file" ;;
		esac
	done
	: > $LOG
	daemon_start
	until_ "driving" logged "vol: driving"
	moves "damaged: $what"
	logged "heat store: .* is damaged and was set aside as .bad" || { cat $LOG; die "damaged, $what: not told"; }
	find $STATE -name '*.bad' | grep -q . || die "damaged, $what: not set aside"
	[ $what = run ] || logged "starts cold" || die "damaged, $what: not told that it starts cold"
	find $STATE -name '*.bad' -delete
	until_ "heat is kept on disk" heat_on_disk
done
pass "damaged heat is set aside and told"

# ---- the wall clock jumps ----
for jump in "+10 years" "-30 years" "+20 years"; do
	date -s "$(date -d "now $jump")" > /dev/null
	moves "the clock jumped: $jump"
done
pass "clock jumps"

# ---- a second one: with a state of its own, and with this one's ----
first=$daemon
for state in /dev/shm/other $STATE; do
	configure /dev/shm/other.conf /dev/shm/other.socket $state
	LD_LIBRARY_PATH=$RAM/lib "$RAM/terraced" --config /dev/shm/other.conf > /dev/shm/other.log 2>&1 &
	other=$!
	if [ $state = $STATE ]; then
		until_ "the second is refused" grep -q "another process works on this volume" /dev/shm/other.log
	else
		until_ "who holds it is told" grep -qE "another process drives this volume: terraced \(pid $first\)" /dev/shm/other.log
	fi
	kill $other
	wait $other || die "the second ends with $?"
done
moves "after a second one"
pass "a second terraced is told who drives the volume"

# ---- killed at any moment, with orders and heat under way ----
: > $LOG
for ((i = 0; i < ${KILLS:-20}; i++)); do
	fill 4 &
	filler=$!
	sleep 0.$((RANDOM % 10))$((RANDOM % 10))
	daemon_kill
	wait $filler
	daemon_start
	! logged "set aside|starts cold" || { cat $LOG; die "kill $i cost the heat"; }
done
until_ "driving" logged "vol: driving"
moves "killed $i times"
pass "killed $i times"

# ---- the volume goes while room is being made, with and without its drives ----
for way in removed cut removed cut; do
	: > $LOG
	fill 16
	if [ $way = cut ]; then
		vol_cut
	else
		vol_down
	fi
	until_ "$way: it is told that the volume has gone" logged "vol: the volume has gone"
	answers || die "$way: no answer"
	: > $LOG
	vol_up stream_kb=0 janitor_high=1000 janitor_low=990 heat_sample=1
	until_ "$way: driven again" logged "vol: driving"
	# what was not flushed may be gone
	[ $way = removed ] || { at=0; fill $SIZE; }
	moves "the volume came back, $way"
done
pass "the volume went while room was made, and came back"

daemon_stop
vol_down
vol_check
pass "clean stop"
