#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Several at work on a filesystem at a time, each in a folder of its own.

usage: stress.py work DIR LOG WORKERS SEED STEPS
       stress.py check DIR LOG WORKERS [all]

Each of the WORKERS has its own DIR and LOG, with its number behind. work writes files
through the page cache, through mappings and with O_DIRECT, punches and zeroes ranges,
truncates, renames, unlinks, syncs; it knows what each file holds and reads it back.
After STEPS (0: never) it syncs all of them. LOG lies elsewhere and says "- NAME" before
a file is changed, "+ NAME SUM" when it was synced; the last word counts. LOG.begun has a
byte for each that has begun. check looks at what was synced; all: and nothing else is
there.
"""
import ctypes
import hashlib
import mmap
import os
import random
import sys

FILES = 10
MOST = 256 << 10
PAGE = 4096
KEEP_SIZE, PUNCH, ZERO = 1, 2, 16	# linux/falloc.h
libc = ctypes.CDLL(None, use_errno=True)


def fallocate(fd, mode, offset, length):
    if libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)):
        raise OSError(ctypes.get_errno(), 'fallocate')


class Worker:
    def __init__(self, folder, log, seed):
        self.folder, self.draw = folder, random.Random(seed)
        os.makedirs(folder, exist_ok=True)
        self.dir = os.open(folder, os.O_RDONLY)
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.buffer = mmap.mmap(-1, 64 << 10)		# aligned, for O_DIRECT
        self.holds = {}
        self.done = {}
        for name in os.listdir(folder):
            with open(self.path(name), 'rb') as f:
                self.holds[name] = bytearray(f.read())

    def path(self, name):
        return os.path.join(self.folder, name)

    def say(self, word):
        os.write(self.log, (word + '\n').encode())

    def open(self, name, flags=0):
        return os.open(self.path(name), os.O_RDWR | os.O_CREAT | flags, 0o600)

    def bytes_of(self, offset, data, had):
        if len(had) < offset + len(data):
            had.extend(bytes(offset + len(data) - len(had)))
        had[offset:offset + len(data)] = data

    def some(self, most, unit=1):
        return self.draw.randrange(0, most // unit) * unit

    # ---- each changes a file, and what it should hold ----

    def write(self, fd, had):
        offset, data = self.some(MOST - (64 << 10)), self.draw.randbytes(self.some(64 << 10) + 1)
        os.pwrite(fd, data, offset)
        self.bytes_of(offset, data, had)

    def mapped(self, fd, had):
        if not had:
            return self.write(fd, had)
        with mmap.mmap(fd, len(had)) as m:
            for _ in range(8):
                offset = self.some(len(had))
                data = self.draw.randbytes(min(self.some(20000) + 1, len(had) - offset))
                m[offset:offset + len(data)] = data
                had[offset:offset + len(data)] = data
            if self.draw.random() < 0.3:
                m.flush()

    def direct(self, fd, had):
        offset, length = self.some(MOST - len(self.buffer), PAGE), self.some(len(self.buffer), PAGE) + PAGE
        data = self.draw.randbytes(length)
        self.buffer[:length] = data
        straight = os.open(f'/proc/self/fd/{fd}', os.O_RDWR | os.O_DIRECT)
        os.pwrite(straight, memoryview(self.buffer)[:length], offset)
        os.close(straight)
        self.bytes_of(offset, data, had)

    def punch(self, fd, had):
        offset, length = self.some(MOST), self.some(96 << 10) + 1
        fallocate(fd, PUNCH | KEEP_SIZE, offset, length)
        end = min(offset + length, len(had))
        if offset < end:
            had[offset:end] = bytes(end - offset)

    def zero(self, fd, had):
        offset, length = self.some(MOST // 2), self.some(96 << 10) + 1
        fallocate(fd, ZERO, offset, length)
        self.bytes_of(offset, bytes(length), had)

    def truncate(self, fd, had):
        length = self.some(MOST)
        os.ftruncate(fd, length)
        del had[length:]
        had.extend(bytes(length - len(had)))

    # ---- of names ----

    def rename(self, name):
        to = f'f{self.some(FILES)}'
        if to == name:
            return
        self.say('- ' + to)
        os.rename(self.path(name), self.path(to))
        self.holds[to] = self.holds.pop(name)

    def unlink(self, name):
        os.unlink(self.path(name))
        del self.holds[name]

    # ---- nothing changes ----

    def sync(self, name):
        fd = self.open(name)
        os.fsync(fd)
        os.close(fd)
        os.fsync(self.dir)
        self.say(f'+ {name} {hashlib.md5(self.holds[name]).hexdigest()}')

    def read(self, name):
        had = self.holds[name]
        fd = self.open(name, self.draw.choice([0, os.O_DIRECT]))
        got, offset = bytearray(), 0
        while n := os.preadv(fd, [self.buffer], offset):
            got += self.buffer[:n]
            offset += n
            if n % PAGE:
                break
        os.close(fd)
        if got != had:
            at = next((k for k, (a, b) in enumerate(zip(got, had)) if a != b), min(len(got), len(had)))
            sys.exit(f'{self.path(name)}: {len(got)} bytes, {len(had)} expected, the first wrong one is {at}')

    def step(self):
        name = f'f{self.some(FILES)}'
        change = self.draw.choice([self.write, self.mapped, self.direct, self.punch, self.punch, self.zero, self.truncate,
                                   self.rename, self.unlink, self.sync, self.sync, self.sync, self.read, self.read])
        if name not in self.holds:
            change = self.write
        self.done[change.__name__] = self.done.get(change.__name__, 0) + 1
        if change in (self.sync, self.read):
            return change(name)
        self.say('- ' + name)
        if change in (self.rename, self.unlink):
            return change(name)
        fd = self.open(name)
        change(fd, self.holds.setdefault(name, bytearray()))
        os.close(fd)

    def work(self, steps):
        while not steps or sum(self.done.values()) < steps:
            self.step()
        for name in list(self.holds):
            self.read(name)
            self.sync(name)
        print(self.folder, ' '.join(f'{what}={n}' for what, n in sorted(self.done.items())))


def check(folder, log, everything):
    sums = {}
    with open(log, encoding='ascii') as f:
        for line in f:
            word = line.split()
            sums[word[1]] = word[2] if word[0] == '+' else None
    wrong = []
    for name, wanted in sorted(sums.items()):
        try:
            with open(os.path.join(folder, name), 'rb') as f:
                got = hashlib.md5(f.read()).hexdigest()
        except FileNotFoundError:
            got = None
        if got != wanted and (wanted or everything):
            wrong.append(name)
    if wrong or everything and set(os.listdir(folder)) - set(sums):
        sys.exit(f'{folder}: of {len(sums)} files these are not as they were: {" ".join(wrong) or os.listdir(folder)}')
    print(f'{folder}: {sum(1 for s in sums.values() if s)} synced files')


def work(folder, log, workers, seed, steps):
    for k in range(workers):
        if os.fork():
            continue
        worker = Worker(folder + str(k), log + str(k), seed + k)
        with open(log + '.begun', 'ab', buffering=0) as f:
            f.write(b'.')
        worker.work(steps)
        sys.exit()
    sys.exit(any([os.wait()[1] for _ in range(workers)]))


what, folder, log, workers = *sys.argv[1:4], int(sys.argv[4])
if what == 'work':
    work(folder, log, workers, int(sys.argv[5]), int(sys.argv[6]))
for k in range(workers):
    check(folder + str(k), log + str(k), sys.argv[5:] == ['all'])
