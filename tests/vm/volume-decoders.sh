#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Blocks of packs are decoded by both CPUs side by side for one submitter, and never by him; a lone one in softirq, without a worker: behind the drive's interrupt, or on the other CPU.
# vm: mode=functional cpus=2 memory=1G timeout=300 build=orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/orders.bash"

in_ram fio
T=/sys/kernel/tracing
mountpoint -q $T || mount -t tracefs t $T

# of what was decoded: on which CPU, by whom, how often two at once
sums() {
	awk '$0 !~ / lz4(end)?: / { next }
		/ lz4end: / { under--; next }
		{ for (k = 1; k <= NF; k++) if ($k ~ /^\[[0-9]+\]$/) { cpu[$k]++; soft = substr($(k + 1), 3, 1) ~ /[sS]/ }
		  task[soft ? "softirq" : $1 ~ /^kworker/ ? "kworker" : $1]++; all++; together += under++ > 0 }
		END { for (c in cpu) print "cpu", c, cpu[c]; for (t in task) print "task", t, task[t]; print "all", all + 0; print "together", together + 0 }' \
		$T/trace > /dev/shm/sums
	cat /dev/shm/sums
}
by() { awk -v who="$1" '$1 == "task" && $2 ~ who { n += $3 } END { print n + 0 }' /dev/shm/sums; }

vol_drives 64 512 lbs=512
vol_format
vol_up stream_kb=0 cache_mb=0 ahead_kb=0 janitor_high=1000 janitor_low=990
head -c $((2 << 20)) /dev/urandom | perl -e 'while (read(STDIN, $b, 2048)) { print $b, "\0" x 2048 }' > /dev/shm/data
dd if=/dev/shm/data of="$VOL" bs=1M count=4 oflag=direct status=none
echo 'p:lz4 LZ4_decompress_safe_usingDict' > $T/kprobe_events
echo 'r:lz4end LZ4_decompress_safe_usingDict' >> $T/kprobe_events
echo 1 > $T/events/kprobes/enable
# clusters whose decoding takes longer than asking for the next
order 0 append tier_down=1 codec=lz4 shift=4
dd if="$VOL" of=/dev/null bs=4k skip=100 count=1 iflag=direct status=none
echo > $T/trace
fio_ --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --bs=4k --size=4m --iodepth=32 --rw=randread --number_ios=800 --randrepeat=0 \
	--randseed=3 --cpus_allowed=0 > /dev/shm/fio 2>&1 || die "fio: $(cat /dev/shm/fio)"
sums
sum_of_cpu() { awk -v cpu="[$1]" '$1 == "cpu" && $2 == cpu { n = $3 } END { print n + 0 }' /dev/shm/sums; }
sum_of() { awk -v what="$1" '$1 == what { print $2 }' /dev/shm/sums; }
[ "$(sum_of all)" -ge 700 ] || die "of 800 reads few were decoded"
[ "$(grep -c ^cpu /dev/shm/sums)" = 2 ] || die "one CPU decodes for a submitter with 32 reads under way"
[ "$(sum_of together)" -ge 20 ] || die "one block is decoded after the other, on whichever CPU"
check_eq "blocks decoded by the submitter" "$(by '^(fio|iou)')" 0
pass "all CPUs decode, and the submitter does not"

# Clusters of one block
single() { # DEPTH READS
	echo > $T/trace
	fio_ --name=x --filename="$VOL" --ioengine=io_uring --direct=1 --bs=4k --offset=4m --size=4m --iodepth="$1" --rw=randread --number_ios="$2" --randrepeat=0 \
		--randseed=4 --cpus_allowed=0 > /dev/shm/fio 2>&1 || die "fio: $(cat /dev/shm/fio)"
	sums
	[ "$(sum_of all)" -ge $(($2 * 9 / 10)) ] || die "of $2 reads few were decoded"
	check_eq "blocks decoded by the submitter, at depth $1" "$(by '^(fio|iou)')" 0
}
dd if=/dev/shm/data of="$VOL" bs=1M seek=4 count=4 oflag=direct status=none
order 1 append tier_down=1 codec=lz4
dd if="$VOL" of=/dev/null bs=4k skip=1100 count=1 iflag=direct status=none
# A drive that answers at once does so within the system call: the other CPU's softirq decodes, and with one CPU its own.
single 1 200
[ "$(by softirq)" -ge 180 ] || die "lone reads of a drive that answers within the call woke a worker"
[ "$(sum_of_cpu 000)" -le 20 ] || die "of lone reads of a drive that answers within the call the submitter's CPU decoded $(sum_of_cpu 000)"
single 32 800
[ "$(sum_of_cpu 001)" -ge 100 ] || die "of many reads of a drive that answers within the call the submitter's CPU decoded $(sum_of_cpu 000)"
echo 0 > /sys/devices/system/cpu/cpu1/online
single 1 200
[ "$(by softirq)" -ge 180 ] || die "with one CPU lone reads woke a worker"
echo 1 > /sys/devices/system/cpu/cpu1/online
single 1 200
[ "$(by softirq)" -ge 180 ] || die "with its CPU back lone reads woke a worker"
[ "$(sum_of_cpu 000)" -le 20 ] || die "with its CPU back lone reads are decoded by the submitter's"
pass "a lone read that is answered within the call is decoded by another CPU's softirq, if there is one"
drive slow set read_lat=2ms
single 1 200
[ "$(by softirq)" -ge 180 ] || die "lone reads woke a worker"
single 32 800
[ "$(by kworker)" -ge 700 ] || die "reads that are under way together were left to one CPU's softirq"
pass "a lone read is decoded behind the interrupt, many are spread"

vol_message set cache_mb=8
single 1 300
[ "$(by softirq)" -ge 200 ] || die "lone reads woke a worker, with the promotion cache"
hits=$(cat /sys/fs/terrace/*/cache_hits)
dd if="$VOL" of=/dev/null bs=4k skip=1024 count=1024 iflag=direct status=none
[ $(($(cat /sys/fs/terrace/*/cache_hits) - hits)) -ge 100 ] || die "what was decoded behind the interrupt was not kept"
pass "and kept in the promotion cache"
# behind the interrupt as well nobody is given what fails its check
vol_message set cache_mb=0
drive slow set read_lat=0
vol_down
vol_damage 1 payload 10 > /dev/null
vol_up stream_kb=0 cache_mb=0 ahead_kb=0 janitor_high=1000 janitor_low=990
drive slow set read_lat=2ms
dd if="$VOL" of=/dev/null bs=4k skip=1100 count=1 iflag=direct status=none
echo > $T/trace
for ((k = 0; k < 40; k++)); do dd if="$VOL" of=/dev/null bs=4k skip=$((1024 + k)) count=1 iflag=direct status=none 2> /dev/null && echo $k; done > /dev/shm/given || true
check_eq "of 40 blocks, one of which is damaged, given" "$(wc -l < /dev/shm/given)" 39
sums
[ "$(by softirq)" -ge 36 ] || die "lone reads woke a worker"
pass "a damaged block is refused behind the interrupt, its neighbours are given"
vol_damage 1 payload 10 > /dev/null
drive slow set read_lat=0
vol_down
vol_up
cmp <(dd if=/dev/shm/data bs=1M count=2 status=none) <(dd if="$VOL" bs=1M skip=4 count=2 iflag=direct status=none) || die "other data"
vol_down
vol_check
