#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terraced drives a volume: senses blocks, makes room with packs, keeps and raises what is hot, survives kill -9 with its heat.
# vm: mode=functional cpus=1 memory=2G timeout=680 build=daemon,orders
# shellcheck disable=SC2119,SC2086,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"

DATA=/dev/shm/data

at_least() { awk "BEGIN { exit !($(number "$1") >= $2) }"; }
fill() { dd if=$DATA of="$VOL" bs=1M seek="$1" skip="$1" count="$2" oflag=direct conv=notrunc status=none; }
heat_up() { dd if="$VOL" of=/dev/null bs=64k count=64 iflag=direct status=none; }
said() { answers && grep -qE -e "$1" /dev/shm/status; }
sensed_by() { logged "vol: driving: heat by ralt, sensed by ($1), victims by approx" || { cat $LOG; die "not driven, or not sensed by $1"; }; }

# half random, half zeros: packs gain
for ((i = 0; i < 24; i++)); do head -c 1M /dev/urandom; head -c 1M /dev/zero; done > $DATA
counter() { cat /sys/fs/terrace/*/"$1"; }
# near NAME SHARE: the status has that share, give or take a hundredth
near() { awk "BEGIN { d = $(number "$1") - $2; exit !(d < 0.01 && d > -0.01) }"; }
mark() { echo "at $(cut -d' ' -f1 /proc/uptime): $*"; }
mark data
conf_written 50 <<-EOF
	sense = auto
	governor.epoch_ops = 1000000
	watermark.high = 0.4
	watermark.low = 0.3
	admit.min_accesses = 100
	ralt.buffer_records = 256
	idle.idle_seconds = 1
	loose.quiet_seconds = 1
EOF
vol_ram 64 512
vol_format
# the janitor would make room, too: here only the daemon may
vol_up stream_kb=0 janitor_high=1000 janitor_low=990 heat_sample=1

# room: the fast tier is below the high mark, thanks to the daemon
room() {
	local used all
	IFS=/ read -r used all <<< "$(vol_tier 0 used)"
	[ $((used * 100)) -lt $((all * 42)) ]
}

# ---- sense, decide, act ----
mark volume
# who is in the way is named; then the daemon drives
LD_LIBRARY_PATH=$RAM/lib "$RAM/orders" /dev/terrace/vol hold > /dev/shm/held &
holder=$!
until_ "the volume is held" grep -q held /dev/shm/held
daemon_start --verbose
until_ "who holds it is told" logged "another process drives this volume: orders \\(pid $holder\\)"
kill $holder
wait $holder 2> /dev/null || true
until_ "the claim" logged "the other driver has gone: the volume is claimed"
mark started
sensed_by "access|bpf"
fill 0 4
for ((i = 0; i < 6; i++)); do heat_up; done
for ((mb = 4; mb < 36; mb += 4)); do
	fill $mb 4
	heat_up
	until_ "room for 4 MiB more" room
done
mark filled
at_least demoted_blocks 2000 || die "demoted only $(number demoted_blocks)"
at_least accesses 8000 || die "sensed only $(number accesses)"
check_eq "failed orders" "$(number failed)" 0
packed=0
for ((r = 1; r < 9; r++)); do
	[[ $(from_ram orders /dev/terrace/vol show $r) == *packs=0 ]] || packed=$((packed + 1))
done
[ $packed -ge 3 ] || die "only $packed regions have packs"
[[ $(from_ram orders /dev/terrace/vol show 0) == *fast=1024*packs=0 ]] || die "the hot region went down: $(from_ram orders /dev/terrace/vol show 0)"
logged "decision [0-9]+: (append|merge) region [0-9]+ for room: .*score .* = benefit .* / cost .*; done" || die "no decision explained"
rss=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' /proc/$daemon/status)
[ "$rss" -le 65536 ] || die "terraced takes $rss kB of memory"
cmp -n $((36 << 20)) $DATA "$VOL" || die "data differ"
# what this kernel offers is in use
said '"summaries": "mapped"' || die "the summaries are not mapped: $(grep summaries /dev/shm/status)"
at_least sampled_regions 1 || die "no region was looked into before it was packed"
said '"claimed": true' || die "the volume is not claimed"
expect_fail "claim: EBUSY" from_ram orders /dev/terrace/vol hold
# a read from a pack is one read; who has to ask the fast tier where in a pack something lies, asks that in vain
fast=$(counter tier0/reads) slow=$(counter tier1/reads)
until_ "the share of fast reads" near fast_read_rate "$fast / ($fast + $slow)"
vol_message evict_indexes
cmp -n $((36 << 20)) $DATA "$VOL" || die "data differ"
fast=$(counter tier0/reads) vain=$(counter index_lookups)
[ "$vain" -gt 0 ] || die "no index was looked up"
until_ "the share of lookups that hit" near lookup_hit_rate "$fast / ($fast + $vain)"
pass "demoted $(number demoted_blocks) blocks of $packed regions, sensed $(number accesses) accesses, $rss kB resident"

# ---- a wrong configuration changes nothing, a right one takes effect ----
cp $CONF $CONF.good
echo "watermark.high = 7" >> $CONF
kill -HUP $daemon
until_ "the error is told" logged "terraced.conf:14: watermark.high = 7: '7' is not a number from"
expect_fail "terraced.conf:14: watermark.high" terraced --config $CONF --check-config
cp $CONF.good $CONF
kill -HUP $daemon
until_ "read anew" logged "read anew"
pass "errors of the configuration have line and reason"

# what it was started with stays, whatever is read anew
daemon_stop
daemon_start --evaluate
: > $LOG
kill -HUP $daemon
until_ "read anew" logged "read anew"
said '"evaluation": true' || die "after SIGHUP it orders moves, though started to evaluate only"
daemon_stop
daemon_start --verbose
: > $LOG
kill -HUP $daemon
until_ "read anew" logged "read anew"
pass "SIGHUP leaves the options alone"

# ---- a stream, loose on the shelves, is packed when nobody is about ----
/usr/bin/python3 -ISc 'import sys; sys.stdout.write(("what a stream is made of\n" * 600000)[:12 << 20])' > /dev/shm/stream
vol_message set stream_kb=256
dd if=/dev/shm/stream of="$VOL" bs=1M seek=64 oflag=direct status=none
vol_message set stream_kb=0
last_packed() { [[ $(from_ram orders /dev/terrace/vol show 18) == *packs=1 ]]; }
until_ "the end of the stream is packed" last_packed
until_ "packed blocks are counted" at_least packed_loose_blocks 512
cmp -n $((12 << 20)) /dev/shm/stream <(dd if="$VOL" bs=1M skip=64 count=12 iflag=direct status=none) || die "the stream is not what was written"
until_ "a decision about loose blocks is explained" logged "decision [0-9]+: merge region 1[678] for loose: .*done"
pass "$(number packed_loose_blocks) loose blocks packed on the idle volume"

# ---- two streams by turns do not shrink, and lie in sixteen pieces each: they are gathered ----
dd if=/dev/urandom of=/dev/shm/noise bs=1M count=8 status=none
gathered=$(number gathered_regions)
vol_message set stream_kb=256
for ((k = 0; k < 32; k++)); do
	piece=$((k % 2 * 16 + k / 2))
	dd if=/dev/shm/noise of="$VOL" bs=256k skip=$piece seek=$((320 + piece)) count=1 oflag=direct status=none
done
vol_message set stream_kb=0
until_ "scattered regions are gathered" at_least gathered_regions $((gathered + 2))
# nothing loose on the disk, in a pack each; what the fast tier has of it may have gone down in one of its own
gathered_in() {
	local -A has
	local word
	for word in $(from_ram orders /dev/terrace/vol show "$1"); do has[${word%=*}]=${word#*=}; done
	[ "${has[present]}" = "${has[fast]}" ] && [ $((has[fast] + has[packed])) -ge 1024 ] && [ "${has[packs]}" -le 2 ]
}
until_ "region 20 is in packs" gathered_in 20
until_ "region 21 is in packs" gathered_in 21
cmp /dev/shm/noise <(dd if="$VOL" bs=1M skip=80 count=8 iflag=direct status=none) || die "gathered data differ"
pass "what lay scattered over a disk was gathered"

mark conf
# ---- kill -9 in the middle of orders ----
for round in 1 2; do
	fill $((32 + 4 * round)) 4 &
	sleep 0.$((round * 2))
	daemon_kill
	wait
	: > $LOG
	# without BPF, and with the block layer's tracepoint as on a kernel without ours
	sense=$([ $round = 1 ] && echo access || echo block)
	sed -i "s/^sense = .*/sense = $sense/" $CONF
	daemon_start --verbose
	sensed_by "$sense"
	! logged "starts cold" || die "the heat was lost"
	until_ "room after a kill" room
done
fill 44 4
cmp -n $((48 << 20)) $DATA "$VOL" || die "data differ after kill -9"
pass "killed twice, data and heat are there"

mark killed
# ---- the volume goes and comes back under the daemon, which is then stopped ----
fill 44 1
# no sample is being read: that holds the disk
no_orders() { [ "$(number under_way)" = 0 ] && room; }
until_ "the orders end" no_orders
vol_down
until_ "it is told that the volume has gone" logged "vol: the volume has gone"
answers
! grep -q '"name": "vol"' /dev/shm/status || die "the status still has it"
: > $LOG
vol_up stream_kb=0 janitor_high=1000 janitor_low=990
until_ "it is driven again" logged "vol: driving"
until_ "room after that" room
cmp -n $((48 << 20)) $DATA "$VOL" || die "data differ after the volume came back"
pass "the volume went and came back"
mark back

daemon_stop
logged "stopped" || die "no clean stop"
vol_down
vol_check
pass "clean stop"
