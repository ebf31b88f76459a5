#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Told to queue, a full volume lets its writers wait, through suspends without a flush as well, and they go on when a discard has made room, at once.
# vm: mode=functional cpus=1 memory=3G timeout=600 build=oracle,orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

PATH=$TERRACE_TREE/build:$PATH in_ram orders
vol_ram 64 256
# queue_if_full: the writer waits until a discard makes room
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --overcommit 1G
vol_up stream_kb=0 queue_if_full=1 commit_ms=60000
dd if=/dev/urandom of=/dev/shm/data bs=1M count=16 status=none
# 56 MiB of slots and one shelf of three are for writers: 208 MiB do not fit
for ((i = 0; i < 13; i++)); do cat /dev/shm/data; done | dd of="$VOL" bs=1M iflag=fullblock oflag=direct count=208 2> /dev/shm/dd &
writer=$!
stands_still() { vol_waits $writer "$1" "208 MiB went into 120" /dev/shm/dd; }
stands_still 20
check_eq "mode while waiting" "$(vol_get mode)" write
cmp -n $((16 << 20)) /dev/shm/data "$VOL"		# reads go on
# A discard of few blocks frees them with the next commit, which comes now, and not when somebody else asks for one: the
# janitor, say, whose passes in vain come ever less often. At 16 and at 20 MiB, for one may meet such a pass.
for at in 16 20; do
	blkdiscard -o $((at << 20)) -l $((4 << 20)) "$VOL"
	for ((tries = 0; ; tries++)); do
		[ "$(vol_get new)" = "$WRITTEN" ] || break
		[ $tries -lt 10 ] || die "two seconds after a discard who waited for room has not got it"
		sleep 0.2
	done
	stands_still 3
done
# a suspend that waits for the writer lets no order begin; given up, it lets them go on
start dmsetup suspend --noudevsync vol
suspender=$JOB
until grep -q dm_wait_for "/proc/$suspender/stack"; do sleep 0.1; done
give_order() { from_ram orders /dev/terrace/vol move 200 append tier_down=1 > /dev/shm/order || true; }
start give_order
order=$JOB
sleep 2
kill -0 "$order" 2> /dev/null || die "an order was carried out while the volume was being suspended"
kill -KILL "$suspender"
if wait "$suspender"; then die "the volume was suspended with a bio in it"; fi
wait "$order"
grep -q ENOENT /dev/shm/order || die "an order of a region without blocks: $(cat /dev/shm/order)"
# one that leaves out the flush gives what waits back to device-mapper, and under the same table it waits again
head -c 4096 /dev/urandom > /dev/shm/block
start dd if=/dev/shm/block of="$VOL" bs=4k seek=102400 oflag=direct,dsync conv=notrunc status=none
second=$JOB
waiting() {
	sleep 1
	kill -0 $writer 2> /dev/null || die "$1: the writer no longer waits: $(cat /dev/shm/dd)"
	kill -0 "$second" 2> /dev/null || die "$1: the second writer no longer waits: $(vol_status)"
}
waiting "before a suspend"
for table in "" same; do
	timeout 30 dmsetup suspend --noudevsync --noflush --nolockfs vol || die "a suspend that leaves out the flush waits for who waits for room"
	waiting "suspended"
	[ ! "$table" ] || dmsetup load vol --table "$(vol_table stream_kb=0 queue_if_full=1 commit_ms=60000)"
	dmsetup resume --noudevsync --noudevrules vol
	waiting "resumed"
	check_eq "written after the resume" "$(vol_get new)" "$WRITTEN"
	cmp -n $((16 << 20)) /dev/shm/data "$VOL"
done
check_eq "mode after two suspends" "$(vol_get mode)" write
blkdiscard -o $((16 << 20)) -l $((96 << 20)) "$VOL" || die "a discard of a full volume failed"
wait $writer || die "the waiting writer failed: $(cat /dev/shm/dd)"
wait "$second" || die "the second waiting writer failed"
# what was there, where it stopped, and what came after
for at in 0 112 128 144 160 176 192; do
	cmp -i 0:$((at << 20)) -n $((16 << 20)) /dev/shm/data "$VOL" || die "16 MiB from $at MiB on"
done
cmp -i 0:$((102400 * 4096)) -n 4096 /dev/shm/block "$VOL" || die "the second writer's block"
vol_down
vol_check
pass "queue_if_full waits, also through suspends without a flush and a new table, and goes on"
