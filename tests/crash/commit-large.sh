#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A power cut inside a large commit is not taken for a damaged journal: repair and check find nothing lost.
# vm: mode=functional cpus=1 memory=2G timeout=600
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

IN_FLIGHT=64	# core/journal_block.h
BLOCKS=12000	# a record each: more than IN_FLIGHT journal blocks

# of what is in flight each block has arrived, or has not
vol_drives 96 256 survive=0 tear=100
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --mirror none --journal 4M
dd if=/dev/urandom of=/dev/shm/first bs=4k count=8 status=none
head -c $((BLOCKS * 4096)) /dev/zero | tr '\0' x > /dev/shm/more
vol_up commit_ms=60000
dd if=/dev/shm/first of="$VOL" bs=4k oflag=direct,dsync status=none
first=$(vol_get durable)
dd if=/dev/shm/more of="$VOL" bs=4k seek=8 oflag=direct status=none
under_way=$((($(vol_get records) - $(vol_get durable)) / 126))
[ $under_way -gt $((IN_FLIGHT + 20)) ] || die "only $under_way journal blocks are to be committed"
drive fast arm write 1
expect_fail 'Input/output error' sync "$VOL"
drive_wait_off fast
dmr vol
drive_revive fast

# the test tests something: blocks beyond the end have arrived
read -r start _ <<< "$(vol_layout fast journal)"
found=$(/usr/bin/python3 -IS - "${VOL_DRIVES[0]}" $((start / 8)) <<- 'PYTHON'
	import os, sys
	fd, start = os.open(sys.argv[1], os.O_RDONLY), int(sys.argv[2])
	there = {int.from_bytes(b[8:16], 'little') for b in (os.pread(fd, 4096, (start + n) * 4096) for n in range(1024)) if b[:4] == b'TJNL'}
	end = min(there)
	while end in there:
	    end += 1
	print(max(there) - end)
	PYTHON
)
echo "the last journal block is $found behind the end"
[ "$found" -gt 0 ] || die "nothing has arrived behind the end of the journal"
said=$(terracectl repair --dry-run "${VOL_DRIVES[@]}" 2>&1) || die "repair --dry-run: $said"
[[ $said = *"nothing lost"* && $said != *problem* ]] || die "repair --dry-run: $said"
[ "$found" -lt $IN_FLIGHT ] || die "the last journal block is $found behind the end: more than $IN_FLIGHT were in flight"
vol_check
vol_up
cmp -n $((8 * 4096)) /dev/shm/first "$VOL" || die "what was durable (record $first) is not there"
vol_down
vol_check
pass "a power cut inside a commit of $under_way journal blocks"
