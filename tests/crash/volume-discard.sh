#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Power fails while a range discard empties strewn regions and the journal is full: the next start makes room by itself, nothing comes back, nothing leaks. Again and again while trims are under way: nothing that is mapped was trimmed. No checkpoint forgets a range that is not emptied, or a region that changes while its page is written.
# vm: mode=functional memory=3G timeout=600 build=oracle
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
need_cmd fio

REGIONS=36		# 1024 records each to empty them; the journal holds 32256
BYTES=$((REGIONS << 22))
BEHIND=$((BYTES + (8 << 22)))	# a block that no discard covers
SUPER="128 16"		# sectors of the two superblocks

vol_drives 256 256
# out of place: an overwrite leaves a record
vol_format --tier "optane:slots:noatomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:noatomic=${VOL_DRIVES[1]}" --journal 1M
vol_up
used() { vol_status | tr ' ' '\n' | awk -F'[=/]' '$1 == "used" { n += $2 } END { print n }'; }
at() { dd if="$VOL" bs=4k iflag=count_bytes,skip_bytes,direct skip="$1" count="$2" status=none; }
put() { head -c 4096 /dev/zero | tr '\0' "$2" | dd of="$VOL" bs=4k oflag=direct,seek_bytes seek="$1" status=none; }
holds() { at "$1" 4096 | cmp -n 4096 - <(head -c 4096 /dev/zero | tr '\0' "$2") || die "block at $1 is not '$2'"; }
# within SECONDS CMD...: in the background, so that even what sleeps for ever is noticed
within() {
	local i limit=$1 job
	shift
	"$@" &
	job=$!
	for ((i = 0; i < limit * 5; i++)); do
		kill -0 "$job" 2> /dev/null || { wait "$job"; return; }
		sleep 0.2
	done
	dmsetup status --noflush vol
	echo w > /proc/sysrq-trigger
	dmesg | tail -150
	die "not done after $limit s: $*"
}

# every second block is written again, elsewhere: no two neighbours lie together
empty=$(used)
fio_ --name=all --filename="$VOL" --size="$BYTES" --rw=write --bs=1M --iodepth=4 --ioengine=libaio --direct=1 > /dev/null
fio_ --name=strew --filename="$VOL" --size="$BYTES" --io_size=$((BYTES / 2)) --rw=write:4k --bs=4k --iodepth=64 --ioengine=libaio --direct=1 > /dev/null
put "$BEHIND" b
vol_message checkpoint
# a record of each region that the pages do not have
for ((i = 0; i < REGIONS; i++)); do put $(((i << 22) + 8192)) n; done
sync "$VOL"

# the checkpoint that would make room hangs at its superblock; the discard fills the journal
# shellcheck disable=SC2086 # two words
drive fast error add write $SUPER delay=60s status=ok
blkdiscard -o 0 -l "$BYTES" "$VOL" & discard=$!
ring=$(vol_get journal)
for ((i = 0; i < 100; i++)); do
	sleep 0.2
	[ "$(vol_get journal)" != "$ring" ] || [ "$i" -lt 10 ] || break
	ring=$(vol_get journal)
done
drive_cut fast
wait "$discard" && die "the discard ended before the cut"
dmr vol
drive fast error clear
drive_revive fast
klog_allow 'drive (fast|slow)'
vol_check
pass "cut with $ring of the journal in use"

within 60 vol_up
within 60 vol_message checkpoint
for ((i = 0; i < REGIONS; i += 5)); do at $((i << 22)) 65536 | cmp -n 65536 - /dev/zero; done
holds "$BEHIND" b
put 4096 x
sync "$VOL"
pass "room was made"

# what was discarded is free, at the latest after another checkpoint
for ((i = 0; i < 40; i++)); do
	[ "$(used)" -gt $((empty + 2)) ] || break
	sleep 0.5
	within 60 vol_message checkpoint
done
check_eq "blocks in use" "$(used)" $((empty + 2))
vol_cut
vol_up
holds 4096 x
holds "$BEHIND" b
at 8192 65536 | cmp -n 65536 - /dev/zero
within 60 vol_down
vol_check
pass "nothing came back, nothing leaks"

# the power goes again and again while what was discarded and overwritten is trimmed: nothing that is mapped was
rmdrive fast
rmdrive slow
vol_drives 64 320 atom=4096
vol_format --tier "optane:slots:noatomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:noatomic=${VOL_DRIVES[1]}" --journal 1M
vol_up
oracle_new 3
vol_down
# how many cuts and trims 15 seconds have depends on the machine
for ((i = 0; i < 20 && $(drive_get fast discards) <= 10; i++)); do
	oracle cuts --ledger "$LEDGER" --device "$VOL" --volume vol --table "$(vol_table trim_ms=1 commit_ms=50 stream_kb=256)" --drives fast,slow --ops 60 --suspend \
		--weights write=40,fua=4,read=10,discard=30,flush=10 \
		--check "LD_LIBRARY_PATH=$RAM/lib $RAM/terracectl check --full ${VOL_DRIVES[*]} > /dev/shm/checked 2>&1" \
		--seconds 15 --seed $((${SEED:-1} + i)) > /dev/shm/cuts 2>&1 || { cat /dev/shm/cuts; tail -20 /dev/shm/checked; die "trims and power cuts"; }
	dmr vol
done
[ "$(drive_get fast discards)" -gt 10 ] || die "only $(drive_get fast discards) trims: $(cat /dev/shm/cuts)"
vol_check
pass "trims and power cuts: $(tail -1 /dev/shm/cuts), $(drive_get fast discards) discards of the fast drive"

# ---- what a checkpoint may not forget; the drive holds the pages meanwhile ----

rmdrive fast
rmdrive slow
vol_drives 64 320
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --journal 1M --mirror none
pages=$(vol_layout fast pages)
vol_up commit_ms=60000

# a region that changes while its page is being written
put 0 a
drive fast error add write "$pages" hold
vol_message checkpoint & checkpoint=$!
drive_wait_held fast
put 4096 b
sync "$VOL"
drive fast error clear
drive fast release
wait $checkpoint
vol_message checkpoint
vol_cut
vol_up commit_ms=60000
holds 0 a
holds 4096 b
pass "a region that changed while its page was written is written again"

# a range discard whose regions are not loaded yet
for ((i = 0; i < 20; i++)); do put $((i << 22)) c; done
put "$BEHIND" c
vol_down
vol_up commit_ms=60000
put "$BEHIND" d			# the directory is in memory from now on
drive fast error add read "$pages" hold
blkdiscard -f -o 0 -l $((20 << 22)) "$VOL"	# -f: without looking what is there
sync "$VOL"
drive_wait_held fast
for value in e f; do
	put "$BEHIND" $value
	sync "$VOL"
	within 60 vol_message checkpoint
done
drive_cut fast
dmr vol
drive fast error clear
drive_revive fast
vol_up commit_ms=60000
for ((i = 0; i < 20; i++)); do at $((i << 22)) 4096 | cmp -n 4096 - /dev/zero || die "region $i came back after its discard was flushed"; done
holds "$BEHIND" f
vol_down
vol_check
pass "a range discard outlives the checkpoints before its regions are empty"
