#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A volume within its virtual size finds the room that is behind clean slots, and in packs half of which is dead.
# vm: mode=functional memory=3G timeout=600 build=orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

PATH=$TERRACE_TREE/build:$PATH in_ram orders fio dd
MIB_REGION=4
DATA=/dev/shm/data
orders() { from_ram orders /dev/terrace/vol "$@" > /dev/shm/orders; }
# put FIRST NR: regions, from the file of what is to be there
put() { dd if=$DATA of="$VOL" bs=1M skip=$(($1 * MIB_REGION)) seek=$(($1 * MIB_REGION)) count=$(($2 * MIB_REGION)) oflag=direct conv=notrunc status=none; }
same() { cmp -n $(($1 * MIB_REGION << 20)) $DATA "$VOL" || die "other data"; }

# packed NR UP...: a new volume; as many regions as the shelves take, at most NR, are in packs of one shelf after the other,
# a pack for each of UP, the ranges that are left where they are
vol_ram 128 480
packed() {
	vol_format
	vol_up stream_kb=0 commit_ms=100 trim_ms=1
	regions=$(($(sectors "$VOL") / 8192))
	/usr/bin/python3 -ISc 'import sys; [sys.stdout.buffer.write(b"%08d" % block * 512) for block in range(int(sys.argv[1]))]' $((regions * 1024)) > $DATA
	for ((k = 0; k < $1; k += 10)); do
		put $k 10
		for up in "${@:2}"; do
			orders sweep $k 10 append tier_down=1 codec=none ${up:+up=$up tier_up=0} || true
		done
		vol_message commit
	done
	nr=0
	for ((k = 0; k < $1; k++)); do
		[[ $(from_ram orders /dev/terrace/vol show $k) != *"fast=0 "* ]] || nr=$((nr + 1))
	done
	[ $nr -ge 40 ] || die "only $nr regions of $1 were packed: $(vol_status)"
}

# ---- clean slots: dropping them costs nothing, and no shelf need be free for it ----

packed 50 ""
orders sweep 0 50 raise tier_up=0 up=all || true
clean=$(vol_tier 0 used) clean=${clean%/*}
[ "$clean" -gt 28000 ] || die "only $clean blocks went up"
put 50 61 || die "a writer was refused: $(vol_status)"
same 111
# shelves that have nothing to gain are not cleaned over and over
sleep 3
before=$(vol_get records)
sleep 5
check_eq "records of a full volume that nobody writes to" "$(vol_get records)" "$before"
vol_down
vol_check
pass "61 regions found the room behind $clean clean slots"

# ---- packs with dead blocks: a shelf full of them can be cleaned ----

# in packs of a quarter of a region: a shelf is used to its end
packed 50 256-1023 512-1023 768-1023 ""
# other values for every second block of what is packed
/usr/bin/python3 -ISc '
import sys
with open(sys.argv[1], "r+b") as data:
    for block in range(0, int(sys.argv[2]), 2):
        data.seek(block * 4096)
        data.write(b"%08x" % (block ^ 0xabcdef01) * 512)' $DATA $((40 * 1024))
/usr/bin/python3 -ISc '
import mmap, os, sys
data = os.open(sys.argv[1], os.O_RDONLY)
to = os.open(sys.argv[2], os.O_WRONLY | os.O_DIRECT)
page = mmap.mmap(-1, 4096)
for block in range(0, int(sys.argv[3]), 2):
    page[:] = os.pread(data, 4096, block * 4096)
    os.pwrite(to, page, block * 4096)' $DATA "$VOL" $((40 * 1024)) || die "a writer was refused, overwriting: $(vol_status)"
put 50 61 || die "a writer was refused: $(vol_status)"
same 111
vol_down
vol_check
pass "61 regions found the room that was dead in packs"
