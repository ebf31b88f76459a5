#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A stop and a suspension commit what was written after a checkpoint that failed: nothing is lost, and nothing written to the drives of a suspended volume.
# vm: mode=functional memory=1G cpus=2 timeout=180
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

REGION=1024		# blocks
COMMIT_MS=5000		# of the volume that is suspended, after a write
put() { dd if=/dev/shm/data of="$VOL" bs=4k seek="$1" skip="$1" count="${2:-1}" oflag="${3:-direct}" conv=notrunc status=none; }
same() { dd if="$VOL" bs=4k iflag=direct skip="$1" count="${2:-1}" status=none | cmp -i 0:$(($1 * 4096)) -n $((${2:-1} * 4096)) - /dev/shm/data; }
writes() { echo "$(drive_get fast writes) $(drive_get slow writes)"; }

# stuck BLOCK OPTION...: the volume has that block of region 1 from the journal, and every checkpoint needs the region's page, which cannot be read
stuck() {
	local block
	put "$1" 1 direct,dsync
	vol_cut
	dd if=/dev/mapper/fast of=/dev/shm/meta bs=1M count=32 iflag=direct status=none
	while read -r block; do drive fast error add read $((block * 8)) 8; done < <(vol_map_pages /dev/shm/meta 1)
	vol_up append_kb=0 "${@:2}"
	expect_fail 'Input/output error' vol_message checkpoint
	check_eq "mode" "$(vol_get mode)" write
}

klog_allow 'drive fast'
klog_expect 'number 1 at meta block .*: the drive of copy 0 cannot be read'
dd if=/dev/urandom of=/dev/shm/data bs=1M count=12 status=none
vol_drives 64 256
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --journal 1M --mirror none
vol_up append_kb=0
put 0 $((REGION + 500))
vol_message checkpoint

stuck $((REGION + 700)) commit_ms=60000
put $((2 * REGION + 5)) 20
vol_down
drive fast error clear
vol_up append_kb=0
same $((2 * REGION + 5)) 20 || die "what was written before the stop is lost"
same 0 $((REGION + 500))
same $((REGION + 700))
pass "a stop"

stuck $((REGION + 800)) commit_ms=$COMMIT_MS
put $((2 * REGION + 105)) 20
dmsetup suspend --noudevsync vol
before=$(writes)
sleep $((COMMIT_MS / 1000 + 2))
check_eq "writes of both drives since the volume was suspended" "$(writes)" "$before"
dmsetup resume --noudevsync --noudevrules vol
drive fast error clear
vol_down
vol_check
vol_up
same $((2 * REGION + 105)) 20
same $((REGION + 800))
vol_down
pass "a suspension"
