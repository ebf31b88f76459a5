#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Packs read in order are read ahead, in large pieces and only then; what was read ahead and is bad, or was overwritten, harms nobody.
# vm: mode=functional cpus=1 memory=2G timeout=600 build=orders
# shellcheck disable=SC2015,SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/orders.bash"

DATA=/dev/shm/data
of() { cat /sys/fs/terrace/*/"$1"; }
# in_order REGION [BYTES]: all of its blocks, one after the other; they must be right
in_order() { dd if="$VOL" bs="${2:-4k}" skip=$(($1 << 22)) count=4M iflag=direct,skip_bytes,count_bytes status=none | cmp - <(dd if=$DATA bs=4M skip="$1" count=1 status=none); }
backwards() { local k; for ((k = $2; k--;)); do dd if="$VOL" of=/dev/null bs=4k skip=$(($1 * 1024 + k)) count=1 iflag=direct status=none; done; }
# reads FEWEST MOST WHAT CMD...: how often the slow drive was read for packs meanwhile
reads() {
	local before nr
	before=$(of pack_reads)
	"${@:4}" || die "$3: data differ"
	nr=$(($(of pack_reads) - before))
	[ $nr -ge "$1" ] && [ $nr -le "$2" ] || die "$3: $nr reads of packs, wanted $1 to $2"
}
# forget: neither clusters nor stretches are there any more
forget() {
	vol_message set cache_mb=0
	echo 2 > /proc/sys/vm/drop_caches
	check_eq "bytes kept without a cache" "$(of cache_stored)" 0
	vol_message set cache_mb=64
}

vol_drives 64 512
vol_format
vol_up stream_kb=0
# regions 0 and 1 compress, 2 and 3 do not
/usr/bin/python3 -ISc 'import sys; sys.stdout.write("".join("line %d of words that compress\n" % k for k in range(400000))[:8 << 20])' > $DATA
dd if=/dev/urandom of=$DATA bs=1M count=8 seek=8 conv=notrunc status=none
dd if=$DATA of="$VOL" bs=1M oflag=direct status=none
order 0 append tier_down=1 codec=lz4 shift=0
order 1 append tier_down=1 codec=zstd shift=2
order 2 append tier_down=1 codec=none shift=0
order 3 append tier_down=1 codec=none shift=0

# 4 MiB in pieces of at most 64 blocks, which grow from 6
for region in 0 1 2; do reads 16 32 "region $region in order" in_order $region; done
[ "$(of ahead)" -gt 2700 ] || die "only $(of ahead) blocks were read ahead"
forget
reads 16 32 "as a filesystem reads" in_order 0 32k
forget
ahead=$(of ahead)
reads 200 200 "backwards" backwards 0 200
check_eq "blocks read ahead of who reads backwards" "$(of ahead)" "$ahead"
forget
vol_message set ahead_kb=0
reads 1024 1024 "nothing ahead" in_order 0
reads 256 600 "nothing ahead, clusters of 4" in_order 1
check_eq "blocks read ahead, switched off" "$(of ahead)" "$ahead"
forget
vol_message set ahead_kb=32
reads 114 124 "a block and eight ahead" in_order 0
pass "in order: ahead, else not"

# Large reads: what a drive is asked for does not overlap. 4 MiB and the header are 33 pieces of 128 KiB.
# A piece that somebody asked for and did not read to its end is there for the next, until the kernel wants memory.
piece() { dd if="$VOL" of=/dev/null bs=1M skip=$(($1 * 4 + $2)) count=1 iflag=direct status=none; }
# The third MiB ends in the piece in which the fourth begins: who has read that had done with it.
piece_left() { piece 2 3; piece 2 2; }
vol_message set cache_mb=0
piece_left
reads 32 32 "region 2 in pieces of 1M, a piece of 128 KiB is there" in_order 2 1M
for cache in 64 0; do
	large() { forget; vol_message set cache_mb=$cache; reads "$3" "$4" "region $1 in pieces of $2, cache_mb=$cache" in_order "$1" "$2"; }
	piece_left
	large 2 1M 33 33
	large 2 128k 33 33
	large 2 4M 33 36	# several bios: workers read them in any order
	large 0 1M 1 33
	large 1 1M 1 33
done
vol_message set cache_mb=64
vol_message set ahead_kb=256
for ((k = 0; k < 4; k++)); do
	for ((job = 0; job < 4; job++)); do in_order $(((k + job) % 4)) $((64 << (job + k) % 5))k & jobs[job]=$!; done
	for job in "${jobs[@]}"; do wait "$job" || die "data differ with several readers"; done
done
pass "large reads"

# Somebody writes where a large reader will be.
forget
dd if="$VOL" of=/dev/null bs=1M skip=8 count=2 iflag=direct status=none
dd if=/dev/urandom of=/dev/shm/new bs=4k count=16 status=none
dd if=/dev/shm/new of="$VOL" bs=4k seek=2580 oflag=direct status=none
dd if=/dev/shm/new of=$DATA bs=4k seek=2580 conv=notrunc status=none
in_order 2 1M || die "data differ after blocks ahead of a large read were overwritten"
in_order 2 256k || die "data differ after blocks ahead of a large read were overwritten"

# what was read ahead is not what comes to be read
forget
vol_message set ahead_kb=256
dd if="$VOL" of=/dev/null bs=4k skip=2048 count=10 iflag=direct status=none
dd if=/dev/urandom of=/dev/shm/new bs=4k count=16 status=none
dd if=/dev/shm/new of="$VOL" bs=4k seek=2060 oflag=direct status=none
dd if=/dev/shm/new of=$DATA bs=4k seek=2060 conv=notrunc status=none
blkdiscard -o $((2080 << 12)) -l $((8 << 12)) "$VOL"
dd if=/dev/zero of=$DATA bs=4k seek=2080 count=8 conv=notrunc status=none
in_order 2 || die "data differ after blocks that had been read ahead were overwritten"
pass "overwritten and discarded"

# Ahead of a reader, something cannot be read. It is found where it lies by reading it, once.
# (Not from a stretch that somebody left: that has it from when it could be read.)
dd if="$VOL" of=/dev/null bs=128k skip=$(((3 * 1024 + 180) << 12)) count=1 iflag=direct,skip_bytes status=none
forget
vol_message set cache_mb=0
klog_allow 'cannot be read|drive slow'
at=
for ((sector = 0; sector < 512 * 2048 && ${#at} == 0; sector += 65536)); do
	drive slow error add read $sector 65536
	dd if="$VOL" of=/dev/null bs=4k skip=$((3 * 1024 + 200)) count=1 iflag=direct status=none 2> /dev/null || at=$sector
	drive slow error clear
done
[ "$at" ] || die "no sector of block 200 of region 3"
for ((size = 32768; size >= 8; size /= 2)); do
	drive slow error add read $at $size
	if dd if="$VOL" of=/dev/null bs=4k skip=$((3 * 1024 + 200)) count=1 iflag=direct status=none 2> /dev/null; then at=$((at + size)); fi
	drive slow error clear
done
drive slow error add read $((at / 8 * 8)) 8
vol_message set cache_mb=64
for ((k = 150; k < 260; k++)); do
	if dd if="$VOL" of=/dev/shm/got bs=4k skip=$((3 * 1024 + k)) count=1 iflag=direct status=none 2> /dev/null; then
		[ $k != 200 ] || die "block 200 was read from a sector that cannot be"
		cmp -n 4096 /dev/shm/got <(dd if=$DATA bs=4k skip=$((3 * 1024 + k)) count=1 status=none) || die "block $k differs"
	else
		[ $k = 200 ] || [ $k = 199 ] || [ $k = 201 ] || die "block $k cannot be read, with a bad sector at block 200"
		bad+=" $k"
	fi
done
check_eq "blocks that cannot be read" "${bad# }" 200
# Of large reads the one fails that has it.
for ((k = 0, bad = 0; k < 16; k++)); do
	dd if="$VOL" of=/dev/shm/got bs=256k skip=$((48 + k)) count=1 iflag=direct status=none 2> /dev/null || { bad=$((bad + 1)); continue; }
	cmp /dev/shm/got <(dd if=$DATA bs=256k skip=$((48 + k)) count=1 status=none) || die "piece $k differs"
done
check_eq "large reads that fail" $bad 1
drive slow error clear
in_order 3 || die "data differ after the drive got well"
in_order 3 1M || die "data differ after the drive got well"
pass "a bad sector ahead fails its own block only"

# indexes are given back to who needs memory
vol_message set cache_mb=0
before=$(of index_reads)
in_order 0
check_eq "indexes read while they are known" "$(of index_reads)" "$before"
memory=$(vol_get memory)
for ((k = 0; k < 50 && $(vol_get memory) > memory - 3000; k++)); do echo 2 > /proc/sys/vm/drop_caches; done
[ "$(vol_get memory)" -le $((memory - 3000)) ] || die "$(vol_get memory) of $memory bytes are held after the kernel asked for memory"
in_order 0 || die "data differ"
vol_down
vol_check
pass "indexes leave memory that others need"
