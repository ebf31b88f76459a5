#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Eight-way fio on one CPU and on two: does a lock stop scaling?
# bench: mode=functional memory=3G timeout=240 cpus=2 alone
#
# The only figures here in real time, on whatever else the host does: each is
# measured TURNS times, turn about, the medians are compared and the spread is
# printed. Only the ratio has a bar, and the raw RAM disk, which has no lock
# of ours, shows beside it what the machine itself allows.
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"

TURNS=${TURNS:-3}
SECONDS_EACH=${SECONDS_EACH:-4}
MB=112

in_ram fio
mkram raw $MB
vol_ram 256 320
dd if=/dev/zero of=/dev/ram/raw bs=1M count=$MB oflag=direct status=none
dd if=/dev/zero of=/dev/ram/fast bs=1M count=256 oflag=direct status=none
vol_format
vol_up stream_kb=0
dd if=/dev/zero of="$VOL" bs=64k count=$((MB * 16)) oflag=direct conv=fsync status=none
vol_message checkpoint

# iops DEVICE MODE
iops() {
	fio_ --name=x --filename="$1" --ioengine=io_uring --direct=1 --bs=4k --size=${MB}m --norandommap --randrepeat=0 --rw="$2" --iodepth=8 \
		--numjobs=8 --group_reporting --time_based --runtime="$SECONDS_EACH" --output-format=json --output=/dev/shm/o.json > /dev/null
	awk -F'[ ,:]+' '/"iops" :/ { if ($3 > best) best = $3 } END { printf "%.0f\n", best }' /dev/shm/o.json
}

cpus() { echo $(($1 - 1)) > /sys/devices/system/cpu/cpu1/online; }
median() { sort -n "$1" | sed -n "$(((TURNS + 1) / 2))p"; }
spread() { sort -n "$1" | sed -n '1p;$p' | tr '\n' ' ' | sed 's/ $//; s/ / to /'; }

for mode in randread randwrite; do
	rm -f /dev/shm/iops.*
	for ((turn = 0; turn < TURNS; turn++)); do
		for n in 1 2; do
			cpus $n
			for dev in /dev/ram/raw "$VOL"; do iops "$dev" $mode >> "/dev/shm/iops.$(basename "$dev").$n"; done
		done
	done
	for dev in raw vol; do
		for n in 1 2; do figure "8-way $mode, $dev, $n CPU ($(spread /dev/shm/iops.$dev.$n))" "$(median /dev/shm/iops.$dev.$n)" IOPS; done
	done
	figure "8-way $mode, raw RAM disk, 2 CPUs against 1" $(($(median /dev/shm/iops.raw.2) * 100 / $(median /dev/shm/iops.raw.1))) %
	bar "8-way $mode, volume, 2 CPUs against 1" $(($(median /dev/shm/iops.vol.2) * 100 / $(median /dev/shm/iops.vol.1))) % -140
done
[ "$(vol_tier 1 reads)" = 0 ] || die "some reads were no hits: $(vol_status)"
vol_down
bars_end
