#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# An unmodified RocksDB on a volume: its compactions as seen from below, beside its own log; what the fast tier holds with and without trims.
# vm: mode=functional memory=3G timeout=900 build=daemon,orders long
# debug-kernel: not, it has no BTF, which fentry programs need
# shellcheck disable=SC2119
M=/dev/shm/m
. "$TERRACE_TREE/tests/vm/files.bash"

need_cmd python3 mkfs.ext4 mkfs.xfs db_bench
PATH=$TERRACE_TREE/build:$PATH in_ram db_bench
KEYS=${KEYS:-50000} SEED=${SEED:-1}
trap 'cp $LOG /dev/shm/status $M/db/LOG "$OUT/" 2> /dev/null || true' EXIT

settled() {
	local before
	before=$(number trims)
	sleep 3
	[ "$(number trims)" = "$before" ]
}

# run FILESYSTEM TRIM_DEAD OPTION...
run() {
	local fs=$1 trim=$2
	shift 2
	export STATE=/dev/shm/state-$fs-$trim
	follows 'evaluate = yes' "trim_dead = $trim"
	vol_format
	vol_up stream_kb=0
	make_fs "$fs"
	mount "$VOL" $M
	follow
	from_ram db_bench --benchmarks=fillrandom,overwrite --num="$KEYS" --value_size=400 --write_buffer_size=2097152 \
		--target_file_size_base=1048576 --max_bytes_for_level_base=4194304 --max_bytes_for_level_multiplier=4 \
		--compression_type=none --max_background_jobs=2 --seed="$SEED" --db=$M/db "$@" > /dev/shm/said 2>&1 || { tail -5 /dev/shm/said; die "db_bench"; }
	sync
	until_ "all trimmed" settled
	vol_message commit
	echo "$fs, trim_dead = $trim, seed $SEED $*: fast tier $(vol_tier 0 used) blocks, $(number dead_blocks) died, $(number trimmed_bytes) bytes trimmed"
	python3 "$TERRACE_TREE/tests/vm/compactions.py" "${LEAST:-95}" "$LOG" $M/db/LOG* || die "compactions"
	check_eq "events lost" "$(number events_lost)" 0
	check_eq "lines of its own log that were not understood" "$(number log_events_malformed)" 0
	check_eq "databases with a log" "$(number databases_with_logs)" 1
	[ "$(number mapped)" -ge 20 ] || die "$(number mapped) tables have places"
	[ "$trim" = no ] || [ "$(number trimmed_bytes)" -ge 1000000 ] || die "$(number trimmed_bytes) bytes trimmed"
	daemon_stop
	# What is in memory would be right on a volume that is not.
	umount $M
	mount "$VOL" $M
	from_ram db_bench --use_existing_db=1 --benchmarks=readseq --db=$M/db --num="$KEYS" --value_size=400 --verify_checksum=1 > /dev/shm/said 2>&1 || { tail -5 /dev/shm/said; die "the database is damaged"; }
	umount $M
	check_fs "$fs"
	vol_down
	pass "$fs, trim_dead = $trim $*"
}

vol_ram 768 256
for one in ${RUNS:-buffered direct untrimmed}; do
	case $one in
	buffered)	run ext4 yes ;;
	direct)		run xfs yes --use_direct_io_for_flush_and_compaction=1 --use_direct_reads=1 ;;
	untrimmed)	run ext4 no ;;
	several)	run ext4 yes --subcompactions=2 ;;	# RUNS=several LEAST=0: what is known to be missed
	esac
done
