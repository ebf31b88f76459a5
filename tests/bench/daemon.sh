#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What terraced takes of a CPU and of memory while the volume serves 100,000 reads a second, and fewer.
# bench: mode=vtime memory=2G timeout=2400
# seeds: 1 and up, another for each run of fio, before what is measured and in it
# packages: fio
# shellcheck disable=SC2086,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"

IOPS=${IOPS:-100000}
FEWER=${FEWER:-10000 30000}	# beside the bar, what it takes at these rates
RUN=${RUN:-12}	# a merge of RALT comes every few seconds, and is most of it
printf '[daemon]\nstate_directory = /dev/shm/state\nsocket = /dev/shm/socket\n' > $CONF
in_ram fio
vol_ram 256 640
vol_format
vol_up
dd if=/dev/zero of="$VOL" bs=1M count=200 oflag=direct conv=fsync status=none
daemon_start

# read_ SECONDS [RATE]: leaves the reads a second that came of it in READS; never the same reads twice
seed=0
read_() {
	seed=$((seed + 1))
	fio_ --name=x --filename="$VOL" --size=200m --rw=randread --bs=4k --ioengine=io_uring --direct=1 --iodepth=32 --rate_iops="${2:-$IOPS}" \
		--random_distribution=zipf:0.99:0.25 --randrepeat=0 --randseed=$seed --norandommap --time_based --runtime="$1" \
		--output-format=json --output=/dev/shm/o.json > /dev/null
	READS=$(awk -F'[ ,:]+' '/"iops" :/ { if ($3 > best) best = $3 } END { printf "%.0f\n", best }' /dev/shm/o.json)
}
# of all its threads, in us: ticks are too coarse for what it takes at rest
cpu_us() { cat /proc/$daemon/task/*/schedstat | awk '{ ns += $1 } END { printf "%.0f\n", ns / 1000 }'; }
found() { sed -n "s/^ *\"$1\": *\([0-9]*\),\?$/\1/p" /dev/shm/status | head -1 | grep .; }
# moved: blocks that came up or went down so far, and reads of the slow tier that were told
moved() {
	answers
	MOVED=$(($(found promoted_by_flush_blocks) + $(found promoted_by_compaction_blocks) + $(found promoted_by_epoch_blocks) + $(found demoted_blocks) + $(found packed_loose_blocks)))
	TOLD=$(found slow_reads)
}
measure() {	# WHAT [RATE]
	local cpu from to moved told rate=${2:-$IOPS}
	moved
	moved=$MOVED told=$TOLD
	cpu=$(cpu_us) from=$(cut -d' ' -f1 /proc/uptime)
	read_ "$RUN" "$rate"
	cpu=$(($(cpu_us) - cpu)) to=$(cut -d' ' -f1 /proc/uptime)
	moved
	figure "$1: reads served" "$READS" "a second"
	figure "$1: slow reads told meanwhile" $((TOLD - told)) ""
	figure "$1: blocks moved meanwhile" $((MOVED - moved)) ""
	# of one core, scaled to the rate asked for
	cpu=$(awk "BEGIN { printf \"%.0f\", $cpu / 1000 / ($to - $from) * $rate / $READS }")
	if [ "$rate" = "$IOPS" ]; then
		bar "$1: terraced's CPU, at $rate reads a second" "$cpu" "o/oo" 50
	else
		figure "$1: terraced's CPU, at $rate reads a second" "$cpu" "o/oo"
	fi
}
read_ 1
measure "one access in 16"
# until what the filling left below has come up
for ((round = 0; round < 20; round++)); do
	moved
	before=$MOVED
	read_ 1
	moved
	[ $((MOVED - before)) -gt 100 ] || break
done
figure "rounds until nothing moves" "$round" ""
measure "one access in 16, nothing moves"
# with fewer hits it samples more of them
for rate in ${FEWER//,/ }; do measure "as it samples at $rate a second, nothing moves" "$rate"; done
daemon_stop
printf '[daemon]\nstate_directory = /dev/shm/state\nsocket = /dev/shm/socket\n[policy]\nheat_sample = 1\n' > $CONF
daemon_start
read_ 1
measure "every access"
bar "terraced's memory" "$(rss_kb)" kB 65536
figure "accesses sensed" "$(number accesses)" ""
daemon_stop
bars_end
