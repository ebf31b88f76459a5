#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A drive that compresses inside is a zram device: what it uses inside can be read.
# vm: mode=functional cpus=1 memory=1G timeout=600
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/drive/drive.sh"
need zram

mkzram csd 64
check_eq "bytes stored in a new one" "$(csd_stored csd)" 0
# half of every page is zeros: compresses by about two
head -c $((4 << 20)) /dev/urandom > /dev/shm/noise
perl -e 'while (read(STDIN, $b, 2048)) { print $b, "\0" x 2048 }' < /dev/shm/noise > /dev/shm/half
dd if=/dev/shm/half of=/dev/ram/csd bs=1M oflag=direct status=none
sync
stored=$(csd_stored csd) used=$(csd_used csd)
echo "stored $stored used $used"
check_eq "bytes stored" "$stored" $((8 << 20))
if [ "$used" -lt $((stored * 45 / 100)) ] || [ "$used" -gt $((stored * 70 / 100)) ]; then
	die "half zeros do not halve: $used of $stored"
fi
blkdiscard -o 0 -l $((4 << 20)) /dev/ram/csd
[ "$(csd_used csd)" -lt $((used * 60 / 100)) ] || die "discarding half does not free half"
check_eq "bytes stored after discard" "$(csd_stored csd)" $((4 << 20))
pass "the inside of the compressing drive is visible"
