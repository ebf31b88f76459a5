#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Scrubs that wait for their limit hold nobody up, and a limit that changes holds for what is waiting.
# vm: mode=functional cpus=1 memory=2G timeout=300 build=orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

PATH=$TERRACE_TREE/build:$PATH in_ram orders
now() { local t; read -r t _ < /proc/uptime; echo $((10#${t/./} * 10)); }
# how long an order takes, in milliseconds
takes() {
	local began
	began=$(now)
	from_ram orders /dev/terrace/vol move "$@" > /dev/shm/said || die "$*: $(cat /dev/shm/said)"
	echo $(($(now) - began))
}
# scrub of all regions, in the background, is at work
begin() {
	local before
	before=$(drive_get slow read_bytes)
	start from_ram orders /dev/terrace/vol sweep 0 12 scrub > /dev/shm/swept
	while [ "$(drive_get slow read_bytes)" -lt $((before + 4000000)) ]; do sleep 0.1; done
}
# until it has ended; $took milliseconds
rest() {
	local began
	began=$(now)
	wait "$JOB" || die "scrubs: $(cat /dev/shm/swept)"
	took=$(($(now) - began))
}

vol_drives 128 1024
vol_format
vol_up stream_kb=0 janitor_high=1000 scrub_mb=0
dd if=/dev/urandom of="$VOL" bs=1M count=56 oflag=direct status=none
from_ram orders /dev/terrace/vol sweep 0 12 append tier_down=1 codec=none > /dev/shm/swept
took=$(takes 12 append tier_down=1 codec=none)
echo "an order takes $took ms"

vol_message set scrub_mb=1	# 12 regions: 48 s
begin
sleep 0.3
took=$(takes 13 append tier_down=1 codec=none)
[ "$took" -lt 2500 ] || die "an order took $took ms beside scrubs that wait"
pass "an order took $took ms beside scrubs that wait"
# in 9 s two or three of them
sleep 9
vol_message set scrub_mb=1000
rest
[ "$took" -lt 4000 ] || die "scrubs took $took ms more when their limit was raised"
pass "the limit was raised: scrubs took $took ms more"

# one that is lowered holds for what waits, and for what has been read before it
vol_message set scrub_mb=20
before=$(drive_get slow read_bytes)
begin
vol_message set scrub_mb=1
sleep 1
before=$(drive_get slow read_bytes)
sleep 6
read=$((($(drive_get slow read_bytes) - before) / 1000000))
[ $read -le 11 ] || die "$read MB within 6 s, at 1 MB/s"	# (two regions at most)
pass "the limit was lowered: $read MB within 6 s"
vol_message set scrub_mb=0
rest
[ "$took" -lt 4000 ] || die "scrubs took $took ms more without a limit"

# orders of a region stay in their order, also behind a scrub that waits
vol_message set scrub_mb=1
from_ram orders /dev/terrace/vol move 1 scrub > /dev/shm/said
dd if=/dev/urandom of="$VOL" bs=4k seek=2048 count=8 oflag=direct status=none
from_ram orders /dev/terrace/vol moves 2 scrub + 2 append tier_down=1 codec=none > /dev/shm/said || die "$(cat /dev/shm/said)"
read -r scrub append <<< "$(sed 's/.* ns=//' /dev/shm/said | tr '\n' ' ')"
[ "$append" -gt "$scrub" ] || die "an append took $append ns, the scrub before it $scrub"
# who waits for its limit can be taken back, and does not hold up a suspend
begin
dmsetup suspend --noflush --nolockfs vol
dmsetup resume vol
kill_all "$JOB"
took=$(takes 2 scrub)
echo "a scrub after those were taken back: $took ms"
vol_down
pass "scrubs that wait are taken back"
