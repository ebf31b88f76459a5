#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A drive that does not flush holds the commit back, and it is tried again; what was to be durable is there after a power cut, or all of what was before.
# vm: mode=functional cpus=2 memory=2G timeout=600
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

MB=4
META_SECTORS="128 4000"		# of the fast drive: superblocks, journal, pages
for k in first second third fourth; do dd if=/dev/urandom of=/dev/shm/$k bs=1M count=$MB status=none; done
put() { dd if=/dev/shm/"$1" of="$VOL" bs=1M seek="${2:-0}" oflag=direct conv=notrunc status=none; }
holds() { cmp -i 0:$((${2:-0} << 20)) -n $((MB << 20)) /dev/shm/"$1" "$VOL" || die "$3: not $1"; }
held_back() { [ "$(vol_get durable)" -lt "$(vol_get records)" ]; }
refused() { expect_fail 'Input/output error' sync "$VOL"; }
# Records wait for who asks, or for a second after a failure. All goes to the slow drive, also while its next shelf is being
# opened: what is overwritten in place on the fast one makes no record, and is lost with an fsync that failed.
open() { vol_up stream_kb=64 commit_ms=60000 avoid_tiers=1; }

# what was not flushed is lost with the power
vol_drives 64 1024 survive=0 tear=0	# shelves enough: one is always open
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --mirror none --journal 1M
klog_allow 'drive (fast|slow)'
open
put first
sync "$VOL"
check_eq "writes of the fast drive" "$(vol_tier 0 writes)" 0

# ---- the power goes before the next try ----

put second
drive slow error add flush 0 0
klog_expect 'flush of tier 1 failed'
refused
held_back || die "records are durable whose data no drive has promised: $(vol_status)"
check_eq "mode while the drive does not flush" "$(vol_get mode)" write
vol_cut
drive slow error clear
vol_check
open
holds first 0 "after a commit that was held back"
pass "held back: all is as it was before"

# ---- the next try succeeds, though nobody asks ----

for times in 1 2; do
	put second
	drive slow error add flush 0 0 count=$times
	refused
	check_eq "mode after $times flushes that failed" "$(vol_get mode)" write
	for ((i = 0; i < 60; i++)); do
		held_back || break
		sleep 0.2
	done
	if held_back; then die "12 s after a flush that failed the commit has not been tried again: $(vol_status)"; fi
	vol_cut
	drive slow error clear
	vol_check
	open
	holds second 0 "after $times flushes that failed and one that did not"
	put first
	sync "$VOL"
done
pass "tried again: what was to be durable is"

# ---- who asks again is told the truth ----

put third
drive slow error add flush 0 0	# a commit of nobody's may come first, and would use up a single failure
refused
drive slow error clear
sync "$VOL"
put fourth $MB			# behind it, and not asked for
vol_cut
drive slow error clear
vol_check
open
holds third 0 "after an fsync that failed and one that did not"
pass "a second fsync keeps its promise"

# ---- a drive that never flushes again does not stop the others ----

put fourth
drive slow error add flush 0 0
for ((i = 0; i < 60; i++)); do
	! sync "$VOL" 2> /dev/null || die "an fsync that no drive has promised was acknowledged"
	held_back || break
	sleep 0.2
done
if held_back; then die "a drive that does not flush stops all commits: $(vol_status)"; fi
check_eq "mode with a drive that does not flush" "$(vol_get mode)" write
refused
drive slow error clear
sync "$VOL"
vol_cut
vol_check
open
holds fourth 0 "after the drive was well again"
pass "written without it after some tries, no fsync acknowledged meanwhile"

# ---- the journal itself: not tried again ----

put first
# shellcheck disable=SC2086 # two words
drive fast error add write $META_SECTORS count=1
klog_expect 'writing the journal \(-5\): the volume is read-only from now on'
refused
check_eq "mode after one journal write that failed" "$(vol_get mode)" read-only
refused
holds first 0 "what was written before stays readable"
vol_cut
drive fast error clear
vol_check
open
holds fourth 0 "after a commit that failed"
put first
sync "$VOL"
vol_cut
vol_check
open
holds first 0 "after the restart"
vol_down
vol_check
pass "a journal that could not be written once: read-only until a restart, nothing promised is lost"
