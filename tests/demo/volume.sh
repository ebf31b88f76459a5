#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# usage: scripts/vm vtime -- bash tests/demo/volume.sh
#
# A volume of a small fast drive and a large disk, beside the disk alone, on
# the same drive models, in virtual time: what small writes and reads of a hot
# set cost, what happens when the fast drive is full, and what a power cut
# leaves.
# shellcheck disable=SC2034
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

FAST=${FAST:-128}	# MiB
SLOW=${SLOW:-512}
HOT=16			# MiB: the hot set

in_ram fio dmsetup sha256sum

# iops DEVICE MODE IOS: random 4 KiB I/O in the hot set
iops() {
	fio_ --name=x --filename="$1" --ioengine=io_uring --direct=1 --bs=4k --rw="$2" --size=${HOT}m --iodepth=8 --randrepeat=0 \
		--number_ios="$3" --output-format=json --output=/dev/shm/o.json > /dev/null
	awk -F'[ ,:]+' '/"iops" :/ { if ($3 > best) best = $3 } END { printf "%.0f", best }' /dev/shm/o.json
}

load_drive
mkdrive alone hdd "$SLOW" lbs=4096
mkdrive fast optane "$FAST" lbs=4096 group=pc
mkdrive slow hdd "$SLOW" lbs=4096 group=pc
VOL_DRIVES=(/dev/mapper/fast /dev/mapper/slow)

echo "# terracectl format --name vol --tier optane=/dev/mapper/fast --tier hdd=/dev/mapper/slow"
vol_format --tier optane=/dev/mapper/fast --tier hdd=/dev/mapper/slow
echo "# dmsetup create vol --table '$(vol_table stream_kb=0)'"
vol_up stream_kb=0

echo
printf '%-44s %12s %12s\n' "random 4 KiB, queue depth 8, hot set $HOT MiB" "disk alone" "volume"
w1=$(iops /dev/mapper/alone randwrite 400)
w2=$(iops "$VOL" randwrite 4096)
printf '%-44s %12s %12s\n' "writes per second" "$w1" "$w2"
r1=$(iops /dev/mapper/alone randread 400)
r2=$(iops "$VOL" randread 4096)
printf '%-44s %12s %12s\n' "reads per second" "$r1" "$r2"
[ "$w2" -gt $((w1 * 10)) ] || die "writes to the volume are no faster than to the disk"
[ "$r2" -gt $((r1 * 10)) ] || die "reads of the volume are no faster than of the disk"

echo
echo "# more than the fast drive holds is written: the janitor makes room, oldest first"
dd if=/dev/zero of="$VOL" bs=1M seek=32 count=$((FAST + 32)) oflag=direct conv=fsync status=none
sleep 20
echo "fast drive: $(vol_tier 0 used) blocks in use; disk: $(vol_tier 1 used)"

echo
echo "# a file's worth of data is written and flushed; then the power fails"
head -c 4M /dev/urandom > /dev/shm/data
dd if=/dev/shm/data of="$VOL" bs=4k oflag=direct conv=fsync status=none
vol_cut
vol_up stream_kb=0
echo "reopened: $(dmesg | grep -o 'replayed .*' | tail -1)"
[ "$(dd if="$VOL" bs=1M count=4 iflag=direct status=none | sha256sum)" = "$(sha256sum < /dev/shm/data)" ] || die "flushed data are gone"
echo "every flushed byte is there"
vol_down
vol_check
echo "terracectl check --full: sound"
