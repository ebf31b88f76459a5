#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# RocksDB, unmodified, on xfs and ext4: loading, reads, YCSB mixes, all on fast, all on slow, peers, Terrace.
# bench: mode=vtime memory=4500M timeout=21600
#
# db_bench with records of 1,016 bytes. Reads are direct, so that the page cache of a
# machine with more memory than data does not answer them; writes are buffered and
# logged. Mixes A, B, C, E are YCSB's shares by mixgraph: a power law over keys that lie
# scattered. F is updaterandom, whose keys db_bench draws uniformly; D, which reads what was
# written last, it does not have. Beside each figure (x - slow) / (fast - slow).
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
SKEW=${SKEW:-0.2}		# the hottest x of the keys get x ^ SKEW of the accesses
LOAD=db
DIR=/dev/shm/db
DIST_A=$(awk -v n="$KEYS" -v b="$SKEW" 'BEGIN { print n ^ -b }')
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

mix() {	# NAME GET PUT SEEK ARG...
	local name=$1 get=$2 put=$3 seek=$4
	shift 4
	db mixgraph --reads="$OPS" --mix_get_ratio="$get" --mix_put_ratio="$put" --mix_seek_ratio="$seek" --mix_max_scan_len=100 \
		--value_theta=1000 --value_sigma=0 --value_k=0 --key_dist_a="$DIST_A" --key_dist_b="$SKEW" "$@"
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
	# warms up what it measures next: the same keys are hot, others are drawn
	mix warm 1 0 0 --seed=1
	mix C 1 0 0
	mix B 0.95 0.05 0
	mix A 0.5 0.5 0
	mix E 0 0.05 0.95
	db updaterandom --reads="$OPS"
	GOT[$fs-$s-F]=$RATE
	umount $DIR
	[ "$s" != terrace ] || { answers && cp /dev/shm/status "$OUT/status-$fs.json"; daemon_stop; }
	system_down "$s"
}

modprobe -a xfs ext4
for fs in ${FS//,/ }; do
	for s in ${SYSTEMS//,/ }; do
		run_on "$fs" "$s"
		printf '%-5s %-10s' "$fs" "$s"
		for name in load C B A E F; do printf '  %s %7s' $name "${GOT[$fs-$s-$name]}"; done
		echo "  operations a second"
	done
	for name in load C B A E F; do
		for s in ${SYSTEMS//,/ }; do figure "$fs $name; $s" "${GOT[$fs-$s-$name]}" "a second"; done
		fast=${GOT[$fs-fast-$name]:-} slow=${GOT[$fs-slow-$name]:-} ours=${GOT[$fs-terrace-$name]:-}
		if [ -z "$fast" ] || [ -z "$slow" ] || [ -z "$ours" ] || [ "$fast" -le "$slow" ]; then continue; fi
		figure "$fs $name; terrace, (x - slow) / (fast - slow)" $(((ours - slow) * 1000 / (fast - slow))) o/oo
		bar "$fs $name: terrace, of the slow drive alone" $((ours * 1000 / slow)) o/oo -1000
	done
done
bars_end
