#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A volume holds what was written to it, says what it is, and is sound whenever it is closed.
# vm: mode=functional memory=2G timeout=600 build=oracle
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

at() { dd if="$VOL" bs=1M skip="$1" count="$2" iflag=direct status=none; }
put() { dd if="$1" of="$VOL" bs="${3:-1M}" seek="$2" oflag=direct status=none; }

vol_ram 64 512
vol_format
vol_check
vol_up
check_eq "size" "$(sectors "$VOL")" "$(cut -d' ' -f2 <<< "$VOL_TABLE")"
check_eq "logical block size" "$(blockdev --getss "$VOL")" 4096
check_eq "physical block size" "$(blockdev --getpbsz "$VOL")" 4096
queue=/sys/dev/block/$(stat -Lc %Hr:%Lr "$VOL")/queue
check_eq "optimal I/O" "$(cat "$queue/optimal_io_size")" $((1 << 20))
check_eq "minimum I/O" "$(cat "$queue/minimum_io_size")" 4096
check_eq "discard granularity" "$(cat "$queue/discard_granularity")" 4096
[ "$(cat "$queue/discard_max_bytes")" -ge $((1 << 30)) ] || die "a discard of $(cat "$queue/discard_max_bytes") bytes at most"
[ "$(cat "$queue/write_zeroes_max_bytes")" -ge $((1 << 30)) ] || die "no more than $(cat "$queue/write_zeroes_max_bytes") zeroes at once"
at 0 16 | cmp -n $((16 << 20)) - /dev/zero
at $(($(sectors "$VOL") / 2048 - 1)) 1 | cmp -n $((1 << 20)) - /dev/zero
pass "a new volume reads as zeros"

dd if=/dev/urandom of=/dev/shm/a bs=1M count=8 status=none
dd if=/dev/urandom of=/dev/shm/b bs=1M count=3 status=none
put /dev/shm/a 0
put /dev/shm/b 25600 4k		# byte 100 MiB
at 0 8 | cmp - /dev/shm/a
at 100 3 | cmp - /dev/shm/b
at 8 8 | cmp -n $((8 << 20)) - /dev/zero
sync "$VOL"
pass "reads back what was written"

# Large I/O is split only where the map is: what was written in order is read with hardly more requests than the drive by itself.
# requests DEVICE: how many the fast drive sees when 8 MiB of DEVICE are read
requests() {
	local stat before
	stat=/sys/dev/block/$(stat -Lc %Hr:%Lr /dev/ram/fast)/stat
	before=$(awk '{ print $1 }' "$stat")
	dd if="$1" of=/dev/null bs=1M count=8 iflag=direct status=none
	echo $(($(awk '{ print $1 }' "$stat") - before))
}
bare=$(requests /dev/ram/fast)
split=$(requests "$VOL")
[ "$split" -le $((bare + 8)) ] || die "$split requests to read 8 MiB in order, the drive needs $bare"
pass "8 MiB written in order are read with $split requests, of the drive itself with $bare"

status=$(vol_status)
for word in mode=write tiers=2 0:optane:slots 1:hdd:shelves 'used=[0-9]+/[0-9]+' 'reads=[0-9]+' 'writes=[0-9]+' 'free_shelves=[0-9]+' \
	'journal=[0-9]+/[0-9]+' 'records=[0-9]+' 'durable=[0-9]+' 'dirty_regions=[0-9]+' 'memory=[0-9]+' 'generation=[0-9]+' \
	'mirror=(sync|lazy|none|degraded)' 'nowait=(yes|no)'; do
	grep -qE "(^| )$word( |$)" <<< "$status" || die "status has no $word: $status"
done
used=$(vol_tier 0 used)
[ "${used%/*}" -ge $((11 * 256)) ] || die "11 MiB were written, status says $used"
pass "status: ${status#* terrace }"

table=$(dmsetup table vol)
vol_down
dmc vol "$table"
check_eq "table" "$(dmsetup table vol)" "$table"
vol_down
vol_up queue_if_full=1 commit_ms=500 atomic=no:0 read_only
table=$(dmsetup table vol)
for option in queue_if_full=1 commit_ms=500 atomic=no:0 read_only; do
	grep -q " $option" <<< "$table" || die "table has lost $option: $table"
done
vol_down
dmc vol "$table"
check_eq "table with options" "$(dmsetup table vol)" "$table"
at 0 8 | cmp - /dev/shm/a
expect_fail . dd if=/dev/shm/a of="$VOL" bs=4k count=1 oflag=direct
vol_down
pass "dmsetup table gives back the table"

vol_check
vol_up
at 0 8 | cmp - /dev/shm/a
at 100 3 | cmp - /dev/shm/b
put /dev/shm/b 0
at 0 3 | cmp - /dev/shm/b
at 3 5 | cmp - <(tail -c $((5 << 20)) /dev/shm/a)
vol_message commit
vol_message checkpoint
vol_message evict
at 0 3 | cmp - /dev/shm/b
vol_message set commit_ms=100
expect_fail . vol_message set commit_ms=1
expect_fail . vol_message nonsense
klog_has "unknown message nonsense" || die "an unknown message is not named in the log"
vol_down
vol_check
pass "content is there after reopening"

rmmod dm_terrace
load_terrace
vol_up
at 100 3 | cmp - /dev/shm/b
vol_down
