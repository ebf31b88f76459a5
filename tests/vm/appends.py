# SPDX-License-Identifier: GPL-2.0-or-later
"""Appends that are synced one by one, while another writes ahead of them.

usage: appends.py write|check DEVICE COUNT PROMISED [ahead] | strew DEVICE FIRST COUNT

write: blocks 0 .. COUNT-1, one after the other, fdatasync after each; then it writes
how many are promised to the file PROMISED. `ahead`: another thread writes up to 300
blocks in front, at random, and the appender leaves those out that are its own.
check: what was promised is there, and nothing that nobody wrote.
strew DEVICE FIRST COUNT: discards the first block of each of COUNT pairs, from FIRST on.
"""
import fcntl
import mmap
import os
import random
import struct
import sys
import threading

BLOCK = 4096
BLKDISCARD = 0x1277
what, device, count, promised = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
ahead = len(sys.argv) > 5


def others(block):
    return ahead and (block * 2654435761 >> 7) % 5 == 0


def content(block):
    return (b"%c%015d" % (b"o" if others(block) else b"a", block)) * (BLOCK // 16)


def put(fd, buf, block):
    buf[:] = content(block)
    if os.pwrite(fd, buf, block * BLOCK) != BLOCK:
        sys.exit(f"block {block}: written in part")


def write():
    fd = os.open(device, os.O_RDWR | os.O_DIRECT)
    at, done = [0], [False]

    def front():
        buf, rnd = mmap.mmap(-1, BLOCK), random.Random(1)
        while not done[0]:
            block = at[0] + rnd.randrange(300)
            try:
                if block < count and others(block):
                    put(fd, buf, block)
            except OSError:
                return          # the appender has it as well, and says so

    thread = threading.Thread(target=front)
    if ahead:
        thread.start()
    buf, left = mmap.mmap(-1, BLOCK), os.open(promised, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        for block in range(count):
            if not others(block):
                put(fd, buf, block)
            os.fdatasync(fd)
            at[0] = block + 1
            os.pwrite(left, b"%d\n" % (block + 1), 0)
    except OSError as e:
        print("ended at block", at[0], e)
    done[0] = True
    if ahead:
        thread.join()


def check():
    fd = os.open(device, os.O_RDONLY | os.O_DIRECT)
    with open(promised) as f:
        sure = int(f.read())
    buf, zeros = mmap.mmap(-1, BLOCK), bytes(BLOCK)
    for block in range(count):
        os.preadv(fd, [buf], block * BLOCK)
        if bytes(buf) == content(block):
            continue
        if bytes(buf) != zeros:
            sys.exit(f"block {block}: what nobody wrote, {bytes(buf[:32])!r}")
        if block < sure and not others(block):
            sys.exit(f"block {block} of {sure} that were promised is lost")
    print(f"{sure} promised")


def strew(first, pairs):
    fd = os.open(device, os.O_RDWR)
    for block in range(first, first + 2 * pairs, 2):
        fcntl.ioctl(fd, BLKDISCARD, struct.pack("QQ", block * BLOCK, BLOCK))


if what == "write":
    write()
elif what == "strew":
    strew(count, int(promised))
else:
    check()
