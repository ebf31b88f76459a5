#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Appends that are synced into prepared places, beside another writer, discards and power cuts; a log of them stays fast.
# vm: mode=functional memory=3G timeout=900
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

appends() { python3 "$TERRACE_TREE/tests/vm/appends.py" "$@"; }
klog_allow 'drive (fast|slow)'

COUNT=1500
prepared() { cat "/sys/fs/terrace/$(dmsetup info -c --noheadings -o blkdevname vol)/prepared"; }
for cache in off on; do
	vol_drives 128 256 cache=$cache lat=100us survive=0
	vol_format
	vol_up append_kb=1024
	# the appender is quicker at times than who prepares: then once more
	for round in 1 2 3; do
		had=$(prepared)
		appends write "$VOL" $COUNT /dev/shm/promised ahead
		appends check "$VOL" $COUNT /dev/shm/promised ahead
		had=$(($(prepared) - had))
		echo "# $had blocks prepared in round $round"
		[ $had -le $((COUNT / 2)) ] || break
		[ $round != 3 ] || die "$had blocks were prepared"
		blkdiscard -f "$VOL"
		vol_message commit
	done
	pass "volatile cache $cache: what another writes in front of the appender stays"

	vol_down
	vol_check
	vol_up
	appends check "$VOL" $COUNT /dev/shm/promised ahead
	for cut in 1 2; do
		blkdiscard -f "$VOL"
		vol_message commit
		mode=(ahead)
		[ $cut != 2 ] || mode=()
		echo 0 > /dev/shm/promised
		start appends write "$VOL" 20000 /dev/shm/promised "${mode[@]}"
		for ((i = 0; i < 300 && $(tail -c 8 /dev/shm/promised 2> /dev/null || echo 0) < cut * 137; i++)); do sleep 0.1; done
		drive_cut fast
		wait "$JOB" || true
		dmr vol
		drive_revive fast
		vol_up
		appends check "$VOL" 20000 /dev/shm/promised "${mode[@]}"
		vol_down
		vol_check
		vol_up
	done
	pass "volatile cache $cache: two power cuts: what was promised is there, and nothing else"

	blkdiscard -f "$VOL"
	vol_message commit
	for ((i = 0; i < 100 && $(vol_tier 0 used | cut -d/ -f1) > 0; i++)); do sleep 0.1; done
	check_eq "used after a discard of all" "$(vol_tier 0 used | cut -d/ -f1)" 0
	dmr vol
	rmdrive fast
	rmdrive slow
done

# ---- a log that is longer than stream_kb stays fast; a stream does not ----

vol_ram 128 256
vol_format
vol_up stream_kb=256 append_kb=0
appends write "$VOL" 1000 /dev/shm/promised
check_eq "blocks of the log on the disk" "$(vol_tier 1 used | cut -d/ -f1)" 0
taskset -c 0 dd if=/dev/zero of="$VOL" bs=64k seek=256 count=128 oflag=direct status=none	# streams are seen per CPU
[ "$(vol_tier 1 used | cut -d/ -f1)" -ge 1500 ] || die "a stream of 8 MiB: $(vol_tier 1 used) on the disk"
pass "a log of 4 MiB stays fast, a stream of 8 MiB goes past the fast tier"
vol_down

# ---- as set from the start, a long stream goes past it; told never to, it stays, from the start or while the volume runs ----

# stream AT: 32 MiB from there on; STREAMED: blocks of it on the disk
stream() {
	local had
	had=$(vol_tier 1 used | cut -d/ -f1)
	taskset -c 0 dd if=/dev/zero of="$VOL" bs=1M seek="$1" count=32 oflag=direct status=none
	STREAMED=$(($(vol_tier 1 used | cut -d/ -f1) - had))
}
vol_format
vol_up append_kb=0
stream 16
[ "$STREAMED" -ge 3500 ] || die "a stream of 32 MiB, the last 16 of which go past: $STREAMED blocks on the disk"
vol_message set stream_kb=0
stream 64
check_eq "blocks on the disk of a stream of 32 MiB, with stream_kb=0 set meanwhile" "$STREAMED" 0
vol_message set stream_kb=16384
stream 112
[ "$STREAMED" -ge 3500 ] || die "a stream of 32 MiB, stream_kb as it was again: $STREAMED blocks on the disk"
vol_down
vol_format
vol_up append_kb=0 stream_kb=0
stream 16
check_eq "blocks on the disk of a stream of 32 MiB, with stream_kb=0" "$STREAMED" 0
fast=$(vol_tier 0 used | cut -d/ -f1)
[ "$fast" -ge 8192 ] || die "32 MiB that did not go past the fast tier: $fast blocks are there"
pass "a stream of 32 MiB goes past the fast tier as set from the start, and never with stream_kb=0"
vol_down

# ---- what is prepared comes from the fast tier, from more than other writers need ----

vol_format
vol_up append_kb=1024 stream_kb=0 janitor_high=1000 throttle_us=0
dd if=/dev/zero of="$VOL" bs=1M seek=64 count=116 oflag=direct status=none
vol_message commit
full=$(vol_tier 0 used)
appends strew "$VOL" 16384 14000
vol_message commit
for ((i = 0; i < 100 && $(vol_tier 0 used | cut -d/ -f1) > 20000; i++)); do sleep 0.1; done
echo "# $full used, then every other block discarded: $(vol_tier 0 used)"
free=$(vol_tier 1 free_shelves)
for ((i = 0; i < 48; i++)); do	# each takes as many slots as it has blocks, and then others are made ready
	dd if=/dev/zero of="$VOL" bs=256k seek=$((100 + i)) count=1 oflag=direct status=none
	sleep 0.2
done
check_eq "blocks on the disk, of writes of 64 blocks to strewn slots" "$(vol_tier 1 used | cut -d/ -f1)" 0
appends write "$VOL" 3000 /dev/shm/promised
check_eq "blocks on the disk, with the free slots strewn" "$(vol_tier 1 used | cut -d/ -f1)" 0
check_eq "free shelves" "$(vol_tier 1 free_shelves)" "$free"
pass "nothing is prepared on the disk"
vol_down

# ---- prepared blocks have room below, too ----

modprobe loop
truncate -s 128M /dev/shm/thin
VOL_DRIVES=("$(losetup -f --show /dev/shm/thin)" /dev/ram/slow)
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=/dev/ram/slow"
vol_up append_kb=1024
vol_message checkpoint
below() { echo $(($(stat -c %b /dev/shm/thin) / 8)); }
had=$(below) of=$(vol_tier 0 used | cut -d/ -f1)
appends write "$VOL" 1500 /dev/shm/promised
sync /dev/shm/thin
used=$(($(vol_tier 0 used | cut -d/ -f1) - of)) has=$(($(below) - had))
[ "$used" -gt 1500 ] || die "nothing is prepared beyond 1500 appends: $used"
[ "$has" -ge "$used" ] || die "$used blocks are used, of these $has have room below"
pass "$used blocks used, $has blocks of room taken below"
vol_down
