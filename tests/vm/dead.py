#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How much of what the fast tiers hold belongs to no file: the filesystem's free space beside the volume's map.

usage: dead.py CONTROL MOUNTPOINT [SECONDS]

The filesystem lies directly on the volume.  Prints "DEAD FAST": blocks.  With SECONDS it looks again and again, so long
after the look before, until it is killed, and prints "DEAD FAST CAME DEAD_NOW DEAD_BEFORE LASTING" each time: of the blocks that
lay below at the look before those that are fast now; of these those that belong to no file now, some of which have died since;
of these in turn those that belonged to none then, either: they came up dead, or have been a file's, written and dead within that
time; and of DEAD those that were fast and dead at the look before: what has just died is not among them.
"""
import ctypes
import fcntl
import os
import struct
import sys
import time

HELLO, REGIONS = 0xc080db01, 0xc020db05
GETFSMAP = 0xc0c0583b
BLOCK, REGION = 4096, 1024
FREE, SPECIAL, LAST = 1, 0x10, 0x20


def free_ranges(mountpoint):
    """[first, end) in blocks of what the filesystem says is free, ascending."""
    fd = os.open(mountpoint, os.O_RDONLY)
    most, found = 1024, []
    low, high = struct.pack('<IIQQQQ24x', 0, 0, 0, 0, 0, 0), struct.pack('<IIQQQQ24x', ~0 & 0xffffffff, ~0 & 0xffffffff, *[~0 & (1 << 64) - 1] * 3, 0)
    while True:
        room = bytearray(struct.pack('<IIII48x', 0, 0, most, 0) + low + high + bytes(64 * most))
        fcntl.ioctl(fd, GETFSMAP, room)
        nr = struct.unpack_from('<I', room, 12)[0]
        for i in range(nr):
            one = room[192 + 64 * i:256 + 64 * i]
            _, flags, physical, owner, _, length = struct.unpack_from('<IIQQQQ', one)
            if flags & SPECIAL and owner == FREE:
                found.append((physical // BLOCK, (physical + length) // BLOCK))
        if not nr or flags & LAST:
            return found
        low = bytes(one)


def regions_of(control):
    """Opens it; how many regions there are."""
    fd = os.open(control, os.O_RDWR)
    hello = bytearray(struct.pack('<IIII112x', 128, 0, 1, 1))
    fcntl.ioctl(fd, HELLO, hello)
    return fd, struct.unpack_from('<Q', hello, 40)[0]


def masks(fd, regions):
    """(number, masks of blocks: with a place, on fast tiers, in packs) of each region."""
    room = bytearray(512 * 64)
    at = (ctypes.c_char * len(room)).from_buffer(room)
    for first in range(0, regions, 64):
        nr = min(64, regions - first)
        ask = bytearray(struct.pack('<QIIQII', first, nr, 512, ctypes.addressof(at), 0, 0))
        fcntl.ioctl(fd, REGIONS, ask)
        for k in range(struct.unpack_from('<I', ask, 8)[0]):
            number, status = struct.unpack_from('<QI', room, 512 * k)
            if not status:
                yield (number, *(int.from_bytes(room[512 * k + from_:512 * k + from_ + 128], 'little') for from_ in (16, 144, 272)))


def count(mask):
    return bin(mask).count('1')


def look(fd, regions, mountpoint, before):
    """Its six numbers; @before: what lay below of each region, what was dead, and both fast and dead; it is brought up to date."""
    free = 0
    now = list(masks(fd, regions))	# first: what dies in between counts as dead
    for first, end in free_ranges(mountpoint):
        free |= ((1 << (end - first)) - 1) << first
    sums = [0] * 6
    for number, present, fast, packed in now:
        dead = free >> number * REGION & (1 << REGION) - 1
        was_below, was_dead, was_fast_dead = before.get(number, (0, 0, 0))
        came, held = was_below & fast, fast & dead
        for k, mask in enumerate((held, fast, came, came & dead, came & dead & was_dead, held & was_fast_dead)):
            sums[k] += count(mask)
        before[number] = ((present | packed) & ~fast, dead, held)
    return sums


def main(control, mountpoint, seconds=None):
    fd, regions = regions_of(control)
    before = {}
    if not seconds:
        print(*look(fd, regions, mountpoint, before)[:2])
        return
    look(fd, regions, mountpoint, before)
    while True:
        time.sleep(float(seconds))
        print(*look(fd, regions, mountpoint, before), flush=True)


main(*sys.argv[1:])
