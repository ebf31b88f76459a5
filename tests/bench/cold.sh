#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What a cold read's instructions are spent on, function by function.
# bench: mode=vtime memory=3G timeout=600 plugin=profile
# seeds: 2 for what is counted, 1 before it; data: fio's own
# packages: fio
#
# pread() of 4 KiB blocks that lie in packs of LZ4 in clusters of 4 KiB, indexes known,
# without promotion cache and with, on a drive model and on RAM disks; less what a pread() of the RAM disk takes. The same
# for fio, 8 at a time by io_uring, on the drive model: all that the machine does in it, less what it does in the same fio on
# the drive. A plugin counts from outside (profile/plugin.c), kallsyms says whose code it was.
# $OUT/cold.txt gets all functions, cold-*.txt those of the other runs.
# shellcheck disable=SC2034,SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"
. "$TERRACE_TREE/tests/bench/profile.bash"

READS=${READS:-2000}
DEEP_READS=${DEEP_READS:-10000}
REGIONS=40
PATH=$TERRACE_TREE/build:$TERRACE_TREE/build/bench:$PATH in_ram fio orders hits around

# profile DEVICE FILE: of pread(), one after the other
profile() {
	from_ram hits "$1" read 4096 $((REGIONS * 1024)) 500 1		# first use of the code
	rm -f "$OUT/profile"
	from_ram hits "$1" read 4096 $((REGIONS * 1024)) "$READS" 2
	functions 1 "$2"
}
# deep DEVICE FILE: of fio with io_uring, 8 at a time, no block twice; from its start to its end
deep() {
	local job=(--name=x --filename="$1" --ioengine=io_uring --direct=1 --bs=4k --iodepth=8 --rw=randread --size=$((REGIONS * 4))m
		--thread --randrepeat=0)
	fio_ "${job[@]}" --randseed=1 --number_ios=500 > /dev/null
	rm -f "$OUT/profile"
	from_ram around "$RAM/fio" "${job[@]}" --randseed=2 --number_ios="$DEEP_READS" > /dev/null
	functions "$DEEP_READS" "$2"
}
cache_hits() { cat /sys/fs/terrace/*/cache_hits; }

# packs DRIVE NAME [CACHE_MB [deep]]: a volume whose cold blocks lie there
packs() {
	local hits
	VOL_DRIVES=(/dev/ram/fast "$1")
	vol_format
	vol_up stream_kb=0 cache_mb="${3:-0}"
	fio_ --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --size=$((REGIONS * 4))m --bs=64k --iodepth=4 --rw=write --end_fsync=1 \
		--refill_buffers=1 --buffer_compress_percentage=50 --buffer_compress_chunk=4096 > /dev/null
	from_ram orders /dev/terrace/vol sweep 0 $REGIONS append tier_down=1 codec=lz4 > /dev/null
	grep -E ' [tTwW] ' /proc/kallsyms > /dev/shm/symbols
	if [ "${4-}" ]; then
		deep "$1" /dev/shm/raw
		hits=$(cache_hits)
		deep "$VOL" /dev/shm/cold
		# fio's 500 before it are there, and some of them are read once more
		hits=$(($(cache_hits) - hits))
		[ $((hits * 50)) -le "$DEEP_READS" ] || die "$hits of $DEEP_READS reads were not cold"
	else
		profile "$1" /dev/shm/raw
		profile "$VOL" /dev/shm/cold
	fi
	vol_down
	above /dev/shm/raw /dev/shm/cold "$2"
}
# on_drive NAME [CACHE_MB [deep]]: on the drive model, new each time
on_drive() {
	mkdrive slow qlc 512 lbs=4096 powercut=off cache=off
	packs /dev/mapper/slow "$@"
	rmdrive slow
}
mkram fast 320
load_drive
on_drive cold-drive
on_drive cold-kept 64
bar "cold 4 KiB pread(): CPU above a pread() of the drive (qlc)" "$(sum cold-drive)" ns 12000
bar "… and kept in a promotion cache of 64 MiB, the default" "$(sum cold-kept)" ns 12000
on_drive cold-deep 0 deep
on_drive cold-deep-kept 64 deep
figure "cold 4 KiB read by io_uring, 8 at a time: CPU above the same of the drive (qlc)" "$(sum cold-deep)" ns
figure "… and kept in a promotion cache of 64 MiB, the default" "$(sum cold-deep-kept)" ns

# Who reads a RAM disk does not sleep.
mkram slow 512
packs /dev/ram/slow cold
bar "cold 4 KiB pread(): CPU above a pread() of a RAM disk" "$(sum cold)" ns 12000
apart cold
of "… decoding" 'LZ4_'
of "… what is copied" ' mem(cpy|set)'
of "… CRC" 'crc'
of "… the rest of the module" '\[dm_terrace\]'
of "… device-mapper" '\[dm_mod\]'
of "… memory" 'kmem_cache|cache_from_obj|slab'
of "… workqueue" 'work|pwq|strscpy|strnlen'
of "… scheduler" 'sched|psi_|load_avg|switch|pick_next|update_curr|entity|task_fair|ttwu|wake|preempt|_rq|vruntime|cfs|place_'
of "… block layer, drive: a second bio" 'bio|blk|submit|bdev|io_acct|io_ticks|null'
of "… clocks, RCU, system call and the rest" .
bars_end
