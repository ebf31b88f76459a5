#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compactions as terraced saw them, beside RocksDB's own log of events.

usage: compactions.py LEAST TERRACED_LOG LOG...

Compared are pairs of an input and an output.  A compaction counts that finished, wrote something and
had one of its inputs deleted: one that a shutdown cut off gives its outputs up instead.  Fails where precision
or recall is below LEAST per cent, or where what terraced has read in that log is not exactly what stands there.
"""
import json
import re
import sys

MARK = 'EVENT_LOG_v1'


def truth(paths):
    jobs, deleted = {}, set()
    for path in paths:
        for line in open(path, errors='replace'):
            if MARK not in line:
                continue
            e = json.loads(line[line.index(MARK) + len(MARK):])
            what, job = e['event'], jobs.get(e['job'])
            if what == 'compaction_started':
                inputs = {n for key, files in e.items() if re.fullmatch(r'files_L\d+', key) for n in files}
                jobs[e['job']] = {'in': inputs, 'out': set(), 'finished': False}
            elif what == 'table_file_creation' and job:
                job['out'].add(e['file_number'])
            elif what == 'compaction_finished' and job:
                job['finished'] = True
            elif what == 'table_file_deletion':
                deleted.add(e['file_number'])
    finished = [j for j in jobs.values() if j['finished'] and j['out']]
    return [j for j in finished if j['in'] & deleted], finished


def seen(path, what):
    found = []
    for line in open(path, errors='replace'):
        m = re.search(what + ': (.*) -> (.*)', line)
        if m:
            found.append({'in': set(map(int, re.findall(r'(\d+)\.sst', m[1]))), 'out': set(map(int, re.findall(r'(\d+)\.sst', m[2])))})
    return found


def pairs(jobs):
    return {(i, o) for j in jobs for i in j['in'] for o in j['out']}


def main(least, log, *paths):
    (true, finished), saw, read = truth(paths), seen(log, 'compaction'), seen(log, 'by its own log')
    t, s = pairs(true), pairs(saw)
    precision, recall = 100 * len(t & s) / max(1, len(s)), 100 * len(t & s) / max(1, len(t))
    print(f'{len(true)} compactions ({len(finished) - len(true)} more were cut off), {len(saw)} seen; '
          f'{len(t)} pairs, {len(s)} seen: precision {precision:.1f} %, recall {recall:.1f} %')
    for j in true:
        same = [x for x in saw if x['in'] & j['in']]
        if len(same) != 1 or (same[0]['in'], same[0]['out']) != (j['in'], j['out']):
            print('  was ', sorted(j['in']), '->', sorted(j['out']))
            for x in same:
                print('  seen', sorted(x['in']), '->', sorted(x['out']))
    exact = pairs(finished) == pairs(read)
    print(f'{len(read)} compactions read in its own log: ' + ('exactly those' if exact else 'not the same'))
    sys.exit(not t or precision < least or recall < least or not exact)


main(float(sys.argv[1]), *sys.argv[2:])
