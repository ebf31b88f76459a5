#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A metadata copy that fails is dropped, never believed again, and nothing that was promised is lost with it. Losing the fastest drive loses its blocks, to the block, and no others.
# vm: mode=functional cpus=1 memory=3G timeout=600 build=oracle,orders
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}

# setup [FORMAT-ARG...]: two fast tiers: the second holds the synchronous mirror
setup() {
	mkdrive fast ram 64 lbs=4096 group=pc
	mkdrive next ram 64 lbs=4096 group=pc
	mkdrive slow ram "${SLOW_MB:-256}" lbs=4096 group=pc
	VOL_DRIVES=(/dev/mapper/fast /dev/mapper/next /dev/mapper/slow)
	vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "nvme:slots:atomic=${VOL_DRIVES[1]}" \
		--tier "hdd:shelves:atomic=${VOL_DRIVES[2]}" --journal 1M "$@"
}

teardown() {
	rmdrive fast
	rmdrive next
	rmdrive slow
}

work() { oracle_run --seed "$SEED" --ops 150 --depth 4 --max-kb 64 --max-discard-kb 256 "$@"; }

# stale DRIVE OTHER: what DRIVE has of the metadata is old; without the other one it is not believed.
# This is not in the metadata of either: the labels have it.
stale() {
	local whole=$VOL_TABLE
	klog_expect 'the labels say that the volume went on without it'
	klog_expect 'Only a stale metadata copy can be read'
	klog_allow "drive $2"
	drive "$2" error add read 128 16	# both superblocks
	expect_fail '' vol_up
	drive "$2" error clear
	VOL_TABLE=${whole/\/dev\/mapper\/$2/missing}
	[[ $VOL_TABLE = *" missing "* ]] || die "no missing tier in: $VOL_TABLE"
	expect_fail '' vol_up
	expect_fail 'its metadata is stale .*went on without it, with a copy that is not here' \
		terracectl check "/dev/mapper/$1" /dev/mapper/slow
	VOL_TABLE=$whole
	vol_up
	oracle_clean
	vol_down
	pass "the old metadata on $1 are not believed without those on $2"
}

setup
vol_up commit_ms=100
check_eq "mirror" "$(vol_get mirror)" sync
oracle_new "$SEED"
work
vol_message checkpoint
work
vol_cut
vol_check
vol_up commit_ms=100
check_eq "mirror after a power cut" "$(vol_get mirror)" sync
oracle_crash
pass "both copies survive a power cut"

# the mirror's drive fails every write to its metadata
klog_expect 'metadata there is no longer kept up'
klog_allow 'drive next'
work
drive next error add write 128 4000
work
vol_message commit
check_eq "mirror" "$(vol_get mirror)" degraded
check_eq "mode" "$(vol_get mode)" write
oracle_clean --touched
drive next error clear
work				# only the first copy has it
klog_expect 'is stale .*: not used'
vol_cut
vol_up commit_ms=100
oracle_crash
check_eq "mirror that was left behind" "$(vol_get mirror)" degraded
work
vol_down
vol_up
oracle_clean
vol_down
pass "a mirror that failed is left behind, and not believed later"
stale next fast
teardown

# the same with the primary
setup
vol_up commit_ms=100
oracle_new "$SEED"
work
drive fast error add write 128 4000
klog_allow 'drive fast'
work
vol_message commit
check_eq "mirror" "$(vol_get mirror)" degraded
check_eq "mode" "$(vol_get mode)" write
drive fast error clear
work
vol_cut
vol_up commit_ms=100
oracle_crash
work
vol_down
vol_up
oracle_clean
vol_down
pass "the mirror takes over from a primary that failed"
stale fast next
teardown

# ---- the fastest drive is gone, the mirror is current: what lay on it alone is lost, and nothing else ----

PATH=$TERRACE_TREE/build:$PATH in_ram orders
UP=(stream_kb=64 commit_ms=60000 janitor_high=1000 janitor_low=990)
orders_() { from_ram orders /dev/terrace/vol "$@"; }
lies_only() { orders_ only "$1" > "$2" || die "what lies on tier $1 alone cannot be listed"; }
count() { awk '{ n += $2 } END { print n + 0 }' "$1"; }
# each block that a list names
named() { awk '{ for (k = 0; k < $2; k++) print $1 + k }' "$1" | sort; }
some() { work --blocks 8192 --max-discard-kb 64 "$@"; }
order() { orders_ move "$@" > /dev/shm/order || die "order $*: $(cat /dev/shm/order)"; }
# something of everything: on both tiers of slots, in the journal only, packed, with clean copies on the first, loose
spread() {
	some --hot 0 --weights write=8,fua=1
	vol_message set avoid_tiers=1
	some --hot 0 --weights write=8,fua=1
	vol_message set avoid_tiers=0
	for at in 0 1 2; do order $at append codec=lz4 tier_down=2 up=0-300; done
	order 1 raise tier_up=0 up=0-800
	vol_message checkpoint
	some --hot 0 --ops 40
}
# lost FROM WHAT: what gives EIO is what is listed, now and in FROM; all else is as it must be
lost() {
	lies_only 0 /dev/shm/listed
	oracle_clean --keep --eio /dev/shm/eio > /dev/shm/verified || { cat /dev/shm/verified; die "$2: what is on other tiers"; }
	cmp -s /dev/shm/listed /dev/shm/eio || { diff /dev/shm/listed /dev/shm/eio | head -20; die "$2: what gives EIO (>) is not what is listed (<)"; }
	cmp -s "$1" /dev/shm/eio || { diff "$1" /dev/shm/eio | head -20; die "$2: what gives EIO (>) is not what lay on tier 0 alone (<)"; }
}
for stop in cut clean; do
	SLOW_MB=448 setup --size 64M
	vol_up "${UP[@]}"
	check_eq "mirror" "$(vol_get mirror)" sync
	oracle_new "$SEED"
	spread
	sync "$VOL"
	for tier in 0 1 2; do
		lies_only $tier /dev/shm/only.$tier
		[ "$(count /dev/shm/only.$tier)" -ge 300 ] || die "only $(count /dev/shm/only.$tier) blocks lie on tier $tier alone"
	done
	if [ $stop = cut ]; then vol_cut; else vol_down; fi
	drive fast dead on
	whole=$VOL_TABLE
	VOL_TABLE=${whole/\/dev\/mapper\/fast/missing}
	vol_up "${UP[@]}"
	[ $stop = clean ] || klog_has 'replayed [1-9][0-9]* records in' || die "nothing was replayed from the mirror"
	check_eq "tier 0 missing" "$(vol_tier 0 missing)" yes
	check_eq "mode" "$(vol_get mode)" write
	[ "$(vol_get mirror)" != sync ] || die "a mirror without its first copy is called sync"
	lost /dev/shm/only.0 "after a stop ($stop)"
	gone=$(count /dev/shm/eio)
	pass "tier 0 gone, stop: $stop: its $gone blocks are errors and are listed, $(count /dev/shm/only.1) on tier 1 and $(count /dev/shm/only.2) on tier 2 are exact"

	# it goes on: what is written now goes elsewhere, over what was lost as well
	some --eio-ok
	sync "$VOL"
	lies_only 0 /dev/shm/left
	left=$(count /dev/shm/left)
	if [ "$left" = 0 ] || [ "$left" -ge "$gone" ]; then die "of $gone lost blocks $left are lost after some were written over"; fi
	comm -13 <(named /dev/shm/only.0) <(named /dev/shm/left) > /dev/shm/more
	[ ! -s /dev/shm/more ] || die "writes lost more: $(head -5 /dev/shm/more | tr '\n' ' ')"
	check_eq "mode" "$(vol_get mode)" write
	lost /dev/shm/left "after writes"
	vol_cut
	vol_up "${UP[@]}"
	lost /dev/shm/left "after a power cut without tier 0"
	pass "it is written without tier 0, $((gone - left)) lost blocks among them, and survives a power cut"

	# the drive comes back: its metadata are old, its blocks are not
	vol_down
	drive fast dead off
	VOL_TABLE=$whole
	vol_up "${UP[@]}"
	check_eq "tier 0 missing" "$(vol_tier 0 missing)" no
	oracle_clean
	vol_down
	vol_check
	teardown
	pass "with its drive again all blocks are there, of those written meanwhile the new values"
done

# ---- the labels take note before anything is acknowledged that the mirror lacks ----

put() { head -c 4096 /dev/zero | tr '\0' "$2" | dd of="$VOL" bs=4k oflag=direct conv=fsync,notrunc seek="$1" status=none; }
get() { dd if="$VOL" bs=4k iflag=direct skip="$1" count=1 status=none | head -c 1 | tr '\0' 0; }
setup
klog_allow 'drive slow'
vol_up commit_ms=60000
drive next error add write 128 4000
for d in fast slow; do drive $d error add write 0 16 hold; done
start put 5 b
for ((i = 0; i < 50; i++)); do
	[ "$(drive_get fast held)" = 0 ] || break
	kill -0 "$JOB" 2> /dev/null || break
	sleep 0.1
done
sleep 1
acked=0
kill -0 "$JOB" 2> /dev/null || { acked=1; wait "$JOB" || die "the write failed before the power did"; }
drive_cut fast
wait "$JOB" || true
dmr vol
drive_revive fast
for d in fast next slow; do drive $d error clear; done
whole=$VOL_TABLE
VOL_TABLE=${whole/\/dev\/mapper\/fast/missing}
if vol_up; then		# refused would do as well: then it is noted
	# with its place on the missing drive it is an error, which is no old value
	said=$(get 5 2> /dev/null) || true
	[ $acked = 0 ] || [ "$said" = b ] || [ ! "$said" ] || die "block 5 was acknowledged, the mirror that nobody calls stale has '$said'"
	vol_down
fi
VOL_TABLE=$whole
[ $acked = 0 ] || die "a write was acknowledged while no label could say that the mirror lacks it"
pass "what a dropped copy lacks is noted before it is acknowledged"
teardown

# ---- no label can take note: the survivor's superblock says that it is alone ----

setup
vol_up commit_ms=60000
put 0 a
generation=$(vol_get generation)
for d in fast next slow; do drive $d error add write 0 16; done
drive next error add write 128 4000
put 5 b
for ((i = 0; i < 100 && $(vol_get generation) == generation; i++)); do sleep 0.1; done
check_eq "checkpoints since the mirror failed" $(($(vol_get generation) - generation)) 1
vol_cut
for d in fast next slow; do drive $d error clear; done
vol_up commit_ms=60000
check_eq "mirror that lacks the last checkpoint's pages, and no label says so" "$(vol_get mirror)" degraded
check_eq "block 5" "$(get 5)" b
vol_down
pass "a superblock that is alone is enough"
