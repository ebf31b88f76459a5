#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What terraced takes of a CPU and of memory while the volume serves 100,000 reads a second.
# bench: mode=vtime memory=2G timeout=1200
# shellcheck disable=SC2086
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"

IOPS=${IOPS:-100000}
RUN=${RUN:-4}
printf '[daemon]\nstate_directory = /dev/shm/state\nsocket = /dev/shm/socket\n' > $CONF
in_ram fio
vol_ram 256 640
vol_format
vol_up
dd if=/dev/zero of="$VOL" bs=1M count=200 oflag=direct conv=fsync status=none
daemon_start

# read SECONDS: prints the reads a second that came of it
read_() {
	fio_ --name=x --filename="$VOL" --size=200m --rw=randread --bs=4k --ioengine=io_uring --direct=1 --iodepth=32 --rate_iops="$IOPS" \
		--random_distribution=zipf:0.99:0.25 --randrepeat=0 --randseed=7 --norandommap --time_based --runtime="$1" \
		--output-format=json --output=/dev/shm/o.json > /dev/null
	awk -F'[ ,:]+' '/"iops" :/ { if ($3 > best) best = $3 } END { printf "%.0f\n", best }' /dev/shm/o.json
}
measure() {	# WHAT
	local cpu from to reads
	cpu=$(cpu_ticks) from=$(cut -d' ' -f1 /proc/uptime)
	reads=$(read_ "$RUN")
	cpu=$(($(cpu_ticks) - cpu)) to=$(cut -d' ' -f1 /proc/uptime)
	figure "$1: reads served" "$reads" "a second"
	# of one core, scaled to the rate asked for
	bar "$1: terraced's CPU, at $IOPS reads a second" "$(awk "BEGIN { printf \"%.0f\", $cpu * 10 / ($to - $from) * $IOPS / $reads }")" "o/oo" 50
}
read_ 1 > /dev/null
measure "one access in 16"
daemon_stop
printf '[daemon]\nstate_directory = /dev/shm/state\nsocket = /dev/shm/socket\n[policy]\nheat_sample = 1\n' > $CONF
daemon_start
read_ 1 > /dev/null
measure "every access"
bar "terraced's memory" "$(rss_kb)" kB 65536
figure "accesses sensed" "$(number accesses)" ""
daemon_stop
bars_end
