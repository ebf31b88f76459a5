#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Two fast tiers, two shelf tiers and the metadata on a drive of its own: thousands of operations, clean stops, power cuts.
# vm: mode=functional memory=3G timeout=800 build=oracle,orders
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/volume-oracle.bash"

STEPS=${STEPS:-6}
PATH=$TERRACE_TREE/build:$PATH in_ram orders
# the janitor fills one tier of shelves before the next: orders use both
between() { from_ram orders /dev/terrace/vol random 6 "$1" 40 tier_down=$((2 + $1 % 2)); }

VOL_DRIVES=()
for drive in meta:64 fast:32 next:64 flat:640 slow:640; do
	mkdrive "${drive%:*}" ram "${drive#*:}" lbs=4096 group=pc
	VOL_DRIVES+=("/dev/mapper/${drive%:*}")
done
vol_format --size 208M --meta "${VOL_DRIVES[0]}" --tier "optane:slots:atomic=${VOL_DRIVES[1]}" --tier "nvme:slots:atomic=${VOL_DRIVES[2]}" \
	--tier "qlc:shelves:atomic=${VOL_DRIVES[3]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[4]}"
oracle_life
vol_up
for tier in 0 1 2 3; do
	[[ $(vol_tier $tier used) != 0/* ]] || die "tier $tier was never used: $(vol_status)"
done
vol_down
pass "all four tiers were used"
