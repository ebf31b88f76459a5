#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What leaves memory before it was counted, and what recovery found in the journal alone: their summaries say that they are not exact, and are when it is loaded.
# vm: mode=functional memory=1G cpus=2 timeout=300 build=orders
# shellcheck disable=SC2119,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/orders.bash"

REGIONS=(1 2 3)
counted="fast=24 dirty=24 loose=0 packed=1000 garbage=0 packs=1 pinned=0 stale=0"
exact="fast=31 dirty=31 loose=0 packed=993 garbage=7 packs=1 pinned=0 stale=0"
# the page knows how many are fast, the rest is as it was counted
evicted="fast=31 dirty=24 loose=0 packed=1000 garbage=0 packs=1 pinned=0 stale=1"

vol_drives 64 512
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --overcommit 1T
vol_up stream_kb=0 age_s=3600
for region in "${REGIONS[@]}"; do
	dd if=/dev/urandom of="$VOL" bs=1M seek=$((4 * region)) count=4 oflag=direct status=none
	order "$region" append tier_down=1 codec=lz4 up=0-23
done
# The worker looks at all regions of a TiB when they are mapped first, and rests for twenty times as long.
for region in "${REGIONS[@]}"; do until_says "$counted" ask summary "$region"; done
until_says "fast=0 dirty=0 loose=0 packed=0 garbage=0 packs=0 pinned=0 stale=0" ask summary $(((1 << 18) - 1))
sleep 1
for region in "${REGIONS[@]}"; do
	dd if=/dev/urandom of="$VOL" bs=4k seek=$((1024 * region + 100)) count=7 oflag=direct status=none
done
vol_message checkpoint
vol_message evict
sleep 6	# then it has looked again
before=0
for region in "${REGIONS[@]}"; do
	said=$(ask summary "$region")
	case $said in
	"$evicted")	before=$((before + 1)) ;;
	"$exact")	;;
	*)		die "region $region, written and evicted: $said" ;;
	esac
done
((before)) || die "each was counted before it left: this shows nothing"
for region in "${REGIONS[@]}"; do
	dd if="$VOL" of=/dev/null bs=4k skip=$((1024 * region + 900)) count=1 iflag=direct status=none
	until_says "$exact" ask summary "$region"
done
pass "$before of ${#REGIONS[@]} regions gone before they were counted"

# A region without a page is not empty if the journal knows of it.
dd if=/dev/urandom of="$VOL" bs=4k seek=8192 count=16 oflag=direct conv=fsync status=none
vol_cut
vol_up stream_kb=0
check_eq "of what only the journal knows" "$(ask summary 8)" "fast=0 dirty=0 loose=0 packed=0 garbage=0 packs=0 pinned=0 stale=1"
vol_message checkpoint
until_says "fast=16 dirty=0 loose=0 packed=0 garbage=0 packs=0 pinned=0 stale=1" ask summary 8
dd if="$VOL" of=/dev/null bs=4k skip=8192 count=1 iflag=direct status=none
until_says "fast=16 dirty=16 loose=0 packed=0 garbage=0 packs=0 pinned=0 stale=0" ask summary 8
pass "what recovery found"
vol_down
vol_check
