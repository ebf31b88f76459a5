#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Data files of databases, whose pages tests/bench/moves.sh packs.

usage: tests/bench/tools/pages.py DIR

DIR/sqlite   a shop's tables and indexes in SQLite, 4 KiB pages: names, addresses,
             timestamps, prices, JSON, and texts made of this tree's documentation
DIR/rocksdb  the tables of RocksDB's db_bench after fillrandom and compact, not
             compressed, values that compress by half (if db_bench is installed)

The same rows each time.
"""
import glob
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

TREE = os.path.join(os.path.dirname(os.path.realpath(__file__)), '../../..')
ORDERS = 40000

SCHEMA = '''
PRAGMA page_size = 4096; PRAGMA journal_mode = off; PRAGMA synchronous = off;
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, mail TEXT UNIQUE, street TEXT, city TEXT, zip TEXT, since INTEGER);
CREATE TABLE sale (id INTEGER PRIMARY KEY, customer INTEGER, at INTEGER, total REAL, state TEXT, token BLOB);
CREATE TABLE line (sale INTEGER, nr INTEGER, sku TEXT, quantity INTEGER, price REAL, PRIMARY KEY (sale, nr)) WITHOUT ROWID;
CREATE TABLE event (id INTEGER PRIMARY KEY, at INTEGER, body TEXT);
CREATE TABLE review (id INTEGER PRIMARY KEY, sku TEXT, stars INTEGER, text TEXT);
CREATE INDEX sale_customer ON sale (customer, at);
CREATE INDEX line_sku ON line (sku);
CREATE INDEX event_at ON event (at);
'''


def words():
    text = ''
    for path in sorted(glob.glob(os.path.join(TREE, 'Documentation/*.md'))):
        with open(path, encoding='utf-8') as f:
            text += f.read()
    return re.findall(r"[a-z]{2,}", text.lower())


def fill(db):
    rnd = random.Random(1)
    word = words()
    text = lambda n: ' '.join(rnd.choices(word, k=n))
    name = lambda: rnd.choice(word).capitalize()
    city = [name() + rnd.choice(['burg', 'ton', 'ville', ' Springs']) for _ in range(300)]
    now = 1700000000
    for i in range(1, ORDERS // 4):
        who = f'{name()} {name()}'
        db.execute('INSERT INTO customer VALUES (?,?,?,?,?,?,?)', (
            i, who, f'{who.replace(" ", ".").lower()}{i}@{rnd.choice(word)}.example', f'{rnd.randint(1, 300)} {name()} Street',
            rnd.choice(city), f'{rnd.randint(10000, 99999)}', now - rnd.randint(0, 10**8)))
    for i in range(1, ORDERS):
        now += rnd.randint(1, 90)
        nr = rnd.randint(1, 5)
        price = [round(rnd.lognormvariate(3, 1), 2) for _ in range(nr)]
        db.execute('INSERT INTO sale VALUES (?,?,?,?,?,?)', (
            i, rnd.randint(1, ORDERS // 4), now, sum(price), rnd.choice(['paid', 'sent', 'returned']), rnd.randbytes(16)))
        for k in range(nr):
            db.execute('INSERT INTO line VALUES (?,?,?,?,?)', (i, k, f'SKU-{int(rnd.paretovariate(0.5)) % 20000:06d}', rnd.randint(1, 9), price[k]))
        body = {'type': rnd.choice(['view', 'cart', 'login', 'buy']), 'session': f'{rnd.getrandbits(64):016x}',
                'ip': f'10.{rnd.randint(0, 255)}.{rnd.randint(0, 255)}.{rnd.randint(1, 254)}', 'ms': rnd.randint(1, 900),
                'agent': rnd.choice(['Firefox/119.0', 'Chrome/118.0', 'Safari/17.0'])}
        db.execute('INSERT INTO event VALUES (?,?,?)', (i, now, json.dumps(body)))
        if i % 4 == 0:
            db.execute('INSERT INTO review VALUES (?,?,?,?)', (i, f'SKU-{rnd.randint(0, 19999):06d}', rnd.randint(1, 5), text(rnd.randint(10, 120))))


def sqlite(path):
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript(SCHEMA)
    db.execute('BEGIN')
    fill(db)
    db.execute('COMMIT')
    db.close()


def rocksdb(path):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(['db_bench', '--db=' + folder, '--benchmarks=fillrandom,compact', '--num=60000', '--value_size=400', '--seed=1',
                        '--compression_type=none', '--compression_ratio=0.5', '--target_file_size_base=8388608'],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(path, 'wb') as out:
            for table in sorted(glob.glob(folder + '/*.sst')):
                with open(table, 'rb') as f:
                    shutil.copyfileobj(f, out)


def main():
    if len(sys.argv) != 2:
        print(__doc__.split('\n\n')[1], file=sys.stderr)
        sys.exit(2)
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    os.makedirs(sys.argv[1])
    sqlite(sys.argv[1] + '/sqlite')
    if shutil.which('db_bench'):
        rocksdb(sys.argv[1] + '/rocksdb')


main()
