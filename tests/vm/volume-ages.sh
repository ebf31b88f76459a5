#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The janitor takes what was touched longest ago, also when that is more than 256 ticks ago, or before the volume was opened.
# vm: mode=vtime memory=2G timeout=600
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

UP=(stream_kb=0 age_s=1 janitor_high=1000 janitor_low=999)
fill() { dd if=/dev/zero of="$VOL" bs=1M count=24 oflag=direct conv=fsync status=none; }
# region 1 of six
touch_one() { dd if="$VOL" of=/dev/null bs=1M skip=4 count=4 iflag=direct status=none; }
# half of what is on the fast tier goes down; region 1 does not
half_goes() {
	local used all went
	used=$(vol_tier 0 used) all=${used#*/} used=${used%/*}
	vol_message set janitor_low=$((used * 500 / all))
	vol_message set janitor_high=$((used * 500 / all + 1))
	dd if=/dev/zero of="$VOL" bs=4k seek=6144 count=1 oflag=direct conv=fsync status=none	# it looks
	for ((i = 0; i < 100 && $(vol_get moved) < used / 3; i++)); do sleep 0.1; done
	sleep 1
	[ "$(vol_get moved)" -ge $((used / 3)) ] || die "$1: only $(vol_get moved) of $used blocks went down"
	went=$(vol_tier 1 reads)
	touch_one
	check_eq "$1: reads of the slow drive" "$(vol_tier 1 reads)" "$went"
	pass "$1"
}

vol_ram 64 448
vol_format
vol_up "${UP[@]}"
fill
sleep 220
touch_one
sleep 60
half_goes "what was touched 280 ticks ago is older than what was 60 ago"
vol_down

# The ticks begin anew with each activation. What has been written at the third is read again at the
# first of the next one, eight later.
vol_format
vol_up "${UP[@]}"
sleep 3
fill
vol_down
vol_up "${UP[@]}"
touch_one
sleep 8
half_goes "what was touched before the volume was opened is older than what was since"
vol_down
vol_check
