#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Discards, of a block, of ranges, of a whole sparse terabyte, come back at once, read as zeros and free their room; told to, drives are trimmed.
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

# what becomes free is given back to the drives (zram, which counts what it stores)
mkzram fastz 96
mkzram slowz 512
VOL_DRIVES=(/dev/ram/fastz /dev/ram/slowz)
vol_format --tier "optane:slots:atomic=/dev/ram/fastz" --tier "hdd:shelves:atomic=/dev/ram/slowz"
stored() { echo $(($(csd_stored "$1") >> 20)); }
# gone DRIVE MB: it comes to store so little
gone() {
	local i
	for ((i = 0; $(stored "$1") > $2; i++)); do
		[ "$i" -lt 150 ] || die "$1 still stores $(stored "$1") MiB: $(vol_status)"
		sleep 0.2
	done
}
vol_up stream_kb=0
head -c $((200 << 20)) /dev/zero | tr '\0' 'a' | dd of="$VOL" bs=1M oflag=direct iflag=fullblock status=none
sync "$VOL"
full="$(stored fastz) $(stored slowz)"
blkdiscard -o $((2 << 20)) -l $((190 << 20)) "$VOL"
for ((i = 0; $(used) > 4096; i++)); do
	[ "$i" -lt 100 ] || die "$(used) blocks used after the discard"
	sync "$VOL"
	sleep 0.2
done
[ "$(stored slowz)" -gt 70 ] || die "trimmed though nobody asked for it: $(stored slowz) MiB left of $full"
check_eq "trimmed" "$(vol_tier 0 trimmed) $(vol_tier 1 trimmed)" "0 0"
vol_message trim
gone fastz 30
gone slowz 60
pass "the message: $full MiB became $(stored fastz) $(stored slowz)"
vol_message set trim_ms=10
head -c $((48 << 20)) /dev/zero | tr '\0' 'b' | dd of="$VOL" bs=1M oflag=direct iflag=fullblock status=none
sync "$VOL"
before=$(vol_tier 0 trimmed)
blkdiscard "$VOL"
gone fastz 20
[ "$(vol_tier 0 trimmed)" -gt "$before" ] || die "trim_ms=10 trimmed nothing"
vol_message set trim_ms=1
# nothing that is written where a trim has just been, or is, is destroyed
oracle_new 8
while :; do vol_message trim; sleep 0.1; done & trims=$!
oracle_run --seed 8 --ops 1000 --threads 2 --depth 8 --max-kb 256 --max-discard-kb 8192 --weights write=40,read=10,discard=40,flush=10
kill $trims
wait $trims 2> /dev/null || true
oracle_clean
[ "$(vol_tier 0 trimmed)" -gt 20000 ] || die "only $(vol_tier 0 trimmed) blocks trimmed under load"
trimmed=$(vol_tier 0 trimmed)
vol_down
vol_check
vol_up
oracle_clean
vol_down
pass "trims under load: $trimmed blocks of the fast drive"

# a drive that fails to trim is not asked again, and that is all
vol_drives 64 384
vol_format
drive fast error add discard 0 0
klog_expect 'tier 0 cannot trim what is free \(-5\): it is not asked again'
klog_allow 'drive fast'
vol_up trim_ms=1
dd if=/dev/shm/data of="$VOL" bs=1M oflag=direct status=none
sync "$VOL"
failed() { drive_get fast errors; }
for ((i = 0; i < 4; i++)); do
	blkdiscard -o $((i << 18)) -l $((1 << 18)) "$VOL"
	sync "$VOL"
	vol_message trim
	for ((k = 0; k < 100 && $(failed) == 0; k++)); do sleep 0.1; done
	sleep 0.3
	# the first time, all that was asked for together
	[ $i -gt 0 ] || asked=$(failed)
done
klog_has 'cannot trim' || die "nothing said of trims that fail"
check_eq "discards that failed" "$(failed)" "$asked"
is_zero 0 $((4 << 18))
check_eq "mode" "$(vol_get mode)" write
vol_down
vol_check
pass "a drive that cannot trim"
