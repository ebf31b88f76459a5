#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What an order that brings up one block, or a few, is spent on, function by function.
# bench: mode=vtime memory=3G timeout=600 plugin=profile
# seeds: none; data: fio's own
# packages: fio
#
# Orders of that kind are what terraced gives while a hot set moves: a hot block here, another there. Given by the test's own
# program to regions whose blocks lie loose on shelves or in packs of LZ4; a
# plugin counts the instructions of the whole machine (profile/plugin.c), those of the program left out.
# $OUT/raise-*.txt gets all functions.
# shellcheck disable=SC2034,SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"
. "$TERRACE_TREE/tests/bench/profile.bash"

BATCH=30
REGIONS=128
PATH=$TERRACE_TREE/build:$TERRACE_TREE/build/bench:$PATH in_ram fio orders around

# counted FILE ARG...: what the kernel does while those orders are given
counted() {
	rm -f "$OUT/profile"
	from_ram around "$RAM/orders" /dev/terrace/vol sweep "${@:2}"
	functions 1 "$1"
}
# raised WHAT NAME FIRST BLOCKS NR BAR: two batches, each to as many regions, for their blocks BLOCKS, NR of them; the second
# counts, for the first makes what is kept for others. Less what no order takes.
raised() {
	local got
	counted /dev/shm/first "$3" $BATCH raise tier_up=0 up="$4" > /dev/null
	counted /dev/shm/none "$3" 0 raise tier_up=0 up="$4" > /dev/null
	got=$(counted /dev/shm/all $(($3 + BATCH)) $BATCH raise tier_up=0 up="$4")
	check_eq "blocks that came up" "$(sed -E 's/.* up=([0-9]+).*/\1/' <<< "$got")" $((BATCH * $5))
	awk -v orders=$BATCH 'NR == FNR { none[$1] = $2; next } $1 != "program" { print int(($2 - none[$1]) / orders / 1000), $1 }' /dev/shm/none /dev/shm/all |
		sort -rn > "$OUT/raise-$2.txt"
	bar "$1" "$(awk '{ n += $1 } END { print n }' "$OUT/raise-$2.txt")" instructions "$6"
}
# volume KEY=VALUE...: all of it written
volume() {
	VOL_DRIVES=(/dev/ram/fast /dev/ram/slow)
	vol_format
	vol_up cache_mb=0 "$@"
	fio_ --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --size=$((REGIONS * 4))m --bs=1m --iodepth=4 --rw=write --end_fsync=1 \
		--refill_buffers=1 --buffer_compress_percentage=50 --buffer_compress_chunk=4096 > /dev/null
	grep -E ' [tTwW] ' /proc/kallsyms > /dev/shm/symbols
}
mkram fast 640
mkram slow 1280
volume
raised "one loose block" loose 4 500 1 50000
raised "four loose blocks, apart" loose-four $((4 + 2 * BATCH)) 5,200,500,900 4 85000
vol_down
volume stream_kb=0
from_ram orders /dev/terrace/vol sweep 0 $REGIONS append tier_down=1 codec=lz4 > /dev/null
raised "one block of a pack" packed 0 500 1 57000
raised "four blocks of a pack, apart" packed-four $((2 * BATCH)) 5,200,500,900 4 112000
vol_down
bars_end
