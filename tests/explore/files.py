#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that are synced, and what of them must be there after a power cut.

usage: files.py work FOLDER LOG MARKS SEED COUNT	COUNT changes
       files.py verify FOLDER LOG NOTE

LOG is not on the volume. A line comes before a file is changed ("open NAME"),
after it and its folder have been synced ("synced NAME SHA"), and after it has been
deleted and its folder synced ("gone NAME"). After each line the mark "note LINES"
goes to MARKS: what the first NOTE lines say is what a cut at that moment must leave.
"""
import hashlib
import os
import random
import sys

BLOCK = 4096


class Log:
    def __init__(self, path, marks):
        self.file = open(path, 'w', buffering=1)
        self.marks = os.open(marks, os.O_WRONLY)
        self.lines = 0

    def say(self, *words):
        self.file.write(' '.join(words) + '\n')
        self.lines += 1
        os.write(self.marks, b'note %d' % self.lines)


def sync(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def sha(path):
    with open(path, 'rb') as file:
        return hashlib.sha1(file.read()).hexdigest()


def fill(rng, path):
    """New, changed within, longer or shorter."""
    way = rng.choice(['new', 'new', 'within', 'append', 'truncate', 'hole'])
    size = rng.randint(1, 64 * 1024) if rng.randrange(6) else rng.randint(1, 1024 * 1024)
    if way == 'new' or not os.path.exists(path):
        with open(path, 'wb') as file:
            file.write(rng.randbytes(size))
        return
    with open(path, 'r+b') as file:
        if way == 'truncate':
            file.truncate(rng.randint(0, os.path.getsize(path)))
            return
        if way == 'hole':
            file.truncate(os.path.getsize(path) + rng.randint(1, 64) * BLOCK)
        file.seek(0, os.SEEK_END)
        file.seek(rng.randint(0, file.tell()) if way == 'within' else file.tell())
        file.write(rng.randbytes(min(size, 64 * 1024)))


def change(log, rng, folder):
    name = 'd%d/f%d' % (rng.randrange(4), rng.randrange(12))
    path = os.path.join(folder, name)
    parent = os.path.dirname(path)
    log.say('open', name)
    os.makedirs(parent, exist_ok=True)
    if rng.randrange(8) == 0 and os.path.exists(path):
        os.unlink(path)
        if rng.randrange(2):
            sync(parent)
            sync(folder)
            log.say('gone', name)
        return
    if rng.randrange(4):
        fill(rng, path)
    else:                   # the way of editors: a new file takes its place
        with open(path + '.new', 'wb') as file:
            file.write(rng.randbytes(rng.randint(1, 32 * 1024)))
            file.flush()
            os.fsync(file.fileno())
        os.rename(path + '.new', path)
    if rng.randrange(3):
        sync(path)
        sync(parent)
        sync(folder)
        log.say('synced', name, sha(path))


def verify(folder, log, note):
    with open(log) as file:
        lines = file.read().split('\n')[:note]
    wanted = {}
    for line in lines:
        words = line.split()
        wanted[words[1]] = words
    wrong = []
    for name, words in sorted(wanted.items()):
        path = os.path.join(folder, name)
        if words[0] == 'gone' and os.path.exists(path):
            wrong.append('%s: was deleted' % name)
        elif words[0] == 'synced' and not os.path.exists(path):
            wrong.append('%s: was synced, is not there' % name)
        elif words[0] == 'synced' and sha(path) != words[2]:
            wrong.append('%s: is not what was synced' % name)
    for what in wrong:
        print('files.py: BROKEN: ' + what)
    print('%d files as synced, %d lines' % (sum(words[0] == 'synced' for words in wanted.values()) - len(wrong), note))
    return 1 if wrong else 0


def main(argv):
    if argv[:1] == ['work'] and len(argv) == 6:
        log = Log(argv[2], argv[3])
        rng = random.Random(int(argv[4]))
        for _ in range(int(argv[5])):
            change(log, rng, argv[1])
        return 0
    if argv[:1] == ['verify'] and len(argv) == 4:
        return verify(argv[1], argv[2], int(argv[3]))
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
