#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A tier that begins to fail is told once, whoever meets its errors: users, orders, flushes; and again when it had been quiet.
# vm: mode=functional cpus=1 memory=2G timeout=300 build=orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

PATH=$TERRACE_TREE/build:$PATH in_ram orders
# events SECONDS: listens so long after the last one
listen() {
	start from_ram orders /dev/terrace/vol events "$1" > /dev/shm/events
	listener=$JOB
	while ! grep -q listening /dev/shm/events; do sleep 0.1; done
}
# what it heard: $said
heard() {
	wait "$listener" || true
	said=$(grep "type=4 " /dev/shm/events) || true
}
errors() { cat /sys/fs/terrace/*/tier"$1"/io_errors; }
up() { vol_up stream_kb=0 janitor_high=1000 commit_ms=60000 ahead_kb=0; }

klog_allow "terrace: .*(cannot be read|could not be read|flush of tier|failed|fails)"
vol_drives 64 512
vol_format
up
dd if=/dev/urandom of="$VOL" bs=1M count=12 oflag=direct status=none
for r in 0 1; do from_ram orders /dev/terrace/vol move $r append tier_down=1 codec=none > /dev/null; done
check_eq "errors" "$(errors 0) $(errors 1)" "0 0"

# a user's reads from packs
listen 2
drive slow error add read 0 0
for b in 0 1 2 3; do ! dd if="$VOL" of=/dev/null bs=4k skip=$b count=1 iflag=direct 2> /dev/null || die "block $b was read"; done
drive slow error clear
heard
check_eq "events of reads that fail" "$(wc -l <<< "$said") ${said%% region*}" "1 type=4 tier=1"
[ "$(errors 1)" -ge 4 ] || die "errors: $(errors 1)"
check_eq "errors of the other tier" "$(errors 0)" 0
klog_has "tier 1 begins to fail" || die "the kernel log says nothing"

# an order's, of the other tier; those of the first go on, and are not told again
listen 2
drive slow error add read 0 0
drive fast error add read 0 0
from_ram orders /dev/terrace/vol move 2 append tier_down=1 codec=none > /dev/null || true
! dd if="$VOL" of=/dev/null bs=4k skip=7 count=1 iflag=direct 2> /dev/null || die "block 7 was read"
drive slow error clear
drive fast error clear
heard
check_eq "events of an order that fails" "$(wc -l <<< "$said") ${said%% region*}" "1 type=4 tier=0"

# a promoted block: its slot fails once, and so does its pack
from_ram orders /dev/terrace/vol move 0 raise up=7 > /dev/null
vol_message set cache_mb=0
before="$(errors 0) $(errors 1)"
drive fast error add read 0 0
dd if="$VOL" of=/dev/null bs=4k skip=7 count=1 iflag=direct status=none
check_eq "errors of a read that its pack has saved" "$(errors 0) $(errors 1)" "$((${before% *} + 1)) ${before#* }"
drive slow error add read 0 0
! dd if="$VOL" of=/dev/null bs=4k skip=7 count=1 iflag=direct 2> /dev/null || die "block 7 was read"
drive slow error clear
drive fast error clear
check_eq "errors of the tier of its slot" "$(errors 0)" $((${before% *} + 2))

# what is no failure of a drive is none: no room, a damaged pack, a read that would have to wait
vol_down
vol_damage 0 payload 3 > /dev/null
up
listen 2
! dd if="$VOL" of=/dev/null bs=4k skip=3 count=1 iflag=direct 2> /dev/null || die "a damaged block was read"
heard
check_eq "events of a wrong checksum" "$said" ""
check_eq "errors" "$(errors 0) $(errors 1)" "0 0"

# flushes; and again, half a minute after the last error
for turn in 1 2; do
	listen 2
	dd if=/dev/urandom of="$VOL" bs=4k seek=2560 count=1 oflag=direct conv=notrunc status=none
	drive fast error add flush 0 0 count=1
	dd if=/dev/zero of="$VOL" bs=4k seek=2561 count=1 oflag=direct conv=notrunc,fsync status=none 2> /dev/null || true
	drive fast error clear
	heard
	check_eq "events of a flush that fails" "$(wc -l <<< "$said") ${said%% region*}" "1 type=4 tier=0"
	[ $turn = 2 ] || sleep 31
done
vol_down

# a cleaning, one of whose two flushes fails: one error, its pack is where it was, and the next cleaning moves it
vol_format
up
dd if=/dev/urandom of=/dev/shm/data bs=1M count=8 status=none
dd if=/dev/shm/data of="$VOL" bs=1M oflag=direct status=none
for r in 0 1; do from_ram orders /dev/terrace/vol move $r append tier_down=1 codec=none > /dev/null; done
vol_down		# which ends the shelf
shelf=$(terracectl dump --json packs --range 0 "${VOL_DRIVES[@]}" |
	/usr/bin/python3 -ISc 'import json, sys; print(json.load(sys.stdin)["items"][0]["place"] // 16384)')
up
clean() { from_ram orders /dev/terrace/vol move "$shelf" clean tier_down=1 > /dev/shm/orders; }
drive slow error add flush 0 0 count=1
clean || true
grep -q "status=partly error=EIO down=1026 " /dev/shm/orders || die "a cleaning, one of whose flushes failed: $(cat /dev/shm/orders)"
drive slow error clear
check_eq "errors" "$(errors 0) $(errors 1)" "0 1"
cmp /dev/shm/data "$VOL" -n $((8 << 20)) || die "other data after a cleaning that failed"
clean || die "the next cleaning: $(cat /dev/shm/orders)"
grep -q "status=done error=0 down=1026 " /dev/shm/orders || die "the next cleaning: $(cat /dev/shm/orders)"
cmp /dev/shm/data "$VOL" -n $((8 << 20)) || die "other data after a cleaning"
vol_down
vol_check
pass "a tier that begins to fail is told"
