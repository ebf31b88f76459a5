#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Swap on a volume: while the page allocator has nothing to give, writes to the volume are what memory comes from.
# vm: mode=functional memory=768M timeout=900 long
# shellcheck disable=SC2119,SC2034
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

OVER=${OVER:-150}	# MiB more than is available

kb() { awk -v w="$1:" '$1 == w { print $2 }' /proc/meminfo; }
swapped_mb() { awk '$1 == "pswpout" { print int($2 / 256) }' /proc/vmstat; }

hold() {
	local before mb
	before=$(swapped_mb)
	mb=$(($(kb MemAvailable) / 1024 + OVER))
	timeout -s KILL 400 python3 "$TERRACE_TREE/tests/vm/hold.py" "$mb" || { vol_status; die "$1: $mb MiB are not held"; }
	echo "$1: $mb MiB held, $(($(swapped_mb) - before)) MiB swapped out; $(vol_status)"
	[ $(($(swapped_mb) - before)) -ge 20 ] || die "hardly anything was swapped out"
}

# swap_on WHAT: ... on a volume of /dev/ram/fast and slow
swap_on() {
	VOL_DRIVES=(/dev/ram/fast /dev/ram/slow)
	vol_format
	vol_up memory_mb=1
	mkswap "$VOL" > /dev/null
	swapon "$VOL"
	hold "$1"
	swapoff "$VOL"
	vol_down
	vol_check
	pass "$1"
}

echo 30 > /proc/sys/kernel/hung_task_timeout_secs

# RAM disks that have all of their memory before: what they are sent costs none
vol_ram 64 384
for d in fast slow; do
	dd if=/dev/urandom of=/dev/ram/$d bs=1M oflag=direct status=none || true	# ends at the end of the disk
done
swap_on "drives that need no memory"
