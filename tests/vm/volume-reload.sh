#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What was set while a volume runs outlives a suspend and is in its table line; a table that does not fit the running volume is refused when it is loaded.
# vm: mode=functional memory=2G cpus=1 timeout=180
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

mkram fast 64
mkram slow 384
mkram meta 64
VOL_DRIVES=(/dev/ram/fast /dev/ram/slow /dev/ram/meta)
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --meta "${VOL_DRIVES[2]}"
vol_up stream_kb=0 commit_ms=500
tune() { cat "$(echo /sys/fs/terrace/*)/tune/$1"; }
resume() {
	dmsetup suspend --noudevsync vol
	dmsetup resume --noudevsync --noudevrules vol
}

vol_message set queue_if_full=1
echo 2 > "$(echo /sys/fs/terrace/*)/tune/avoid_tiers"
resume
check_eq "queue_if_full, set by message, after a suspend" "$(tune queue_if_full)" 1
check_eq "avoid_tiers, set in sysfs, after a suspend" "$(tune avoid_tiers)" 2
check_eq "options of the table line" "$(dmsetup table vol | grep -oE '[a-z_]+=[0-9]+' | sort | xargs)" \
	"avoid_tiers=2 commit_ms=500 queue_if_full=1 stream_kb=0"
# as one does who edits the line
dmsetup load vol --table "$(dmsetup table vol | sed 's/commit_ms=500/commit_ms=600/')"
resume
check_eq "avoid_tiers after a reload of the edited line" "$(tune avoid_tiers)" 2
check_eq "commit_ms of the edited line" "$(tune commit_ms)" 600
pass "what was set stays set"

# a line without them takes them back; what a new line says is acted on at once
vol_reload stream_kb=0
check_eq "avoid_tiers of a line without it" "$(tune avoid_tiers)" 0
check_eq "commit_ms of a line without it" "$(tune commit_ms)" 1000
dd if=/dev/urandom of=/dev/shm/data bs=1M count=40 status=none
dd if=/dev/shm/data of="$VOL" bs=1M oflag=direct status=none
vol_reload stream_kb=0 janitor_high=200 janitor_low=100
for ((i = 0; i < 60; i++)); do
	used=$(vol_tier 0 used)
	[ "${used%/*}" -ge $((64 * 256 / 5)) ] || break
	sleep 1
done
[ "$i" -lt 60 ] || die "the janitor was not told of its new marks: $used used a minute later: $(vol_status)"
pass "a line without an option takes it back"

# refused when loaded: the running volume and its table stay
read -ra words <<< "$(dmsetup table vol)"
refused() { # REASON WORD-NUMBER=WORD...
	local reason=$1 change load=("${words[@]}")
	shift
	dmesg -C
	for change; do load[${change%%=*}]=${change#*=}; done
	expect_fail "reload ioctl on vol .*failed" dmsetup load vol --table "${load[*]}"
	klog_has "$reason" || die "no such reason: $reason"
	resume
	cmp -n $((40 << 20)) /dev/shm/data "$VOL"
}
refused "Metadata device is not the running volume's" 3=-
refused "Device of a tier is not the running volume's" 8=missing
klog_has "tier 1 is missing in the table, another device in the running volume" || die "which tier is not told"
refused "The table is read-only, the running volume is not" "11=$((words[11] + 1)) read_only"
expect_fail "reload ioctl on vol .*failed" dmsetup load --readonly vol --table "${words[*]}"
# a copy of a drive, label and all, is another device
mkram copy 384
dd if=/dev/ram/slow of=/dev/ram/copy bs=1M oflag=direct status=none
refused "Device of a tier is not the running volume's" 8=/dev/ram/copy
pass "tables that do not fit are refused when they are loaded"

# in place or not: as the new line says
vol_reload atomic=no:0
new=$(vol_get new)
dd if=/dev/shm/data of="$VOL" bs=4k count=8 oflag=direct status=none
[ "$(vol_get new)" -ge $((new + 8)) ] || die "atomic=no:0 of a reloaded line is not acted on"
vol_reload stream_kb=0
new=$(vol_get new)
dd if=/dev/shm/data of="$VOL" bs=4k count=8 oflag=direct status=none
check_eq "new blocks by overwriting, without atomic=no" "$(vol_get new)" "$new"
cmp -n $((40 << 20)) /dev/shm/data "$VOL"
vol_down
vol_check
pass "what is overwritten in place follows the line"
