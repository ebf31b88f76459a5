#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Which blocks of a file terraced holds to be warm: read, and more than once.

usage: hot.py read FILE FROM COUNT TIMES       these blocks are read, by themselves and past the page cache
       hot.py show SOCKET VOLUME < BLOCKS      offsets, in blocks, of those of a level above 0; BLOCKS as where.py prints them
"""
import json
import mmap
import os
import socket
import sys

BLOCK = 4096


def read(path, first, count, times):
    fd, buffer = os.open(path, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, BLOCK)
    for _ in range(times):
        for block in range(first, first + count):
            os.preadv(fd, [buffer], block * BLOCK)


def ask(path, question):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        s.sendall(question.encode() + b'\n')
        return json.loads(b''.join(iter(lambda: s.recv(65536), b'')))


def level(answer):
    if isinstance(answer, dict):
        return answer['level'] if 'level' in answer else max(map(level, answer.values()), default=-1)
    return max(map(level, answer), default=-1) if isinstance(answer, list) else -1


def show(path, volume):
    for n, block in enumerate(sys.stdin):
        if level(ask(path, f'explain {volume} {int(block)}')) > 0:
            print(n)


if sys.argv[1] == 'read':
    read(sys.argv[2], *map(int, sys.argv[3:]))
else:
    show(*sys.argv[2:])
