#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory that is to be swapped out: every page of so much of it holds its number; each is read back, changed, and read again.

usage: hold.py MIB
"""
import ctypes
import mmap
import random
import sys
import time

ctypes.CDLL(None).mlockall(1)		# the program itself stays, or it would be read from the host again and again
pages = int(sys.argv[1]) * 256
mem = mmap.mmap(-1, pages * 4096)
began = time.monotonic()


# a quarter does not compress, and no page is all one word: zram would keep nothing but that
noise = random.Random(0).randbytes(1 << 20)


def value(page, turn):
    at = (page * 64 + turn) % (len(noise) - 1024)
    return noise[at:at + 1024] + (page << 8 | turn).to_bytes(8, 'little') * 384


def check(page, turn):
    if mem[page * 4096:page * 4096 + 4096] != value(page, turn):
        sys.exit(f'page {page} is not what it was')


def told(what):
    print(f'{what}: {time.monotonic() - began:.0f} s', flush=True)


for p in range(pages):
    mem[p * 4096:p * 4096 + 4096] = value(p, 0)
told('filled')
order = list(range(0, pages, 16))	# neighbours share a cluster of the swap
random.Random(1).shuffle(order)
for p in order[:len(order) // 4]:
    for q in range(p, min(p + 16, pages)):
        check(q, 0)
        mem[q * 4096:q * 4096 + 4096] = value(q, 1)
told('changed')
changed = set(order[:len(order) // 4])
for p in range(pages):
    check(p, 1 if p - p % 16 in changed else 0)
told('read back')
