#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Eight-way fio, on hits and on new blocks, and packing, on one CPU and on two: does a lock stop scaling?
# bench: mode=functional memory=3G timeout=500 cpus=2 alone
# seeds: 1
# packages: fio
# two runs: . => real time, on CPUs that do other things as well; the bars are of ratios
#
# The only figures here in real time, on whatever else the host does. So only
# ratios are judged, and only beside dm-linear's on a drive of the same kind:
# the legs (volume and dm-linear, on one CPU and on two) follow one another
# LEGS times over; what disturbs them all disturbs them alike. Each device's
# best leg counts: others only ever take time away. Its p99 and p99.9 stand beside it and are not judged.
#
# Below both, the blocks' data go to dm-zero, which has no lock: RAM disks
# have one for each drive, which would hide ours. The metadata are real.
# shellcheck disable=SC2034
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"
. "$TERRACE_TREE/tests/bench/fio.bash"

LEGS=${LEGS:-3}
SECONDS_EACH=${SECONDS_EACH:-5}
MB=512
SPARE=1536		# of the fast tier: new blocks take it faster than a commit gives it back
LEAST=${LEAST:-90}		# per cent of dm-linear's ratio

in_ram fio dmsetup
mkram head 64
mkram slow 320
dmc fast "0 $((64 * 2048)) linear /dev/ram/head 0
$((64 * 2048)) $(((MB + SPARE) * 2048)) zero"
dmc under "0 $((MB * 2048)) zero"
dmc lin "0 $((MB * 2048)) linear /dev/mapper/under 0"
VOL_DRIVES=(/dev/mapper/fast /dev/ram/slow)
vol_format
vol_up stream_kb=0
dd if=/dev/zero of="$VOL" bs=1M count=$MB oflag=direct conv=fsync status=none
vol_message checkpoint

# iops DEVICE MODE: IOPS, p99, p99.9 in ns
iops() {
	fio_json --name=x --filename="$1" --ioengine=io_uring --direct=1 --bs=4k --size=${MB}m --norandommap --randrepeat=0 --randseed=1 --rw="$2" --iodepth=8 \
		--numjobs=8 --thread --group_reporting --time_based --runtime="$SECONDS_EACH" "${LATENCY[@]}"
	awk -F'[ ,:]+' -v tails="$(percentile_ns 99.000000) $(percentile_ns 99.900000)" \
		'/"iops" :/ { if ($3 > best) best = $3 } END { printf "%.0f %s\n", best, tails }' /dev/shm/o.json
}

cpus() { echo $(($1 - 1)) > /sys/devices/system/cpu/cpu1/online; }
# best LEGS [WORD]: of the leg with the most: 1 IOPS, 2 p99, 3 p99.9
best() { sort -n "/dev/shm/iops.$1" | tail -1 | cut -d' ' -f"${2:-1}"; }
spread() { sort -n "/dev/shm/iops.$1" | cut -d' ' -f1 | sed -n '1p;$p' | tr '\n' ' ' | sed 's/ $//; s/ / to /'; }
ratio() { echo $(($(best "$1.2") * 100 / $(best "$1.1"))); }

# legs WHAT MODE: figures of both devices, and what one CPU more is worth
legs() {
	local what=$1 mode=$2 leg n dev
	rm -f /dev/shm/iops.*
	for ((leg = 0; leg < LEGS; leg++)); do
		for n in 1 2; do
			cpus $n
			for dev in lin vol; do iops "/dev/mapper/$dev" "$mode" >> "/dev/shm/iops.$dev.$n"; done
		done
	done
	for dev in lin vol; do
		for n in 1 2; do
			figure "8-way $what, $dev, $n CPU ($(spread $dev.$n))" "$(best $dev.$n)" IOPS
			figure "8-way $what, $dev, $n CPU: p99 of that leg" "$(best $dev.$n 2)" ns
			figure "8-way $what, $dev, $n CPU: p99.9 of that leg" "$(best $dev.$n 3)" ns
		done
	done
	figure "8-way $what, 2 CPUs against 1, dm-linear" "$(ratio lin)" %
	bar "8-way $what, 2 CPUs against 1, volume" "$(ratio vol)" % -140
}

echo "# $LEGS legs of $SECONDS_EACH s each, 8 jobs at depth 8; least to most IOPS of the legs"
for mode in randread randwrite; do
	legs $mode $mode
	bar "8-way $mode, the volume's ratio of dm-linear's" $(($(ratio vol) * 100 / $(ratio lin))) % "-$LEAST"
done
[ "$(vol_tier 1 reads)" = 0 ] || die "some reads were no hits: $(vol_status)"
vol_down

# ---- new blocks: each write takes a fresh slot and a journal record, and gives the old slot back ----

vol_up stream_kb=0 atomic=no:0
legs "new blocks" randwrite
new=$(vol_get new) all=$(vol_tier 0 writes) down=$(vol_tier 1 writes)
if [ "$new" -lt $((all * 99 / 100)) ] || [ "$down" -gt $((all / 100)) ]; then die "of $all writes to slots $new were new, $down went to shelves"; fi
vol_down
dmr lin
dmr under
dmr fast
rmram head
rmram slow

# ---- packing: the regions of a batch are compressed side by side ----

# 32 MiB that compress by half, level by level of what compressing costs; the RAM disks are a small part of it
PATH=$TERRACE_TREE/build:$PATH in_ram orders
mkram fast 128		# twice 32 MiB, and less than what the janitor looks at
mkram slow 512
VOL_DRIVES=(/dev/ram/fast /dev/ram/slow)
head -c $((16 << 20)) /dev/urandom | perl -e 'while (read(STDIN, $b, 2048)) { print $b, "\0" x 2048 }' > /dev/shm/half
# kb_s CODEC: of payload
kb_s() {
	dd if=/dev/shm/half of="$VOL" bs=1M oflag=direct status=none
	from_ram orders /dev/terrace/vol sweep 0 8 append tier_down=1 codec="$1" > /dev/shm/swept || die "sweep: $(cat /dev/shm/swept)"
	sed -nE 's/.* ns=([0-9]+)$/\1/p' /dev/shm/swept | awk '{ printf "%.0f\n", 32 * 1048576 * 1e6 / $1 }'
}
for codec in lz4 zstd; do
	vol_format
	vol_up stream_kb=0
	kb_s $codec > /dev/null
	rm -f /dev/shm/iops.*
	for ((leg = 0; leg < LEGS; leg++)); do
		for n in 1 2; do
			cpus $n
			kb_s $codec >> "/dev/shm/iops.$codec.$n"
		done
	done
	for n in 1 2; do figure "8 regions packed with $codec, $n CPU ($(spread $codec.$n))" "$(best $codec.$n)" kB/s; done
	bar "packing with $codec, 2 CPUs against 1" "$(ratio $codec)" % -150
	vol_down
done
bars_end
