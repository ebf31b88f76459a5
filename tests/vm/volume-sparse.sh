#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Single blocks in more regions than there is room for map pages: writers are refused, or wait, and the volume stays writable.
# vm: mode=functional cpus=2 memory=3G timeout=900 build=orders long
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

PATH=$TERRACE_TREE/build:$PATH in_ram orders
RAW=80		# regions that the drives have: 64 and 256 MiB
DONE=/dev/shm/done
# blocks write|read|over FIRST END: one block in each region FIRST.., all over the volume; those accepted get into $DONE,
# which is what must read back, all others as zeros; over: anew, in the regions of $DONE, a second one beside
blocks() { /usr/bin/python3 -IS "$TERRACE_TREE/tests/vm/strewn.py" "$VOL" $DONE "$@"; }
accepted() { awk '{ n += $2 != 0 } END { print n + 0 }' $DONE; }
writable() { vol_message checkpoint; check_eq "mode $1" "$(vol_get mode)" write; }
format() {
	vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --overcommit "$1"
	rm -f $DONE
}

# ---- refused ----

vol_ram 64 256
format 16T
vol_up stream_kb=0
start from_ram orders /dev/terrace/vol events 100 > /dev/shm/events
while ! grep -q listening /dev/shm/events; do sleep 0.1; done
blocks write 0 3000
writable "with single blocks all over it"
first=$(accepted)
[ "$first" -lt 3000 ] || die "3000 pages went into an area for $((4 * RAW))"
# what the area was made for is there, and nearly all of it
[ "$first" -ge $((4 * RAW)) ] || die "only $first regions, room was made for $((4 * RAW))"
klog_has 'no room for the map pages of more regions' || die "writers are refused, and nobody is told why"
grep -q "type=2 tier=-1 region=-1 value=1" /dev/shm/events || die "no event: $(cat /dev/shm/events)"
kill_all "$JOB"
blocks over 0 3000
blocks read 0 3000
writable "after more blocks in the regions that are there"
pass "$first of 3000 regions taken, the others refused; all is as accepted"

vol_down
vol_check
vol_up stream_kb=0
blocks read 0 3000
blocks write 3000 3100
writable "when opened anew"
[ $(($(accepted) - first)) -le 5 ] || die "$(($(accepted) - first)) more regions found room by reopening"
pass "the same when opened again"

# from several at a time; $DONE is per process
for k in 0 1 2 3; do
	start /usr/bin/python3 -IS "$TERRACE_TREE/tests/vm/strewn.py" "$VOL" $DONE.$k write $((4000 + k * 200)) $((4200 + k * 200))
	eval "job$k=$JOB"
done
# shellcheck disable=SC2154
for k in "$job0" "$job1" "$job2" "$job3"; do wait "$k" || die "a writer failed otherwise"; done
writable "with four writers"
pass "four writers"

# ---- discards ----

blocks discard 0 1000		# region by region
before=$(accepted)
blocks write 5000 5100
[ $(($(accepted) - before)) = 100 ] || die "after discards of $first regions only $(($(accepted) - before)) of 100 found room"
blocks read 0 5100
blocks discardall 0 5100	# one range, most of it not in memory
vol_message evict
blocks write 6000 6200
now=$(accepted)
[ "$now" -ge 200 ] || die "after a discard of everything only $now of 200 regions found room"
blocks read 0 6200
# the same regions again, while they are in memory and a checkpoint has dropped their pages
for ((round = 0; round < 3; round++)); do
	blocks discard 6000 6200
	vol_message checkpoint
	blocks write 6000 7000
	writable "round $round of discards"
done
blocks read 0 7000
vol_down
vol_check
pass "discards make room for pages"

# ---- waiting ----

format 16T
vol_up stream_kb=0 queue_if_full=1
start blocks write 0 2000
writer=$JOB
vol_waits "$writer" 4 "2000 regions went into $((4 * RAW)), or the writer was refused"
check_eq "mode while waiting" "$(vol_get mode)" write
generation=$(vol_get generation)
sleep 5
[ $(($(vol_get generation) - generation)) -le 10 ] || die "$(($(vol_get generation) - generation)) checkpoints in 5 s for one that waits"
dd if="$VOL" bs=4k count=1 iflag=direct status=none | cmp -n 8 - <(printf '%08d' 0) || die "reads do not go on"
# a noflush suspend takes the waiting bio back, and it waits again
vol_message commit
dmsetup suspend --noudevsync --noflush --nolockfs vol
dmsetup resume --noudevsync --noudevrules vol
kill -0 "$writer" 2> /dev/null || die "the writer ended with a noflush suspend"
blkdiscard -o $((8 << 30)) -l $((1000 << 30)) "$VOL"
for ((i = 0; ; i++)); do
	now=$(vol_get new)
	[ "$now" -le $((WRITTEN + 20)) ] || break
	[ $i -lt 60 ] || die "a discard made room, and the writer waits on: $(vol_status)"
	sleep 0.5
done
vol_message set queue_if_full=0		# whoever waits is refused now
wait "$writer" || die "the writer failed otherwise"
writable "after waiting"
vol_down
vol_check
pass "told to wait, writers wait and go on"

# ---- a crash ----

rmram fast
rmram slow
vol_drives 64 256
format 16T
vol_up stream_kb=0
blocks write 0 2000
sync "$VOL"
vol_cut
vol_up stream_kb=0
# what recovery brought has no pages yet; writers come before its first checkpoint
blocks write 2000 2050
blocks read 0 2050
writable "after a crash"
# everything dropped, as much written, and cut again
blocks discardall 0 2050
blocks write 3000 3300
sync "$VOL"
vol_cut
vol_up stream_kb=0
writable "after a crash with pages dropped"
blocks read 0 3300
vol_down
vol_check
pass "crashes"
