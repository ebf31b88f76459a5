#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Swap on a volume: while the page allocator has nothing to give, writes to the volume are what memory comes from.
# vm: mode=functional memory=768M timeout=900 long
# shellcheck disable=SC2119,SC2034
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

OVER=${OVER:-150}	# MiB more than is available

# hold MIB: every page of so much memory holds its number; each is read back, changed, and read again
cat > /dev/shm/hold.py << 'PYTHON'
import ctypes
import mmap
import random
import sys
import time

ctypes.CDLL(None).mlockall(1)		# the program itself stays, or it would be read from the host again and again
pages = int(sys.argv[1]) * 256
mem = mmap.mmap(-1, pages * 4096)
began = time.monotonic()


# a quarter does not compress, and no page is all one word: zram would keep nothing but that
noise = random.Random(0).randbytes(1 << 20)


def value(page, turn):
    at = (page * 64 + turn) % (len(noise) - 1024)
    return noise[at:at + 1024] + (page << 8 | turn).to_bytes(8, 'little') * 384


def check(page, turn):
    if mem[page * 4096:page * 4096 + 4096] != value(page, turn):
        sys.exit(f'page {page} is not what it was')


def told(what):
    print(f'{what}: {time.monotonic() - began:.0f} s', flush=True)


for p in range(pages):
    mem[p * 4096:p * 4096 + 4096] = value(p, 0)
told('filled')
order = list(range(0, pages, 16))	# neighbours share a cluster of the swap
random.Random(1).shuffle(order)
for p in order[:len(order) // 4]:
    for q in range(p, min(p + 16, pages)):
        check(q, 0)
        mem[q * 4096:q * 4096 + 4096] = value(q, 1)
told('changed')
changed = set(order[:len(order) // 4])
for p in range(pages):
    check(p, 1 if p - p % 16 in changed else 0)
told('read back')
PYTHON

kb() { awk -v w="$1:" '$1 == w { print $2 }' /proc/meminfo; }
swapped_mb() { awk '$1 == "pswpout" { print int($2 / 256) }' /proc/vmstat; }

hold() {
	local before mb
	before=$(swapped_mb)
	mb=$(($(kb MemAvailable) / 1024 + OVER))
	timeout -s KILL 400 python3 /dev/shm/hold.py "$mb" || { vol_status; die "$1: $mb MiB are not held"; }
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
