#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Discards, of a block, of ranges, of a whole sparse terabyte, come back at once, read as zeros and free their room.
# vm: mode=functional memory=3G timeout=600 build=oracle
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

GIB=$((1 << 30))
vol_ram 64 384	# RAM disks take no write-zeroes; the volume must all the same
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --overcommit 1T
vol_up
[ "$(sectors "$VOL")" -gt $((1 << 31)) ] || die "the volume is not 1 TiB"
dd if=/dev/urandom of=/dev/shm/data bs=1M count=1 status=none

at() { dd if="$VOL" bs=4k iflag=count_bytes,skip_bytes,direct skip="$1" count="$2" status=none; }
is_zero() { at "$1" "$2" | cmp -n "$2" - /dev/zero; }
used() { vol_status | tr ' ' '\n' | awk -F'[=/]' '$1 == "used" { n += $2 } END { print n }'; }
# settles WHAT BLOCKS: frees come after the commit, the grace period and the worker
settles() {
	local i
	for ((i = 0; i < 20; i++)); do
		[ "$(used)" != "$2" ] || return 0
		sync "$VOL"
		sleep 0.5
	done
	die "$1: $(used) blocks used, wanted $2: $(vol_status)"
}

# 1 MiB at each of 40 places all over the terabyte: it all fits the fast drive
empty=$(used)
for ((i = 0; i < 40; i++)); do dd if=/dev/shm/data of="$VOL" bs=1M oflag=direct,seek_bytes seek=$((i * 25 * GIB)) status=none; done
sync "$VOL"
settles "after writing" $((empty + 40 * 256))

# single blocks and ranges, aligned to nothing
blkdiscard -o $((25 * GIB + 4096)) -l 4096 "$VOL"
is_zero $((25 * GIB + 4096)) 4096
at $((25 * GIB)) 4096 | cmp -n 4096 - /dev/shm/data
at $((25 * GIB + 8192)) 8192 | cmp -i 0:8192 -n 8192 - /dev/shm/data
settles "one block" $((empty + 40 * 256 - 1))
blkdiscard -o $((50 * GIB - 8192)) -l $((512 << 10)) "$VOL"
is_zero $((50 * GIB)) $(((512 << 10) - 8192))
at $((50 * GIB + (512 << 10) - 8192)) 65536 | cmp -i 0:$(((512 << 10) - 8192)) -n 65536 - /dev/shm/data
settles "a range" $((empty + 40 * 256 - 1 - 126))
blkdiscard -z -o $((75 * GIB)) -l $((256 << 10)) "$VOL"
is_zero $((75 * GIB)) $((256 << 10))
settles "write-zeroes" $((empty + 40 * 256 - 1 - 126 - 64))
vol_down
vol_check
vol_up
is_zero $((25 * GIB + 4096)) 4096
is_zero $((50 * GIB)) $(((512 << 10) - 8192))
at $((100 * GIB)) $((1 << 20)) | cmp - /dev/shm/data
pass "blocks and ranges"

# the whole: while it is not in memory, too
vol_message evict
began=$(date +%s%N)
blkdiscard "$VOL"
took=$((($(date +%s%N) - began) / 1000000))
echo "blkdiscard of 1 TiB took $took ms here; tests/bench/io.sh measures it"
is_zero $((100 * GIB)) $((1 << 20))
dd if=/dev/shm/data of="$VOL" bs=256k count=1 oflag=direct,seek_bytes seek=$((100 * GIB)) status=none
sync "$VOL"
at $((100 * GIB)) $((256 << 10)) | cmp -n $((256 << 10)) - /dev/shm/data
is_zero $((100 * GIB + (256 << 10))) $((768 << 10))
settles "after a discard of everything" $((empty + 64))
vol_down
vol_check
vol_up
for i in 0 1 2 3 5 20 39; do is_zero $((i * 25 * GIB)) $((1 << 20)); done
at $((100 * GIB)) $((256 << 10)) | cmp -n $((256 << 10)) - /dev/shm/data
vol_down
pass "a terabyte"
