#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What an fsync behind a write in place, with nothing to commit, is spent on, function by function.
# bench: mode=vtime memory=3G timeout=600 plugin=profile
# seeds: 2 for what is counted, 1 before it
#
# On RAM disks, less what the same fsync of dm-linear takes: on a drive without a volatile cache the block layer ends
# that before device-mapper sees it, which a volume with records to commit cannot have. A plugin counts from outside
# (profile/plugin.c), kallsyms says whose code it was. $OUT/fsync.txt gets all functions.
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"
. "$TERRACE_TREE/tests/bench/profile.bash"

FSYNCS=${FSYNCS:-2000}
BLOCKS=4096
PATH=$TERRACE_TREE/build/bench:$PATH in_ram hits

# profile DEVICE FILE
profile() {
	from_ram hits "$1" write 4096 $BLOCKS
	sync "$1"
	from_ram hits "$1" fsync 4096 $BLOCKS 500 1		# first use of the code
	rm -f "$OUT/profile"
	from_ram hits "$1" fsync 4096 $BLOCKS "$FSYNCS" 2
	functions 1 "$2"
}

mkram under 64
vol_ram 64 256
dmc lin "0 $((64 * 2048)) linear /dev/ram/under 0"
vol_format
vol_up stream_kb=0
vol_message checkpoint
grep -E ' [tTwW] ' /proc/kallsyms > /dev/shm/symbols
profile /dev/mapper/lin /dev/shm/lin
sleep 10		# nothing of the start falls into it
profile "$VOL" /dev/shm/vol
vol_down
above /dev/shm/lin /dev/shm/vol fsync

bar "fsync behind a write in place: instructions above dm-linear's" "$(sum fsync)" instructions 1000
apart fsync
of "… of the module" '\[dm_terrace\]'
of "… of device-mapper, which sends it down" '\[dm_mod\]'
of "… memory for that" 'kmem_cache|cache_from_obj|slab|mempool'
of "… the block layer, for a second bio" 'bio|blk|submit|bdev|io_acct|io_ticks|bvec'
of "… clocks, RCU, locks and the rest" .
bars_end
