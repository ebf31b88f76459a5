#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What is promoted goes down again without being written; with clean_slots=0 it leaves its pack and is written: by raises, appends and merges, beside clean slots, without room for all, when it is overwritten meanwhile, and when the power goes.
# vm: mode=functional cpus=2 memory=2G timeout=300 build=orders,daemon
# shellcheck disable=SC2046,SC2119,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/orders.bash"

DATA=/dev/shm/data
word() { sed -n "s/.*\b$1=\([^ ]*\).*/\1/p" <<< "$said"; }
# says WORD=VALUE...: of the last order
says() { local pair; for pair; do check_eq "${pair%=*} of the last order ($said)" "$(word "${pair%=*}")" "${pair#*=}"; done; }
# state REGION FAST PACKED PACKS: a clean slot is in both
state() { check_eq "region $1" "$(ask show "$1")" "present=$2 fast=$2 packed=$3 packs=$4"; }
same() { cmp -n $((16 << 20)) $DATA "$VOL" || die "$1: data differ"; }
# written CMD...: bytes that it, and the commit behind it, has the slow drive written
written() {
	local before
	before=$(drive_get slow write_bytes)
	"$@"
	vol_message commit
	bytes=$(($(drive_get slow write_bytes) - before))
}
on() { vol_message set clean_slots=1; }
off() { vol_message set clean_slots=0; }

up=(stream_kb=0 cache_mb=0 ahead_kb=0 janitor_high=1000 janitor_low=990 commit_ms=60000)
vol_drives 64 512
vol_format
vol_up "${up[@]}"
/usr/bin/python3 -ISc 'import sys; sys.stdout.write(("line %d of words that compress\n" % 7 * 600000)[:16 << 20])' > $DATA
dd if=$DATA of="$VOL" bs=1M oflag=direct status=none
for k in 0 1 2 3; do order $k append tier_down=1 codec=lz4; done
vol_message commit

# ---- up and down again ----

order 0 raise up=0-99
says up=100
state 0 100 1024 1
written order 0 append tier_down=1 codec=lz4
says dropped=100 down=0
check_eq "bytes written by what takes clean slots down" "$bytes" 0
off
order 0 raise up=0-99
says up=100
state 0 100 924 1
expect_fail "error=ENOENT" ask move 0 drop
same "out of their pack"
written order 0 append tier_down=1 codec=lz4
says dropped=0 down=100
[ "$bytes" -ge "$(word packed_bytes)" ] || die "100 blocks went down again by $bytes bytes written"
state 0 0 1024 2
same "down again"
pass "clean slots are dropped, others are written: $bytes bytes"

# ---- one beside the other ----

on
order 0 raise up=200-209
off
order 0 raise up=300-309
state 0 20 1014 2
order 0 append tier_down=1 codec=lz4
says dropped=10 down=10
state 0 0 1024 3
# a merge: who goes up is not in its pack, clean slots that are there stay what they are
on
order 0 raise up=400-409
off
order 0 merge tier_down=1 codec=lz4 up=400-419
says up=10
state 0 20 1014 1
same "after a merge"
on
order 0 merge tier_down=1 codec=lz4 up=400-429
says up=10
state 0 30 1014 1	# (those that had left it stay out)
off
# of the 1024 nothing is left in a pack: there is none
order 1 raise up=all
says up=1024
state 1 1024 0 0
order 2 merge tier_down=1 codec=lz4 up=all
says up=1024 packed_bytes=0
state 2 1024 0 0
same "without packs"
pass "clean slots and others in one region, raised, merged and taken down"

# ---- overwritten while it is on its way ----

drive slow error add read $(vol_layout slow data) count=1 hold
start ask move 3 raise up=500-509 > /dev/shm/order
job=$JOB
drive_wait_held slow
dd if=/dev/urandom of=/dev/shm/new bs=4k count=2 status=none
dd if=/dev/shm/new of="$VOL" bs=8k seek=$(((3072 + 505) * 4096)) count=1 oflag=direct,seek_bytes status=none
dd if=/dev/shm/new of=$DATA bs=8k seek=$(((3072 + 505) * 4096)) count=1 oflag=seek_bytes conv=notrunc status=none
drive slow release
wait "$job" || die "a raise that raced with a write failed: $(cat /dev/shm/order)"
said=$(cat /dev/shm/order)
says up=8 raced=2
state 3 10 1014 1
same "overwritten while they went up"
pass "what is written while it is promoted stays"

# ---- the power goes: before the commit it is packed, behind it in its slot ----

vol_message checkpoint
order 3 raise up=0-49
state 3 60 964 1
vol_cut
vol_check --full
vol_up "${up[@]}" clean_slots=0
# (any commit may have had the records)
held=$(ask show 3)
[[ $held == "present=10 fast=10 packed=1014 packs=1" || $held == "present=60 fast=60 packed=964 packs=1" ]] || die "after a power cut region 3 is $held"
same "after a power cut"
order 3 raise up=all
says raced=0
state 3 1024 0 0
vol_message commit
vol_cut
vol_check --full
vol_up "${up[@]}"
state 3 1024 0 0
same "after a power cut behind the commit"
vol_down
vol_check
pass "a power cut leaves them in the pack or in their slots"
rmdrive fast
rmdrive slow

# ---- without room for all ----

vol_drives 16 512
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --mirror none --journal 1M
vol_up "${up[@]}"
for k in 0 1 2 3; do
	dd if=$DATA of="$VOL" bs=4M skip=$k seek=$k count=1 oflag=direct status=none
	order $k append tier_down=1 codec=lz4
	vol_message commit
done
off
for k in 0 1 2 3; do
	order $k merge tier_down=1 codec=lz4 up=all
	vol_message commit
	got=$(word up)
	echo "region $k: $said"
	[ "$(word status)" != partly ] || break
	state $k 1024 0 0
done
{ [ "$(word status)" = partly ] && [ "$got" -lt 1024 ]; } || die "there was room for all of four regions"
# those that got none are in the new pack
state "$k" "$got" $((1024 - got)) 1
same "when there were not slots enough"
vol_down
vol_check
vol_up "${up[@]}"
same "opened again"
vol_down
pass "a merge packs what has found no slot: $((1024 - got)) blocks"
