#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What trims of dead tables cost on a large, fragmented xfs, and what others wait for meanwhile.

usage: fragments.py MOUNTPOINT SHORT LONG FULL DEATHS...

In each of FULL allocation groups (0: all) a file is laid out, of which pieces of 4 KiB are punched out (SHORT in all), and others
with holes of 128 KiB (SHORT / 25), 16 MiB (LONG) and 96 MiB (LONG / 50). Then tables are written with other files between them, deleted, and trimmed by
DEATHS (tools/deaths.c with how it is called), while another process makes files of 16 KiB in the same group and syncs each.

Prints rows "FIGURE UNIT WHAT".
"""
import ctypes
import fcntl
import hashlib
import os
import select
import struct
import subprocess
import sys
import time

from trim import extents, free_extents

KB, MB, BLOCK = 1 << 10, 1 << 20, 4096
GEOMETRY = 0x8100587e
PUNCH = 3	# without a change of the size
libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


def punch(fd, at, length):
    if libc.fallocate(fd, PUNCH, at, length):
        raise OSError(ctypes.get_errno(), 'punch')


def holes(path, number, length):
    """Every second piece of that length is free; none of it is written."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.posix_fallocate(fd, 0, 2 * number * length)
    for i in range(number):
        punch(fd, 2 * i * length, length)
    os.close(fd)


def written(path, number, length):
    """A file of that many bytes, different for each name."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.posix_fallocate(fd, 0, length)
    line = hashlib.sha256(f'{path}{number}'.encode()).digest() * (MB // 32)
    for at in range(0, length, MB):
        os.pwrite(fd, line[:min(MB, length - at)], at)
    os.fsync(fd)
    where = extents(fd, length)
    os.close(fd)
    return where


def row(what, figure, unit):
    print(figure, unit, what, flush=True)


class Others:
    """A process that makes small files and syncs them, until it is told to stop."""

    def __init__(self, folder):
        self.tell, self.said = os.pipe(), os.pipe()
        os.makedirs(folder, exist_ok=True)
        self.pid = os.fork()
        if not self.pid:
            self.work(folder)
            os._exit(0)
        os.close(self.tell[0])
        os.close(self.said[1])

    def work(self, folder):
        spent, data, n = [], b'y' * 16 * KB, 0
        os.close(self.tell[1])
        while not select.select([self.tell[0]], [], [], 0)[0] or not spent:
            began = time.monotonic_ns()
            fd = os.open(f'{folder}/{n}', os.O_WRONLY | os.O_CREAT)
            os.write(fd, data)
            os.fsync(fd)
            os.close(fd)
            spent.append(time.monotonic_ns() - began)
            n += 1
            time.sleep(0.002)
        for i in range(n):
            os.unlink(f'{folder}/{i}')
        spent.sort()
        os.write(self.said[1], f'{n} {spent[n // 2] // 1000} {spent[-1] // 1000}'.encode())

    def end(self):
        os.close(self.tell[1])
        said = os.read(self.said[0], 100).decode().split()
        os.close(self.said[0])
        os.waitpid(self.pid, 0)
        return [int(word) for word in said]


class Bench:
    def __init__(self, mountpoint, short, long, full, deaths):
        self.top, self.deaths, self.live = mountpoint, deaths, {}
        self.root = os.open(mountpoint, os.O_RDONLY)
        room = bytearray(256)
        fcntl.ioctl(self.root, GEOMETRY, room)
        self.group, self.groups = struct.unpack_from('<I', room, 8)[0] * BLOCK, struct.unpack_from('<I', room, 12)[0]
        for i in range(self.groups):		# a folder in each group: xfs takes them in turn
            os.mkdir(f'{mountpoint}/{i}')
        full = full or self.groups
        for i in range(full):
            holes(f'{mountpoint}/{i}/middle', short // 25 // full, 128 * KB)
            holes(f'{mountpoint}/{i}/long', long // full, 16 * MB)
            holes(f'{mountpoint}/{i}/longer', long // 50 // full, 96 * MB)
            holes(f'{mountpoint}/{i}/short', short // full, BLOCK)
        os.sync()
        self.count('before')

    def count(self, when):
        lengths = [[] for _ in range(self.groups)]
        row(f'free extents, {when}', free_extents(self.root, lambda start, length: lengths[start // self.group].append(length)), 'extents')
        row(f'of them in the group of the tables, {when}', len(lengths[0]), 'extents')
        row(f'of these no shorter than 8 MiB, {when}', sum(length >= 8 * MB for length in lengths[0]), 'extents')
        row(f'longest of these, {when}', max(lengths[0]) // MB, 'MiB')

    def keep(self, name, length=64 * KB):
        written(name, len(self.live), length)
        with open(name, 'rb') as file:
            self.live[name] = hashlib.sha256(file.read()).hexdigest()

    def tables(self, name, number, length, folder='0'):
        """Written, with others between them, and deleted; where they were."""
        places = []
        for i in range(number):
            path = f'{self.top}/{folder}/{name}{i}'
            places += written(path, i, length)
            self.keep(f'{path}-live')
        for i in range(number):
            os.unlink(f'{self.top}/{folder}/{name}{i}')
        return places

    def pieces(self, number, length, folder='0'):
        """A table in pieces, with those of another between them."""
        path = f'{self.top}/{folder}/pieces'
        fds = [os.open(path + end, os.O_RDWR | os.O_CREAT) for end in ('', '-live')]
        for i in range(number):
            for fd in fds:
                os.posix_fallocate(fd, i * length, length)
                os.pwrite(fd, os.urandom(length), i * length)
        for fd in fds:
            os.fsync(fd)
        where = extents(fds[0], number * length)
        for fd in fds:
            os.close(fd)
        with open(path + '-live', 'rb') as file:
            self.live[path + '-live'] = hashlib.sha256(file.read()).hexdigest()
        os.unlink(path)
        return where

    def measure(self, name, places, *args):
        before = Others(f'{self.top}/0/others')
        time.sleep(0.1)
        run = subprocess.run([*self.deaths, self.top, *args], input='\n'.join(f'{a} {b}' for a, b in places), text=True,
                             stdout=subprocess.PIPE, check=True)
        trims = [[int(word) for word in line.split()] for line in run.stdout.splitlines()]
        spent = [trim[4] for trim in trims]
        row(f'{name}: mean trim', sum(spent) // len(spent) // 1000, 'us')
        row(f'{name}: longest trim', max(spent) // 1000, 'us')
        row(f'{name}: all trims together', sum(spent) // 1000, 'us')
        row(f'{name}: trims', len(trims), 'trims')
        row(f'{name}: dead ranges', len(places), 'ranges')
        row(f'{name}: dead', sum(place[1] for place in places) // MB, 'MiB')
        row(f'{name}: trimmed, with what is beside', sum(trim[3] for trim in trims) // MB, 'MiB')
        self.others(name, before.end())

    def others(self, name, said):
        files, middle, worst = said
        row(f'{name}: files written and synced meanwhile', files, 'files')
        row(f'{name}: such a file, half of them', middle, 'us')
        row(f'{name}: such a file, the worst', worst, 'us')

    def alone(self, seconds):
        others = Others(f'{self.top}/0/others')
        time.sleep(seconds)
        self.others('no trims', others.end())

    def run(self):
        self.alone(1)
        self.measure('8 MiB', self.tables('a', 8, 8 * MB))
        self.measure('64 MiB', self.tables('b', 3, 64 * MB))
        self.measure('8 MiB, all free extents looked at', self.tables('c', 8, 8 * MB), 'all')
        self.measure('8 MiB in 64 pieces', self.pieces(64, 128 * KB))
        # of each table a part is another's again
        places = self.tables('d', 4, 8 * MB)
        self.measure('8 MiB, partly in use', [(start - BLOCK * 4, length) for start, length in places])
        self.count('after')

    def verify(self):
        os.sync()
        with open('/proc/sys/vm/drop_caches', 'w', encoding='ascii') as file:
            file.write('3\n')
        wrong = 0
        for name, digest in self.live.items():
            with open(name, 'rb') as file:
                wrong += hashlib.sha256(file.read()).hexdigest() != digest
        row('living files', len(self.live), 'files')
        row('living files that are wrong', wrong, 'files')


def main(mountpoint, short, long, full, *deaths):
    bench = Bench(mountpoint, int(short), int(long), int(full), deaths)
    bench.run()
    bench.verify()


main(*sys.argv[1:])
