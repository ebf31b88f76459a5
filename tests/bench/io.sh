#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What one I/O costs, beside dm-linear and dm-cache in the same run; activation, replay, discard, bandwidth.
# vm: mode=vtime memory=4G timeout=1200 build=oracle
#
# make bench-io. In virtual time: one instruction is one nanosecond, so "ns per
# I/O" reads "instructions per I/O". Each figure is the time per I/O less that
# of the raw RAM disk in the same run. Bars are those of DESIGN §12; a missed
# one is marked and counted. What virtual time does not price: cache misses.
# shellcheck disable=SC2119,SC2120
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

IOS=${IOS:-20000}	# per figure
MB=112			# worked on: all of it is mapped and hot
PARTS=${PARTS:-hit new activation replay discard stream}
missed=0
declare -A NS

in_ram fio dmsetup blkdiscard
dmsetup_() { from_ram dmsetup "$@" --noudevsync; }
now() { date +%s%N; }

# bar WHAT FIGURE UNIT MOST|-LEAST
bar() {
	local verdict=ok
	if [ "${4#-}" = "$4" ]; then
		[ "$2" -le "$4" ] || verdict=MISSED
	else
		[ "$2" -ge "${4#-}" ] || verdict=MISSED
	fi
	[ $verdict = ok ] || missed=$((missed + 1))
	if [ "${4#-}" = "$4" ]; then printf '%-52s %9s %-8s bar %9s  %s\n' "$1" "$2" "$3" "<= $4" $verdict
	else printf '%-52s %9s %-8s bar %9s  %s\n' "$1" "$2" "$3" ">= ${4#-}" $verdict; fi
}

# ns_of KEY DEVICE SEED ARG...: nanoseconds per I/O, into NS[KEY]
ns_of() {
	local key=$1 dev=$2 seed=$3
	shift 3
	fio_ --name=x --filename="$dev" --ioengine=io_uring --direct=1 --bs=4k --size=${MB}m --norandommap --randrepeat=0 --randseed="$seed" \
		--number_ios="$IOS" --output-format=json --output=/dev/shm/o.json "$@" > /dev/null 2> /dev/shm/e ||
		die "fio: $key: $(head -3 /dev/shm/e)"
	NS[$key]=$(awk -v ios="$IOS" '/"job_runtime"/ { gsub(/[^0-9]/, ""); print int($0 * 1000000 / ios); exit }' /dev/shm/o.json)
	[ "${NS[$key]}" ] || die "fio printed no run time: $key"
}

# above KEY: less the raw device
above() { echo $((NS[$1-$2] - NS[raw-$2])); }

fill() { dd if=/dev/zero of="$1" bs=64k count=$((MB * 16)) oflag=direct status=none; }

terrace_new() {	# OPTION...
	vol_format --tier "optane:slots:atomic=/dev/ram/tfast" --tier "hdd:shelves:atomic=/dev/ram/tslow"
	vol_up stream_kb=0 "$@"
}

set_up() {
	mkram raw $MB
	mkram under $MB
	mkram origin $MB
	mkram cfast 192
	mkram cmeta 64
	mkram tfast 256
	mkram tslow 320
	VOL_DRIVES=(/dev/ram/tfast /dev/ram/tslow)
	# The RAM disk allocates and clears a page when a block is first written,
	# 1,500 instructions that are not ours: do that before.
	dd if=/dev/zero of=/dev/ram/tfast bs=1M count=256 oflag=direct status=none
	modprobe dm_cache_smq
	fill /dev/ram/raw
	dmc lin "0 $((MB * 2048)) linear /dev/ram/under 0"
	fill /dev/mapper/lin
	dmc cac "0 $((MB * 2048)) cache /dev/ram/cmeta /dev/ram/cfast /dev/ram/origin 64 1 writeback smq 0"
	blkdiscard /dev/mapper/cac
	fill /dev/mapper/cac
}

# ---- hits ----

hits() {
	local rw qd t dev
	terrace_new
	fill "$VOL"
	sync "$VOL"
	vol_message checkpoint
	printf '%-24s %10s %10s %10s %10s   above raw: %8s %8s %8s\n' "ns per 4 KiB I/O" raw linear cache terrace linear cache terrace
	for rw in randread randwrite; do
		for qd in 1 32; do
			for t in raw:/dev/ram/raw lin:/dev/mapper/lin cac:/dev/mapper/cac ter:$VOL; do
				dev=${t#*:}
				t=${t%%:*}
				ns_of "$t-$rw-$qd" "$dev" $((qd + 1)) --rw=$rw --iodepth=$qd
			done
			printf '%-24s %10s %10s %10s %10s              %8s %8s %8s\n' "$rw QD$qd" "${NS[raw-$rw-$qd]}" "${NS[lin-$rw-$qd]}" \
				"${NS[cac-$rw-$qd]}" "${NS[ter-$rw-$qd]}" "$(above lin $rw-$qd)" "$(above cac $rw-$qd)" "$(above ter $rw-$qd)"
		done
	done
	bar "read hit, QD1" "$(above ter randread-1)" ns 2400
	bar "read hit, QD32" "$(above ter randread-32)" ns 2400
	bar "in-place write hit, QD1" "$(above ter randwrite-1)" ns 2500
	bar "in-place write hit, QD32" "$(above ter randwrite-32)" ns 2500
	[ "$(vol_tier 1 reads)" = 0 ] || die "some reads were no hits: $(vol_status)"
	vol_down
}

# ---- new blocks ----

new_blocks() {
	local n
	for n in 64 256 1; do
		terrace_new
		ns_of raw-new-$n /dev/ram/raw 3 --rw=randwrite --iodepth=32 --fsync=$n --number_ios=$((n == 1 ? IOS / 8 : IOS))
		ns_of ter-new-$n "$VOL" 3 --rw=randwrite --iodepth=32 --fsync=$n --number_ios=$((n == 1 ? IOS / 8 : IOS))
		if [ $n = 1 ]; then
			printf '%-52s %9s ns (raw %s)\n' "new-block write with an fsync each" $((NS[ter-new-1] * 8)) $((NS[raw-new-1] * 8))
		else
			bar "new-block write, $n records per commit, QD32" "$(above ter new-$n)" ns 4500
		fi
		vol_down
	done
}

# ---- opening ----

activation() {
	local size
	for size in 1G 64T; do
		vol_format --tier optane:slots:atomic=/dev/ram/tfast --tier hdd:shelves:atomic=/dev/ram/tslow --overcommit $size
		vol_up		# first use of the code
		dd if=/dev/zero of="$VOL" bs=1M count=8 seek=100 oflag=direct status=none
		dmsetup_ remove vol
		# by the kernel's own clock: dmsetup, and reading it, cost the
		# same for any target
		dmsetup_ create vol --table "$(vol_table)"
		bar "activation, $size virtual" "$(dmesg | sed -n 's/.*activated in \([0-9]*\) us$/\1/p' | tail -1)" us 100000
		dmsetup mknodes vol
		vol_down
	done
}

# A journal full of overwrites, opened without having been closed: from copies.
replay() {
	local n said ms
	vol_format --tier optane:slots:atomic=/dev/ram/tfast --tier hdd:shelves:atomic=/dev/ram/tslow --journal 16M
	vol_up stream_kb=0 atomic=no:0 commit_ms=100
	fio_ --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --bs=4k --size=64m --norandommap --randrepeat=0 --rw=randwrite --iodepth=32 \
		--number_ios=$((IOS * 5)) > /dev/null
	sync "$VOL"
	mkram copyf 256
	dd if=/dev/ram/tfast of=/dev/ram/copyf bs=1M iflag=direct oflag=direct status=none
	vol_down
	dmc vol "$(vol_table | sed 's,/dev/ram/tfast,/dev/ram/copyf,')"
	said=$(dmesg | grep -o 'replayed [0-9]* records in .*' | tail -1)
	echo "$said"
	n=$(awk '{ print $2 }' <<< "$said")
	ms=$(grep -o '[0-9]* ms' <<< "$said")
	bar "replay of an overwritten journal" $((n / (${ms% ms} + 1))) rec/ms -1000
	vol_down
	rmram copyf
}

discards() {
	local i began
	vol_format --tier optane:slots:atomic=/dev/ram/tfast --tier hdd:shelves:atomic=/dev/ram/tslow --overcommit 1T
	vol_up stream_kb=0
	for ((i = 0; i < 100; i++)); do dd if=/dev/zero of="$VOL" bs=256k count=1 seek=$((i * 40000)) oflag=direct status=none; done
	sync "$VOL"
	from_ram blkdiscard -o 0 -l 4096 "$VOL"
	began=$(now)
	from_ram blkdiscard "$VOL"
	bar "discard of 1 TiB with 100 regions in it" $((($(now) - began) / 1000000)) ms 1000
	vol_down
}

# ---- bandwidth ----

mb_s() { awk '/"bw_bytes"/ { gsub(/[^0-9]/, ""); if ($0 > max) max = $0 } END { print int(max / 1000000) }' /dev/shm/o.json; }

big_io() {
	fio_ --name=x --filename="$1" --ioengine=io_uring --direct=1 --bs=1m --size=192m --iodepth=4 --rw="$2" --output-format=json \
		--output=/dev/shm/o.json > /dev/null
	mb_s
}

stream() {
	local rw raw=() ours=()
	mkdrive fastd nvme-tlc 256
	mkdrive slowd hdd 320
	for rw in write read; do
		raw[${#raw[@]}]=$(big_io /dev/mapper/fastd $rw)
	done
	export VOL_DRIVES=(/dev/mapper/fastd /dev/mapper/slowd)
	vol_format --tier nvme:slots:atomic=/dev/mapper/fastd --tier hdd:shelves:atomic=/dev/mapper/slowd
	vol_up stream_kb=0
	big_io "$VOL" write > /dev/null
	for rw in write read; do
		ours[${#ours[@]}]=$(big_io "$VOL" $rw)
	done
	bar "1 MiB writes in order, % of the NVMe model's ${raw[0]} MB/s" $((ours[0] * 100 / raw[0])) % -95
	bar "1 MiB reads in order, % of the NVMe model's ${raw[1]} MB/s" $((ours[1] * 100 / raw[1])) % -95
	vol_down
}

set_up
for part in $PARTS; do
	case $part in
	hit)		hits ;;
	new)		new_blocks ;;
	activation)	activation ;;
	replay)		replay ;;
	discard)	discards ;;
	stream)		stream ;;
	*)		die "no part called $part" ;;
	esac
done
echo "$missed bars missed"
