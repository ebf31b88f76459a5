#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A write-ahead log stays fast, though it is written for long without a sync: a stream of that length goes past the fast tier. Its hint ends with it.
# vm: mode=functional memory=2G timeout=900 build=daemon,orders long
# debug-kernel: not, it has no BTF, which fentry programs need
# shellcheck disable=SC2119,SC2154
M=/dev/shm/m
. "$TERRACE_TREE/tests/vm/files.bash"

need_cmd python3 mkfs.ext4 mkfs.xfs db_bench
PATH=$TERRACE_TREE/build:$PATH in_ram db_bench
ask() { from_ram orders /dev/terrace/vol "$@"; }

# state FILE...: into $fast, $all
state() {
	local file
	sync
	vol_message commit
	for file; do where "$file" "0:$(($(sectors "$VOL") / 8)):0"; done > /dev/shm/blocks
	read -r _ fast all <<< "$(where --state /dev/terrace/vol /dev/shm/blocks)"
	echo "$fs: ${*##*/}: $fast of $all blocks are fast"
}
# up FILESYSTEM [LINE...]
up() {
	fs=$1
	vol_format
	vol_up stream_kb=256
	make_fs "$fs"
	mount "$VOL" $M
	mkdir $M/db
	follows 'evaluate = yes' "${@:2}"
	follow
}
down() {
	daemon_stop
	umount $M
	check_fs "$fs"
	vol_down
	vol_check
}
# log NUMBER MB [ahead]: is written, not synced and not closed
log() {
	rm -f /dev/shm/close /dev/shm/said
	start python3 "$TERRACE_TREE/tests/vm/tables.py" $M/db wal "$1" "$2" /dev/shm/close "${@:3}" > /dev/shm/said
	until_ "the log is written" grep -q written /dev/shm/said
	sleep 1		# some ticks
}
close_log() {
	touch /dev/shm/close
	wait "$JOB"
}

vol_ram 256 256
for fs in ext4 xfs; do
	up $fs
	tables write 1 1 4
	state $M/db/000001.ldb
	[ "$fast" -le 512 ] || die "$fast of 1024 blocks of a table written in a row are fast: this shows nothing"
	log 9 4 ahead
	state $M/db/000009.log
	check_eq "$fs: blocks of the log" "$all" 1024
	check_eq "$fs: fast blocks of the log" "$fast" 1024
	check_eq "logs that are hinted" "$(number fast_logs_now)" 1
	# what is hinted is not taken down
	region=$(($(head -n 1 /dev/shm/blocks) / 1024))
	ask move "$region" append tier_down=1 codec=lz4 > /dev/shm/said || true
	state $M/db/000009.log
	check_eq "$fs: fast blocks of the log, after an order for its region" "$fast" 1024
	close_log
	# closed it may still have pages that are not written
	until_ "the closed log's place" at_least mapped 2
	check_eq "logs that are hinted" "$(number fast_logs_now)" 1
	rm $M/db/000009.log
	until_ "its hint is taken back" is fast_logs_now 0
	# more of them than are hinted at a time
	for ((n = 20; n < 40; n++)); do
		touch /dev/shm/close
		tables wal $n 1 /dev/shm/close ahead > /dev/null
		until_ "log $n is hinted" at_least fast_logs $((n - 18))
	done
	check_eq "logs that are hinted" "$(number fast_logs_now)" 16
	rm $M/db/0000[23]?.log
	until_ "all hints are taken back" is fast_logs_now 0
	check_eq "logs that could not be hinted" "$(number fast_logs_not_marked)" 0
	down
	pass "$fs: a log of 4 MiB that is not synced is fast"
done

# a real one, allocated ahead and not synced
for fs in ext4 xfs; do
	up $fs
	from_ram db_bench --benchmarks=fillrandom --num=10000 --value_size=400 --write_buffer_size=33554432 --compression_type=none \
		--disable_auto_compactions=1 --sync=0 --db=$M/db > /dev/shm/said 2>&1 || { tail -5 /dev/shm/said; die "db_bench"; }
	state $M/db/*.log
	[ "$all" -ge 1000 ] || die "the log has $all blocks only"
	check_eq "$fs: fast blocks of RocksDB's log" "$fast" "$all"
	[ "$(number fast_logs_blocks)" -ge "$all" ] || die "$(number fast_logs_blocks) blocks are hinted"
	down
	pass "$fs: RocksDB's log is fast"
done

# without its room allocated ahead it is known only when it is written: that is counted, and the log closed
up ext4
log 9 4
at_least fast_logs_not_allocated 1 || die "a log without a place is not counted"
state $M/db/000009.log
echo "ext4, nothing allocated ahead: $fast of $all blocks are fast"
close_log
down

# switched off, it is a stream like any other
up ext4 'fast_logs = no'
log 9 4 ahead
state $M/db/000009.log
[ "$fast" -le 512 ] || die "$fast of 1024 blocks are fast without a hint: this shows nothing"
check_eq "logs that are hinted" "$(number fast_logs_now)" 0
close_log
down
pass "a log that is hinted stays fast, one that is not goes past"
