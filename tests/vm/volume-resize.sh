#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A volume and its tiers grow under load and are filled; what cannot be is refused with the reason and changes nothing.
# vm: mode=functional memory=3G timeout=900 build=oracle long
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

in_ram dmsetup		# it is asked a lot
dmsetup() { from_ram dmsetup "$@"; }

MIB=2048	# sectors

# setup SIZE [DRIVE-PARAM...]: a volume of that size on drives of 64 and 448 MiB
setup() {
	local size=$1
	shift
	vol_drives 64 448 "$@"
	vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --journal 1M --size "$size"
	GROWN=("$@")
}
teardown() {
	rmdrive fast
	rmdrive slow
}
grow_drive() { redrive "$1" ram "$2" lbs=4096 group=pc "${GROWN[@]}"; }

# the kernel's view, while the volume is live
at() { cat /sys/fs/terrace/*/"$1"; }
size() { echo $(($(at virtual_blocks) * 8)); }
blocks() { at "tier$1/blocks"; }

table_size() { VOL_TABLE="0 $1 ${VOL_TABLE#0 * }"; }
# to_size SECTORS: message, longer table
to_size() {
	vol_message resize "$1"
	check_eq "size" "$(size)" "$1"
	table_size "$1"
	vol_reload
	check_eq "size of the device" "$(sectors "$VOL")" "$1"
}
sum() { dd if="$VOL" bs=1M iflag=direct status=none | md5sum; }
put() { dd if=/dev/urandom of="$VOL" bs=64k seek=$(($1 * 16)) count=$(($2 * 16)) oflag=direct status=none; }

# refuse WHY MESSAGE...: nothing changes
refuse() {
	local why=$1 before
	shift
	before="$(size) $(blocks 0) $(blocks 1) $(at generation)"
	expect_fail . vol_message "$@"
	klog_has "vol: .*$why" || die "$*: the log does not say '$why': $(dmesg | tail -1)"
	check_eq "sizes and generation after $*" "$(size) $(blocks 0) $(blocks 1) $(at generation)" "$before"
}

# ---- a tree of one page gets its first directory ----
setup 4M
vol_up
put 0 4
to_size $((40 * MIB))
put 30 8
before=$(sum)
vol_down
vol_check
vol_up
check_eq "content" "$(sum)" "$before"
pass "from one region to ten"

# ---- refusals ----
refuse 'resize fast: not a number' resize fast
refuse 'not a multiple of 8' resize $((60 * MIB + 1))
refuse 'are not more than the' resize $((40 * MIB))
refuse 'are not more than the' resize $((39 * MIB))
refuse 'the tiers have room for' resize $((1000 * MIB))
refuse 'the tiers are 0 to 1' grow_tier 2
refuse 'the tiers are 0 to 1' grow_tier first
refuse 'the device of tier 0 has room for .* not more than' grow_tier 0
refuse 'the device of tier 1 has room for .* not more than' grow_tier 1
table_size $((48 * MIB))
expect_fail "" dmsetup load vol --table "$(vol_table)"
klog_has "Length is beyond the volume's size" || die "a table that is too long: $(dmesg | tail -1)"
table_size $((40 * MIB))
dmsetup suspend --noudevsync vol
refuse 'the volume is suspended' resize $((60 * MIB))
dmsetup resume --noudevsync --noudevrules vol
vol_down
vol_up read_only
refuse 'the volume is read-only' resize $((60 * MIB))
refuse 'the volume is read-only' grow_tier 0
vol_down
vol_check
teardown
pass "refusals change nothing"

# ---- under load: deeper trees, a last chunk that is opened, all of it in use ----
setup 64M
vol_up stream_kb=2048 commit_ms=100
DEV="$VOL" ENGINE=libaio SEED=1 SIZE=48m OFFSET=0 fio_ --output-format=terse "$TERRACE_TREE/fio-jobs/verify-random.fio" > /dev/shm/fio 2>&1 &
load=$!
to_size $((100 * MIB))
fast=$(blocks 0)
slow=$(blocks 1)
grow_drive fast 160
vol_message grow_tier 0
check_eq "blocks of tier 0" "$(blocks 0)" $((fast + 96 * 256))
grow_drive slow 832
vol_message grow_tier 1
check_eq "blocks of tier 1" "$(blocks 1)" $((slow + 384 * 256))
to_size $((520 * MIB))
put 96 64
put 500 20
wait $load || { tail -20 /dev/shm/fio; die "fio failed while the volume grew"; }
! grep -qi 'verify:' /dev/shm/fio || { cat /dev/shm/fio; die "fio: verify errors while the volume grew"; }
put 200 120	# more than the fast tier had
[ "$(at tier0/used_blocks)" -gt "$fast" ] || die "tier 0 uses $(at tier0/used_blocks) blocks, of old it had $fast"
before=$(sum)
vol_message checkpoint
vol_cut
vol_check
vol_up
check_eq "content" "$(sum)" "$before"
check_eq "sizes" "$(size) $(blocks 0) $(blocks 1)" "$((520 * MIB)) $((fast + 96 * 256)) $((slow + 384 * 256))"
vol_down
vol_check
teardown
pass "grown under load, filled, cut, opened again"
