#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What is damaged: scrubs and orders name just that, take the other copy if there is one, leave the rest out, and know when to stop.
# vm: mode=functional cpus=1 memory=2G timeout=400 build=orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

PATH=$TERRACE_TREE/build:$PATH in_ram orders
DATA=/dev/shm/data
wrong=()
order() { said=$(from_ram orders /dev/terrace/vol move "$@" flags=1) || true; }	# the janitor may be at it
word() { sed -n "s/.*\b$1=\([^ ]*\).*/\1/p" <<< "$said"; }
# hopes TEXT CMD...: what is not so is told at the end
hopes() {
	local what=$1
	shift
	if "$@"; then pass "$what"; else wrong+=("$what"); echo "not so: $what: ${said:-}"; fi
}
# ends STATUS ERROR UNREADABLE: the last order did
ends() { [ "$(word status) $(word error) $(word unreadable)" = "$*" ]; }
# reads FIRST COUNT: these blocks are as they were written
reads() {
	dd if="$VOL" bs=4k skip="$1" count="$2" iflag=direct status=none 2> /dev/null | cmp -s -n $(($2 * 4096)) -i 0:$(($1 * 4096)) - $DATA
}
of() { cat /sys/fs/terrace/*/"$1"; }

vol_drives 64 1024	# shelves enough that the janitor has no need to clean
vol_format
vol_up stream_kb=0 janitor_high=1000 commit_ms=60000 scrub_mb=0
dd if=/dev/urandom of=$DATA bs=1M count=28 status=none
dd if=$DATA of="$VOL" bs=1M oflag=direct status=none

# what an order says of its I/O is what the drives say
order 0 append tier_down=1 codec=lz4 shift=4	# which opens the shelf
before=$(drive_get slow write_bytes)
order 1 append tier_down=1 codec=lz4 shift=4
hopes "written bytes are those of the drive" [ "$(word written1)" = $(($(drive_get slow write_bytes) - before)) ]
hopes "the copy of the index counts" [ "$(word written0)" -gt 0 ]
for r in 2 3; do order $r append tier_down=1 codec=lz4 shift=4; done
order 4 append tier_down=1 codec=none
order 6 append tier_down=1 codec=none
fast=$(drive_get fast read_bytes) slow=$(drive_get slow read_bytes)
order 0 scrub
hopes "bytes that a scrub read are those of the drives" \
	[ "$(word read0) $(word read1)" = "$(($(drive_get fast read_bytes) - fast)) $(($(drive_get slow read_bytes) - slow))" ]
order 0 raise up=4-11
hopes "decompression is time" [ "$(word cpu_ns)" -gt 0 ]
order 1 raise up=0-15
vol_down
vol_check
# in a cluster of 16 blocks the last 12 share a checksum
place=$(vol_damage 0 payload 10)
vol_damage 1 payload 10 > /dev/null
vol_up stream_kb=0 janitor_high=1000 commit_ms=60000 scrub_mb=0

# a pack's last segments are bad; of 8 blocks in them there are clean slots
order 0 scrub
hopes "a scrub names the 4 blocks that cannot be read" ends partly EIO 4
hopes "... and the first of them" [ "$(word bad_block)" = 12 ]
hopes "the log has their place" klog_has "block 12 in pack [0-9]+ at tier 1 block $((place - 6)) cannot be read"
hopes "those beside them can be read alone" reads 0 4
before=$(of rescued)
order 0 merge tier_down=1 codec=lz4
hopes "a merge leaves the 4 blocks out" ends partly 0 4
hopes "... and read 8 from clean slots" [ "$(of rescued)" = $((before + 8)) ]
hopes "... what is not bad is as it was" reads 0 12
hopes "... behind it as well" reads 16 1008
hopes "... two packs are left" [ "$(word packs)" = 2 ]
shelf=$((place / 16384))
vol_down	# which ends the shelf
vol_up stream_kb=0 janitor_high=1000 commit_ms=60000 scrub_mb=0
order 1 scrub
hopes "all that is bad has clean slots: no block is lost" ends partly EIO 0
order $shelf clean tier_down=1
hopes "cleaning takes away what can be read" ends partly 0 4
order $shelf clean tier_down=1
hopes "... and says what is left" ends partly EIO 4
order 1 scrub
hopes "from clean slots a new pack was made" ends "done" 0 0
hopes "... which has all of it" reads 1024 1024
dd if=$DATA of="$VOL" bs=4k skip=12 seek=12 count=4 oflag=direct status=none
order 0 scrub
hopes "what was bad is written anew" ends "done" 0 0

# headers: that of one pack, another's copy; each alone serves
vol_down
vol_damage 2 header > /dev/null
vol_damage 3 index > /dev/null
vol_up stream_kb=0 janitor_high=1000 commit_ms=60000 scrub_mb=0
start from_ram orders /dev/terrace/vol events 100 > /dev/shm/events
while ! grep -q listening /dev/shm/events; do sleep 0.1; done
order 2 scrub
hopes "a scrub finds the header that is bad" ends partly EIO 0
hopes "... the log says where" klog_has "header of pack [0-9]+ of region 2 at tier 1 block [0-9]+ is bad \(-74\)"
order 3 scrub
hopes "... and the copy that is bad" ends partly EIO 0
hopes "... the log says where" klog_has "header of pack [0-9]+ of region 3 at tier 0 block [0-9]+ is bad \(-74\)"
hopes "... and events tell of both" [ "$(grep -c "type=7 tier=[01] region=[23] " /dev/shm/events)" = 2 ]
kill_all "$JOB"
order 2 merge tier_down=1 codec=lz4
order 3 merge tier_down=1 codec=lz4
order 2 scrub
hopes "a merge mends it" ends "done" 0 0

# a slot that cannot be read: its pack serves, and that is told; a block that is only there is left out of what goes down
order 4 raise up=0-7
before=$(of rescued)
drive fast error add read 0 0
hopes "the pack serves" reads 4096 8
drive fast error clear
hopes "... which is counted" [ "$(of rescued)" = $((before + 8)) ]
hopes "... and logged" klog_has "blocks 4096\+[1-8] could not be read at their place"
reads 5120 1	# the region is in memory
drive fast error add read 0 0 count=2
order 5 append tier_down=1 codec=none
drive fast error clear
hopes "a block that cannot be read stays, the others go down" ends partly 0 1
hopes "... all of them" [ "$(word down) $(word bad_block)" = "1023 5120" ]
hopes "... as they were written" reads 5120 1024

# a dead drive is not asked a thousand times; who is told to stop does
drive slow error add read 0 0
before=$(drive_get slow errors)
order 4 scrub
hopes "a scrub gives up" [ "$(word status) $(word error)" = "failed EIO" ]
hopes "... after $(($(drive_get slow errors) - before)) reads" [ $(($(drive_get slow errors) - before)) -lt 400 ]
drive slow error clear
for b in 0 1 2; do	# … of how many packs it may be
	dd if=$DATA of="$VOL" bs=4k skip=$((6144 + b * 64)) seek=$((6144 + b * 64)) count=24 oflag=direct status=none
	order 6 append tier_down=1 codec=none
done
hopes "four packs" [ "$(word packs)" = 4 ]
drive slow error add read 0 0
for what in scrub "merge tier_down=1 codec=none"; do
	# shellcheck disable=SC2086
	order 6 $what
	hopes "of four packs it tries no more than of one" [ "$(word unreadable)" -lt 40 ]
	hopes "... and fails" [ "$(word status) $(word error)" = "failed EIO" ]
done
drive slow error clear
order 5 append tier_down=1 codec=none	# a second pack, of one block: it is the first that is read
# stopped WORD MOST REGION MODE...: who gave it is killed while the drive has its first read; how many reads, or writes, follow
stopped() {
	local word=$1 most=$2 before job
	shift 2
	drive slow error add read 0 0 count=1 hold
	start from_ram orders /dev/terrace/vol leave "$@" > /dev/shm/left
	job=$JOB
	drive_wait_held slow
	kill -KILL -- "-$job"		# it ends with its order
	sleep 0.5
	before=$(drive_get slow "$word")
	drive slow release
	kill_all "$job"
	sleep 1
	drive slow error clear
	said="$(($(drive_get slow "$word") - before)) $word"
	echo "$*: $said after it was told to stop"
	[ "${said%% *}" -lt "$most" ]
}
hopes "a scrub whose giver is killed stops" stopped reads 40 5 scrub
vol_down
vol_check
shelf=$(terracectl dump --json packs --range 6 "${VOL_DRIVES[@]}" | /usr/bin/python3 -ISc 'import json, sys; print(json.load(sys.stdin)["items"][0]["place"] // 16384)')
vol_up stream_kb=0 janitor_high=1000 commit_ms=60000 scrub_mb=0
hopes "so does a cleaning" stopped writes 4 "$shelf" clean tier_down=1
hopes "... and nothing is lost by it" reads 5120 2048
vol_down
vol_check

# a shelf without a table, as stops leave it: its owner blocks are looked at; what users wrote that looks like one,
# of another volume and of another place, is none that is damaged
magic=$(sed -n 's/^#define TERRACE_OWNER_MAGIC[[:space:]]*\(0x[0-9a-f]*\).*/\1/p' "$TERRACE_TREE/uapi/terrace_format.h")
vol_format
uuid=$(/usr/bin/python3 -ISc 'import re, sys; print(re.search(r"([0-9a-f-]{36})", sys.stdin.read())[1])' <<< "$(terracectl dump super "${VOL_DRIVES[@]}")")
/usr/bin/python3 -ISc '
import os, struct, sys, uuid
data = os.open(sys.argv[1], os.O_WRONLY)
for at, owner in (256, b"another volume.."), (512, uuid.UUID(sys.argv[3]).bytes):
    os.pwrite(data, struct.pack("<II16sQ", int(sys.argv[2], 0), 0, owner, 77), at * 4096)' $DATA "$magic" "$uuid"
vol_up stream_kb=256 scrub_mb=0
dd if=$DATA of="$VOL" bs=1M count=12 oflag=direct status=none
vol_down
vol_up scrub_mb=0
order 0 scrub tier_down=1
hopes "a shelf without a table" [ "$(word error)" = ENOENT ]
vol_down
/usr/bin/python3 -ISc '
import os, struct, sys
drive = os.open(sys.argv[1], os.O_RDWR)
for at in range(0, 64 << 20, 4096):
    block = os.pread(drive, 4096, at)
    if len(block) == 4096 and struct.unpack_from("<I", block)[0] == int(sys.argv[2], 0) and block[8:24] != b"another volume.." and block[24] != 77:
        os.pwrite(drive, block[:50] + bytes([block[50] ^ 1]) + block[51:], at)
        os.fsync(drive)
        break
else:
    sys.exit("no owner block")' "${VOL_DRIVES[1]}" "$magic"
vol_up scrub_mb=0
order 0 scrub tier_down=1
hopes "an owner block that is damaged" ends partly EIO 1
vol_down

# another pack's header, whole, where a pack's should be (a write went astray), and no copy of it: the pack is not gone
vol_format
vol_up stream_kb=0 janitor_high=1000 scrub_mb=0
dd if=$DATA of="$VOL" bs=1M count=8 oflag=direct status=none
for r in 0 1; do order $r append tier_down=1 codec=none; done
vol_down
for r in 0 1; do place[r]=$(vol_damage $r header) && vol_damage $r header > /dev/null; done	# (the second time takes the first back)
vol_damage 0 index > /dev/null
/usr/bin/python3 -ISc '
import json, sys
text, items = open("/dev/shm/dumped").read().strip(), []
while text:
    said, end = json.JSONDecoder().raw_decode(text)
    items += said["items"]
    text = text[end:].strip()
start = next(i["data_start"] for i in items if i["item"] == "label" and i["tier"] == 1)
bytes = next(i["header_bytes"] for i in items if i["item"] == "pack")
with open(sys.argv[1], "r+b", buffering=0) as drive:
    drive.seek((start + int(sys.argv[3])) * 4096)
    other = drive.read(-(-bytes // 4096) * 4096)
    drive.seek((start + int(sys.argv[2])) * 4096)
    drive.write(other)' "${VOL_DRIVES[1]}" "${place[@]}"
vol_up stream_kb=0 janitor_high=1000 scrub_mb=0
order 0 scrub
hopes "a header that is another pack's" ends partly EIO 1024
order 0 merge tier_down=1 codec=lz4
order 0 raise up=0-7
refused() { ! dd if="$VOL" of=/dev/null bs=4k count=1 iflag=direct 2> /dev/null; }
hopes "... its blocks are no zeros for that" refused
hopes "... the other pack is as it was" reads 1024 1024
vol_down
[ ${#wrong[@]} = 0 ] || die "not so: $(printf '%s; ' "${wrong[@]}")"
