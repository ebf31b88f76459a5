#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A LevelDB, and its compactions as terraced saw them beside its own log.

usage: leveldb.py fill FOLDER KEYS              random keys, each written twice on average; prints a checksum of all
       leveldb.py sum FOLDER                    that checksum
       leveldb.py compare LEAST TERRACED_LOG LOG...

Its log names outputs ("Generated table") between the begin and the end of a compaction, and what is deleted after it: the
inputs. Compared are pairs of both; fails where precision or recall is below LEAST per cent.
"""
import hashlib
import random
import re
import sys


def digest(db):
    h = hashlib.md5()
    for key, value in db:
        h.update(key + value)
    return h.hexdigest()


def database(folder):
    import plyvel
    return plyvel.DB(folder, create_if_missing=True, write_buffer_size=1 << 20, max_file_size=1 << 20, compression=None)


def fill(folder, keys):
    db, rng = database(folder), random.Random(7)
    for _ in range(2 * keys):
        db.put(b'%016d' % rng.randrange(keys), rng.randbytes(400))
    db.compact_range(start=b'0', stop=b'9' * 16)
    print(digest(db))
    db.close()


def truth(paths):
    jobs, job, outputs = [], None, None
    for path in sorted(paths, key=lambda p: not p.endswith('.old')):
        for line in open(path, errors='replace'):
            if re.search(r'Compacting \d+@\d+ \+ \d+@\d+ files', line):
                outputs = set()
            elif outputs is not None and (m := re.search(r'Generated table #(\d+)@', line)):
                outputs.add(int(m[1]))
            elif outputs is not None and re.search(r'Compacted \d+@\d+ \+ \d+@\d+ files', line):
                job = {'in': set(), 'out': outputs}
                jobs.append(job)
                outputs = None
            elif job and (m := re.search(r'Delete type=2 #(\d+)', line)):
                job['in'].add(int(m[1]))
    return [j for j in jobs if j['in'] and j['out']]


def seen(path):
    found = []
    for line in open(path, errors='replace'):
        if m := re.search('compaction: (.*) -> (.*)', line):
            found.append({'in': set(map(int, re.findall(r'(\d+)\.ldb', m[1]))), 'out': set(map(int, re.findall(r'(\d+)\.ldb', m[2])))})
    return found


def pairs(jobs):
    return {(i, o) for j in jobs for i in j['in'] for o in j['out']}


def compare(least, log, *paths):
    true, saw = truth(paths), seen(log)
    t, s = pairs(true), pairs(saw)
    precision, recall = 100 * len(t & s) / max(1, len(s)), 100 * len(t & s) / max(1, len(t))
    print(f'{len(true)} compactions, {len(saw)} seen; {len(t)} pairs, {len(s)} seen: precision {precision:.1f} %, recall {recall:.1f} %')
    sys.exit(not t or precision < float(least) or recall < float(least))


def main(what, *args):
    if what == 'fill':
        fill(args[0], int(args[1]))
    elif what == 'sum':
        print(digest(database(args[0])))
    else:
        compare(*args)


main(*sys.argv[1:])
