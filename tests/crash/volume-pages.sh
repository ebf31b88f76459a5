#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A machine that goes just before a checkpoint's superblock is written finds every page of the one before: none was taken again, however full the pages' area.
# vm: mode=functional cpus=1 memory=2G timeout=600
#
# Pages are taken in a circle, and a checkpoint writes them in batches; what a batch has
# replaced lies anywhere. With a random half of the regions in each checkpoint, two batches
# of them, there are soon some that lie just ahead. There is one copy of the metadata: a
# second would have the page still, and hide it.
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}
ROUNDS=${ROUNDS:-4}
REGIONS=240
in_ram dmsetup fio
dmsetup() { from_ram dmsetup "$@"; }
klog_allow 'drive (fast|slow)'
UP=(stream_kb=0 commit_ms=60000 janitor_high=1000 janitor_low=990)

# One block of each region, or of some of them; it says where it belongs.
blocks() {
	fio_ --name=pages --filename="$VOL" --offset=$((${at:-0} * 4))k --size=$(((REGIONS - 1) * 4))m --bs=4k --ioengine=libaio --iodepth=16 --direct=1 \
		--verify=crc32c "$@" > /dev/shm/fio || { cat /dev/shm/fio; die "${round:-the beginning}: reading or writing the regions (seed $SEED)"; }
}
# Blocks that are new: one that is overwritten changes no page.
touch_half() {
	local at=$((++touched))
	blocks --rw=randwrite --blockalign=4m --norandommap --randrepeat=0 --randseed=$((SEED * 1000 + touched)) --number_ios=$((REGIONS * 2 / 3)) --do_verify=0
}
touched=0

vol_models "$SEED" fast:64 slow:1216
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --journal 1M --size $((REGIONS * 4))M --mirror none
super=$(vol_layout fast super)
pages=$(($(vol_layout fast pages | cut -d' ' -f2) / 8))
vol_up "${UP[@]}"
blocks --rw=write:4092k --do_verify=0
vol_message checkpoint
# once round: half of the regions, and two directories or three
for ((n = 0; n < pages / (REGIONS / 2) + 1; n++)); do
	touch_half
	vol_message checkpoint
done
pass "$pages blocks for pages, $REGIONS regions, $touched checkpoints"

for ((round = 1; round <= ROUNDS; round++)); do
	touch_half
	vol_message commit
	# shellcheck disable=SC2086 # two words
	drive fast error add write $super hold
	start vol_message checkpoint 2> /dev/null
	drive_wait_held fast
	for d in "${VOL_DRIVES[@]}"; do drive "${d##*/}" dead on; done
	drive fast release
	wait "$JOB" || true
	dmr vol
	drive fast error clear
	for d in "${VOL_DRIVES[@]}"; do drive "${d##*/}" dead off; done
	vol_check
	vol_up "${UP[@]}"
	blocks --rw=read:4092k
	touch_half
	vol_message checkpoint
done
vol_down
vol_check
pass "$ROUNDS restarts before a superblock"
