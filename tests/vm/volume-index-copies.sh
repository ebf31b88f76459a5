#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every pack gets a copy of its index on the fast tier, also where free slots lie in runs that are too short for one at their end.
# vm: mode=functional cpus=1 memory=2G timeout=300 build=orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/orders.bash"

# packs, and those that have a copy
copies() {
	terracectl dump --json packs "${VOL_DRIVES[@]}" | /usr/bin/python3 -ISc '
import json, sys
packs = json.load(sys.stdin)["items"]
print(len(packs), sum(1 for pack in packs if pack.get("index_tier") == 0))'
}

vol_ram 64 512
vol_format
vol_up stream_kb=0 janitor_high=1000 append_kb=0
blocks=$(vol_tier 0 used) blocks=$((${blocks#*/} / 1024 * 1024 - 1024))
dd if=/dev/urandom of="$VOL" bs=4M count=$((blocks / 1024)) oflag=direct status=none
# runs of three free slots: an index takes two
/usr/bin/python3 -ISc '
import fcntl, os, struct, sys
BLKDISCARD = 0x1277
fd = os.open(sys.argv[1], os.O_RDWR)
for block in range(8192, int(sys.argv[2]), 4):
    fcntl.ioctl(fd, BLKDISCARD, struct.pack("QQ", block << 12, 3 << 12))' "$VOL" "$blocks"
vol_message checkpoint
vol_down
vol_up stream_kb=0 janitor_high=1000 append_kb=0
for r in 0 1 2 3 4 5 6 7; do order $r append tier_down=1 codec=none shift=0; done
vol_down
check_eq "packs, copies of their indexes" "$(copies)" "8 8"
vol_check
pass "each pack has a copy of its index"
