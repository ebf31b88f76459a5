#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Loose blocks that were read from a disk are not read again, by readers or the order that brings them up, and what is kept never outlives its place.
# vm: mode=functional cpus=2 memory=2G timeout=800 build=orders,drive
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/orders.bash"

DATA=/dev/shm/data MB=62
of() { cat /sys/fs/terrace/*/"$1"; }
# each FILE FIRST STEP COUNT [OF]: so many blocks of it, one at a time; of so many from the first on, again and again
each() {
	/usr/bin/python3 -ISc '
import mmap, os, sys
fd, first, step, count, of = os.open(sys.argv[1], os.O_RDONLY | (0 if sys.argv[1].startswith("/dev/shm/") else os.O_DIRECT)), *map(int, (sys.argv[2:] + [1 << 40])[:4])
page = mmap.mmap(-1, 4096)
for k in range(count):
    os.preadv(fd, [page], (first + k * step % of) * 4096)
    sys.stdout.buffer.write(page)' "$@"
}
# 40 blocks of region 1, none beside another, in no order of a stream
some() { each "$VOL" 1024 25 40; }
wanted() { /usr/bin/python3 -ISc 'import sys; data = open(sys.argv[1], "rb").read(); sys.stdout.buffer.write(b"".join(data[(1024 + k * 25) * 4096:][:4096] for k in range(40)))' $DATA; }
UP=$(for ((k = 0; k < 40; k++)); do printf '%s%d' "${UP+,}" $((k * 25)); UP=; done)
# reads WANTED WHAT CMD...: how often the disk was read meanwhile
reads() {
	local before
	before=$(drive_get slow reads)
	"${@:3}" > /dev/shm/said
	check_eq "reads of the disk, $2" $(($(drive_get slow reads) - before)) "$1"
}
# A stream goes past the fast drive, to the end of the shelves.
write_all() {
	/usr/bin/python3 -ISc 'import os, sys; open(sys.argv[1], "wb").write(os.urandom(1 << 20) * int(sys.argv[2]))' $DATA $MB
	dd if=$DATA of="$VOL" bs=1M oflag=direct status=none
	vol_message commit
}
none_kept() { [ "$(of cache_loose)" = 0 ]; }
wait_until() {
	local i
	for ((i = 0; i < 300; i++)); do ! "${@:2}" || return 0; sleep 0.1; done
	die "never: $1"
}

vol_drives 64 320
vol_format
vol_up stream_kb=256
write_all
used=$(vol_tier 1 used)
[ "${used%/*}" -ge $((MB * 250)) ] || die "the stream is not on the disk: $used blocks are"

reads 40 "the first time" some
cmp <(wanted) /dev/shm/said || die "the first time: data differ"
reads 0 "the second time" some
cmp <(wanted) /dev/shm/said || die "the second time: data differ"
[ "$(of cache_loose)" -ge $((40 * 4096)) ] || die "$(of cache_loose) bytes are kept"
pass "what was read is found"

reads 0 "to promote what was read" order 1 raise "up=$UP"
vol_message commit
wait_until "nothing is kept of what went up" none_kept
reads 0 "of what went up" some
cmp <(wanted) /dev/shm/said || die "after promotion: data differ"
pass "the order that brings it up finds it"

# in order: nobody comes back to that
each "$VOL" 2048 1 1000 > /dev/null
[ "$(of cache_loose)" -le $((16 * 4096)) ] || die "$(of cache_loose) bytes of a scan are kept"
kept=$(of cache_loose)
vol_message set ahead_kb=0
each "$VOL" 6144 1 1000 > /dev/null
[ "$(of cache_loose)" -le $((kept + 16 * 4096)) ] || die "$(of cache_loose) bytes are kept after a scan that is not read ahead, $kept before"
vol_message set ahead_kb=256
pass "a scan is not kept"

# Each time on other shelves, until these are used again, some blocks further in front. A quarter of it is read, and kept.
for ((round = 0; round < 8; round++)); do
	write_all
	wait_until "nothing is kept of what was overwritten" none_kept
	each "$VOL" 0 25 4096 4096 > /dev/shm/said
	cmp <(each $DATA 0 25 4096 4096) /dev/shm/said || die "round $round: data differ"
done
pass "what is kept leaves before its place is used again"

vol_message set cache_mb=1
each "$VOL" 3 11 500 > /dev/null
[ "$(($(of cache_loose) + $(of cache_stored) + $(of cache_plain)))" -le $((1 << 20)) ] || die "$(of cache_loose) bytes are kept, 1 MiB are allowed"
vol_message set cache_mb=0
some > /dev/shm/said
check_eq "bytes kept without a cache" "$(of cache_loose)" 0
cmp <(wanted) /dev/shm/said || die "at the end: data differ"
pass "limits"
vol_down
vol_check
