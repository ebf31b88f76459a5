#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every mode and codec of a move order by hand: what goes into packs reads back, is counted, and is given back.
# vm: mode=functional cpus=1 memory=3G timeout=900 build=oracle,orders,daemon
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/orders.bash"

DATA=/dev/shm/data

word() { sed -n "s/.*\b$1=\([^ ]*\).*/\1/p" <<< "$said"; }
says() { check_eq "$1 of the last order ($said)" "$(word "$1")" "$2"; }
# state REGION PRESENT PACKED PACKS [FAST]
state() {
	check_eq "region $1" "$(from_ram orders /dev/terrace/vol show "$1")" "present=$2 fast=${5:-$2} packed=$3 packs=$4"
}
same() { cmp -n $((16 << 20)) "$DATA" "$VOL" || die "$1: data differ"; }
# change BLOCK COUNT: overwrites blocks, on the volume and in the copy
change() {
	dd if=/dev/urandom of=/dev/shm/new bs=4k count="$2" status=none
	dd if=/dev/shm/new of="$VOL" bs=4k seek="$1" oflag=direct status=none
	dd if=/dev/shm/new of=$DATA bs=4k seek="$1" conv=notrunc status=none
}

vol_ram 64 512
vol_format
vol_up stream_kb=0
check_eq "mode of the control device" "$(stat -c %a /dev/terrace/vol)" 600
from_ram orders /dev/terrace/vol bad || die "malformed orders were taken"
from_ram orders --uring /dev/terrace/vol bad || die "malformed orders were taken by io_uring"
from_ram orders /dev/terrace/vol uring || die "io_uring commands"
dmsetup suspend --noudevsync vol
from_ram orders /dev/terrace/vol cancel || die "cancelling io_uring orders"
dmsetup resume --noudevsync --noudevrules vol

# regions 0 and 1 compress, 2 does not, 3 neither
/usr/bin/python3 -ISc 'import sys; sys.stdout.write(("line %d of words that compress\n" % 7 * 400000)[:8 << 20])' > $DATA
dd if=/dev/urandom of=$DATA bs=1M count=8 seek=8 conv=notrunc status=none
dd if=$DATA of="$VOL" bs=1M oflag=direct status=none
state 0 1024 0 0

order 0 append tier_down=1 codec=lz4 shift=0
says down 1024
[ "$(word packed_bytes)" -lt $((1 << 20)) ] || die "4 MiB of words became $(word packed_bytes) bytes"
state 0 0 1024 1
order 1 append tier_down=1 codec=zstd level=5 shift=4 up=0-99
says down 924
state 1 100 924 1
order 2 append tier_down=1 codec=lz4 shift=4 warm=500-600
says raw 1024
order 3 append tier_down=1 codec=none shift=2
same "after four appends"
pass "append with each codec"

# clean copies come and go without the pack changing
order 0 raise up=10-20
says up 11
state 0 11 1024 1
order 0 drop
says dropped 11
state 0 0 1024 1
order 0 raise up=10-20
change 12 3		# to a new place: the pack keeps the others
state 0 11 1021 1
same "after overwriting clean copies"
change 30 5
state 0 16 1016 1

# a second pack, then all in one; the hot blocks come up in passing
order 0 append tier_down=1 codec=lz4 shift=2
says packs 2
says down 8
says dropped 8
state 0 0 1024 2
# four at most: who would make a fifth merges
most=0
for k in 3 4 5 6; do
	change $((100 + k)) 1
	order 0 append tier_down=1 codec=lz4 shift=2
	packs=$(word packs)
	[ "$packs" -le 4 ] || die "a region has $packs packs"
	[ "$packs" -le "$most" ] || most=$packs
done
check_eq "the most packs that the region had" "$most" 4
same "after packs on packs"
order 0 merge tier_down=1 codec=zstd shift=2 up=40-50
says packs 1
says up 11
state 0 11 1024 1
order 0 scrub
same "after a merge"
pass "raise, drop, merge, scrub"

# what a region has no use for is refused, not done
expect_fail "error=EOPNOTSUPP" from_ram orders /dev/terrace/vol move 0 append tier_up=1 tier_down=0
expect_fail "error=ERANGE" from_ram orders /dev/terrace/vol move 99999999 append tier_down=1
expect_fail "error=ENOENT" from_ram orders /dev/terrace/vol move 60 append tier_down=1
expect_fail "error=EINVAL" from_ram orders /dev/terrace/vol move 0 append tier_down=7
expect_fail "error=EOPNOTSUPP" from_ram orders /dev/terrace/vol move 0 append tier_down=0

vol_down
vol_check
vol_up stream_kb=0
same "after reopening"
state 1 100 924 1

# cleaning moves packs that are in use to another shelf
moved=0
for shelf in 0 1 2 3; do
	said=$(from_ram orders /dev/terrace/vol move $shelf clean tier_down=1) || continue
	moved=$((moved + $(word down)))
done
[ "$moved" -gt 1024 ] || die "cleaning four shelves moved $moved blocks, the packs alone have more"
state 1 100 924 1
same "after cleaning"
pass "cleaning moved $moved blocks"
vol_down
vol_check

# without the drive of the packs: orders fail or leave them out, and clean copies, all that can be read, stay
# (before the flipped bit, whose many messages would use up what the kernel prints of them in five seconds)
vol_up stream_kb=0
order 2 raise up=10-20
says up 11
vol_down
whole=$VOL_TABLE
VOL_TABLE=${VOL_TABLE/${VOL_DRIVES[1]}/missing}
klog_expect 'block \d+ in pack \d+ at tier 1 block \d+ cannot be read \(-5\)'
vol_up
expect_fail "error=ENOENT" from_ram orders /dev/terrace/vol move 2 drop
expect_fail "error=ENOENT" from_ram orders /dev/terrace/vol move 2 raise up=30-40
expect_fail "unreadable=[1-9]" from_ram orders /dev/terrace/vol move 2 scrub
cmp -n $((11 * 4096)) -i $(((2048 + 10) * 4096)) $DATA "$VOL" || die "clean copies without their pack"
vol_down
VOL_TABLE=$whole
vol_up
state 2 11 1024 1
same "with the drive again"
vol_down
pass "orders without the drive of the packs"

# unreadable: how many of the 4096 blocks are, the first, the last; the others are as they were written
unreadable() {
	python3 - "$VOL" $DATA << 'END'
import os, sys
volume, copy = os.open(sys.argv[1], os.O_RDONLY), open(sys.argv[2], 'rb').read()
os.posix_fadvise(volume, 0, 0, os.POSIX_FADV_RANDOM)
def right(first, nr):
    at = first * 4096
    return os.pread(volume, nr * 4096, at) == copy[at:at + nr * 4096]
def alone(block):
    try:
        if not right(block, 1):
            sys.exit('block %d reads as something else' % block)
    except OSError:
        bad.append(block)
bad = []
for piece in range(0, 4096, 64):
    try:
        if right(piece, 64):
            continue
    except OSError:
        pass
    for block in range(piece, piece + 64):
        alone(block)
print(len(bad), bad[0] if bad else -1, bad[-1] if bad else -1)
END
}

# a flipped bit in the payload of region 1's pack: its clusters fail, nothing else does
sleep 5		# or the messages about what was missing are all that the kernel prints
vol_damage 1 payload > /dev/null
klog_expect 'block \d+ in pack \d+ at tier 1 block \d+ cannot be read \(-74\)'
vol_up stream_kb=0
start from_ram orders /dev/terrace/vol events 100 > /dev/shm/events
while ! grep -q listening /dev/shm/events; do sleep 0.1; done
bad=$(unreadable) || die "$bad"
read -r many first last <<< "$bad"
{ [ "$many" -ge 1 ] && [ "$many" -le 16 ] && [ "$first" -ge 1024 ] && [ "$last" -lt 2048 ]; } ||
	die "a flipped bit in one cluster made $many blocks unreadable, from $first to $last"
expect_fail "unreadable=[1-9]" from_ram orders /dev/terrace/vol move 1 scrub
grep -q "type=7 tier=1 region=1 value=[1-9]" /dev/shm/events || die "the bad pack was not told: $(cat /dev/shm/events)"
kill_all "$JOB"
pass "a flipped bit: EIO for $many blocks of one cluster, scrub finds them"
# written anew, they are well again; the pack's other blocks stay
dd if=$DATA of="$VOL" bs=4k skip="$first" seek="$first" count=$((last - first + 1)) oflag=direct status=none
same "after writing the bad blocks anew"
# a discarded block does not come back from its pack, a dead pack's room does
blkdiscard -o 0 -l $((4 << 20)) "$VOL"
vol_message commit
state 0 0 0 1
vol_message checkpoint
state 0 0 0 0
dd if=/dev/zero of=$DATA bs=1M count=4 conv=notrunc status=none
same "after a discard"
vol_down
vol_check
vol_up
same "after a discard and reopening"
vol_down
pass "packs outlive the volume's stop, discarded blocks do not"

# a flipped bit in a pack's header: its copy on the fast tier serves; in both: the pack's blocks fail, nothing else does
vol_damage 3 header > /dev/null
vol_up stream_kb=0
check_eq "unreadable blocks, a header without its copy" "$(unreadable)" "0 -1 -1"
vol_down
vol_damage 3 index > /dev/null
klog_expect 'index of pack \d+ of region 3 at tier 1 block \d+ cannot be read \(-74\)'
vol_up stream_kb=0
check_eq "unreadable blocks, a pack without header" "$(unreadable)" "1024 3072 4095"
expect_fail "status=failed error=EIO" from_ram orders /dev/terrace/vol move 3 merge tier_down=1
expect_fail "unreadable=1024" from_ram orders /dev/terrace/vol move 3 scrub
state 3 0 1024 1
dd if=$DATA of="$VOL" bs=1M skip=12 seek=12 count=4 oflag=direct status=none
check_eq "unreadable blocks after writing them anew" "$(unreadable)" "0 -1 -1"
vol_down
pass "flipped bits in headers"

# a stream lies loose on the shelves: an append lets it lie, also beside blocks that it packs; a merge packs it
vol_format
vol_up stream_kb=256
/usr/bin/python3 -ISc 'import sys; sys.stdout.write(("line %d of words that compress\n" % 8 * 600000)[:12 << 20])' > $DATA
dd if=$DATA of="$VOL" bs=1M count=12 oflag=direct status=none
dd if=$DATA of="$VOL" bs=4k skip=2600 seek=2600 count=4 oflag=direct conv=notrunc status=none	# written once more: not loose any more
order 2 append tier_down=1 codec=lz4
began=$(word down)
[[ $began -gt 0 && $began -lt 512 ]] || die "$began blocks of a stream were on the fast tier"
expect_fail "error=ENOENT" from_ram orders /dev/terrace/vol move 2 append tier_down=1 codec=lz4
state 2 $((1024 - began)) "$began" 1 0
order 2 merge tier_down=1 codec=lz4
says down $((1024 - began))
state 2 0 1024 1
cmp -n $((12 << 20)) "$DATA" "$VOL" || die "the stream is not what was written"
pass "an append leaves what is loose, a merge packs it"

# levels are as ordered: one region of program text, packed anew with each (with LZ4 the level is the acceleration)
vol_message set stream_kb=0
cat "$TERRACE_TREE"/kmod/*.c > /dev/shm/text
truncate -s 1M /dev/shm/text
dd if=/dev/shm/text of="$VOL" bs=1M seek=16 oflag=direct status=none
# packed CODEC LEVEL: into how many bytes; how many each is, is in $sizes
sizes=
packed() {
	order 4 merge tier_down=1 codec="$1" level="$2" shift=4
	says down "$3"
	state 4 0 256 1
	bytes=$(word packed_bytes)
	sizes+="$1 level $2: $bytes, "
	cmp -n $((1 << 20)) -i $((16 << 20)):0 "$VOL" /dev/shm/text || die "packed with $1 level $2: data differ"
}
packed zstd 1 256; quick=$bytes
packed zstd 19 0; thorough=$bytes
packed lz4 1 0; near=$bytes
packed lz4 100 0; far=$bytes
sizes=${sizes%, }
[ "$thorough" -lt "$quick" ] || die "zstd level 19 gains no more than level 1: $sizes"
[ "$far" -gt "$near" ] || die "LZ4 accelerated 100 times gains as much as at 1: $sizes"
vol_down
vol_check
pass "levels as ordered: $sizes"

# all metadata are lost: repaired from the shelves alone.  What was packed is back, what had been loose on a shelf, too;
# of blocks written since, to the fast tier, the old value: repair says that all may be older
vol_format
vol_up stream_kb=0
/usr/bin/python3 -ISc 'import sys; sys.stdout.write(("line %d of words that compress\n" % 9 * 400000)[:8 << 20])' > $DATA
dd if=/dev/urandom of=$DATA bs=1M count=8 seek=8 conv=notrunc status=none
dd if=$DATA of="$VOL" bs=4k count=3072 oflag=direct status=none
order 0 append tier_down=1 codec=lz4 shift=0 up=500-599
order 0 append tier_down=1 codec=zstd shift=2
order 1 append tier_down=1 codec=zstd shift=4
order 2 append tier_down=1 codec=none shift=2
vol_message set stream_kb=256
dd if=$DATA of="$VOL" bs=1M skip=12 seek=12 count=4 oflag=direct status=none	# a stream: loose, most of it
state 0 0 1024 2
order 1 raise up=200-299
cp $DATA /dev/shm/older
change 1500 20
change 40 3
vol_down
vol_check
terracectl dump --json super "${VOL_DRIVES[@]}" > /dev/shm/super
for tier in 0 1; do
	read -r start blocks <<< "$(/usr/bin/python3 -ISc 'import json, sys; print(*[(i["meta_start"], i["meta_blocks"]) for i in json.load(open("/dev/shm/super"))["items"] if i["item"] == "label" and i["tier"] == int(sys.argv[1])][0])' $tier)"
	dd if=/dev/zero of="${VOL_DRIVES[tier]}" bs=4k seek="$start" count="$blocks" oflag=direct conv=notrunc status=none
done
mkram meta 32
expect_fail "no superblock is left: --from-shelves" terracectl repair --to /dev/ram/meta "${VOL_DRIVES[@]}"
expect_fail "blocks mapped; what was in slots is lost, .* any block may be older" terracectl repair --from-shelves --to /dev/ram/meta "${VOL_DRIVES[@]}"
terracectl check --full "${VOL_DRIVES[@]}" /dev/ram/meta || die "not sound after repair"
terracectl activate "${VOL_DRIVES[@]}" /dev/ram/meta > /dev/null
python3 - "$VOL" $DATA /dev/shm/older << 'END' || die "not what the shelves had"
import os, sys
volume, new, old = os.open(sys.argv[1], os.O_RDONLY), open(sys.argv[2], 'rb').read(), open(sys.argv[3], 'rb').read()
zeros, current, older, lost = bytes(4096), 0, 0, 0
for block in range(4096):
    at = block * 4096
    data, want, before = os.pread(volume, 4096, at), new[at:at + 4096], old[at:at + 4096]
    if data == want:
        current += 1
    elif data == before:
        older += 1
    elif data == zeros and block >= 3072:
        lost += 1
    else:
        sys.exit('block %d is neither its last value nor the one before' % block)
print('%d blocks current, %d older, %d lost with the fast tier' % (current, older, lost))
if older != 23 or current < 3072 - 23:
    sys.exit('expected 23 older ones, and all that was packed')
END
state 0 0 1024 2
order 0 merge tier_down=1 codec=zstd shift=4
order 0 scrub
terracectl deactivate vol
terracectl check --full "${VOL_DRIVES[@]}" /dev/ram/meta || die "not sound after a move on the repaired volume"
pass "metadata lost, repaired from the shelves with their packs"

# as many orders read or write a drive at once as its tier's limit says
vol_drives 64 512 write_lat=10ms
vol_format
vol_up stream_kb=0 orders_tier0=8 orders_tier1=1
most() { cat /sys/fs/terrace/*/tier1/orders_most; }
for limit in 1 4; do
	vol_message set orders_tier1=$limit
	dd if=$DATA of="$VOL" bs=1M oflag=direct status=none
	from_ram orders /dev/terrace/vol sweep 0 4 append tier_down=1 > /dev/shm/swept || die "four orders: $(cat /dev/shm/swept)"
	echo "limit $limit: at most $(most) orders at once on tier 1"
	[ "$(most)" -le $limit ] || die "$(most) orders at once, the limit is $limit"
done
[ "$(most)" -gt 1 ] || die "never more than one order at once, with a limit of 4"
check_eq "orders in flight after the last" "$(cat /sys/fs/terrace/*/tier{0,1}/orders)" $'0\n0'
same "after orders side by side"

# a drive that fails while orders write to it: they fail, and all stays as it was
dd if=$DATA of="$VOL" bs=1M skip=8 seek=20 count=4 oflag=direct status=none
same_there() { cmp -n $((4 << 20)) -i $((8 << 20)):$((20 << 20)) $DATA "$VOL" || die "$1: data differ"; }
drive slow error add write 0 0
expect_fail "status=failed error=EIO down=0" from_ram orders /dev/terrace/vol move 5 append tier_down=1
state 5 1024 0 0
drive slow error clear
same_there "after a failed order"
order 5 append tier_down=1
says down 1024
drive slow error add read 0 0
klog_expect 'block \d+ in pack \d+ at tier 1 block \d+ cannot be read \(-5\)'
expect_fail "status=failed error=EIO" from_ram orders /dev/terrace/vol move 5 raise up=all
drive slow error clear
state 5 0 1024 1
same_there "after a failed raise"
order 5 raise up=all
says up 1024
state 5 1024 1024 1
same_there "after a raise of the whole region"
# loose blocks have no checksum: a scrub says which of them the drive cannot read
start from_ram orders /dev/terrace/vol range $((6 * 1024)) 1024 cold 1000 > /dev/shm/hint
until [ -s /dev/shm/hint ]; do sleep 0.1; done
dd if=$DATA of="$VOL" bs=4k seek=$((6 * 1024 + 50)) count=9 oflag=direct status=none
kill_all "$JOB"
state 6 9 0 0 0
order 6 scrub
says unreadable 0
drive slow error add read 0 0
klog_expect "block $((6 * 1024 + 50)) at tier 1 block [0-9]+ cannot be read"
expect_fail "error=EIO .*unreadable=9" from_ram orders /dev/terrace/vol move 6 scrub
drive slow error clear
vol_down
vol_check
pass "orders in flight, and a drive that fails under them"

# a drive that maps in units of 16 KiB: what a flush finds of the shelves ends at a unit
mkdrive flat ram 512 iu=16k write_lat=1us
mkram aside 32	# the metadata are there, their mirror on the fast drive
mkram quick 64
# units ALIGN: half written units, of what is appended and packed in $split, of what the janitor and a cleaning do in $rest
units() {
	local before i
	vol_format --meta /dev/ram/aside --tier "optane:slots:atomic=/dev/ram/quick" --tier "qlc:shelves:atomic:align-$1=/dev/mapper/flat"
	VOL_DRIVES=(/dev/ram/aside /dev/ram/quick /dev/mapper/flat)
	# nothing commits but what asks for it: on a slow machine a timer would flush in the middle of many writes
	vol_up stream_kb=0 janitor_high=1000 throttle_us=0 commit_ms=60000
	check_eq "mirror" "$(vol_get mirror)" sync
	# the fast drive is full: what comes now is appended, 29 blocks and an owner block at a time, in one request
	dd if=/dev/zero of="$VOL" bs=1M seek=64 count=64 oflag=direct status=none
	sync "$VOL"
	before=$(drive_get flat split)
	# (none over the border of a region, or longer than the drives' requests: it would be two writes, and one under way
	# while the other's commit flushes)
	for i in 0 4 8; do
		dd if=$DATA of="$VOL" bs=116k count=27 oflag=direct,dsync,seek_bytes iflag=skip_bytes seek=${i}M skip=${i}M status=none
	done
	order 0 merge tier_down=1 codec=lz4 shift=0
	order 2 merge tier_down=1 codec=none shift=2
	split=$(($(drive_get flat split) - before))
	dd if=$DATA of="$VOL" bs=1M seek=16 oflag=direct status=none
	vol_message set janitor_low=0
	vol_message set janitor_high=1
	for ((i = 0; $(vol_get moved) < 3000; i++)); do
		[ "$i" -lt 100 ] || die "the janitor moved $(vol_get moved) blocks"
		sleep 0.1
	done
	vol_message set janitor_high=1000
	for i in 0 1 2; do from_ram orders /dev/terrace/vol move $i clean tier_down=1 > /dev/null || continue; done
	rest=$(($(drive_get flat split) - before - split))
	said="unit $(cat /sys/fs/terrace/*/tier1/unit_blocks), padding $(vol_tier 1 padding), used $(vol_tier 1 used)"
	for i in 0 4 8; do cmp -n $((27 * 116 << 10)) -i $((i << 20)) $DATA "$VOL"; done
	cmp -n $((16 << 20)) -i 0:$((16 << 20)) $DATA "$VOL"
	vol_down
	vol_check --owners
	echo "align-$1: $split and $rest units half written at a flush; $said"
}
# without padding (units of 4K) all 81 synced writes end within a unit of the drive
units 16K
[ "$split" -le 8 ] || die "$split units half written by what is appended and packed"
[[ $said == "unit 4, padding "[1-9]* ]] || die "no padding: $said"
rmdrive flat
pass "shelves in units of 16 KiB"
