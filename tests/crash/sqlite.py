#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A database that is told when a row is committed; for tests/crash/sqlite.sh.

usage: sqlite.py run DATABASE ACKED MODE	verify, then go on until the drives are gone (exit 3)
       sqlite.py verify DATABASE ACKED

MODE: WAL or DELETE (a rollback journal), or OFF: nothing is synced, and it ends by
itself (exit 3) after thirty transactions, which the power must then take away.

Each transaction inserts rows whose content follows from their number, changes
older ones, and deletes some. After COMMIT has returned, one line in ACKED (which is
not on the volume) says which generation of the whole that was. After a crash the
database must hold that generation, or the next one that was under way: nothing else.
"""
import contextlib
import hashlib
import os
import random
import sqlite3
import sys


def content(number, version):
    word = hashlib.sha256(b'%d %d' % (number, version)).hexdigest()
    return word * (1 + (number * 7 + version) % 60)


def change(state, rng):
    """The next generation of {row: version}: what is put and what is deleted."""
    put = {}
    for _ in range(rng.randint(1, 12)):
        number = rng.randint(1, 400)
        put[number] = state.get(number, 0) + 1
    gone = [number for number in rng.sample(sorted(state), min(len(state), rng.randint(0, 2))) if number not in put]
    return put, gone


def generation(state, seed, nr):
    return change(state, random.Random(seed * 1000003 + nr))


def history(seed, upto):
    """Generation 0 to upto, each the whole state."""
    state = {}
    yield dict(state)
    for nr in range(1, upto + 1):
        put, gone = generation(state, seed, nr)
        state.update(put)
        for number in gone:
            del state[number]
        yield dict(state)


def acked_of(path):
    """The seed, and the last generation that was acknowledged."""
    with open(path) as file:
        lines = file.read().split('\n')
    return int(lines[0]), int(lines[-2]) if len(lines) > 2 else 0


def write(path, acked_path, mode):
    seed, nr = acked_of(acked_path)
    database = sqlite3.connect(path, isolation_level=None)
    database.execute('PRAGMA journal_mode = %s' % ('DELETE' if mode == 'DELETE' else 'WAL'))
    database.execute('PRAGMA synchronous = %s' % {'WAL': 'FULL', 'DELETE': 'EXTRA', 'OFF': 'OFF'}[mode])
    database.execute('PRAGMA wal_autocheckpoint = 50')
    database.execute('CREATE TABLE IF NOT EXISTS row (number INTEGER PRIMARY KEY, version INTEGER, content TEXT)')
    database.execute('CREATE TABLE IF NOT EXISTS generation (nr INTEGER)')
    state = dict(database.execute('SELECT number, version FROM row'))
    found = database.execute('SELECT max(nr) FROM generation').fetchone()[0] or 0
    with open(acked_path, 'a', buffering=1) as acked:
        # what was under way at the crash and is there counts from now on
        nr = max(nr, found)
        last = nr + 30 if mode == 'OFF' else None
        while nr != last:
            nr += 1
            put, gone = generation(state, seed, nr)
            database.execute('BEGIN IMMEDIATE')
            for number, version in put.items():
                database.execute('REPLACE INTO row VALUES (?, ?, ?)', (number, version, content(number, version)))
            for number in gone:
                database.execute('DELETE FROM row WHERE number = ?', (number,))
            database.execute('DELETE FROM generation')
            database.execute('INSERT INTO generation VALUES (?)', (nr,))
            database.execute('COMMIT')
            acked.write('%d\n' % nr)
            state.update(put)
            for number in gone:
                del state[number]


def verify(path, acked_path):
    seed, acked = acked_of(acked_path)
    if not os.path.exists(path):
        return 'no database, and %d generations acknowledged' % acked if acked else None
    with contextlib.closing(sqlite3.connect(path)) as database:
        return judge(database, seed, acked)


def judge(database, seed, acked):
    said = database.execute('PRAGMA integrity_check').fetchall()
    if said != [('ok',)]:
        return 'integrity_check: %s' % said[:5]
    if not database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'generation'").fetchone()[0]:
        return 'no table, and %d generations acknowledged' % acked if acked else None
    found = database.execute('SELECT max(nr) FROM generation').fetchone()[0] or 0
    if not acked <= found <= acked + 1:
        return 'generation %d, %d was acknowledged' % (found, acked)
    wanted = list(history(seed, found))[-1]
    rows = {number: (version, text) for number, version, text in database.execute('SELECT number, version, content FROM row')}
    if {number: version for number, (version, _) in rows.items()} != wanted:
        return 'generation %d: its rows are not those that were committed' % found
    for number, (version, text) in rows.items():
        if text != content(number, version):
            return 'row %d: not what was committed' % number
    print('generation %d (acknowledged %d), %d rows' % (found, acked, len(rows)))
    return None


def main(argv):
    if argv[:1] not in (['run'], ['verify']) or len(argv) != (4 if argv[0] == 'run' else 3):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        said = verify(argv[1], argv[2])
    except sqlite3.Error as error:
        if argv[0] == 'run' and 'I/O error' in str(error):
            return 3        # the power went; who comes next looks again
        said = 'cannot be read: %s' % error
    if said:
        print('sqlite.py: BROKEN: %s' % said)
    if said or argv[0] == 'verify':
        return 1 if said else 0
    sys.stdout.flush()
    try:
        write(argv[1], argv[2], argv[3])
    except (sqlite3.Error, OSError) as error:
        print('sqlite.py: %s' % error, file=sys.stderr)
    return 3


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
