#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Whichever write of a growing volume or tier the power goes at: the old size or the new, never a mix, never less than was acknowledged.
# vm: mode=functional memory=3G timeout=900 build=oracle long
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

in_ram dmsetup		# it is asked a lot
dmsetup() { from_ram dmsetup "$@"; }

MIB=2048	# sectors

at() { cat /sys/fs/terrace/*/"$1"; }
size() { echo $(($(at virtual_blocks) * 8)); }
tier0() { at tier0/blocks; }
tier1() { at tier1/blocks; }
sum() { dd if="$VOL" bs=1M iflag=direct status=none | md5sum; }

# Torn at 512 bytes: half a label, half a superblock.
PARAMS=(lbs=4096 group=pc atom=512)
setup() {
	vol_drives 64 448 atom=512 seed="$1"
	vol_format --tier "optane:slots:noatomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:noatomic=${VOL_DRIVES[1]}" --journal 1M --size 16M --mirror none
	vol_up
	dd if=/dev/urandom of="$VOL" bs=64k count=64 oflag=direct status=none
	sync "$VOL"
	redrive fast ram 128 "${PARAMS[@]}"
	redrive slow ram 576 "${PARAMS[@]}"
}

# cut_at DRIVE N WHAT MESSAGE...: fails when the message makes fewer writes there
cut_at() {
	local drive=$1 n=$2 what=$3 acked=0 reached=0 old new content
	shift 3
	setup "$n"
	content=$(sum)
	old=$($what)
	drive "$drive" arm write "$n"
	if vol_message "$@" 2> /dev/null; then acked=1; fi
	if [ "$(drive_get "$drive" state)" = off ]; then
		reached=1
	else
		drive "$drive" disarm
		drive_cut "$drive"
	fi
	dmr vol
	drive_revive "$drive"
	(vol_check) > /dev/shm/checked || { cat /dev/shm/checked; die "$*, cut at write $n to $drive"; }
	vol_up
	new=$($what)
	check_eq "content, cut at write $n to $drive in $*" "$(sum)" "$content"
	if [ "$new" = "$old" ]; then
		old_seen=$((old_seen + 1))
		[ $acked = 0 ] || die "$* was acknowledged, cut after it (write $n to $drive), and is lost"
		vol_message "$@"
		new=$($what)
	else
		new_seen=$((new_seen + 1))
	fi
	case $what in
	size) check_eq "size" "$new" $((100 * MIB)) ;;
	tier0) check_eq "blocks of tier 0" "$new" $((old + 64 * 256)) ;;
	tier1) check_eq "blocks of tier 1" "$new" $((old + 128 * 256)) ;;
	esac
	vol_down
	[ $reached = 1 ] || vol_check
	rmdrive fast
	rmdrive slow
	[ $reached = 1 ]
}

# each LEAST DRIVE WHAT MESSAGE...: at every write, and after the last one
each() {
	local least=$1 n=1
	shift
	old_seen=0 new_seen=0
	while cut_at "$1" $n "${@:2}"; do n=$((n + 1)); done
	pass "${*:3}: cut at each of $((n - 1)) writes to $1: $old_seen times the old size, $new_seen times the new"
	[ $n -gt "$least" ] || die "${*:3}: only $((n - 1)) writes to $1"
}
each 2 slow tier1 grow_tier 1
each 5 fast tier0 grow_tier 0
each 3 fast size resize $((100 * MIB))
