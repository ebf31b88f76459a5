#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every single allocation of creating, reloading, resizing, tuning, ordering, evacuating and removing a volume fails once: an error or none, the same content.
# vm: mode=functional memory=2G timeout=600 kernel=debug build=failnth,oracle,orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/faults/faults.bash"

PATH=$TERRACE_TREE/build:$PATH in_ram dmsetup orders
dmsetup() { from_ram dmsetup "$@"; }
orders() { from_ram orders "$@"; }

sum() { dd if="$VOL" bs=1M count=16 iflag=direct status=none | md5sum; }
intact() { check_eq "content" "$(sum)" "$SUM"; }
# most of the time a part of it will do
look() {
	[ $(($1 % 10)) != 0 ] || { intact; return; }
	dd if="$VOL" bs=1M count=1 skip=$(($1 % 15)) iflag=direct status=none | cmp - -i "0:$(($1 % 15 << 20))" -n $((1 << 20)) /dev/shm/content
}
exists() { dmsetup info vol > /dev/null 2>&1; }

# Drives that need no memory once they are full, or in a thread of their own: what fails is ours.
modprobe brd rd_nr=2 rd_size=$((64 << 10))
truncate -s 512M /dev/shm/slow
VOL_DRIVES=(/dev/ram0 /dev/ram1 "$(losetup -f --show /dev/shm/slow)")
for drive in /dev/ram0 /dev/ram1; do dd if=/dev/zero of=$drive bs=1M count=64 oflag=direct status=none; done
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "nvme:slots:atomic=${VOL_DRIVES[1]}" \
	--tier "hdd:shelves:atomic=${VOL_DRIVES[2]}" --journal 1M --size 160M
vol_up
dd if=/dev/urandom of="$VOL" bs=1M count=16 oflag=direct status=none
vol_down
# From now on the second metadata copy is old: a drive that was away. Who takes it reads what was there before.
dd if="${VOL_DRIVES[1]}" of=/dev/shm/old bs=1M iflag=direct status=none
vol_up
seq 1800000 > /dev/shm/content		# compresses
truncate -s 12M /dev/shm/content
truncate -s 16M /dev/shm/content
dd if=/dev/shm/content of="$VOL" bs=1M oflag=direct status=none
for region in 0 1 2; do
	orders /dev/terrace/vol move $region append tier_down=2 codec=lz4 > /dev/shm/fault/said || die "$(cat /dev/shm/fault/said)"
	vol_message checkpoint
done
SUM=$(sum)
check_eq "content" "$SUM" "$(md5sum < /dev/shm/content)"
vol_down
dd if=/dev/shm/old of="${VOL_DRIVES[1]}" bs=1M oflag=direct status=none
rm /dev/shm/old
klog_expect 'metadata copy 1 is stale .*: not used'
vol_up
intact
vol_down

# ---- create: both ioctls, the table and the start of the volume ----
TABLE=$(vol_table)
create() { DM_DISABLE_UDEV=1 dmsetup create vol --table "$TABLE"; }
created() {
	if [ "$1" = 0 ]; then
		look "$2"
		vol_down
	elif exists; then
		die "creating it failed and left a device"
	fi
}
each "create" create created
vol_check
vol_up
intact

# ---- a new table, and going over to it ----
load() { dmsetup load vol --table "$TABLE"; }
loaded() { dmsetup clear vol && look "$2"; }
each "load" load loaded

suspend() { dmsetup suspend --noudevsync vol; }
suspended() { dmsetup resume --noudevsync --noudevrules vol && look "$2"; }
each "suspend" suspend suspended none	# the commit is a worker's, what is asked for fits on the stack

load && suspend
resume() { dmsetup resume --noudevsync --noudevrules vol; }
resumed() {
	# what went wrong is no reason to be wrong again
	[ "$1" = 0 ] || resume || die "cannot be resumed any more"
	look "$2"
	load && suspend
}
each "resume" resume resumed
resume
intact

# ---- messages ----
dirty() { dd if=/dev/shm/content of="$VOL" bs=64k count=2 seek=$(($1 % 8 * 2)) skip=$(($1 % 8 * 2)) oflag=direct status=none; }
for message in commit checkpoint evict evict_indexes trim; do
	say() { vol_message "$message"; }
	said() { look "$2" && dirty "$2"; }
	each "message $message" say said
done
sectors=$(sectors "$VOL")
grow() { vol_message resize "$((sectors + 8192))"; }
grown() {
	local now
	now=$(($(cat /sys/fs/terrace/*/virtual_blocks) * 8))
	if [ "$1" = 0 ]; then sectors=$((sectors + 8192)); fi
	check_eq "size" "$now" "$sectors"
	look "$2"
}
each "message resize" grow grown
VOL_TABLE="0 $sectors ${VOL_TABLE#0 * }"
vol_reload
intact

# a drive that has become larger: its tier is as it was, or has all of it: a shelf of 64 MiB more
slow_mb=512
larger() {
	blocks=$(cat /sys/fs/terrace/*/tier2/blocks)
	slow_mb=$((slow_mb + 64))
	truncate -s ${slow_mb}M /dev/shm/slow
	losetup -c "${VOL_DRIVES[2]}"
}
grow_tier() { vol_message grow_tier 2; }
tier_grown() {
	local now
	now=$(cat /sys/fs/terrace/*/tier2/blocks)
	if [ "$1" = 0 ]; then
		[ "$now" -gt "$blocks" ] || die "a tier that was told to grow has $now blocks"
		larger
	else
		check_eq "blocks of the tier" "$now" "$blocks"
	fi
	look "$2"
}
larger
each "message grow_tier" grow_tier tier_grown

# the old value or the new one, each time another
tuned() { cat /sys/fs/terrace/*/tune/"$tunable"; }
for tunable in stream_kb commit_ms cache_mb avoid_tiers; do
	value=$(tuned)
	was=$value
	set_it() { vol_message set "$tunable=$((value ^ 1))"; }
	is_set() {
		[ "$1" != 0 ] || value=$((value ^ 1))
		check_eq "$tunable" "$(tuned)" "$value"
		look "$2"
	}
	each "message set $tunable" set_it is_set none	# most are a number that is written down
	vol_message set "$tunable=$was"
done

# ---- the control device: opening it, orders, ranges, queries ----
for order in "move 0 merge tier_down=2 codec=zstd" "move 0 raise up=0-99" "move 1 append tier_down=1" "show 2" "summary 0" \
	"range 0 100 pin-fast"; do
	# 1: the order came to nothing, which is no news after it was carried out once
	# shellcheck disable=SC2086
	give() { orders /dev/terrace/vol $order || [ $? = 1 ]; }
	given() { look "$2"; }
	each "orders $order" give given
done
intact

# ---- terracectl evacuate: the tunable, and an order for each region; the second tier has some of one each time ----
filled() {
	terracectl evacuate --undo vol 1
	orders /dev/terrace/vol move 1 raise tier_up=1 up=0-63 > /dev/shm/fault/raised || [ $? = 1 ]
	[ "$(cat /sys/fs/terrace/*/tier1/used_blocks)" -gt 0 ] || die "nothing is on the tier that is to be emptied: $(cat /dev/shm/fault/raised)"
}
evacuate() { terracectl evacuate --to 2 vol 1; }
evacuated() {
	# commits free what has left
	[ "$1" != 0 ] || check_eq "blocks on the evacuated tier" "$(cat /sys/fs/terrace/*/tier1/used_blocks)" 0
	look "$2"
	filled
}
filled
each "evacuate" evacuate evacuated
terracectl evacuate --undo vol 1
intact

# ---- remove ----
remove() { DM_DISABLE_UDEV=1 dmsetup remove vol; }
removed() {
	[ "$1" = 0 ] || ! exists || vol_down
	! exists || die "it is still there"
	vol_up && look "$2"
}
each "remove" remove removed
intact
vol_down
vol_check
