#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Half an hour of changing load under terraced: verified data, stable memory, no order stuck, whatever is killed.
# vm: mode=functional memory=3G timeout=3000 build=daemon,orders,oracle long
#
# SOAK=SECONDS for another length.  Loads take turns: hot reads, writes everywhere, large writes with discards, rest.
# shellcheck disable=SC2119,SC2086,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"

SOAK=${SOAK:-1800}
EACH=${EACH:-15}
RANDOM=${SEED:-1}
conf_written <<-EOF
	admit.min_accesses = 100
	ralt.buffer_records = 1024
	governor.epoch_ops = 5000
	epoch.min_epoch_ops = 1000
	EOF
vol_ram 64 640
vol_format
vol_up stream_kb=2048 heat_sample=1
oracle_new 1
daemon_start

no_orders() { [ "$(number under_way)" = 0 ]; }
# ordinary answers: discards or the janitor are busy with the region; what was to go up was written or discarded meanwhile
none_failed() {
	[ "$(number failed)" = 0 ] && return
	! terraced --config $CONF --explain | grep '; failed' | grep -v -e 'Device or resource busy' -e 'No such file or directory' || die "orders failed"
}
load() {	# LOAD SEED
	local run=(oracle_run --seed "$2" --seconds "$EACH" --threads 2 --depth 8)
	case $1 in
	0)	"${run[@]}" --max-kb 16 --hot 95 --weights write=5,fua=1,read=90,discard=1,zero=1,flush=2,stream=0 ;;
	1)	"${run[@]}" --max-kb 64 --hot 50 ;;
	2)	"${run[@]}" --max-kb 1024 --max-discard-kb 4096 --hot 10 ;;
	*)	sleep "$EACH" ;;
	esac
}

begin=$(cut -d. -f1 /proc/uptime) round=0 warm=0 most=0 moved=0
now() { echo $(($(cut -d. -f1 /proc/uptime) - begin)); }
while [ "$(now)" -lt "$SOAK" ]; do
	load $((round % 4)) $((round + 1)) > /dev/shm/load || { cat /dev/shm/load; die "round $round"; }
	until_ "the orders of round $round end" no_orders
	rss=$(rss_kb)
	[ "$rss" -le "$most" ] || most=$rss
	echo "at $(now) s: round $round, $rss kB, down $(number demoted_blocks), up $(number promoted_by_flush_blocks), orders done $(number "done"), failed $(number failed), CPU $(number cpu_share)"
	none_failed
	# the first half with kills and reloads, the second undisturbed: once it is warm, memory must stand still
	if [ "$(now)" -lt $((SOAK / 2)) ]; then
		case $((RANDOM % 3)) in
		0)	moved=$((moved + $(number "done")))
			load 1 $((1000 + round)) > /dev/shm/load &
			job=$!
			sleep "$((EACH / 2))"
			daemon_kill
			wait $job || { cat /dev/shm/load; die "the load beside a kill"; }
			daemon_start
			[ "$(grep -c 'starts cold' $LOG)" -le 1 ] || die "the heat was lost" ;;
		1)	kill -HUP $daemon ;;
		2)	moved=$((moved + $(number "done")))
			daemon_stop
			oracle_clean --touched --sample 64
			daemon_start ;;
		esac
	elif [ "$(now)" -lt $((SOAK * 3 / 4)) ]; then
		[ "$rss" -le "$warm" ] || warm=$rss
	fi
	round=$((round + 1))
done
[ "$warm" -gt 0 ] || die "no round ended in the third quarter"
moved=$((moved + $(number "done")))
[ $moved -gt 0 ] || die "nothing was moved"
[ "$most" -le 65536 ] || die "terraced took $most kB of memory"
last=$(rss_kb)
[ "$last" -le $((warm + 4096)) ] || die "memory grew from $warm kB in the third quarter to $last kB"
daemon_stop
oracle_clean
vol_down
vol_check
pass "$round rounds in $(now) s, $moved orders, at most $most kB, $warm kB in the third quarter, $last kB at the end"
