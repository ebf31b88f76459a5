#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terraced scrubs by itself when days have passed, says what it finds, and that a tier begins to fail.
# vm: mode=functional cpus=1 memory=2G timeout=400 build=daemon,orders
# shellcheck disable=SC2119,SC2086,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"

conf_written 50 <<-EOF
	sense = none
	scrub_days = 3
EOF
is() { [ "$(number $1)" = "$2" ]; }
up() { vol_up stream_kb=0 janitor_high=1000 commit_ms=60000; }

klog_allow "terrace: .*(pack|cannot be read|begins to fail|could not be read)"
vol_drives 64 512
vol_format
up
dd if=/dev/urandom of="$VOL" bs=1M count=16 oflag=direct status=none
for r in 0 1 2; do from_ram orders /dev/terrace/vol move $r append tier_down=1 codec=none > /dev/null; done
vol_down
vol_damage 1 payload 10 > /dev/null
up
daemon_start
noted() { test -s /dev/shm/state/*/scrub; }	# where there is none yet, the pattern would stand for itself
until_ "the first day is noted" noted
sleep 1
before=$(drive_get slow read_bytes)
check_eq "passes" "$(number passes)" 0
daemon_stop
date -s "+3 days" > /dev/null
daemon_start
until_ "a pass" is passes 1
check_eq "unreadable blocks, damaged regions, bad tables" "$(number unreadable_blocks) $(number damaged_regions) $(number bad_tables)" "1 0 0"
[ "$(number regions)" -ge 3 ] || die "only $(number regions) regions"
logged "scrub: region 1: 1 blocks cannot be read; the first is block 1034" || die "what was found is not told"
logged "scrub: the pass has ended: .* 1 blocks cannot be read" || die "the end is not told"
read=$(($(drive_get slow read_bytes) - before))
[ $read -ge $((3 << 22)) ] || die "only $read bytes were read"
dd if=/dev/zero of="$VOL" bs=4k seek=1034 count=1 oflag=direct status=none
date -s "+3 days" > /dev/null
until_ "another pass" is passes 2
check_eq "unreadable blocks" "$(number unreadable_blocks)" 0
pass "terraced scrubs by itself"

drive slow error add read 0 0 count=3
! dd if="$VOL" of=/dev/null bs=4k skip=5 count=1 iflag=direct 2> /dev/null || echo "(it was in memory)"
! dd if="$VOL" of=/dev/null bs=4k skip=500 count=1 iflag=direct 2> /dev/null || echo "(so was this)"
drive slow error clear
until_ "a tier that begins to fail is told" logged "tier 1 \(.*\) begins to fail: its drive has failed [0-9]+ requests"
answers
grep -q '"seconds_since_io_error"' /dev/shm/status || die "the status does not say so"
daemon_stop
vol_down
pass "terraced tells of a tier that begins to fail"
