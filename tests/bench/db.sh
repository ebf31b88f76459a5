#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# RocksDB, unmodified, on xfs and ext4: loading, reads, YCSB mixes, all on fast, all on slow, peers, Terrace.
# bench: mode=vtime memory=4500M timeout=21600
#
# db_bench with records of 1,016 bytes. Reads are direct, so that the page cache of a
# machine with more memory than data does not answer them; writes are buffered and
# logged. Mixes A, B, C, E, F are YCSB's shares with db_bench's skewed keys; D, which reads
# what was written last, it does not have. Beside each figure (x - slow) / (fast - slow).
# FS=, SYSTEMS=, KEYS=, OPS= from the environment.
# shellcheck disable=SC2034
FAST=${FAST:-nvme-tlc} SLOW=${SLOW:-hdd}
VOLUME_MB=${VOLUME_MB:-1024}
FILL=no
SYSTEMS=${SYSTEMS:-fast slow cache-64 bcache terrace}
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"
. "$TERRACE_TREE/tests/bench/systems.bash"

FS=${FS:-xfs ext4}
KEYS=${KEYS:-300000}
OPS=${OPS:-10000}
SKEW=${SKEW:-15}		# db_bench's read_random_exp_range: keys by e^(-15 u)
LOAD=db
DIR=/dev/shm/db
declare -A GOT

need_cmd db_bench
in_ram db_bench mkfs.xfs mkfs.ext4
mkdir -p $DIR

# db RUN ARG...: its operations a second, into RATE
db() {
	local run=$1
	shift
	from_ram db_bench --db=$DIR --benchmarks="$run" --use_existing_db="$EXISTING" --num="$KEYS" --key_size=16 --value_size=1000 --threads=1 \
		--compression_type=none --cache_size=8388608 --write_buffer_size=16777216 --target_file_size_base=16777216 \
		--max_bytes_for_level_base=67108864 --bloom_bits=10 --use_direct_reads=true --seed=7 --disable_auto_compactions=false \
		"$@" > /dev/shm/db.said 2>&1 || die "db_bench $run: $(tail -3 /dev/shm/db.said)"
	EXISTING=true
	[ "$run" != waitforcompaction ] || return 0
	RATE=$(sed -n "s/^${run%%,*} *:.* \([0-9]*\) ops\/sec.*/\1/p" /dev/shm/db.said)
	[ "$RATE" ] || die "db_bench $run printed no rate: $(tail -3 /dev/shm/db.said)"
}

mix() {	# NAME RUN ARG...
	local name=$1
	shift
	db "$@" --reads="$OPS" --read_random_exp_range="$SKEW"
	GOT[$fs-$s-$name]=$RATE
}

run_on() {	# FS SYSTEM
	local fs=$1 s=$2
	system_up "$s"
	case $fs in
	xfs)	from_ram mkfs.xfs -q -f -K "$DEV" ;;
	ext4)	from_ram mkfs.ext4 -q -F -E nodiscard "$DEV" ;;
	esac
	mount -t "$fs" "$DEV" $DIR
	EXISTING=false
	db fillrandom
	GOT[$fs-$s-load]=$RATE
	db waitforcompaction
	# warms up what it measures next: other keys of the same skew
	mix warm readrandom --seed=1
	mix C readrandom
	mix B readrandomwriterandom --readwritepercent=95
	mix A readrandomwriterandom --readwritepercent=50
	mix F updaterandom
	mix E seekrandom --seek_nexts=50
	umount $DIR
	[ "$s" != terrace ] || { answers && cp /dev/shm/status "$OUT/status-$fs.json"; daemon_stop; }
	system_down "$s"
}

modprobe -a xfs ext4
for fs in ${FS//,/ }; do
	for s in ${SYSTEMS//,/ }; do
		run_on "$fs" "$s"
		printf '%-5s %-10s' "$fs" "$s"
		for name in load C B A F E; do printf '  %s %7s' $name "${GOT[$fs-$s-$name]}"; done
		echo "  operations a second"
	done
	for name in load C B A F E; do
		for s in ${SYSTEMS//,/ }; do figure "$fs $name; $s" "${GOT[$fs-$s-$name]}" "a second"; done
		fast=${GOT[$fs-fast-$name]:-} slow=${GOT[$fs-slow-$name]:-} ours=${GOT[$fs-terrace-$name]:-}
		if [ -z "$fast" ] || [ -z "$slow" ] || [ -z "$ours" ] || [ "$fast" -le "$slow" ]; then continue; fi
		figure "$fs $name; terrace, (x - slow) / (fast - slow)" $(((ours - slow) * 1000 / (fast - slow))) o/oo
		bar "$fs $name: terrace, of the slow drive alone" $((ours * 1000 / slow)) o/oo -1000
	done
done
bars_end
