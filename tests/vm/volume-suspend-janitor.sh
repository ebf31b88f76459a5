#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A volume is suspended within seconds while the janitor packs strewn blocks on a slow disk, or cleans a shelf that cannot be read.
# vm: mode=functional memory=2G timeout=300
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

# suspend WHAT SECONDS: within so many
suspend() {
	local began=${EPOCHREALTIME/[.,]/} took
	start dmsetup suspend --noudevsync vol
	while kill -0 "$JOB" 2> /dev/null; do
		took=$(((${EPOCHREALTIME/[.,]/} - began) / 1000))
		if [ $took -gt $(($2 * 1000)) ]; then
			drive slow error clear		# or it would never end
			wait "$JOB" || true
			die "$1: not suspended after $2 s, but after $(((${EPOCHREALTIME/[.,]/} - began) / 1000)) ms"
		fi
		sleep 0.1
	done
	wait "$JOB" || die "suspend"
	SAID+="$1: suspended after $took ms. "
}
# at_work: the slow drive is read
at_work() {
	local from
	from=$(drive_get slow reads)
	for ((i = 0; i < 300; i++)); do
		[ "$(drive_get slow reads)" -lt $((from + 3)) ] || return 0
		sleep 0.1
	done
	die "the janitor does nothing: $(vol_status)"
}
# strew END: 48 blocks in each region up to there
strew() {
	/usr/bin/python3 -ISc '
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
for region in range(int(sys.argv[2])):
    os.pwrite(fd, (b"%016d" % region + bytes(48)) * 3072, region << 22)
os.fsync(fd)' "$VOL" "$1" || die "refused: $(vol_status)"
}

mkram fast 160
mkdrive slow ram 512
export VOL_DRIVES=(/dev/ram/fast /dev/mapper/slow)
SAID=

vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --overcommit 6G
vol_up stream_kb=0 commit_ms=100 janitor_high=1000 throttle_us=0
drive slow error add read 0 0 status=ok delay=100ms
fast=$(vol_tier 0 used)
dd if=/dev/urandom of="$VOL" bs=1M seek=$((1200 * 4)) count=$((${fast#*/} / 256 + 1)) oflag=direct status=none
strew 1200		# to shelves: the fast tier is full
at_work
suspend "strewn blocks are packed" 5
drive slow error clear
dmsetup resume --noudevsync --noudevrules vol
vol_down
vol_check

# within its drives: a shelf that died for the most part is cleaned, and no block of it can be read for a second
vol_format
data=$(vol_layout slow data) data=${data% *}
vol_up stream_kb=0 commit_ms=100 janitor_high=1000 throttle_us=0
size=$(($(sectors "$VOL") / 2048))
drive slow error add read "$data" 0 delay=1s
for ((k = 0; k < size * 9 / 10 && $(vol_tier 1 free_shelves) > 3; k += 8)); do
	dd if=/dev/zero of="$VOL" bs=1M seek=$k count=8 oflag=direct status=none
done
for ((i = 32; i < k; i += 8)); do
	blkdiscard -o $((i << 20)) -l $((4 << 20)) "$VOL"
done
vol_message commit
at_work
suspend "a shelf that cannot be read is cleaned" 10
drive slow error clear
dmsetup resume --noudevsync --noudevrules vol
vol_down
vol_check
pass "$SAID"
