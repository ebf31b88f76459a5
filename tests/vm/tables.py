#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Files as an LSM database makes them: immutable tables, compacted by one thread.

usage: tables.py FOLDER write FIRST COUNT MB          tables FIRST.ldb ...
       tables.py FOLDER compact IN,IN.. OUT,OUT.. [keep] [fast] [log]  read side by side, write one after the other, delete the inputs;
                                                       log: the same thread writes 000009.log within the first output
       tables.py FOLDER again IN OUT SCANNED FILE      the same, then as if it began another: when FILE is there, reads the first 128 KiB of
                                                       SCANNED; when it has gone, all of it, and stops for two seconds in the last quarter
       tables.py FOLDER wal NUMBER MB FILE [ahead]     a log, in records of a page, not synced, closed when FILE is there; ahead: its room is
                                                       allocated when it is made, as RocksDB does it, else when it is written back
       tables.py FOLDER hold NUMBER FILE               delete a table that is mapped and not open; when FILE is there, md5 of what is mapped
       tables.py FOLDER holes NUMBER MB                a table of which every other block has been given back
       tables.py FOLDER crowd FIRST COUNT              so many files of a block, not synced
       tables.py FOLDER glance FIRST COUNT THREADS     threads, one after the other, read two bytes in the middle of each of them
       tables.py FOLDER desert FIRST COUNT             delete them
       tables.py FOLDER slow NUMBER MB FILE            a table that is closed when FILE is there
       tables.py FOLDER stuck IN OUT FILE              a compaction that, when FILE is there, reads IN, then writes what needs a read of OUT

PAUSE in the environment: seconds that a compaction stops in each output, for what is written within a tick is not noticed in time (1).
NAMES in the environment: what tables are called instead of 000012.ldb, as in NAMES='part-{:04}.seg'.
"""
import ctypes
import hashlib
import mmap
import os
import sys
import threading
import time

STEP = 64 << 10


def name(folder, number):
    return os.path.join(folder, os.environ.get('NAMES', '{:06}.ldb').format(int(number)))


def create(path):
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)


def allocate(fd, size):
    """Room ahead, as RocksDB takes it: the file stays as long as it is."""
    if ctypes.CDLL(None, use_errno=True).fallocate(fd, 1, ctypes.c_int64(0), ctypes.c_int64(size)):
        sys.exit(f'fallocate: {os.strerror(ctypes.get_errno())}')


def write(folder, first, count, mb):
    for number in range(first, first + count):
        fd = create(name(folder, number))
        for _ in range(mb << 20 >> 16):
            os.write(fd, os.urandom(STEP))
        os.fsync(fd)
        os.close(fd)


def holes(folder, number, mb):
    fd = create(name(folder, number))
    for _ in range(mb << 20 >> 16):
        os.write(fd, bytes(STEP))
    os.fsync(fd)
    for at in range(4096, mb << 20, 8192):
        if ctypes.CDLL(None, use_errno=True).fallocate(fd, 3, ctypes.c_int64(at), ctypes.c_int64(4096)):
            sys.exit(f'fallocate: {os.strerror(ctypes.get_errno())}')
    os.fsync(fd)
    os.close(fd)


def log(folder):
    """1 MiB, allocated ahead as RocksDB does it for its logs, and long enough in the making to be noticed."""
    fd = create(os.path.join(folder, '000009.log'))
    allocate(fd, 16 * STEP)
    for n in range(16):
        os.write(fd, os.urandom(STEP))
        if n == 4:
            time.sleep(float(os.environ.get('PAUSE', 1)))
    os.fsync(fd)
    os.close(fd)


def compact(folder, inputs, outputs, keep, fast, logs):
    fds = [os.open(name(folder, i), os.O_RDONLY) for i in inputs]
    size = os.fstat(fds[0]).st_size
    steps = [at for at in range(0, size, STEP)]
    data = [os.pread(fd, STEP, 0) for fd in fds]		# before there is an output
    share = -(-len(steps) // len(outputs))
    for n, number in enumerate(outputs):
        out = create(name(folder, number))
        allocate(out, share * STEP * len(fds))
        pause = steps[n * share + min(len(steps) // 4, share // 2)]
        for at in steps[n * share:(n + 1) * share]:
            for k, fd in enumerate(fds):
                data[k] = os.pread(fd, STEP, at)
                os.write(out, data[k])
            if at == pause and not fast:
                time.sleep(float(os.environ.get('PAUSE', 1)))	# it is noticed as it goes on
            if at == pause and not n and logs:
                log(folder)
        os.fsync(out)
        os.close(out)
    manifest = os.open(os.path.join(folder, 'MANIFEST-000001'), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(manifest, f'{inputs} {outputs}\n'.encode())
    os.fsync(manifest)
    os.close(manifest)
    for fd in fds:
        os.close(fd)
    for i in inputs if not keep else []:
        os.unlink(name(folder, i))


def again(folder, number, to, scanned, go):
    compact(folder, [number], [to], keep=False, fast=True, logs=False)
    fd = os.open(name(folder, scanned), os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)	# nothing is read ahead
    print('compacted', flush=True)
    while not os.path.exists(go):
        time.sleep(0.05)
    os.pread(fd, 2 * STEP, 0)
    print('begun', flush=True)
    while os.path.exists(go):
        time.sleep(0.05)
    size = os.fstat(fd).st_size
    for at in range(0, size, STEP):
        os.pread(fd, STEP, at)
        if at == size * 3 // 4:
            time.sleep(2)


def hold(folder, number, go):
    fd = os.open(name(folder, number), os.O_RDONLY)
    held = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
    os.closerange(3, 1024)	# the map's own as well
    os.unlink(name(folder, number))
    print('held', flush=True)
    while not os.path.exists(go):
        time.sleep(0.05)
    print(hashlib.md5(held).hexdigest())


def crowd(folder, first, count):
    for number in range(first, first + count):
        fd = create(name(folder, number))
        os.write(fd, bytes(4096))
        os.close(fd)


def glance(folder, first, count, threads):
    def look():
        for number in range(first, first + count):
            fd = os.open(name(folder, number), os.O_RDONLY)
            os.pread(fd, 1, 2048)
            os.pread(fd, 1, 2049)
            os.close(fd)
    for thread in [threading.Thread(target=look) for _ in range(threads)]:
        thread.start()
        thread.join()


def slow(folder, number, mb, go):
    fd = create(name(folder, number))
    for _ in range(int(mb) << 20 >> 16):
        os.write(fd, os.urandom(STEP))
    print('written', flush=True)
    while not os.path.exists(go):
        time.sleep(0.05)
    os.fsync(fd)
    os.close(fd)


def wal(folder, number, mb, go, ahead=None):
    fd = create(os.path.join(folder, f'{int(number):06}.log'))
    if ahead:
        allocate(fd, int(mb) << 20)
    for _ in range(int(mb) << 8):
        os.write(fd, os.urandom(4096))
    print('written', flush=True)
    while not os.path.exists(go):
        time.sleep(0.05)
    os.close(fd)


def stuck(folder, number, to, go):
    out = create(name(folder, to))
    allocate(out, 4 << 20)
    os.write(out, os.urandom(1 << 20))
    os.fsync(out)
    os.posix_fadvise(out, 0, 0, os.POSIX_FADV_DONTNEED)
    print('ready', flush=True)
    while not os.path.exists(go):
        time.sleep(0.05)
    fd = os.open(name(folder, number), os.O_RDONLY)
    for at in range(0, os.fstat(fd).st_size, STEP):
        os.pread(fd, STEP, at)
    os.pwrite(out, os.urandom(1 << 20), (1 << 20) - 100)
    print('written', flush=True)
    time.sleep(float(os.environ.get('PAUSE', 1)))
    os.fsync(out)
    os.close(out)


def main(folder, what, *args):
    if what in ('write', 'holes', 'crowd', 'glance'):
        globals()[what](folder, *map(int, args))
    elif what == 'desert':
        for number in range(int(args[0]), int(args[0]) + int(args[1])):
            os.unlink(name(folder, number))
    elif what in ('again', 'hold', 'stuck', 'slow', 'wal'):
        globals()[what](folder, *args)
    else:
        compact(folder, args[0].split(','), args[1].split(','), 'keep' in args, 'fast' in args, 'log' in args)


main(*sys.argv[1:])
