#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Metadata that cannot be written any more make the volume read-only, for good; what was promised is there after a restart.
# vm: mode=functional cpus=1 memory=2G timeout=600 build=oracle,orders
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

PATH=$TERRACE_TREE/build:$PATH in_ram orders
SEED=${SEED:-1}
META_SECTORS="128 4000"	# of the fast drive: superblocks, journal, pages
workload="--seed $SEED --ops 150 --depth 4 --max-kb 64 --max-discard-kb 256"
# shellcheck disable=SC2086 # words
work() { oracle_run $workload; }

# an operation fails, and the oracle says so
# shellcheck disable=SC2086
work_fails() {
	local status=0
	oracle run --ledger "$LEDGER" --device "$VOL" $workload > /dev/shm/failing 2>&1 || status=$?
	[ $status = 3 ] || { cat /dev/shm/failing; die "the oracle ended with $status, not with an operation that failed"; }
}

vol_drives 64 256
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --mirror none --journal 1M
vol_up commit_ms=100
oracle_new "$SEED"
work
check_eq "mirror" "$(vol_get mirror)" none
check_eq "mode" "$(vol_get mode)" write

start from_ram orders /dev/terrace/vol events 100 > /dev/shm/events
while ! grep -q listening /dev/shm/events; do sleep 0.1; done
# shellcheck disable=SC2086 # two words
drive fast error add write $META_SECTORS
klog_expect 'is read-only from now on'
klog_allow 'drive fast'
work_fails
check_eq "mode after a commit that failed" "$(vol_get mode)" read-only
grep -q "type=3 tier=-1 region=-1 value=1" /dev/shm/events || die "the mode was not told: $(cat /dev/shm/events)"
kill_all "$JOB"
dd if="$VOL" of=/dev/null bs=1M iflag=direct status=none
expect_fail 'Input/output error|Read-only' dd if=/dev/zero of="$VOL" bs=4k count=1 oflag=direct status=none
expect_fail 'Input/output error|not permitted|Read-only' blkdiscard -o 0 -l 4096 "$VOL"
pass "a commit that cannot be written: read-only, and reads go on"

drive fast error clear
vol_message commit || true
vol_message checkpoint || true
check_eq "mode after the drive is well again" "$(vol_get mode)" read-only
expect_fail 'Input/output error|Read-only' dd if=/dev/zero of="$VOL" bs=4k count=1 oflag=direct status=none
pass "it does not come back by itself"

# neither a stop nor a power cut makes more of it than there was
vol_down
vol_check
vol_up commit_ms=100
check_eq "mode after a restart" "$(vol_get mode)" write
oracle_crash
work
vol_cut
vol_check
vol_up
oracle_crash
work
vol_down
vol_check
pass "after a restart all that was promised is there"
