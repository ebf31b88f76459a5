#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the blocks of a file lie on the volume, worked out beside the product: FIEMAP, and the test's own table of the stack.

usage: where.py [--ahead] FILE FROM:NR:TO...    blocks of the filesystem's device, in the order of the file, are TO... of the volume;
                                         with what was allocated ahead of its end
       where.py --state CONTROL BLOCKS  of these blocks (as printed): "MAPPED FAST ALL"
       where.py --hold VOLUME BLOCKS    md5 of what they hold, one after the other

BLOCKS is a file with a number on each line.
"""
import ctypes
import fcntl
import hashlib
import mmap
import os
import struct
import sys

HELLO, REGIONS, FIEMAP = 0xc080db01, 0xc020db05, 0xc020660b
BLOCK, REGION = 4096, 1024


def extents(path, ahead):
    fd = os.open(path, os.O_RDONLY)
    size, at = 1 << 40 if ahead else os.fstat(fd).st_size, 0
    while at < size:
        room = bytearray(struct.pack('<QQIIII', at, size - at, 1, 0, 64, 0) + bytes(56 * 64))
        fcntl.ioctl(fd, FIEMAP, room)
        nr = struct.unpack_from('<I', room, 20)[0]
        for i in range(nr):
            logical, physical, length = struct.unpack_from('<QQQ', room, 32 + 56 * i)
            yield physical, min(length, size - logical)
            at = logical + length
        if not nr:
            return


def blocks(path, pieces, ahead=False):
    pieces = [tuple(map(int, p.split(':'))) for p in pieces]
    for physical, length in extents(path, ahead):
        for block in range(physical // BLOCK, -(-(physical + length) // BLOCK)):
            print(next(to + block - first for first, nr, to in pieces if first <= block < first + nr))


def state(control, wanted):
    fd = os.open(control, os.O_RDWR)
    hello = bytearray(struct.pack('<IIII112x', 128, 0, 1, 1))
    fcntl.ioctl(fd, HELLO, hello)
    room, mapped, fast = bytearray(512), 0, 0
    at = (ctypes.c_char * len(room)).from_buffer(room)
    for region in sorted({b // REGION for b in wanted}):
        fcntl.ioctl(fd, REGIONS, bytearray(struct.pack('<QIIQII', region, 1, 512, ctypes.addressof(at), 0, 0)))
        masks = [int.from_bytes(room[n:n + 128], 'little') for n in (16, 144, 272)]
        for b in wanted:
            if b // REGION == region:
                mapped += (masks[0] | masks[2]) >> b % REGION & 1
                fast += masks[1] >> b % REGION & 1
    print(mapped, fast, len(wanted))


def hold(volume, wanted):
    fd, buffer, digest = os.open(volume, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, BLOCK), hashlib.md5()
    for b in wanted:
        os.preadv(fd, [buffer], b * BLOCK)
        digest.update(buffer)
    print(digest.hexdigest())


def main(first, *args):
    if first in ('--state', '--hold'):
        (state if first == '--state' else hold)(args[0], [int(line) for line in open(args[1])])
    elif first == '--ahead':
        blocks(args[0], args[1:], True)
    else:
        blocks(first, args)


main(*sys.argv[1:])
