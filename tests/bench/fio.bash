# SPDX-License-Identifier: GPL-2.0-or-later
# What fio says of one run; sourced after tests/vm/lib.sh and bars.bash, with fio in RAM.
#
# fio_json ARG...	fio; what it says is in /dev/shm/o.json
# kb_s			bandwidth
# percentile_ns P	99.000000 or 99.900000; of reads, where there were any; of what latency fio was told
# $LATENCY		the words for it, from before the submission: what fio tells otherwise begins after it, and a RAM disk has
#			done it all by then
# tail_rows TABLE NAME	both, as rows of a table: of "NAME; p99_ns" and "NAME; p999_ns"
# overhead KEY JOB DEVICE SIZE SEED DEPTH	ns per I/O of fio-jobs/overhead-JOB.fio, $IOS of them in SIZE (as 64m), into NS[KEY],
#					an associative array of whoever calls
#
# shellcheck shell=bash

LATENCY=(--lat_percentiles=1 --clat_percentiles=0)
mkdir -p /dev/shm/jobs
cp "$TERRACE_TREE"/fio-jobs/overhead-*.fio /dev/shm/jobs/

fio_json() { fio_ --output-format=json --output=/dev/shm/o.json "$@" > /dev/null 2> /dev/shm/e || die "fio $*: $(head -3 /dev/shm/e)"; }

kb_s() { awk '/"bw_bytes"/ { gsub(/[^0-9]/, ""); if ($0 > max) max = $0 } END { print int(max / 1000) }' /dev/shm/o.json; }

percentile_ns() { awk -v name="\"$1\"" '$1 == name { print $3 + 0; exit }' /dev/shm/o.json; }

tail_rows() {
	local p99 p999
	p99=$(percentile_ns 99.000000) p999=$(percentile_ns 99.900000)
	[ "$p99" ] && [ "$p999" ] || die "fio printed no percentiles: $1, $2"
	printf '%-32s %-12s p99 %9s  p99.9 %9s ns\n' "$1" "$2" "$p99" "$p999"
	bars_row "$BARS_SCRIPT" "$1; $2; p99_ns" "$p99" ns "" "" ""
	bars_row "$BARS_SCRIPT" "$1; $2; p999_ns" "$p999" ns "" "" ""
}

overhead() {
	DEV=$3 SIZE=$4 SEED=$5 DEPTH=$6 IO_SIZE=$((IOS * 4))k fio_json "/dev/shm/jobs/overhead-$2.fio"
	# in milliseconds
	NS[$1]=$(awk -v ios="$IOS" '/"job_runtime"/ { gsub(/[^0-9]/, ""); print int($0 * 1000000 / ios); exit }' /dev/shm/o.json)
	[ "${NS[$1]}" ] || die "fio printed no run time: $1"
}
