#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A full volume says ENOSPC, loses nothing, and goes on when there is room.
# vm: mode=functional memory=3G timeout=600 build=oracle
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

vol_ram 64 256
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --overcommit 1G
vol_up stream_kb=0
[ "$(sectors "$VOL")" -gt $((1024 * 2048)) ] || die "not overcommitted"
oracle_new 4

# more than fits: some writes must be refused, none may be lost
oracle_run --seed 4 --ops 3000 --depth 4 --hot 0 --overlap 0 --nospc-ok --weights write=50,read=5,flush=2 | tee /dev/shm/said
grep -q 'nospc=' /dev/shm/said || die "3000 writes of a volume that cannot hold them, and never ENOSPC"
check_eq "mode when full" "$(vol_get mode)" write
oracle_clean
pass "ENOSPC, and nothing lost"

# what is there can be overwritten and read; a reopened full volume is still sound
vol_down
vol_check
vol_up stream_kb=0
oracle_clean
# discards make room again
oracle_run --seed 5 --ops 20 --max-discard-kb 131072 --weights discard=1
vol_message checkpoint
for ((i = 0; ; i++)); do
	status=0
	oracle_run --seed 6 --ops 40 --depth 2 --weights write=5,read=5,flush=1 --nospc-ok > /dev/shm/said || status=$?
	check_eq "status of writing after discards" "$status" 0
	grep -q nospc= /dev/shm/said || break
	[ "$i" -lt 20 ] || die "no room 20 rounds after discards"
	sleep 0.5
done
oracle_clean
vol_down
vol_check
pass "discards made room"
