#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The power goes again and again while shelves are cleaned on a volume without a free one: writes still find room, and hold.
# vm: mode=functional memory=3G timeout=1500 build=oracle long
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}
CUTS=${CUTS:-12}
LIMIT=${LIMIT:-120}	# seconds for 64 MiB that need room
RANDOM=$SEED
KEPT=32			# MiB that the oracle looks after
in_ram fio

# churn MIB: random writes of 16 KiB all over the rest
churn() {
	fio_ --name=churn --filename="$VOL" --offset="${KEPT}m" --rw=randwrite --bs=16k --iodepth=16 --ioengine=libaio --direct=1 \
		--randrepeat=0 --randseed=$((RANDOM + 1)) --norandommap --io_size="$1m" --end_fsync=1 > /dev/shm/churn 2>&1
}
# within SECONDS CMD...
within() {
	local i limit=$1
	shift
	start "$@"
	for ((i = 0; i < limit * 5; i++)); do
		kill -0 "$JOB" 2> /dev/null || { wait "$JOB"; return; }
		sleep 0.2
	done
	kill_all "$JOB"
	return 1
}

vol_drives 64 448 atom=4096
vol_format
vol_up stream_kb=0 commit_ms=50
oracle create --ledger "$LEDGER" --device "$VOL" --blocks $((KEPT * 256)) --seed "$SEED"
fio_ --name=all --filename="$VOL" --offset="${KEPT}m" --rw=write --bs=1M --iodepth=4 --ioengine=libaio --direct=1 --end_fsync=1 > /dev/null
churn 256
pass "full, $(vol_tier 1 free_shelves) shelves free"
vol_down
vol_check

least=99
for ((n = 1; n <= CUTS; n++)); do
	vol_up stream_kb=0 commit_ms=50
	free=$(vol_tier 1 free_shelves)
	[ "$free" -ge "$least" ] || least=$free
	within "$LIMIT" churn 64 || { vol_status; cat /dev/shm/churn; die "cut $n: no room; $free shelves were free at the start"; }
	oracle_run --ops 100 --max-kb 64 --seed $((SEED * 100 + n))
	# while cleaning writes into the last one, some records of it durable
	start churn 1024
	for ((i = 0; i < 1200; i++)); do [ "$(vol_tier 1 free_shelves)" -gt 0 ] || break; done
	sleep 0.$((RANDOM % 4))
	drive_cut fast
	wait "$JOB" || true
	dmr vol
	drive_revive fast
	vol_check
	vol_up stream_kb=0 commit_ms=50
	oracle_crash
	vol_down
done
klog_allow 'drive (fast|slow)'
pass "$CUTS cuts, at least $least shelves free at a start, opened again: $(dmesg | grep -c 'goes on at block' || true) times"
counted "$CUTS" cuts
