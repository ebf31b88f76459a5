#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A metadata copy that fails is dropped, never believed again, and nothing that was promised is lost with it.
# vm: mode=functional cpus=1 memory=3G timeout=600 build=oracle
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}

# two fast tiers: the second holds the synchronous mirror
setup() {
	mkdrive fast ram 64 lbs=4096 group=pc
	mkdrive next ram 64 lbs=4096 group=pc
	mkdrive slow ram 256 lbs=4096 group=pc
	VOL_DRIVES=(/dev/mapper/fast /dev/mapper/next /dev/mapper/slow)
	vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "nvme:slots:atomic=${VOL_DRIVES[1]}" \
		--tier "hdd:shelves:atomic=${VOL_DRIVES[2]}" --journal 1M
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
