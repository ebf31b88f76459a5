#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Messages to a device-mapper device, one after the other and again, with no process started for each.

usage: messages.py DEVICE SECONDS END MESSAGE...

For so many seconds, and until the file END is there, ten times as long at most. Prints how many were sent; ends with 1 when the device refuses one.
"""
import fcntl
import os
import struct
import sys
import time

TARGET_MSG = 0xc138fd0e		# linux/dm-ioctl.h: DM_TARGET_MSG
BYTES = 4096
HEADER = 312			# of struct dm_ioctl

device, seconds, end, messages = sys.argv[1], float(sys.argv[2]), sys.argv[3], sys.argv[4:]
number = os.stat(device).st_rdev
# version, data_size, data_start, target_count, open_count, flags, event_nr, padding, dev
ask = struct.pack('3I7IQ', 4, 0, 0, BYTES, HEADER, 0, 0, 0, 0, 0, number).ljust(HEADER, b'\0')
asks = [(ask + struct.pack('Q', 0) + m.encode()).ljust(BYTES, b'\0') for m in messages]
sent = 0
with open('/dev/mapper/control', 'rb+', buffering=0) as control:
    begun = time.monotonic()
    while (took := time.monotonic() - begun) < seconds or (took < 10 * seconds and not os.path.exists(end)):
        fcntl.ioctl(control, TARGET_MSG, bytearray(asks[sent % len(asks)]))
        sent += 1
print(sent)
