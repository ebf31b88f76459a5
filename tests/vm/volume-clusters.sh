#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Clusters of 16 blocks: the warmest come first, no more is read and decoded than a block needs, unless early_termination=0; indexes leave memory that others need; at most 4 packs; one flush for a batch of orders.
# vm: mode=functional cpus=2 memory=2G timeout=600 build=orders,daemon
# shellcheck disable=SC2119,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/orders.bash"

DATA=/dev/shm/data
T=/sys/kernel/tracing
mountpoint -q $T || mount -t tracefs t $T
word() { sed -n "s/.*\b$1=\([^ ]*\).*/\1/p" <<< "$said"; }
of() { cat /sys/fs/terrace/*/"$1"; }

# Everything that is decoded goes through one of these; bytes is how much comes out.
echo 'p:lz4 LZ4_decompress_safe_usingDict bytes=%cx:s32' > $T/kprobe_events
echo 'p:zstd zstd_decompress_stream bytes=+8(%si):u64 done=+16(%si):u64' >> $T/kprobe_events
echo 'done == 0' > $T/events/kprobes/zstd/filter	# it is called again and again until nothing more comes
echo 1 > $T/events/kprobes/enable
decoded() { awk -F'bytes=' '/bytes=/ { n += $2 + 0 } END { print n / 4096 + 0 }' $T/trace; }

vol_drives 64 512 lbs=512
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --mirror none
up=(stream_kb=0 cache_mb=0 ahead_kb=0 janitor_high=1000 janitor_low=990)
vol_up "${up[@]}"
# half of each block is noise
head -c $((8 << 20)) /dev/urandom > /dev/shm/noise
perl -e 'while (read(STDIN, $b, 2048)) { print $b, "\0" x 2048 }' < /dev/shm/noise > $DATA
dd if=$DATA of="$VOL" bs=1M count=16 oflag=direct status=none

# costs BLOCK [COUNT]: "BYTES BLOCKS": what the slow drive is read for it, what is decoded
costs() {
	local before
	before=$(drive_get slow read_bytes)
	echo > $T/trace
	dd if="$VOL" of=/dev/shm/got bs=$((${2:-1} * 4096)) skip=$(($1 * 4096)) count=1 iflag=direct,skip_bytes status=none
	cmp -n $((${2:-1} * 4096)) /dev/shm/got <(dd if=$DATA bs=4k skip="$1" count="${2:-1}" status=none) > /dev/null || die "block $1 differs"
	echo $(($(drive_get slow read_bytes) - before)) "$(decoded)"
}

# ---- the warmest first, and no more than is needed ----

order 0 append tier_down=1 codec=lz4 shift=4
order 1 append tier_down=1 codec=zstd shift=4
# of each 16 the last is warm
every() { seq -s, "$1" 16 1023; }
order 2 append tier_down=1 codec=lz4 shift=4 warm="$(every 15)"
# region 3 by hand: block 3072 + 15 of the volume is in front of its cluster
terracectl move --to hdd --codec zstd --cluster 16 --warm 3087-3087 vol 3072-4095 > /dev/shm/said || die "$(cat /dev/shm/said)"
costs 160 16 > /dev/null		# the indexes are in memory
costs 1184 16 > /dev/null
costs 2208 16 > /dev/null
costs 3104 16 > /dev/null
for codec in "lz4 0 2048" "zstd 1024 3072"; do
	read -r name plain warmed <<< "$codec"
	read -r whole all <<< "$(costs "$plain" 16)"
	read -r first one <<< "$(costs "$plain")"
	read -r last most <<< "$(costs $((plain + 15)))"
	read -r warm wone <<< "$(costs $((warmed + 15)))"
	read -r second two <<< "$(costs "$warmed")"
	echo "$name: bytes read, blocks decoded: whole $whole $all, first $first $one, last $last $most; warm at the last place $warm $wone, the next $second $two"
	check_eq "blocks decoded for a whole cluster of $name" "$all" 16
	check_eq "… for its first" "$one" 1
	check_eq "… for its last" "$most" 16
	check_eq "… for its last, that is warm" "$wone" 1
	check_eq "… for its first, behind the warm one" "$two" 4
	[ $((first * 5)) -le "$whole" ] || die "$name: the first block takes $first of $whole bytes"
	[ "$last" -le "$whole" ] || die "$name: the last block takes $last of $whole bytes"
	[ $((warm * 5)) -le "$whole" ] || die "$name: a warm block takes $warm of $whole bytes"
done
expect_fail "'5-x' is no range of blocks" terracectl move --to hdd --warm 5-x vol 0-9
expect_fail "cluster 5: 1, 4 or 16" terracectl move --to hdd --cluster 5 vol 0-9
pass "the warmest come first, and alone are read and decoded"

# ---- the switch: all of a cluster, whatever is wanted; and from the cache as well ----

vol_message set early_termination=0
for codec in "lz4 0 2048" "zstd 1024 3072"; do
	read -r name plain warmed <<< "$codec"
	read -r whole all <<< "$(costs "$plain" 16)"
	for block in $plain $((plain + 7)) $((plain + 15)); do
		check_eq "bytes read, blocks decoded for block $block of $name" "$(costs "$block")" "$whole 16"
	done
	check_eq "blocks decoded for one that is warm" "$(costs $((warmed + 15)) | cut -d' ' -f2)" 16
	# two of two clusters, in one read: one I/O has both whole
	read -r bytes both <<< "$(costs $((plain + 15)) 2)"
	check_eq "blocks decoded for the last of a cluster and the first of the next" "$both" 32
	[ "$bytes" -le $((whole * 2)) ] || die "two clusters of $whole bytes took $bytes"
done
# what the cache holds of it was put there under the one or the other setting
vol_message set cache_mb=8
for codec in "lz4 320" "zstd 1344"; do
	read -r name plain <<< "$codec"
	vol_message set early_termination=1
	check_eq "blocks decoded for the first of $name" "$(costs "$plain" | cut -d' ' -f2)" 1
	vol_message set early_termination=0
	read -r bytes all <<< "$(costs "$plain")"
	check_eq "blocks decoded for it when its beginning is in the cache" "$all" 16
	[ "$bytes" -gt 0 ] || die "all of a cluster was decoded of which memory has the beginning"
	check_eq "... and when all of it is there" "$(costs $((plain + 15)))" "0 16"
	vol_message set early_termination=1
	check_eq "... as far as the first" "$(costs "$plain")" "0 1"
done
vol_message set cache_mb=0
# behind the last cluster of region 0 the drive has gone bad: what lies in front of that is had all the same
vol_message commit
vol_down
at=$(terracectl dump --json packs --range 0 "${VOL_DRIVES[@]}" | /usr/bin/python3 -ISc 'import json, sys
pack = json.load(sys.stdin)["items"][0]
print(pack["place"] + pack["blocks"] - 3)')
data=$(vol_layout slow data)
vol_up "${up[@]}" early_termination=0
costs 160 > /dev/null
drive slow error add read $((${data% *} + at * 8)) 24
check_eq "blocks decoded for the first of a cluster that is bad behind it" "$(costs 1008 | cut -d' ' -f2)" 1
klog_expect 'block 1023 in pack [0-9]+ at tier 1 block [0-9]+ cannot be read \(-5\)'
if dd if="$VOL" of=/dev/null bs=4k skip=1023 count=1 iflag=direct status=none 2> /dev/null; then die "the cluster was not bad behind its first block"; fi
drive slow error clear
vol_message set early_termination=1
pass "early_termination=0 reads and decodes all of a cluster, or as much as there is"

echo 0 > $T/events/kprobes/enable
echo > $T/kprobe_events

# ---- indexes are given back to who needs memory, and read again afterwards ----

known() { echo $(($(of index_reads) + $(of index_lookups))); }
read_all() { local k; for k in 0 1 2 3; do costs $((k * 1024 + 500)) > /dev/null; done; }
decoded() { :; }
read_all
before=$(known)
read_all
check_eq "indexes read while they are in memory" "$(known)" "$before"
for k in 1 2 3 4 5 6; do echo 2 > /proc/sys/vm/drop_caches; done
read_all
[ $(($(known) - before)) -ge 3 ] || die "$(($(known) - before)) of 4 indexes had to be read again after the kernel asked for memory"
pass "indexes leave memory that others need"

# a copy that cannot be read is no harm, and told
klog_expect 'index of pack [0-9]+ of region 2: its copy at tier 0 block [0-9]+ is damaged or cannot be read, used is that at tier 1 block [0-9]+'
klog_allow 'drive fast'
vol_message evict_indexes
before=$(of index_reads)
drive fast error add read 0 0
costs 2500 > /dev/null
drive fast error clear
check_eq "indexes read from the shelf, their copy being unreadable" $(($(of index_reads) - before)) 1
pass "an index without its copy"

# ---- one pack after the other: the fifth makes one of all ----

for k in 1 2 3 4 5 6 7; do
	dd if=$DATA of="$VOL" bs=4k skip=$((k * 50)) seek=$((k * 50)) count=20 oflag=direct status=none
	order 0 append tier_down=1 codec=lz4
	check_eq "blocks that went down" "$(word down)" 20
	[ "$(word packs)" -le 4 ] || die "a region of $(word packs) packs"
	seen="${seen:-}$(word packs) "
done
check_eq "packs after each append" "$seen" "2 3 4 1 2 3 4 "
cmp -n $((16 << 20)) "$VOL" $DATA || die "data differ"
pass "at most 4 packs"

# ---- one flush for what ends together ----

vol_message set orders_tier0=1
vol_message set orders_tier1=1
for ((k = 8; k < 41; k++)); do dd if=$DATA of="$VOL" bs=64k count=1 seek=$((k * 64)) oflag=direct status=none; done
vol_message checkpoint
before=$(drive_get slow flushes)
order 40 append tier_down=1 codec=lz4		# one alone, to compare with
one=$(($(drive_get slow flushes) - before))
before=$(drive_get slow flushes)
from_ram orders /dev/terrace/vol sweep 8 32 append tier_down=1 codec=lz4 > /dev/shm/swept || die "$(cat /dev/shm/swept)"
all=$(($(drive_get slow flushes) - before))
# two workers halve what is there, again and again: 16, 8, 4, 2, 1 and 1
echo "flushes of the slow drive: $one by one order, $all by 32 given at once"
[ "$one" -ge 1 ] || die "an order does not flush where it writes"
[ "$all" -le 20 ] || die "each order of a batch has a flush of its own: $all flushes"
vol_down
vol_check
pass "one flush serves a batch"
