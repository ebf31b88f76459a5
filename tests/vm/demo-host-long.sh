#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# make demo HOST=1, where root may load modules: in this machine. It prints its page, writes the report, and leaves nothing behind.
# vm: mode=functional memory=3G timeout=900 long
# shellcheck disable=SC2119,SC2164
. "$TERRACE_TREE/tests/vm/lib.sh"

need_cmd db_bench mkfs.xfs
cd "$TERRACE_TREE"
KEYS=10000 OPS=400 REST=3 tests/demo/run --host > /dev/shm/said 2>&1 || { tail -20 /dev/shm/said; die "the demo ends with $?"; }
cat /dev/shm/said
grep -q '^hotspot moved: first round  *[0-9][0-9]* *[0-9][0-9]* *[0-9][0-9]*$' build/demo/page || die "no page"
grep -q '</svg>' build/demo/report.html || die "no report"
check_eq "mappings" "$(dmsetup ls)" "No devices found"
for module in dm_terrace dm_drive; do [ ! -d /sys/module/$module ] || die "$module is still loaded"; done
[ ! -e /dev/shm/terrace-demo ] || die "its files are still there"
expect_fail "^demo: '--hots': nothing but --host" tests/demo/run --hots
modprobe dm_mod
load_terrace
expect_fail "dm-terrace is loaded already" tests/demo/run --host
