#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Fragments a filesystem's free space, then times FITRIM of deleted files' ranges.

usage: trim.py MOUNTPOINT FILES

Prints "LONG ALL EXTENTS": microseconds of a trim that asks for free extents no shorter than the range; of one that looks
at all; how many free extents there are.
"""
import fcntl
import os
import struct
import sys
import time

FITRIM, FIEMAP, GETFSMAP = 0xc0185879, 0xc020660b, 0xc0c0583b
TABLE, TABLES = 8 << 20, 8
MOST = 1024	# extents of a file


def extents(fd, length=TABLE):
    room = bytearray(struct.pack('<QQIIII', 0, length, 1, 0, MOST, 0) + bytes(56 * MOST))
    fcntl.ioctl(fd, FIEMAP, room)
    return [struct.unpack_from('<QQQ', room, 32 + 56 * i)[1:] for i in range(struct.unpack_from('<I', room, 20)[0])]


def free_extents(fd, tell=lambda start, length: None):
    low, most, found = bytes(64), 1024, 0
    high = struct.pack('<IIQQQQ24x', 0xffffffff, 0xffffffff, *[(1 << 64) - 1] * 3, 0)
    while True:
        room = bytearray(struct.pack('<IIII48x', 0, 0, most, 0) + low + high + bytes(64 * most))
        fcntl.ioctl(fd, GETFSMAP, room)
        nr = struct.unpack_from('<I', room, 12)[0]
        for i in range(nr):
            _, flags, start, owner, _, length = struct.unpack_from('<IIQQQQ', room, 192 + 64 * i)
            if flags & 0x10 and owner == 1:
                found += 1
                tell(start, length)
        if not nr or struct.unpack_from('<I', room, 192 + 64 * (nr - 1) + 4)[0] & 0x20:
            return found
        low = bytes(room[192 + 64 * (nr - 1):192 + 64 * nr])


def main(mountpoint, files):
    root = os.open(mountpoint, os.O_RDONLY)
    for i in range(files):
        if not i % 1000:
            os.mkdir(f'{mountpoint}/{i // 1000}')
        fd = os.open(f'{mountpoint}/{i // 1000}/{i}', os.O_WRONLY | os.O_CREAT)
        os.write(fd, b'x' * 4096)
        os.close(fd)
    os.sync()
    for i in range(0, files, 2):
        os.unlink(f'{mountpoint}/{i // 1000}/{i}')
    places = []
    for i in range(TABLES):
        fd = os.open(f'{mountpoint}/table{i}', os.O_RDWR | os.O_CREAT)
        os.posix_fallocate(fd, 0, TABLE)
        os.write(fd, bytes(TABLE))
        os.fsync(fd)
        places.append(extents(fd))
        os.close(fd)
    for i in range(TABLES):
        os.unlink(f'{mountpoint}/table{i}')
    os.sync()
    spent = {True: [0, 0], False: [0, 0]}
    for i, place in enumerate(places):
        for start, length in place:
            least = length if i % 2 else 0
            before = time.monotonic_ns()
            fcntl.ioctl(root, FITRIM, struct.pack('<QQQ', start, length, least))
            spent[bool(i % 2)][0] += time.monotonic_ns() - before
            spent[bool(i % 2)][1] += 1
    print(spent[True][0] // spent[True][1] // 1000, spent[False][0] // spent[False][1] // 1000, free_extents(root))


if __name__ == '__main__':
    main(sys.argv[1], int(sys.argv[2]))
