#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""One block in each of many regions, which lie a GiB apart.

usage: strewn.py DEVICE DONE OP FIRST END

write       what is refused with ENOSPC is left; DONE, lines of "region version", gets those that are not
over        the same blocks anew, and another behind each: these must not be refused
discard     region by region; discardall: in one range
read        all that DONE names is as it was written, the others are zeros
"""
import errno
import fcntl
import mmap
import os
import struct
import sys

GAP = 1 << 30
BLKDISCARD = 0x1277
ENOUGH = 60		# refused in a row: the rest will be


def content(region, version):
    return b'%08d%08d' % (region, version) * 256


def load(path):
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        return {int(a): int(b) for a, b in (line.split() for line in file)}


def put(fd, buf, at, data):
    """False: no space"""
    buf[:] = data
    try:
        assert os.pwritev(fd, [buf], at) == 4096
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False
    return True


def main(device, path, op, first, end):
    first, end = int(first), int(end)
    done = load(path)
    fd = os.open(device, os.O_RDWR | os.O_DIRECT)
    buf = mmap.mmap(-1, 4096)
    refused = 0
    for region in range(first, end):
        at = region * GAP
        if op == 'write':
            version = done.get(region, 0) + 1
            if put(fd, buf, at, content(region, version)):
                done[region] = version
                refused = 0
            else:
                refused += 1
            if refused == ENOUGH:
                break
        elif op == 'over' and done.get(region):
            done[region] += 1
            assert put(fd, buf, at, content(region, done[region])), f'overwriting block of region {region}: no space'
            assert put(fd, buf, at + 4096, content(region, 0)), f'second block of region {region}: no space'
        elif op == 'discard' and done.get(region):
            fcntl.ioctl(fd, BLKDISCARD, struct.pack('QQ', at, GAP >> 8))
            done[region] = 0
        elif op == 'read':
            assert os.preadv(fd, [buf], at) == 4096
            want = content(region, done[region]) if done.get(region) else bytes(4096)
            assert buf[:] == want, f'region {region}: {buf[:16]} instead of {want[:16]}'
    if op == 'discardall':
        fcntl.ioctl(fd, BLKDISCARD, struct.pack('QQ', first * GAP, (end - first) * GAP))
        for region in range(first, end):
            done[region] = 0
    with open(path, 'w') as file:
        file.writelines(f'{a} {b}\n' for a, b in done.items())


main(*sys.argv[1:])
