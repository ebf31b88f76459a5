#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables that are written, synced and deleted, until the drives are gone; for tests/crash/files-trimmed.sh.

usage: dying.py live FOLDER LEDGER SEED		ends with 3 when a call fails
       dying.py check FOLDER LEDGER AT_CUT	prints "PRESENT CAME_BACK", of those that the ledger as it was at the cut
						calls deleted; ends with 1 and says which file is wrong

A line in LEDGER, which is not on the volume, after each table and its name were synced ("+ N"), before
each is deleted ("- N"), which nothing syncs, and after it ("d N").  Afterwards a table that was never deleted must be there, and be whole; one
that was deleted may be there, and must be whole then; one that was not promised holds nothing that nobody wrote.
"""
import hashlib
import os
import random
import sys
import time

BLOCK = 4096


def block(number, at):
    return hashlib.sha256(b'%d %d' % (number, at)).digest() * (BLOCK // 32)


def blocks_of(number):
    return 16 + number * 37 % 240


def name(folder, number):
    return f'{folder}/{number:06d}.ldb'


def write(folder, number):
    with open(name(folder, number), 'xb', buffering=0) as file:
        for at in range(blocks_of(number)):
            file.write(block(number, at))
        os.fsync(file.fileno())
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


def numbers(folder):
    return sorted(int(entry[:6]) for entry in os.listdir(folder) if entry.endswith('.ldb'))


def live(folder, ledger, seed):
    rng = random.Random(seed)
    with open(ledger, 'a', buffering=1) as said:
        alive = numbers(folder)
        number = max([int(line.split()[1]) for line in open(ledger)] + alive + [0]) // 1000 * 1000 + 1000
        while True:
            for _ in range(rng.randint(2, 6)):
                number += 1
                write(folder, number)
                said.write(f'+ {number}\n')
                alive.append(number)
            for _ in range(max(len(alive) - 16, rng.randint(1, 3))):
                dead = alive.pop(rng.randrange(len(alive)))
                said.write(f'- {dead}\n')
                os.unlink(name(folder, dead))
                said.write(f'd {dead}\n')
            # what has died is trimmed meanwhile
            time.sleep(rng.choice([0.05, 0.3, 0.6]))


def check(folder, ledger, at_cut):
    promised, deleted = set(), set()
    for line in open(ledger):
        word, number = line.split()
        (promised if word == '+' else deleted).add(int(number))
    dead = {int(line.split()[1]) for line in open(at_cut) if line[0] == 'd' and line[-1] == '\n'}
    present = set(numbers(folder))
    if promised - deleted - present:
        sys.exit(f'lost: {sorted(promised - deleted - present)}')
    for number in sorted(present):
        with open(name(folder, number), 'rb') as file:
            data = file.read()
        if number in promised and len(data) != blocks_of(number) * BLOCK:
            sys.exit(f'{number}: {len(data)} bytes of {blocks_of(number) * BLOCK}')
        for at in range(len(data) // BLOCK):
            got = data[at * BLOCK:(at + 1) * BLOCK]
            if got != block(number, at) and (number in promised or got.strip(b'\0')):
                sys.exit(f'{number}{" (deleted)" if number in deleted else ""}: block {at} of {blocks_of(number)} is {got[:16]!r}')
    print(len(present), len(present & dead))
    # what came back lives on
    with open(ledger, 'w') as said:
        said.writelines(f'+ {number}\n' for number in sorted(present & promised))
    for number in present - promised:
        os.unlink(name(folder, number))


if sys.argv[1] == 'live':
    try:
        live(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    except OSError as error:
        print(error)
        sys.exit(3)
check(sys.argv[2], sys.argv[3], sys.argv[4])
