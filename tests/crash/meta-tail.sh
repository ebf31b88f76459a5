#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What a copy of the journal has behind the end that an activation took for the end never counts again: neither when it could not be read then, nor behind a hole.
# vm: mode=functional cpus=1 memory=2G timeout=600
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

# two fast tiers: the second holds the synchronous mirror
setup() {
	vol_models 1 fast:64 next:64 slow:256
	vol_format --tier "optane:slots:atomic=/dev/mapper/fast" --tier "nvme:slots:atomic=/dev/mapper/next" \
		--tier "hdd:shelves:atomic=/dev/mapper/slow" --journal 1M
	read -r at length <<< "$(vol_layout fast journal)"
	up
}
up() {
	vol_up commit_ms=60000
	check_eq "mirror" "$(vol_get mirror)" sync
}
teardown() {
	vol_down
	vol_check
	for d in fast next slow; do rmdrive $d; done
}

put() { head -c 4096 /dev/zero | tr '\0' "$2" | dd of="$VOL" bs=4k oflag=direct conv=fsync,notrunc seek="$1" status=none; }
get() { dd if="$VOL" bs=4k iflag=direct skip="$1" count=1 status=none | head -c 1 | tr '\0' 0; }
forget() { blkdiscard -f -o $(($1 * 4096)) -l 4096 "$VOL" && sync "$VOL"; }

# ring DRIVE: places of the journal's blocks there, oldest first
ring() {
	dd if="/dev/mapper/$1" of=/dev/shm/ring bs=4k iflag=direct skip=$((at / 8)) count=$((length / 8)) status=none
	python3 - $((at / 8)) <<- 'PYTHON'
		import struct, sys
		ring, start, found = open('/dev/shm/ring', 'rb').read(), int(sys.argv[1]), []
		for place in range(0, len(ring), 4096):
		    magic, number = struct.unpack_from('<I4xQ', ring, place)
		    if magic == 0x4c4e4a54:
		        found.append((number, start + place // 4096))
		for number, place in sorted(found):
		    print(place)
	PYTHON
}
spoil() { dd if=/dev/zero of="/dev/mapper/$1" bs=4k seek="$2" count=1 oflag=direct conv=notrunc status=none; }

# What this activation acknowledges builds on block 5 being where it was: in place, so no record says it.
# The next one must not find the record that says that block 5 is nowhere.
goes_on() {
	check_eq "block 5, whose discard was not acknowledged" "$(get 5)" a
	put 5 c
	vol_cut
	up
	check_eq "block 5, written since" "$(get 5)" c
	pass "$1"
}

# unread LONG OTHER: a record is in LONG's journal only when the power fails; at the next start LONG cannot be read
unread() {
	setup
	put 5 a
	drive "$2" error add write "$at" "$length" hold
	before=$(ring "$1" | wc -l)
	start forget 5
	drive_wait_held "$2"
	for ((i = 0; i < 50 && $(ring "$1" | wc -l) == before; i++)); do sleep 0.1; done
	check_eq "journal blocks that only $1 has" $(($(ring "$1" | wc -l) - $(ring "$2" | wc -l))) 1
	drive_cut fast
	wait "$JOB" 2> /dev/null || true
	dmr vol
	drive_revive fast
	drive "$2" error clear
	klog_allow "drive $1"
	klog_expect 'journal block .* cannot be read'
	klog_expect 'journal on metadata copy .*: Journal cannot be read'
	drive "$1" error add read "$at" "$length"
	up
	drive "$1" error clear
	goes_on "the end of the journal on $1 is gone when $2 was believed without it"
	teardown
}
klog_allow 'drive (fast|next|slow)'
unread fast next
unread next fast

# hole LONG OTHER: of four blocks that were under way OTHER has the first three, and LONG the others but the second
hole() {
	local places
	setup
	put 5 a
	put 6 a
	put 7 a
	forget 5
	vol_cut
	mapfile -t places < <(ring "$1" | tail -4)
	check_eq "journal blocks" ${#places[@]} 4
	spoil "$1" "${places[1]}"
	spoil "$2" "${places[3]}"
	up
	goes_on "what $1 has behind a hole is gone when $2 has filled it"
	teardown
}
hole fast next
hole next fast
