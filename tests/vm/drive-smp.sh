#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Data come back as written on several CPUs, with cuts, reloads and messages meanwhile; limits show in the queue.
# vm: mode=functional memory=2G timeout=600 build=drive-tools
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/drive/drive.sh"
drive_tools
in_ram fio
# the quick form; drive-smp-long.sh asks for more
MB=${DRIVE_SMP_MB:-6} SECONDS_OF_CHANGES=${DRIVE_SMP_SECONDS:-5} CUTS=${DRIVE_SMP_CUTS:-3}

# limits NAME lbs pbs min opt rotational cache discard
limits() {
	local name=$1 words="logical_block_size physical_block_size minimum_io_size optimal_io_size rotational write_cache" got="" w queue
	queue=/sys/block/$(dmsetup info -c --noheadings -o blkdevname "$name")/queue
	for w in $words; do got+="$(< "$queue/$w") "; done
	[ "$(< "$queue/discard_max_bytes")" -gt 0 ] && got+=discard || got+=none
	check_eq "limits of $name" "$got" "$2"
}

echo "-- queue limits"
mkdrive a ram 64
limits a "512 4096 4096 0 0 write back discard"
mkdrive b optane 64
limits b "4096 4096 4096 0 0 write through discard"
mkdrive c qlc 64
limits c "512 16384 16384 16384 0 write back discard"
mkdrive d hdd 64
limits d "512 4096 4096 0 1 write back none"
redrive d hdd-7200 64
limits d "512 4096 4096 0 1 write back none"
for change in lbs=4096 cache=off rotational=off discard=on io_opt=64k; do
	expect_fail "" redrive d hdd 64 $change
done
rmdrive d
mkdrive d ram 64 lbs=4096 rotational=on io_opt=64k
limits d "4096 4096 4096 65536 1 write back discard"
rmdrive d
mkdrive d ram 64 cache=off
limits d "512 4096 4096 0 0 write through discard"
expect_fail "" mkdrive e floppy 64

echo "-- NOWAIT: io_uring is served without a worker"
[ "$(pace_ iops a read --count 2000 --depth 32 --pattern rand)" -gt 0 ]
for d in a b c d; do rmdrive $d; done

echo "-- fio writes and verifies"
verify() {
	fio_ --name=v --filename=/dev/mapper/d --direct=1 --ioengine=io_uring --iodepth=16 --rw=randwrite --bsrange=4k-64k --bs_unaligned=0 \
		--blockalign=4k --size="${MB}m" --verify=crc32c --verify_fatal=1 --do_verify=1 --fsync=64 --output-format=terse "$@" > /dev/null
}
mkdrive d ram 64
verify
redrive d nvme-tlc 64 lbs=512 cache=on cache_size=1m
verify --randseed=2
rmdrive d
mkdrive d ram 64 powercut=off cache=off
verify --randseed=3
rmdrive d
mkdrive d ram 64
redrive d qlc 64 pbs=4k io_opt=0
verify --randseed=4

echo "-- several writers, messages, status and reloads at the same time"
fio_ --name=s --filename=/dev/mapper/d --direct=1 --ioengine=io_uring --iodepth=16 --rw=randrw --bs=4k --size=64m --numjobs=4 \
	--fsync=16 --time_based --runtime="$SECONDS_OF_CHANGES" --output-format=terse > /dev/null &
job=$!
i=0
while kill -0 $job 2>/dev/null; do
	case $((i % 6)) in
	0) drive d set read_lat=$((i % 7 * 10))us channels=$((i % 4 + 1)) ;;
	1) drive_stat d > /dev/null ;;
	2) redrive d nvme-tlc 64 lbs=512 cache=on cache_size=256k ;;
	3) drive d error add read 0 8 delay=1ms status=ok; drive d error clear ;;
	4) redrive d ram 64 ;;
	5) drive d reset ;;
	esac
	i=$((i + 1))
done
wait $job
echo "$i changes meanwhile"

echo "-- cuts under load on both CPUs: I/O fails, nothing hangs, nothing is left"
for seed in $(seq "$CUTS"); do
	drive d set seed="$seed" cache_size=1m
	fio_ --name=c --filename=/dev/mapper/d --direct=1 --ioengine=io_uring --iodepth=16 --rw=randrw --bs=4k --size=64m --numjobs=2 \
		--fsync=16 --time_based --runtime=20 --output-format=terse > /dev/null 2>&1 &
	job=$!
	sleep 0.7
	drive d arm barrier $((seed * 3))
	wait $job && die "fio did not notice the power cut"
	check_eq state "$(drive_get d state)" off
	drive_revive d
	dd if=/dev/mapper/d of=/dev/null bs=1M iflag=direct status=none
done
rmdrive d
rmmod dm_drive
klog_has "drive_write|drive_undo" && die "records were left behind"
pass "data, limits, concurrency"
