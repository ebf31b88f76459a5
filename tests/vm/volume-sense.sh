#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What a policy sees and may mark: summaries, pins and hints, events, the claim to drive, tracepoints.
# vm: mode=functional cpus=1 memory=2G timeout=600 build=orders
# shellcheck disable=SC2119,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/orders.bash"

T=/sys/kernel/tracing
mountpoint -q $T || mount -t tracefs t $T
word() { sed -n "s/.*\b$1=\([^ ]*\).*/\1/p"; }

vol_ram 64 512
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --size 128M
vol_up stream_kb=0 heat_sample=1
dd if=/dev/urandom of="$VOL" bs=1M count=16 oflag=direct status=none

# summaries follow writes and orders
until_says "fast=1024 dirty=1024 loose=0 packed=0 garbage=0 packs=0 pinned=0 stale=0" ask summary 0
order 0 append tier_down=1 codec=lz4 up=0-23
until_says "fast=24 dirty=24 loose=0 packed=1000 garbage=0 packs=1 pinned=0 stale=0" ask summary 0
dd if=/dev/urandom of="$VOL" bs=4k seek=100 count=7 oflag=direct status=none
until_says "fast=31 dirty=31 loose=0 packed=993 garbage=7 packs=1 pinned=0 stale=0" ask summary 0
order 0 raise up=200-209
until_says "fast=41 dirty=31 loose=0 packed=993 garbage=7 packs=1 pinned=0 stale=0" ask summary 0
dd if=/dev/urandom of="$VOL" bs=4k seek=205 count=3 oflag=direct status=none
until_says "fast=41 dirty=34 loose=0 packed=990 garbage=10 packs=1 pinned=0 stale=0" ask summary 0
until_says "fast=0 dirty=0 loose=0 packed=0 garbage=0 packs=0 pinned=0 stale=0" ask summary 100
pass "summaries"

# what is pinned fast stays there, what is pinned slow does not come up
check_eq "a pin" "$(ask range $((1024 + 10)) 5 pin-fast)" 0
check_eq "a pin" "$(ask range $((1024 + 500)) 20 pin-slow)" 0
order 1 append tier_down=1 codec=lz4
check_eq "blocks down beside 5 pinned ones" "$(word down <<< "$said")" 1019
order 1 raise up=495-524
check_eq "blocks up beside 20 pinned ones" "$(word up <<< "$said")" 10
until_says "fast=15 dirty=5 loose=0 packed=1019 garbage=0 packs=1 pinned=1 stale=0" ask summary 1
order 1 drop
check_eq "clean slots given back" "$(word dropped <<< "$said")" 10
check_eq "unpin" "$(ask range 1024 1024 unpin)" 0
order 1 append tier_down=1 codec=lz4
check_eq "blocks down, no longer pinned" "$(word down <<< "$said")" 5

# hints end with their process
start ask range 3072 512 cold 1000 > /dev/shm/hint
until_says 0 cat /dev/shm/hint
new=$(vol_tier 1 writes)
blkdiscard -o $((12 << 20)) -l $((4 << 20)) "$VOL"
dd if=/dev/urandom of="$VOL" bs=4k seek=3072 count=100 oflag=direct status=none
check_eq "new writes past the fast tier" $(($(vol_tier 1 writes) - new)) 100
kill_all "$JOB"
new=$(vol_tier 1 writes)
dd if=/dev/urandom of="$VOL" bs=4k seek=3300 count=100 oflag=direct status=none
check_eq "new writes after the hint" $(($(vol_tier 1 writes) - new)) 0

# what is long and in order goes past the fast tier, but not where that is pinned or hinted to be fast
vol_message set stream_kb=256
stream() {	# FIRST COUNT: how many of so many writes of 64 KiB went below
	local new
	new=$(vol_tier 1 writes)
	dd if=/dev/urandom of="$VOL" bs=64k seek="$1" count="$2" oflag=direct status=none
	echo $(($(vol_tier 1 writes) - new))
}
[ "$(stream 320 16)" -ge 8 ] || die "a stream of 1 MiB stays fast: this shows nothing"
check_eq "a pin" "$(ask range 6144 256 pin-fast)" 0
check_eq "writes past the fast tier, pinned fast" "$(stream 384 16)" 0
check_eq "unpin" "$(ask range 6144 256 unpin)" 0
start ask range 7168 256 fast 1000 > /dev/shm/hint
until_says 0 cat /dev/shm/hint
check_eq "writes past the fast tier, hinted fast" "$(stream 448 16)" 0
expect_fail "error=ENOENT down=0" ask move 7 append tier_down=1 codec=lz4
kill_all "$JOB"
order 7 append tier_down=1 codec=lz4
check_eq "blocks down when the hint has ended" "$(word down <<< "$said")" 256
[ "$(stream 768 16)" -ge 8 ] || die "a stream stays fast after the hint"
vol_message set stream_kb=0
pass "pins and hints"

ask claim || die "claim"
pass "the claim to drive"

# tracepoints: each says what happened, and costs nothing while off
events() { grep -c "$1" $T/trace || true; }
echo > $T/trace
echo 1 > $T/events/terrace/enable
dd if="$VOL" of=/dev/null bs=4k skip=2048 count=50 iflag=direct status=none
check_eq "hits told" "$(events 'terrace_access:.* count=1 op=0 where=0')" 50
# who drives looks, and uses nothing
echo > $T/trace
check_eq "blocks the driver read" "$(ask look "$VOL" 2048 50)$(ask look "$VOL" 300 20)" 5020
check_eq "of these told" "$(events 'terrace_access:')$(events 'terrace_end:')" 00
for end in release time close; do
	echo > $T/trace
	check_eq "blocks read by who drove until: $end" "$(ask look "$VOL" 2048 50 $end)" 50
	check_eq "of these told" "$(events 'terrace_access:')" 50
done
echo > $T/trace
dd if="$VOL" of=/dev/null bs=4k skip=300 count=20 iflag=direct status=none
check_eq "packed reads told" "$(events 'terrace_access:.* count=1 op=0 where=769')" 20
# four in a jiffy, at least
ends=$(events 'terrace_end:.* tier=1 op=0 nanoseconds=[1-9]')
[[ $ends -ge 4 && $ends -le 20 ]] || die "ends told of 20 packed reads: $ends"
vol_message set heat_sample=65536
echo > $T/trace
dd if="$VOL" of=/dev/null bs=4k skip=2048 count=50 iflag=direct status=none
dd if="$VOL" of=/dev/null bs=4k skip=300 count=20 iflag=direct status=none
check_eq "hits told, one in 65536" "$(events 'terrace_access:.* where=0')" 0
check_eq "packed reads told all the same" "$(events 'terrace_access:.* where=769')" 20
vol_message set slow_sample=4
echo > $T/trace
# as many CPUs, as many counts
taskset 1 dd if="$VOL" of=/dev/null bs=4k skip=300 count=20 iflag=direct status=none
check_eq "packed reads told, one in 4" "$(events 'terrace_access:.* where=769')" 5
vol_message set slow_sample=1
# what heats nothing is not told, but its end is: the heat of whoever was there before ends with it
start ask range 2500 100 noheat 1000 > /dev/shm/hint
until_says 0 cat /dev/shm/hint
vol_message set heat_sample=1
echo > $T/trace
dd if="$VOL" of=/dev/null bs=4k skip=2500 count=50 iflag=direct status=none
blkdiscard -o $((2510 << 12)) -l $((10 << 12)) "$VOL"
# not those of blkdiscard, which looks for what lies on the device
check_eq "hits told where nothing is heated" "$(events 'terrace_access:.* block=25[0-4][0-9] .*op=0')" 0
check_eq "discards told there" "$(events 'terrace_access:.* block=2510 count=10 op=2')" 1
kill_all "$JOB"
vol_message set heat_sample=65536
order 0 raise up=400-402
[ "$(events 'terrace_promote:.* tier=0')" = 3 ] || die "promotions: $(events terrace_promote)"
[ "$(events 'terrace_move:.* region=0 mode=3 error=0 down=0 up=3')" = 1 ] || die "the move was not told"
vol_message commit
[ "$(events 'terrace_commit:')" -ge 1 ] || die "the commit was not told"
echo 0 > $T/events/terrace/enable
pass "tracepoints"

# what is marked dead does not come up, until it is written anew
order 2 append tier_down=1 codec=lz4
start ask range 2048 1024 dead 1000 > /dev/shm/hint
until_says 0 cat /dev/shm/hint
expect_fail "error=ENOENT" ask move 2 raise up=0-9
dd if=/dev/urandom of="$VOL" bs=4k seek=2052 count=3 oflag=direct status=none
order 2 append tier_down=1 codec=lz4
up_again() { ask move 2 raise up=0-9 | word up; }
until_says 3 up_again
kill_all "$JOB"
until_says 7 up_again
pass "dead blocks, and their lifting"

# what is marked dead does not stay either, dirty or clean, though an order says so; what is written anew does
of_region() { dd if="$VOL" bs=1M skip=12 count=4 iflag=direct status=none; }
would_go() { ask move 3 append tier_down=1 codec=lz4 flags=2 up=0-99,200-209 | sed -n 's/.*\bdown=\([0-9]*\).*\bdropped=\([0-9]*\).*/\1 \2/p'; }
for mode in append merge; do
	dd if=/dev/urandom of="$VOL" bs=4k seek=3072 count=1024 oflag=direct status=none
	order 3 append tier_down=1 codec=lz4
	dd if=/dev/urandom of="$VOL" bs=4k seek=3072 count=100 oflag=direct status=none
	order 3 raise up=200-209
	of_region > /dev/shm/before
	start ask range 3072 1024 dead 1000 > /dev/shm/hint
	until_says 0 cat /dev/shm/hint
	check_eq "marked: blocks that would go down, and be dropped" "$(would_go)" "100 10"
	dd if=/dev/shm/before of="$VOL" bs=4k skip=50 seek=3122 count=10 oflag=direct status=none
	until_says "90 10" would_go
	order 3 $mode tier_down=1 codec=lz4 up=0-99
	until_says "fast=10 dirty=10 loose=0" eval 'ask summary 3 | cut -d" " -f1-3'
	kill_all "$JOB"
	cmp <(of_region) /dev/shm/before || die "$mode: the data have changed"
	order 3 raise up=0-49
	ask move 3 $mode tier_down=1 codec=lz4 up=0-59 > /dev/null || true
	check_eq "blocks that stay when nothing is marked, $mode" "$(ask summary 3 | word fast)" 60
	cmp <(of_region) /dev/shm/before || die "$mode: the data have changed"
done
pass "dead blocks that were to stay go down, those written anew stay"

# events: suspended and resumed, low room and room again, grown
start ask events 20 > /dev/shm/events
until_says listening head -n 1 /dev/shm/events
dmsetup suspend --noudevsync vol
dmsetup resume --noudevsync --noudevrules vol
until_says 2 grep -c "type=9" /dev/shm/events
# one_more WANTED: a new block, so that room is looked at; and what has been told of it
seek=8192
one_more() {
	dd if=/dev/zero of="$VOL" bs=4k seek=$((seek++)) count=1 oflag=direct status=none
	grep -c "type=2 tier=0 region=-1 value=$1" /dev/shm/events
}
vol_message set janitor_high=1
until_says 1 one_more 1
vol_message set janitor_high=980
until_says 1 one_more 0
vol_message resize $((192 * 2048))
until_says 1 grep -c "type=5 tier=-1 region=-1 value=$((192 * 256))" /dev/shm/events
kill_all "$JOB"
pass "events"

# a region that was not loaded is known in full once it is, though nothing in it changes
known=
until [ "$(ask summary 0)" = "$known" ]; do known=$(ask summary 0); sleep 2; done
vol_down
vol_up stream_kb=0
check_eq "of what was not loaded" "$(ask summary 0)" "fast=$(word fast <<< "$known") dirty=0 loose=0 packed=0 garbage=0 packs=0 pinned=0 stale=1"
dd if="$VOL" of=/dev/null bs=4k skip=900 count=1 iflag=direct status=none
until_says "$known" ask summary 0
pass "a region that is loaded"
vol_down
vol_check
