#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What terraced foretells of hit rates comes: of the setting in use on this volume, of a fast tier half or twice as large on volumes that have one.
# vm: mode=vtime memory=2G timeout=900 long build=daemon,orders
# shellcheck disable=SC2034,SC2086,SC2119,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"
. "$TERRACE_TREE/tests/vm/orders.bash"

DATA=/dev/shm/data
REGIONS=16	# of 1024 blocks: all of the volume
FAST=4096	# blocks of the fast tier that the others are compared with
WARM=50000 READS=70000	# in all; from then on they are judged

# All accesses are heard, and nothing is in the way of moves, which miniatures leave out.  They run on every second block.
conf_unhindered heat_sample=1 sampling=1 budget.bytes_per_second=0 idle.boost=1 loose.quiet_seconds=86400 miniature.most_share=1

counter() { cat /sys/fs/terrace/*/"$1"; }
read_by_now() { [ $(($(counter tier0/reads) + $(counter tier1/reads) - before)) -ge $WARM ]; }
# With one seed: it says which blocks are hot.
load() { fio_ --thread --name=r --filename="$VOL" --rw=randread --bs=4k --direct=1 --size=$((REGIONS * 4))m --io_size=$((READS * 4))k --rate_iops=2000 \
	--random_distribution=zipf:0.99 --norandommap --randrepeat=0 --randseed=7 > /dev/null; }

# made SECTORS: a volume whose fast tier is on so many
made() {
	dmc top "0 $1 linear $(readlink -f /dev/ram/fast) 0"
	VOL_DRIVES=(/dev/mapper/top /dev/ram/slow)
	vol_format --size $((REGIONS * 4))M --tier "optane:slots:atomic=/dev/mapper/top" --tier "hdd:shelves:atomic=/dev/ram/slow"
	vol_up stream_kb=0 cache_mb=0 janitor_high=1000 janitor_low=990 heat_sample=1
}
gone() {
	vol_down
	vol_check > /dev/null
	dmr top
}
blocks() {
	local used all
	IFS=/ read -r used all <<< "$(vol_tier 0 used)"
	echo "$all"
}
# sectors of metadata on the fast tier
overhead() {
	made 65536
	echo $((65536 - $(blocks) * 8))
	gone
}

goes_down() { ask move "$1" append tier_down=1 codec=none > /dev/null && echo 0; }
# real BLOCKS: of the last reads on a volume with so many fast blocks the share that was served fast, in $real, per 10,000
real() {
	local r slow judged
	made $(($1 * 8 + overhead))
	check_eq "blocks of the fast tier" "$(blocks)" "$1"
	for ((r = 0; r < REGIONS; r++)); do
		dd if=$DATA of="$VOL" bs=1M seek=$((r * 4)) oflag=direct status=none
		until_says 0 goes_down $r	# the module's own workers may be busy with it
		sleep 1		# the slots are free again after a commit
	done
	rm -rf /dev/shm/state
	before=$(($(counter tier0/reads) + $(counter tier1/reads)))
	daemon_start
	start load
	until_ "$WARM reads" read_by_now
	slow=$(counter tier1/reads)
	judged=$(($(counter tier0/reads) + slow))
	wait "$JOB"
	slow=$(($(counter tier1/reads) - slow))
	judged=$(($(counter tier0/reads) + $(counter tier1/reads) - judged))
	[ $judged -ge $(((READS - WARM) / 2)) ] || die "only $judged reads were judged"
	real=$((10000 - slow * 10000 / judged))
	sleep 1
	answers
	check_eq "failed orders" "$(number failed)" 0
}
foretold() { number "$1" | awk '{ printf "%d\n", $1 * 10000 }'; }
# near WHAT FORETOLD REAL
near() {
	local off=$(($2 - $3))
	[ ${off#-} -le 200 ] || die "$1: $2 of 10,000 reads were foretold to be hits, $3 were"
	pass "$1: $2 of 10,000 reads were foretold to be hits, $3 were"
}

in_ram fio
head -c 4M /dev/urandom > $DATA
mkram fast 64
mkram slow 512
overhead=$(overhead)

real $FAST
now=$(foretold ralt) half=$(foretold fast_half) double=$(foretold fast_double)
near "the setting in use" "$now" "$real"
# what is foretold differs by more than it may be off
[[ $((half + 300)) -lt $now && $((now + 300)) -lt $double ]] || die "half, now and double: $half, $now, $double"
daemon_stop
gone
for size in half double; do
	if [ $size = half ]; then real $((FAST / 2)); else real $((FAST * 2)); fi
	near "$size the fast tier" "${!size}" "$real"
	near "the setting in use there" "$(foretold ralt)" "$real"
	daemon_stop
	gone
done
