#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The promotion cache: what was read from packs is not read again, is never more than allowed, and leaves when overwritten.
# vm: mode=functional cpus=1 memory=2G timeout=800 build=orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/orders.bash"

DATA=/dev/shm/data
of() { cat /sys/fs/terrace/*/"$1"; }
blocks() { dd if="$VOL" of=/dev/null bs=4k skip="$1" count="$2" iflag=direct status=none; }
same() { cmp -n $((16 << 20)) <(dd if="$VOL" bs=256k count=64 iflag=direct status=none) "$DATA" || die "$1: data differ"; }
# reads WANTED WHAT CMD...: how often the slow drive was read for packs meanwhile
reads() {
	local before
	before=$(of pack_reads)
	"${@:3}"
	check_eq "reads of packs, $2" $(($(of pack_reads) - before)) "$1"
}

vol_ram 64 512
vol_format
vol_up stream_kb=0 ahead_kb=0		# counted one by one
# regions 0 and 1 compress, 2 does not, 3 stays fast
/usr/bin/python3 -ISc 'import sys; sys.stdout.write("".join("line %d of words that compress\n" % k for k in range(400000))[:8 << 20])' > $DATA
dd if=/dev/urandom of=$DATA bs=1M count=8 seek=8 conv=notrunc status=none
dd if=$DATA of="$VOL" bs=1M oflag=direct status=none
order 0 append tier_down=1 codec=lz4 shift=0
order 1 append tier_down=1 codec=zstd shift=2
order 2 append tier_down=1 codec=none shift=0

# found again: by readers, and by the order that promotes
reads 40 "the first time" blocks 100 40
reads 0 "the second time" blocks 100 40
reads 0 "to promote what was read" order 0 raise up=100-139
[ "$(of cache_hits)" -ge 80 ] || die "only $(of cache_hits) hits"
[ "$(of cache_stored)" -gt 0 ] || die "nothing is kept"
same "after promotion"
pass "clusters that were read are found"

# a scrub asks the drive
before=$(of pack_reads)
order 0 scrub
[ "$(of pack_reads)" -gt "$before" ] || die "a scrub was answered by the cache"

# hot ones are kept decoded, and answered at once
order 0 drop
blocks 0 1024
for ((k = 0; k < 25; k++)); do blocks 200 4; done
[ "$(of cache_plain)" -ge $((4 * 4096)) ] || die "nothing is kept decoded: $(of cache_plain) bytes"
before=$(of deferred)
blocks 200 4
check_eq "reads of hot blocks that took the slow path" $(($(of deferred) - before)) 0

pass "hot blocks are kept decoded"

# what is overwritten, discarded or cleaned leaves at once
dd if=/dev/urandom of=/dev/shm/new bs=4k count=4 status=none
dd if=/dev/shm/new of="$VOL" bs=4k seek=200 oflag=direct status=none
dd if=/dev/shm/new of=$DATA bs=4k seek=200 conv=notrunc status=none

blocks 2048 500
[ "$(of cache_stored)" -gt 2000000 ] || die "raw blocks are not kept: $(of cache_stored)"
for ((k = 0; k < 3; k++)); do
	dd if=$DATA of="$VOL" bs=4M skip=$k seek=$k count=1 oflag=direct status=none
done
check_eq "compressed bytes kept of what was overwritten" "$(of cache_stored)" 0
check_eq "decoded bytes kept of what was overwritten" "$(of cache_plain)" 0
same "after overwriting all"
pass "overwritten blocks leave"

# the limit is hard, and memory that others need is given back
for k in 0 1 2; do order $k append tier_down=1 codec=none shift=0; done
vol_message set cache_mb=1
start from_ram orders /dev/terrace/vol events 1000 > /dev/shm/events
until grep -q listening /dev/shm/events; do sleep 0.1; done
blocks 0 3072
for ((k = 0; k < 25; k++)); do blocks 0 128; done	# an epoch's worth of hits
blocks 1000 100						# what is kept next finds that it is over
until grep -q "type=6 tier=-1 region=-1 value=[89][0-9][0-9]$" /dev/shm/events; do
	((k++ < 300)) || die "a full cache was not told: $(cat /dev/shm/events)"
	sleep 0.1
done
kill_all "$JOB"
kept=$(($(of cache_stored) + $(of cache_plain)))
[ "$kept" -le $((1 << 20)) ] || die "$kept bytes are kept, 1 MiB are allowed"
[ "$kept" -gt $((900 << 10)) ] || die "only $kept bytes are kept"
for ((k = 0; k < 50 && kept; k++)); do
	echo 2 > /proc/sys/vm/drop_caches
	kept=$(($(of cache_stored) + $(of cache_plain)))
done
check_eq "bytes kept after the kernel asked for memory" "$kept" 0
vol_message set cache_mb=0
blocks 0 500
check_eq "bytes kept without a cache" "$(($(of cache_stored) + $(of cache_plain)))" 0
same "at the end"
pass "limits"
vol_down
vol_check
