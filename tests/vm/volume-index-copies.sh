#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every pack gets a copy of its index on the fast tier, also where free slots lie in runs that are too short for one at their end; who still reads one that was given back is not told that it is damaged.
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

# ---- a reader that is held up at a copy until it is given back and its place written ----

# where the copy of region 0's pack lies on the fast drive: first sector
copy_at() {
	{ terracectl dump --json super "${VOL_DRIVES[@]}"; terracectl dump --json packs --range 0 "${VOL_DRIVES[@]}"; } | /usr/bin/python3 -ISc '
import json, sys
text, decode, items = sys.stdin.read(), json.JSONDecoder().raw_decode, []
while text.strip():
    said, end = decode(text.strip())
    items += said["items"]
    text = text.strip()[end:]
start = next(i["data_start"] for i in items if i["item"] == "label" and i["tier"] == 0)
pack = next(i for i in items if i["item"] == "pack")
print((start + pack["index_place"]) * 8)'
}
read_block() { dd if="$VOL" bs=4k skip="$1" count=1 iflag=direct status=none; }
up() { vol_up stream_kb=0 janitor_high=1000 append_kb=0 commit_ms=50; }

vol_drives 64 512
vol_format
up
dd if=/dev/urandom of=/dev/shm/data bs=4M count=2 status=none
dd if=/dev/shm/data of="$VOL" bs=4M oflag=direct status=none
for r in 0 1; do order $r append tier_down=1 codec=none shift=0; done
vol_down
at=$(copy_at)
copy() { dd if=/dev/mapper/fast bs=4k skip=$((at / 8)) count=1 iflag=direct status=none | cksum; }
was=$(copy)
up
# a read of region 1 keeps the order waiting; meanwhile one of region 0 finds the copy, which the order then gives back
drive slow error add read 0 0 hold
read_block 1024 > /dev/shm/first & first=$!
drive_wait_held slow
drive fast error add read "$at" 8 hold
vol_message set avoid_tiers=1
ask move 0 append tier_down=1 > /dev/shm/order & order=$!
sleep 1
read_block 0 > /dev/shm/second & second=$!
drive_wait_held fast
drive slow error clear
drive slow release
wait $order $first
vol_message set avoid_tiers=0
vol_message commit
# all of the fast tier that is free, and with it that place
free=$(vol_tier 0 used) free=$((${free#*/} - ${free%/*}))
dd if=/dev/zero of="$VOL" bs=1M seek=8 count=$((free / 256)) oflag=direct status=none
drive fast error clear
drive fast release
wait $second
[ "$(copy)" != "$was" ] || die "the copy's place was not written"
cmp -n 4096 -i 0:$((4 << 20)) /dev/shm/first /dev/shm/data
cmp -n 4096 /dev/shm/second /dev/shm/data
! klog_has 'its copy at tier' || die "a copy that was given back is called damaged"
vol_down
check_eq "packs, copies of their indexes" "$(copies)" "2 1"
vol_check
pass "a copy that was given back is not called damaged"
