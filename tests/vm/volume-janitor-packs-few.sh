#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# On a volume larger than its drives regions with a few blocks leave the fast tier as they are: it becomes emptier, the shelves take no more than came.
# vm: mode=functional memory=2G timeout=300
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

REGIONS=1500
vol_ram 160 768
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic:align-64K=${VOL_DRIVES[1]}" --overcommit 6G
vol_up commit_ms=100 janitor_high=1000
/usr/bin/python3 -ISc '
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
for region in range(int(sys.argv[2])):
    os.pwrite(fd, b"%016d" % region * 256, region << 22)
os.fsync(fd)' "$VOL" $REGIONS || die "refused: $(vol_status)"
used=$(vol_tier 0 used) blocks=${used#*/} used=${used%/*}
[ "$used" -ge $REGIONS ] || die "$used blocks of $REGIONS on the fast tier: $(vol_status)"
high=$((used * 1000 / blocks - 20)) low=$((used * 400 / blocks))
vol_message set janitor_low=$low
vol_message set janitor_high=$high
left=$((blocks * low / 1000))
for ((i = 0; i < 40; i++)); do
	# a kick, should nothing else be written
	dd if=/dev/zero of="$VOL" bs=4k count=1 oflag=direct status=none
	vol_message commit
	now=$(vol_tier 0 used) now=${now%/*}
	[ "$now" -gt $((left + 64)) ] || break
	sleep 0.5
done
down=$(vol_tier 1 used) down=${down%/*}
echo "$used blocks before, $now now, $left wanted; $down on the shelves, padding $(vol_tier 1 padding)"
[ "$now" -le $((left + 64)) ] || die "the fast tier does not become emptier: $(vol_status)"
[ $((down - $(vol_tier 1 padding))) -le $(((used - now) * 12 / 10)) ] || die "$down blocks on the shelves for $((used - now)) that went down: $(vol_status)"
/usr/bin/python3 -ISc '
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
for region in range(1, int(sys.argv[2])):
    assert os.pread(fd, 4096, region << 22) == b"%016d" % region * 256, region' "$VOL" $REGIONS || die "other data"
vol_down
vol_check
pass "$((used - now)) single blocks went down, $down on the shelves"
