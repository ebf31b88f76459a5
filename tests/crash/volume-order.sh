#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What ends while a flush is under way needs the next one; a start does not build on what is only in a drive's cache; a place is not taken again before the record that frees it; what cleaning moved is as durable as it was.
# vm: mode=functional cpus=1 memory=2G timeout=300 build=orders
#
# Each case is an order of two steps that a power cut must not find swapped; the
# drives take their time, or hold a command, so that the other side gets its turn.
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

PATH=$TERRACE_TREE/build:$PATH in_ram orders dmsetup
dmsetup() { from_ram dmsetup "$@"; }
klog_allow 'drive (fast|slow|meta)'
UP=(commit_ms=60000 janitor_high=1000 janitor_low=990 stream_kb=64)

# put BLOCK CHAR [COUNT]; a flush is the caller's business
put() { head -c $((4096 * ${3:-1})) /dev/zero | tr '\0' "$2" | dd of="$VOL" bs=4096 iflag=fullblock oflag=direct seek="$1" status=none; }
# wide BLOCK CHAR MIB: the same in large writes
wide() { head -c $(($3 << 20)) /dev/zero | tr '\0' "$2" | dd of="$VOL" bs=1M iflag=fullblock oflag=direct,seek_bytes seek=$(($1 * 4096)) status=none; }
# letters BLOCK COUNT: which there are
letters() { dd if="$VOL" bs=4096 iflag=direct skip="$1" count="$2" status=none | tr '\0' 0 | fold -w 4096 | cut -c1 | sort -u | tr -d '\n'; }
fresh() {
	local d
	[ ${#VOL_DRIVES[@]} = 0 ] || { dmr vol; for d in "${VOL_DRIVES[@]}"; do rmdrive "${d##*/}"; done; }
	vol_models 1 "$@" survive=0 tear=0
}
power_fails() {
	drive_cut fast
	dmr vol
	drive_revive fast
	vol_up "${UP[@]}"
}
# the machine goes, and comes back; what is in the drives' caches is still there, and still not durable
machine_restarts() {
	local d
	for d in "${VOL_DRIVES[@]}"; do drive "${d##*/}" dead on; done
	dmr vol
	for d in "${VOL_DRIVES[@]}"; do drive "${d##*/}" dead off; done
	vol_up "${UP[@]}"
}

fresh fast:32 slow:512
# no lazy mirror, whose writing flushes the slow drive when it likes
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --mirror none
vol_up "${UP[@]}"

# ---- a write that ends while a flush is under way ----

put 0 a
sync "$VOL"
put 0 b
flushes=$(drive_get fast flushes)
drive fast error add flush 0 0 delay=5s status=ok count=1
start sync "$VOL"
for ((i = 0; i < 50 && $(drive_get fast flushes) == flushes; i++)); do sleep 0.1; done
[ "$(drive_get fast flushes)" != "$flushes" ] || die "no flush reached the drive"
put 0 c
kill -0 "$JOB" 2> /dev/null || die "too slow a machine: the write ended after the flush"
wait "$JOB"
sync "$VOL"
power_fails
check_eq "block 0" "$(letters 0 1)" c
pass "what ended while a flush was under way is flushed by the next"

# ---- who comes while a flush that went straight to the drive is under way ----

# held_flush BLOCK CHAR: written in place, its flush is under way and does not end
held_flush() {
	sync "$VOL"		# all drives; from here on it means one of them
	put "$1" "$2"
	drive fast error add flush 0 0 count=1 hold
	start eval "sync $VOL 2> /dev/null || true"
	drive_wait_held fast
}
for block in 0 1; do put $block a; done
sync "$VOL"
held_flush 0 d
sync "$VOL"			# has to wait for that one's data as well
drive fast error clear
drive_cut fast
wait "$JOB" || true
dmr vol
drive_revive fast
vol_up "${UP[@]}"
check_eq "block 0" "$(letters 0 1)" d
pass "a flush does not end before the data of one that is still under way are down"

# a fresh place is written, a flush begins, and its record is committed meanwhile: by hand
held_flush 0 e
put 2 n
dmsetup message vol 0 commit
drive fast error clear
drive_cut fast
wait "$JOB" || true
dmr vol
drive_revive fast
vol_up "${UP[@]}"
check_eq "block 2" "$(letters 2 1)" n
pass "a commit flushes what its records point to beside a flush that is still under way"

drive fast error add flush 0 0 count=1
put 1 f
! sync "$VOL" 2> /dev/null || die "a flush that failed ended well"
drive fast error clear
sync "$VOL"
power_fails
check_eq "block 1" "$(letters 1 1)" f
pass "after a flush that failed the next one brings the data down"

# ---- cleaning a shelf of a drive that does not flush ----

wide 2048 k 4
sync "$VOL"
vol_down			# its shelf is closed by that
vol_up "${UP[@]}"
drive slow error add flush 0 0
status=0
from_ram orders /dev/terrace/vol move 0 clean tier_down=1 > /dev/shm/order 2>&1 || status=$?
for ((i = 0; i < 5; i++)); do timeout 10 dmsetup message vol 0 commit || true; done
drive slow error clear
power_fails
check_eq "blocks 2048-3071 (the order: $(cat /dev/shm/order))" "$(letters 2048 1024)" k
[ $status != 0 ] || die "cleaning a shelf of a drive that does not flush went well: $(cat /dev/shm/order)"
pass "what cleaning moves stays durable"

# ---- a place that is freed by a round that does not arrive ----

fresh fast:24 slow:256
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --journal 1M --mirror none
journal=$(vol_layout fast journal)
UP+=(stream_kb=0)
vol_up "${UP[@]}"
wide 0 a 23
sync "$VOL"
used=$(vol_tier 1 used)
[ "${used%/*}" != 0 ] || die "23 MiB did not fill the fast drive: $(vol_status)"
# all but the record that does not arrive is there after the cut
for d in fast slow; do drive $d set survive=100; done
# shellcheck disable=SC2086 # two words
drive fast error add write $journal hold
blkdiscard -f -o 0 -l $((4 << 20)) "$VOL"
start eval "dmsetup message vol 0 commit 2> /dev/null || true"
drive_wait_held fast
wide 16384 n 4
drive_cut fast
wait "$JOB" || true
drive fast error clear
dmr vol
drive_revive fast
vol_up "${UP[@]}"
said=$(letters 0 1024)
[[ $said = a || $said = 0 || $said = 0a ]] || die "blocks that were discarded, but not for good, hold '$said'"
pass "a place is taken again only when the record that frees it is durable"

# ---- starting upon what is in a cache only; metadata on a drive of their own ----

fresh meta:16 fast:32 slow:256
vol_format --meta /dev/mapper/meta --tier optane:slots:atomic=/dev/mapper/fast --tier hdd:shelves:atomic=/dev/mapper/slow --journal 1M --mirror none
journal=$(vol_layout meta journal)
vol_up "${UP[@]}"
put 0 a
sync "$VOL"
put 0 b
machine_restarts
check_eq "block 0 after a restart" "$(letters 0 1)" b
sync "$VOL"
power_fails
check_eq "block 0" "$(letters 0 1)" b
pass "a flush after a restart covers what was written before it"

put 1 c
# shellcheck disable=SC2086 # two words
drive meta error add write $journal delay=3s status=ok
fuas=$(drive_get meta fuas)
start sync "$VOL"
for ((i = 0; i < 50 && $(drive_get meta fuas) == fuas; i++)); do sleep 0.1; done
drive meta error clear
for d in meta fast slow; do drive "$d" dead on; done
wait "$JOB" || true
dmr vol
for d in meta fast slow; do drive "$d" dead off; done
vol_up "${UP[@]}"
check_eq "block 1 after a restart" "$(letters 1 1)" c
put 2 d
sync "$VOL"
power_fails
check_eq "block 2" "$(letters 2 1)" d
pass "a journal is not built upon a block that is only in a cache"
