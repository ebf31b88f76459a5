#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How much of what the fast tiers hold belongs to no file: the filesystem's free space beside the volume's map.

usage: dead.py CONTROL MOUNTPOINT

The filesystem lies directly on the volume.  Prints "DEAD FAST": blocks.
"""
import ctypes
import fcntl
import os
import struct
import sys

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


def fast_masks(control):
    """(number, mask of blocks on fast tiers) of each region."""
    fd = os.open(control, os.O_RDWR)
    hello = bytearray(struct.pack('<IIII112x', 128, 0, 1, 1))
    fcntl.ioctl(fd, HELLO, hello)
    regions = struct.unpack_from('<Q', hello, 40)[0]
    room = bytearray(512 * 64)
    at = (ctypes.c_char * len(room)).from_buffer(room)
    for first in range(0, regions, 64):
        nr = min(64, regions - first)
        ask = bytearray(struct.pack('<QIIQII', first, nr, 512, ctypes.addressof(at), 0, 0))
        fcntl.ioctl(fd, REGIONS, ask)
        for k in range(struct.unpack_from('<I', ask, 8)[0]):
            number, status = struct.unpack_from('<QI', room, 512 * k)
            if not status:
                yield number, int.from_bytes(room[512 * k + 144:512 * k + 272], 'little')


def main(control, mountpoint):
    free = 0
    for first, end in free_ranges(mountpoint):
        free |= ((1 << (end - first)) - 1) << first
    dead = fast = 0
    for number, mask in fast_masks(control):
        fast += mask.bit_count() if hasattr(mask, 'bit_count') else bin(mask).count('1')
        dead += bin(mask & (free >> number * REGION)).count('1')
    print(dead, fast)


main(*sys.argv[1:])
