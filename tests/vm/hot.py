#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Which blocks of a file terraced holds to be hot.

usage: hot.py read FILE FROM COUNT TIMES       these blocks are read, by themselves and past the page cache
       hot.py show SOCKET VOLUME < BLOCKS      offsets, in blocks, of those that are hot; BLOCKS as where.py prints them
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


def is_hot(answer):
    if isinstance(answer, list):
        return any(map(is_hot, answer))
    return isinstance(answer, dict) and (answer.get('hot') is True or any(map(is_hot, answer.values())))


def show(path, volume):
    for n, block in enumerate(sys.stdin):
        if is_hot(ask(path, f'explain {volume} {int(block)}')):
            print(n)


if sys.argv[1] == 'read':
    read(sys.argv[2], *map(int, sys.argv[3:]))
else:
    show(*sys.argv[2:])
