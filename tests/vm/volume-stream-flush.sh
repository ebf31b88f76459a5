#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A flush does not wait until a stream ends: a commit names what was published when it began, and no more.
# vm: mode=vtime memory=4G timeout=900
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

MB=1024			# of the stream, at some 200 a second
in_ram fio
mkram fast 64
mkdrive slow hdd $((MB + 512))
export VOL_DRIVES=(/dev/ram/fast /dev/mapper/slow)
vol_format
vol_up stream_kb=512
dd if=/dev/zero of="$VOL" bs=4k count=1 oflag=direct,dsync status=none	# in a slot
cat > /dev/shm/beside.py << 'END'
import mmap, os, sys, time
volume = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
page, longest, number = mmap.mmap(-1, 4096), 0, 0
while not os.path.exists('/dev/shm/ended'):
    began = time.monotonic()
    os.pwrite(volume, page, 0)
    os.fsync(volume)
    longest, number = max(longest, time.monotonic() - began), number + 1
    time.sleep(0.1)
print(number, int(longest * 1000))
END
start /usr/bin/python3 -IS /dev/shm/beside.py "$VOL" > /dev/shm/beside
beside=$JOB
sleep 1
fio_ --name=stream --filename="$VOL" --offset=16m --size=${MB}m --rw=write --bs=1M --iodepth=8 --ioengine=libaio --direct=1 > /dev/shm/stream
touch /dev/shm/ended
wait "$beside"
read -r number longest < /dev/shm/beside
[ "$(vol_tier 1 used | cut -d/ -f1)" -gt $((MB * 200)) ] || die "no stream came to the shelves: $(vol_status)"
[ "$longest" -le 2000 ] || die "of $number flushes during a stream of $MB MiB the longest took $longest ms"
vol_down
vol_check
pass "of $number flushes during a stream of $MB MiB the longest took $longest ms"
