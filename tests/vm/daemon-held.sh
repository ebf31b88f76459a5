#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What holds moves back does so, and is told: bandwidth (a network's of its own), endurance; uniform reads promote next to nothing.
# vm: mode=vtime memory=2G timeout=900 build=daemon,orders
# shellcheck disable=SC2034,SC2086,SC2119,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"
. "$TERRACE_TREE/tests/vm/orders.bash"

DATA=/dev/shm/data
ORDER=$(((1024 + 8) * 4096))	# a whole region with its pack's header, index and padding

# configured LINE...: of the limits only what LINE... say
configured() { conf_unhindered idle.boost=1 idle.idle_seconds=86400 budget.bytes_per_second=0 "$@"; }
# reconfigured KEY VALUE: that one changes
reconfigured() {
	sed -i "s/^$1 *=.*/$1 = $2/" $CONF
	kill -HUP $daemon
}
ROOM=(watermark.high=0.05 watermark.low=0.04)	# nearly all has to go down

at_least() { [ "$(number "$1")" -ge "$2" ]; }
said() { answers && grep -qE -e "$1" /dev/shm/status; }
because() { said "\"nothing_moves_because\": \"$1"; }
moved_all() { [ "$(number demoted_blocks)" -ge 5500 ] && [ "$(number under_way)" = 0 ]; }
# bytes that the slow drive itself has counted
slow_bytes() {	# written|both
	local stat
	read -ra stat < "/sys/class/block/$(basename "$(readlink -f /dev/ram/slow)")/stat"
	case $1 in
	written) echo $((stat[6] * 512)) ;;
	both)	echo $(((stat[2] + stat[6]) * 512)) ;;
	esac
}
ms() { awk '{ printf "%d\n", $1 * 1000 }' /proc/uptime; }
# of a tier: what the status says of it
of_tier() { answers && sed -n "s/^ *\"$2\": *\([0-9.]*\),\?$/\1/p" /dev/shm/status | sed -n "$(($1 + 1))p"; }

# fresh CLASS: 24 MiB that do not shrink, all on the fast tier, with a slow tier of that class
fresh() {
	vol_format --tier "optane:slots:atomic=/dev/ram/fast" --tier "$1:shelves:atomic=/dev/ram/slow"
	vol_up stream_kb=0 janitor_high=1000 janitor_low=990 heat_sample=1
	dd if=$DATA of="$VOL" bs=1M oflag=direct status=none
	rm -rf /dev/shm/state
	: > $LOG
}
# as it was, and sound
over() {
	cmp $DATA <(dd if="$VOL" bs=1M count=24 iflag=direct status=none) || die "data differ"
	check_eq "failed orders" "$(number failed)" 0
	daemon_stop
	vol_down
	vol_check > /dev/null
}

head -c 24M /dev/urandom > $DATA
vol_ram 32 512

# ---- bandwidth: no more than the rate, what a second's rest has saved, and the order that is one too many ----
RATE=300000
keeps_to_rate() {	# WHAT
	local from began bytes took most
	from=$(slow_bytes both) began=$(ms)
	daemon_start
	sleep 20
	bytes=$(($(slow_bytes both) - from))
	took=$(($(ms) - began))
	most=$((RATE * took / 1000 + RATE + ORDER))
	[ $bytes -le $most ] || die "$1: moves took $bytes bytes of the slow drive, of at most $most"
	[ $most -lt $((20 << 20)) ] || die "$1: in $took ms all may have gone down"
	[ $bytes -ge $((RATE * 10)) ] || die "$1: moves took only $bytes bytes in $took ms"
	at_least held_by_budget 1 || die "$1: nothing was held back"
	until_ "$1: the reason" because "the bandwidth that moves may take is used up for now \\(budget.bytes_per_second\\)"
	pass "$1: $bytes bytes in $took ms, at most $most"
}
fresh hdd
configured "${ROOM[@]}" tier1.budget.bytes_per_second=$RATE
keeps_to_rate "a tier's bandwidth"
reconfigured tier1.budget.bytes_per_second 0
sleep 5
moved_all || die "without that limit moves do not go on: $(number demoted_blocks) blocks are down"
over

fresh net
configured "${ROOM[@]}" budget.net_bytes_per_second=$RATE
keeps_to_rate "a network's bandwidth"
check_eq "what moves may take of the network" "$(of_tier 1 moves_may_take_bytes_per_second)" "$RATE.0"
check_eq "... and of the fast tier" "$(of_tier 0 moves_may_take_bytes_per_second)" 0.0
reconfigured budget.net_bytes_per_second 0
over

# ---- endurance: a hard limit, not even a kill gives more ----
fresh qlc
configured "${ROOM[@]}" tier1.endurance.drive_writes_per_day=0.02
IFS=/ read -r _ blocks <<< "$(vol_tier 1 used)"
bank=$((blocks * 4096 / 50))
MIRROR=65536	# of the metadata, written late
from=$(slow_bytes written)
worn() { because "what may be written to a drive is used up for now \\(endurance.drive_writes_per_day\\)"; }
stands() {	# WHAT DEMOTED BYTES, as the daemon counts
	local more
	sleep 10
	check_eq "blocks that went down $1" "$(number demoted_blocks)" "$2"
	check_eq "bytes written by moves $1" "$(of_tier 1 written_by_moves_bytes)" "$3"
	more=$(($(slow_bytes written) - from - written))
	[ $more -le $MIRROR ] || die "the slow drive has written $more bytes more $1"
	worn || die "the reason is not told $1"
}
daemon_start
until_ "endurance is used up, and that is told" worn
written=$(($(slow_bytes written) - from))
[ "$(of_tier 1 written_by_moves_bytes)" -le $bank ] || die "moves wrote $(of_tier 1 written_by_moves_bytes) bytes, of $bank"
[[ $written -ge $ORDER && $written -le $bank ]] || die "the slow drive has written $written bytes, of $bank"
at_least held_by_endurance 1 || die "nothing was held back by endurance"
stands "once it was used up" "$(number demoted_blocks)" "$(of_tier 1 written_by_moves_bytes)"
daemon_kill
daemon_start
until_ "the same after a kill" worn
stands "after a kill" 0 0
pass "endurance: $written bytes of $bank are written, and no more"
reconfigured tier1.endurance.drive_writes_per_day 0
more() { at_least demoted_blocks 2000; }
until_ "moves go on without that limit" more
over

# ---- uniform reads: nothing is worth its promotion; a hotspot is ----
fresh hdd
BLOCKS=$((24 * 1024))	# 96 MiB
for mb in 0 24 48 72; do
	[ $mb = 0 ] || dd if=$DATA of="$VOL" bs=1M seek=$mb oflag=direct status=none
	for ((r = mb / 4; r < mb / 4 + 6; r++)); do order $r append tier_down=1 codec=none; done
	sleep 1		# the slots are free again after a commit
done
configured epoch.min_epoch_ops=1000 epoch.cool_down_ops=0 governor.epoch_ops=10000 admit.uniform=1.25
promoted() { echo $(($(number promoted_by_flush_blocks) + $(number promoted_by_compaction_blocks) + $(number promoted_by_epoch_blocks))); }
reads() { fio_ --name=r --filename="$VOL" --rw=randread --bs=4k --direct=1 --norandommap --randrepeat=0 --randseed=7 "$@" > /dev/null; }
daemon_start
reads --size=96M --number_ios=60000
until_ "that is told" said '"promotions": "nothing is promoted: the load shows no skew'
because "the load is uniform: no placement is better than another" || die "it is not told that nothing moves"
up=$(promoted)
[ $((up * 100)) -lt $BLOCKS ] || die "uniform reads have promoted $up of $BLOCKS blocks"
hotspot() { reads --offset=8M --size=2M --number_ios=5000; [ "$(promoted)" -ge $((up + 450)) ]; }
until_ "a hotspot goes up" hotspot
pass "uniform reads promoted $up of $BLOCKS blocks, a hotspot $(($(promoted) - up))"
over
