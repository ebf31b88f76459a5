#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# io_uring submits hits without a worker: the hit path never sleeps, and says so.
# vm: mode=functional cpus=1 memory=2G timeout=600 build=oracle
# shellcheck disable=SC2119,SC2034
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

T=/sys/kernel/tracing
mountpoint -q $T || mount -t tracefs t $T
event=io_uring_queue_async_work
[ -d $T/events/io_uring/$event ] || die "kernel $(uname -r) has no tracepoint io_uring:$event"
echo 1 > $T/events/io_uring/$event/enable

# punts DEVICE RW: of 2000 I/Os of io_uring, how many went to a worker
punts() {
	echo > $T/trace
	fio_ --name=x --filename="$1" --rw="$2" --ioengine=io_uring --iodepth=16 --direct=1 --bs=4k --size=16m --number_ios=2000 \
		--randrepeat=0 --output-format=terse > /dev/null
	grep -c $event $T/trace || true
}

vol_ram 64 256
vol_format
vol_up
check_eq "nowait word" "$(vol_get nowait)" yes
dd if=/dev/zero of="$VOL" bs=1M count=16 oflag=direct status=none	# map the blocks
sync "$VOL"
check_eq "punted reads" "$(punts "$VOL" randread)" 0
check_eq "punted writes in place" "$(punts "$VOL" randwrite)" 0
blkdiscard "$VOL"
sync "$VOL"
check_eq "punted reads of zeros" "$(punts "$VOL" randread)" 0
punted=$(punts "$VOL" randwrite)
[ "$punted" -le 50 ] || die "$punted of 2000 new-block writes were punted"
vol_down

# The same counts where they must not be zero, or they would say nothing: the
# volume on a tier that cannot do NOWAIT, which it has to say, and dm-delay.
need dm-delay
dmc delayed "0 $((256 * 2048)) delay /dev/ram/slow 0 0"
VOL_DRIVES=(/dev/ram/fast /dev/mapper/delayed)
vol_format
vol_up
check_eq "nowait word, a tier without" "$(vol_get nowait)" no
dd if=/dev/zero of="$VOL" bs=1M count=16 oflag=direct status=none
for rw in randread randwrite; do
	punted=$(punts "$VOL" $rw)
	[ "$punted" -ge 2000 ] || die "a volume without NOWAIT, yet only $punted punts of $rw were counted"
done
vol_down
dmr delayed
dmc vol "0 $((16 * 2048)) delay /dev/ram/fast 0 0"
punted=$(punts "$VOL" randread)
[ "$punted" -ge 2000 ] || die "dm-delay cannot do NOWAIT, yet only $punted punts were counted"
dmr vol
pass "no worker for hits"
