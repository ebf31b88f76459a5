#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What sensing costs an I/O: block heat through BPF, and through perf beside it; and files.
# bench: mode=vtime memory=3G timeout=4800 parts=WHAT:blocks,files
# seeds: 77 to warm up, the depth for what is measured
# packages: fio
#
# One instruction is one nanosecond, on one CPU. Each figure is the time per 4 KiB
# read hit with terraced sensing, less that of the same run with terraced not
# sensing. Stopped (SIGSTOP) meanwhile, it costs what runs within the I/Os: that
# is the sensing. Running, it drains and does with each access what it is for
# (heat, ghost cache). Sampling 1 is the worst setting there is; terraced chooses
# it itself while there are few hits, and the configured one for these many.
# With its work it takes LONG reads, for the mean is asked for: a merge of RALT's runs falls into two seconds, or none does.
#
# Files: what the hooks on every read and write cost (bpf/lsm.bpf.c), of a file that is followed, here and there, in a row,
# written in place, and of one on another filesystem. Blocks are not sensed meanwhile, and terraced is stopped. The bars are a tenth above
# what was seen.
# shellcheck disable=SC2034,SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"

IOS=${IOS:-200000} LONG=${LONG:-1000000} WHAT=${WHAT:-blocks,files}
MB=112
CONF=/dev/shm/terraced.conf
declare -A NS

in_ram fio dmsetup
PATH=$TERRACE_TREE/build:$PATH in_ram terraced

# whether files are followed; what is read, and how
FILES=no FILE=$VOL RW=randread M=/dev/shm/m
# measure KEY SENSE QD SAMPLE [stopped]: nanoseconds per read hit (or what RW does), into NS[KEY]
measure() {
	local daemon tries
	cat > $CONF <<-TEXT
		[daemon]
		state_directory = /dev/shm/state-$1
		socket = /dev/shm/socket
		[policy]
		sense = $2
		heat_sample = $4
		evaluate = yes
		files = $FILES
	TEXT
	vol_message set "heat_sample=$4"	# perf takes it as it is
	LD_LIBRARY_PATH=$RAM/lib "$RAM/terraced" --config $CONF 2> /dev/shm/log &
	daemon=$!
	for ((tries = 0; tries < 100; tries++)); do
		if from_ram terraced --config $CONF --status > /dev/shm/status 2> /dev/null; then break; fi
		sleep 0.1
	done
	grep -q "vol: driving.*sensed by $2" /dev/shm/log || die "not sensed by $2: $(cat /dev/shm/log)"
	for ((tries = 0; tries < 100; tries++)); do
		[ "$FILES" = yes ] || break
		if grep -q "the files of $M are followed" /dev/shm/log; then break; fi
		sleep 0.1
	done
	[ $tries -lt 100 ] || die "files are not followed: $(cat /dev/shm/log)"
	sleep 1
	if [ "${5-}" ]; then
		kill -STOP $daemon
		vol_message set "heat_sample=$4"	# as it would have come to under this load
	fi
	# the sampling has adapted to the load, as it has after any two seconds
	fio_ --name=w --filename="$FILE" --ioengine=io_uring --direct=1 --rw="$RW" --iodepth="$3" --bs=4k --size=${MB}m \
		--norandommap --randrepeat=0 --randseed=77 --time_based --runtime=2 > /dev/null
	fio_ --name=x --filename="$FILE" --ioengine=io_uring --direct=1 --rw="$RW" --iodepth="$3" --bs=4k --size=${MB}m \
		--norandommap --randrepeat=0 --randseed="$3" --io_size=$((IOS * 4))k --output-format=json --output=/dev/shm/o.json > /dev/null
	NS[$1]=$(awk -v ios="$IOS" '/"job_runtime"/ { gsub(/[^0-9]/, ""); print int($0 * 1000000 / ios); exit }' /dev/shm/o.json)
	kill -CONT $daemon
	from_ram terraced --config $CONF --status > /dev/shm/status
	echo "# $1: ${NS[$1]} ns; $(sed -n 's/^ *"\(sampling\|lost\|accesses\)": \([0-9]*\),/\1 \2/p' /dev/shm/status | paste -sd' ')"
	kill $daemon
	wait $daemon
}

blocks() {
	local qd sense
	for qd in 1 32; do
		IOS=$LONG measure none-$qd none $qd 16
		for sense in bpf access; do
			IOS=$LONG measure $sense-$qd-16 $sense $qd 16
			measure $sense-$qd-1 $sense $qd 1
		done
		measure still-$qd none $qd 16 stopped
		measure alone-$qd-16 bpf $qd 16 stopped
		measure alone-$qd-1 bpf $qd 1 stopped
		bar "within the I/O, default sampling (1 in 16), QD$qd" $((NS[alone-$qd-16] - NS[still-$qd])) ns 150
		bar "... and all that terraced does with it" $((NS[bpf-$qd-16] - NS[none-$qd])) ns 150
		figure "... the same through perf" $((NS[access-$qd-16] - NS[none-$qd])) ns
		figure "within the I/O, every access, QD$qd" $((NS[alone-$qd-1] - NS[still-$qd])) ns
		figure "... and all that terraced does with it" $((NS[bpf-$qd-1] - NS[none-$qd])) ns
		figure "... the same through perf" $((NS[access-$qd-1] - NS[none-$qd])) ns
		bar "every access, with terraced's work, QD$qd: throughput lost" $(((NS[bpf-$qd-1] - NS[none-$qd]) * 1000 / NS[bpf-$qd-1])) o/oo 50
	done
}

# added KEY WHAT MOST: nanoseconds that following adds to it, at QD1 and QD32
added() {
	local qd
	for qd in 1 32; do
		FILES=no measure "$1-no-$qd" none $qd 16 stopped
		FILES=yes measure "$1-yes-$qd" none $qd 16 stopped
		bar "files followed, $2, QD$qd" $((NS[$1-yes-$qd] - NS[$1-no-$qd])) ns "$3"
	done
}

files() {
	blkdiscard "$VOL"
	mkfs.xfs -qfK "$VOL"
	mkdir -p $M
	mount -o noatime "$VOL" $M
	dd if=/dev/zero of=$M/000001.sst bs=64k count=$((MB * 16)) oflag=direct status=none
	sync
	vol_message checkpoint
	sleep 10
	FILE=$M/000001.sst
	added here "4 KiB read anywhere in a table" 800
	RW="read" added row "4 KiB read in a row of a table" 800
	RW="randwrite" added write "4 KiB written in place" 650
	FILE=$VOL
	added elsewhere "4 KiB read of what is not followed" 350
	umount $M
}

modprobe -q xfs || true
need_cmd mkfs.xfs
mount -t tracefs tracefs /sys/kernel/tracing 2> /dev/null || true
mkram tfast 256
mkram tslow 320
VOL_DRIVES=(/dev/ram/tfast /dev/ram/tslow)
dd if=/dev/zero of=/dev/ram/tfast bs=1M count=256 oflag=direct status=none
vol_format --journal 16M --tier optane:slots:atomic=/dev/ram/tfast --tier hdd:shelves:atomic=/dev/ram/tslow
vol_up stream_kb=0
dd if=/dev/zero of="$VOL" bs=64k count=$((MB * 16)) oflag=direct status=none
vol_message checkpoint
sleep 10	# the idle checkpoint and the lazy mirror's copy are done

for part in ${WHAT//,/ }; do $part; done
bars_end
