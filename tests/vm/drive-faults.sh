#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Injected errors and delays, dead drives, groups that lose power together, precise complaints.
# vm: mode=functional cpus=1 memory=1G timeout=700 build=drive-tools
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/drive/drive.sh"
drive_tools
M=/dev/mapper

block() { dd if="$M/$1" of=/dev/null bs=4k count="${3:-1}" skip="$2" iflag=direct status=none; }
put() { dd if=/dev/urandom of="$M/$1" bs=4k count="${3:-1}" seek="$2" oflag=direct status=none; }
flush() { sync "$M/$1"; }	# fsync of the device
fails() { expect_fail "Input/output error|error syncing" "$@"; }
sum() { dd if="$M/$1" bs=4k skip="$2" count=1 iflag=direct status=none | md5sum; }

echo "-- errors on a range, for ever"
mkdrive d ram 64
put d 0 64
drive d error add read 80 16			# blocks 10 and 11
block d 9
fails block d 10
fails block d 11
block d 12
put d 10
fails block d 8 4				# one command that touches the range
check_eq "commands failed" "$(drive_get d errors)" 3
drive d error clear
block d 10

echo "-- a failed write changes nothing"
old=$(sum d 5)
drive d error add write 40 8
fails put d 5
drive d error clear
check_eq "block 5" "$(sum d 5)" "$old"

echo "-- the n-th, once, twice, for ever"
drive d error add read 0 0 nth=3 count=1
block d 1; block d 1
fails block d 1
block d 1
drive d error add all 0 0 nth=2 count=2
block d 1
fails put d 1
fails block d 1
block d 1
drive d error add write 0 0 nth=2
put d 1
fails put d 1
fails put d 1
drive d error clear

echo "-- flush, discard, zeroes; other kinds pass"
drive d error add flush 0 0 count=1
put d 1
fails flush d
flush d
drive d error add discard,zeroes 0 8
fails blkdiscard -o 0 -l 4096 $M/d
was=$(drive_get d errors)
blkdiscard -z -o 0 -l 4096 $M/d 2>/dev/null || true	# up to 6.1 the block layer falls back to writing zeros
check_eq "write-zeroes failed" $(($(drive_get d errors) - was)) 1
blkdiscard -o 4096 -l 4096 $M/d
block d 0
drive d error clear

echo "-- other errors, and none but slow"
drive d error add read 0 8 status=nospc count=1
expect_fail "No space left" block d 0
drive d error add read 0 8 status=medium count=1
expect_fail "Input/output error|No data" block d 0
was=$(drive_get d struck)
drive d error add read 8 8 delay=300ms status=ok
[ "$(pace_ max d read --count 1 --start 4096)" -ge 300000000 ] || die "a slow range is not slow"
[ "$(pace_ max d read --count 1 --start 8192)" -lt 300000000 ] || die "its neighbour is slow"
check_eq "commands delayed" $(($(drive_get d struck) - was)) 1
drive d error clear

echo "-- held before its data move, until it is released or the power goes"
old=$(sum d 0)
drive d error add write 0 8 count=1 hold
put d 0 & held=$!
drive_wait_held d
check_eq "block 0 while its write is held" "$(sum d 0)" "$old"
drive d release
wait $held
[ "$(sum d 0)" != "$old" ] || die "a released write is lost"
drive d error add read 0 8 count=1 hold
fails block d 0 & held=$!
drive_wait_held d
drive_cut d
wait $held
drive_revive d

echo "-- dead, and back"
drive d dead on
check_eq state "$(drive_get d state)" dead
fails block d 0
fails put d 0
fails flush d
drive d dead off
block d 0

echo "-- zeros after discard and write-zeroes"
put d 0 16
blkdiscard -o 4096 -l 8192 $M/d
blkdiscard -z -o 16384 -l 4096 $M/d
for b in 1 2 4; do
	check_eq "block $b" "$(sum d $b)" "$(dd if=/dev/zero bs=4k count=1 status=none | md5sum)"
done
rmdrive d

echo "-- a group loses its power in one instant"
mkdrive a ram 16 group=pc survive=0 tear=0
mkdrive b ram 16 group=pc survive=0 tear=0
mkdrive c ram 16 survive=0 tear=0
for d in a b c; do put $d 0; flush $d; done
was=$(sum b 0) own=$(sum c 0)
put b 0; put c 0
now=$(sum c 0)
drive a arm write 2
put a 1
fails put a 1
fails block b 0
check_eq "state of b" "$(drive_get b state)" off
check_eq "state of c, in no group" "$(drive_get c state)" on
expect_fail "" drive c revive
drive_revive b
check_eq "state of a" "$(drive_get a state)" on
check_eq "b is back at what was flushed" "$(sum b 0)" "$was"
check_eq "c keeps what was not" "$(sum c 0)" "$now"
[ "$now" != "$own" ] || die "the test writes the same twice"

echo "-- cuts: flush before and after, FUA, bytes, discard, time"
put a 0; flush a
for when in "" after; do
	old=$(sum a 0)
	put a 0
	new=$(sum a 0)
	drive a arm flush 1 $when
	if [ "$when" ]; then flush a; want=$new; else fails flush a; want=$old; fi
	drive_wait_off a
	drive_revive a
	check_eq "flush, cut ${when:-before}" "$(sum a 0)" "$want"
done
drive a arm fua 1
old=$(sum a 3)
fails dd if=/dev/urandom of=$M/a bs=4k count=1 seek=3 oflag=direct,dsync status=none
drive_revive a
check_eq "FUA, cut before" "$(sum a 3)" "$old"
drive a arm bytes 16384
put a 4; put a 5; put a 6
fails put a 7
drive_revive a
drive a arm discard 1
fails blkdiscard -o 0 -l 4096 $M/a
drive_revive a
drive a arm time 200ms
drive_wait_off a
drive_revive a
drive a arm write 1
drive a disarm
put a 0
for d in a b c; do rmdrive $d; done

echo "-- contents stay over a reload and, if kept, over removal"
mkdrive k ram 16 keep=on
put k 0; flush k
old=$(sum k 0)
redrive k optane 16 lbs=512 cache=on keep=on
check_eq "after reload" "$(sum k 0)" "$old"
rmdrive k
mkdrive k ram 16
check_eq "after removal" "$(sum k 0)" "$old"
rmdrive k
mkdrive k ram 16
[ "$(sum k 0)" != "$old" ] || die "keep=off kept the contents"
rmdrive k

echo "-- complaints"
# bad WHAT TABLE-WORDS...: refused, and the kernel says why
bad() {
	local why=$1 said
	shift
	dmesg -C
	expect_fail "" dmsetup create --noudevsync --noudevrules bad --table "0 2048 drive $*"
	said=$(dmesg)
	[[ $said == *"$why"* ]] || die "drive $*: the kernel does not say '$why' but: $said"
}
bad "Usage: NAME PRESET" x
bad "Unknown preset" x floppy
bad "Unknown parameter" x ram colour=red
bad "written key=value" x ram colour
bad "Malformed value" x ram lat=5parsecs
bad "Malformed value" x ram lat=
bad "out of range" x ram channels=0
bad "out of range" x ram lbs=8192
bad "out of range" x ram lat=1000000s
bad "Malformed value" x ram lat=99999999999999999999
bad "powers of two" x ram pbs=5000
bad "slc needs fold_bw" x ram slc=1m
bad "exceed 100 percent" x ram survive=60 tear=60
bad "cache=on needs powercut=on" x ram powercut=off
bad "A disk" x ram rev=6ms
bad "seek_max is less" x hdd seek_min=9ms
bad "1 to 31 characters" xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx ram
bad "Group name" x ram group=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
mkdrive m ram 16
for words in "set" "boo" "set lat" "set lbs=4096" "set lat=x" "arm" "arm write" "arm write 0" "arm write 1 later" "arm rain 1" \
	"revive" "error" "error add" "error add read" "error add boo 0 0" "error add read 0 0 nth=0" "error add read x 0" \
	"error add read 0 0 status=fine" "dead" "dead maybe"; do
	[ "$words" = set ] && continue
	expect_fail "" dmsetup message m 0 "$words"
done
mkdrive n ram 16 group=g1
bad "another group" n ram group=g2
rmdrive n
rmdrive m
rmmod dm_drive
pass "faults strike where they should"
