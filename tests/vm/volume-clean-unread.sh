#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A block that cannot be read, and that nobody needs, does not keep what lives around it from leaving its shelf.
# vm: mode=functional cpus=1 memory=2G timeout=300 build=orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

PATH=$TERRACE_TREE/build:$PATH in_ram orders
DATA=/dev/shm/data
orders() { from_ram orders /dev/terrace/vol "$@" > /dev/shm/orders || { cat /dev/shm/orders; return 1; }; }
word() { sed -n "s/.*\b$1=\([^ ]*\).*/\1/p" /dev/shm/orders; }
down() { word down; }
# ended STATUS ERROR UNREADABLE BAD_BLOCK: so the last order did
ended() { check_eq "status, error, unreadable, bad_block" "$(word status) $(word error) $(word unreadable) $(word bad_block)" "$*"; }
# clean SHELF: nothing stays there. What the janitor has emptied, which few free shelves wake, has nothing to move.
clean() {
	orders move "$1" clean tier_down=1 || true
	[ "$(word status) $(word error)" = "failed ENOENT" ] || ended "done" 0 0 -1
	cmp -n $((8 << 20)) $DATA "$VOL" || die "packs that were moved: other data"
	vol_down
	vol_check
	[ "$(pack | cut -d' ' -f1)" != "$1" ] || die "shelf $1 was not cleaned: $(cat /dev/shm/orders)"
}
same() { cmp -n $((4 << 20)) $DATA "$VOL" || die "$1: other data"; }
# of region 0: shelf of its pack, block in it, blocks
pack() {
	terracectl dump --json packs --range 0 "${VOL_DRIVES[@]}" | /usr/bin/python3 -ISc '
import json, sys
pack = json.load(sys.stdin)["items"][0]
print(pack["place"] // 16384, pack["place"] % 16384, pack["blocks"])'
}
# of region 0: shelf and block in it of what is last there; which block of the volume that is
last() {
	terracectl dump --json map --range 0 "${VOL_DRIVES[@]}" | /usr/bin/python3 -ISc '
import json, sys
region = [i for i in json.load(sys.stdin)["items"] if i["item"] == "region"][0]
place, block = max((run["place"] + run["blocks"] - 1, run["block"] + run["blocks"] - 1) for run in region["run"])
print(place // 16384, place % 16384, block)'
}
# bad SHELF BLOCK [NR [STATUS]]: it, and those behind it, cannot be read, says the drive in its word for it
bad() {
	local data
	data=$(vol_layout slow data) data=${data% *}
	drive slow error add read $((data + ($1 * 16384 + $2) * 8)) $((${3:-1} * 8)) "status=${4:-io}"
}

mkdrive slow ram 512
mkram fast 64
export VOL_DRIVES=(/dev/ram/fast /dev/mapper/slow)
/usr/bin/python3 -ISc 'import sys; sys.stdout.write(("line %d of words that compress\n" % 7 * 400000)[:8 << 20])' > $DATA

# a pack of a few blocks, behind it a dead one
vol_format
vol_up stream_kb=0 janitor_high=1000
dd if=$DATA of="$VOL" bs=1M count=8 oflag=direct status=none
orders move 0 append tier_down=1 codec=lz4 shift=2
orders move 1 append tier_down=1 codec=none shift=2
blkdiscard -o $((4 << 20)) -l $((4 << 20)) "$VOL"
vol_message commit
vol_message checkpoint
vol_down		# which ends the shelf, too
read -r shelf at blocks <<< "$(pack)"
bad "$shelf" $((at + blocks + 3))
vol_up stream_kb=0 janitor_high=1000
orders move "$shelf" clean tier_down=1 || die "a shelf with a dead block that cannot be read"
[ "$(down)" -gt 0 ] || die "nothing was moved: $(cat /dev/shm/orders)"
vol_message commit
same "a pack that was moved"
vol_down
drive slow error clear
vol_check
read -r now at blocks <<< "$(pack)"
[ "$now" != "$shelf" ] || die "the pack is where it was"
pass "a dead block behind a live pack"

# loose blocks, whose owner blocks stand behind dead ones: the shelf has no table
for dead in 1 100; do
	vol_format
	vol_up stream_kb=0 janitor_high=1000 commit_ms=60000
	start from_ram orders /dev/terrace/vol range 0 1024 cold 1000 > /dev/shm/hint
	until [ -s /dev/shm/hint ]; do sleep 0.1; done
	dd if=$DATA of="$VOL" bs=512k count=8 oflag=direct status=none
	kill_all "$JOB"
	vol_message checkpoint
	vol_down
	read -r shelf at block <<< "$(last)"
	check_eq "where the last loose block is" "$at" 1023
	vol_up stream_kb=0 janitor_high=1000
	blkdiscard -o $(((block + 1 - dead) * 4096)) -l $((dead * 4096)) "$VOL"
	vol_message checkpoint
	vol_down
	bad "$shelf" $((1024 - dead)) $dead
	vol_up stream_kb=0 janitor_high=1000
	orders move "$shelf" clean tier_down=1 || die "a shelf with a dead block beside its owner blocks that cannot be read"
	check_eq "blocks moved" "$(down)" $((1024 - dead))
	vol_message commit
	dd if=/dev/zero of=$DATA bs=4k seek=$((block + 1 - dead)) count=$dead conv=notrunc status=none
	same "loose blocks that were moved"
	vol_down
	drive slow error clear
	vol_check
	pass "$dead dead blocks before owner blocks"
done

# of a region that lies in two places of a shelf, far from each other, a block in the first cannot be read
vol_format
vol_up stream_kb=0 janitor_high=1000 commit_ms=60000
start from_ram orders /dev/terrace/vol range 0 4096 cold 1000 > /dev/shm/hint
until [ -s /dev/shm/hint ]; do sleep 0.1; done
dd if=$DATA of="$VOL" bs=512k count=4 oflag=direct status=none
dd if=$DATA of="$VOL" bs=1M seek=4 count=8 oflag=direct status=none
dd if=$DATA of="$VOL" bs=512k skip=4 seek=4 count=4 oflag=direct conv=notrunc status=none
kill_all "$JOB"
vol_message checkpoint
vol_down
# on SHELF: blocks of region 0 that lie there
on() {
	terracectl dump --json map --range 0 "${VOL_DRIVES[@]}" | /usr/bin/python3 -ISc '
import json, sys
region = [i for i in json.load(sys.stdin)["items"] if i["item"] == "region"][0]
print(sum(run["blocks"] for run in region["run"] if run["tier"] == 1 and run["place"] // 16384 == int(sys.argv[1])))' "$1"
}
read -r shelf at block <<< "$(last)"
[ "$at" -ge 2560 ] || die "region 0 lies together: its last block is at $at"
check_eq "blocks of region 0 on the shelf" "$(on "$shelf")" 1024
bad "$shelf" 10
vol_up stream_kb=0 janitor_high=1000
at10=$(terracectl dump --json map --range 0 "${VOL_DRIVES[@]}" | /usr/bin/python3 -ISc '
import json, sys
region = [i for i in json.load(sys.stdin)["items"] if i["item"] == "region"][0]
at = int(sys.argv[1]) * 16384 + 10
print([run["block"] + at - run["place"] for run in region["run"] if run["tier"] == 1 and 0 <= at - run["place"] < run["blocks"]][0])' "$shelf")
orders move "$shelf" clean tier_down=1 || die "cleaning: $(cat /dev/shm/orders)"
ended partly 0 1 "$at10"
vol_message commit
for status in io medium timeout; do
	drive slow error clear
	bad "$shelf" 10 1 $status
	orders move "$shelf" clean tier_down=1 || true
	ended partly EIO 1 "$at10"
done
pass "who orders a cleaning hears of a loose block that cannot be read, in whichever words the drive said it"
vol_message checkpoint
vol_down
left=$(on "$shelf")
check_eq "blocks that stay on the shelf, of which one cannot be read" "$left" 1
vol_up stream_kb=0 janitor_high=1000
drive slow error clear
same "a region of which a block could not be read"
vol_down
vol_check
pass "a block that cannot be read far before others of its region"

# of two packs' headers one cannot be read, and whose it is is not known: that it stays is told
vol_format
vol_up stream_kb=0 janitor_high=1000
dd if=$DATA of="$VOL" bs=1M count=8 oflag=direct status=none
orders move 0 append tier_down=1 codec=lz4 shift=2
orders move 1 append tier_down=1 codec=none shift=2
vol_down
read -r shelf at blocks <<< "$(pack)"
for how in unreadable damaged; do
	if [ $how = unreadable ]; then
		bad "$shelf" "$at"
	else
		vol_damage 0 header > /dev/null
	fi
	vol_up stream_kb=0 janitor_high=1000
	orders move "$shelf" clean tier_down=1 || true
	if [ $how = unreadable ]; then
		[ "$(down)" -gt 1000 ] || die "the other pack stays: $(cat /dev/shm/orders)"
	fi
	ended partly EIO 0 -1
	vol_message commit
	vol_down
	drive slow error clear
done
vol_damage 0 header > /dev/null		# (which takes it back)
vol_up stream_kb=0 janitor_high=1000
clean "$shelf"
pass "who orders a cleaning hears of a pack without a header"

# of two packs one's header rots away, without an error: nobody knows that there was one, but the shelf is not free
read -r shelf at blocks <<< "$(pack)"
data=$(vol_layout slow data) data=${data% *}
at=$((data * 512 + (shelf * 16384 + at) * 4096))
dd if=/dev/mapper/slow of=/dev/shm/header bs=4k iflag=direct,skip_bytes skip=$at count=1 status=none
dd if=/dev/zero of=/dev/mapper/slow bs=4k oflag=direct,seek_bytes seek=$at count=1 status=none
vol_up stream_kb=0 janitor_high=1000
orders move "$shelf" clean tier_down=1 || true
ended partly EIO 0 -1
vol_down
dd if=/dev/shm/header of=/dev/mapper/slow bs=4k oflag=direct,seek_bytes seek=$at count=1 status=none
vol_up stream_kb=0 janitor_high=1000
clean "$shelf"
pass "who orders a cleaning hears that a shelf is not free, though nothing is found there"
