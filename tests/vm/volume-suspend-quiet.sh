#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Once a volume is suspended nothing is written to its drives any more, nor trimmed.
# vm: mode=functional memory=1G timeout=300 build=orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

PATH=$TERRACE_TREE/build:$PATH in_ram orders
mkdrive fast ram 32 lbs=4096
mkdrive csd ram 640 lbs=4096
export VOL_DRIVES=(/dev/mapper/fast /dev/mapper/csd)
changes() { echo "$(drive_get fast writes) $(drive_get fast discards) $(drive_get csd writes) $(drive_get csd discards)"; }
quiet() {
	local now before=
	for ((i = 0; i < 60; i++)); do
		now=$(changes)
		[ "$now" != "$before" ] || return 0
		before=$now
		sleep 1
	done
	die "the drives are written to without end: $now"
}

vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "csd:home:atomic=${VOL_DRIVES[1]}"
vol_up commit_ms=60000
dd if=/dev/urandom of="$VOL" bs=1M count=4 oflag=direct status=none
from_ram orders /dev/terrace/vol move 0 append tier_down=1 > /dev/shm/orders || die "$(cat /dev/shm/orders)"
vol_message checkpoint
quiet
# what the suspension's own commit frees, it trims
blkdiscard -l $((4 << 20)) "$VOL"
drive csd error add discard 0 0 hold
start dmsetup suspend --noudevsync vol
drive_wait_held csd
sleep 2
kill -0 "$JOB" 2> /dev/null || die "suspended, and a trim is on its way"
drive csd error clear
drive csd release
wait "$JOB"
before=$(changes)
sleep 2
check_eq "writes and discards of a suspended volume" "$(changes)" "$before"
dmsetup resume --noudevsync --noudevrules vol
vol_down
vol_check
pass "nothing was written to the drives of a suspended volume"
