#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A volume that is suspended, reloaded and resumed again and again under load loses nothing.
# vm: mode=functional memory=3G timeout=600 build=oracle
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

LOAD_S=${LOAD_S:-40}
vol_ram 64 384
vol_format
vol_up stream_kb=1024
oracle_new 7
(oracle_run --seed 7 --ops 10000000 --seconds "$LOAD_S" --threads 2 --depth 8 --max-kb 256) > /dev/shm/load 2>&1 &
load=$!
rounds=0
while kill -0 $load 2> /dev/null; do
	case $((rounds % 4)) in
	0)	dmsetup suspend --noudevsync vol
		dmsetup resume --noudevsync --noudevrules vol ;;
	1)	dmsetup suspend --noudevsync --noflush vol
		dmsetup resume --noudevsync --noudevrules vol ;;
	2)	vol_reload stream_kb=1024 commit_ms=$((50 + rounds)) ;;
	3)	dmsetup load vol --table "$(vol_table)"
		dmsetup suspend --noudevsync --noflush --nolockfs vol
		dmsetup resume --noudevsync --noudevrules vol ;;
	esac
	rounds=$((rounds + 1))
	sleep 0.$((RANDOM % 5))
done
wait $load || { cat /dev/shm/load; die "the load failed"; }
cat /dev/shm/load
[ $rounds -ge 6 ] || die "only $rounds suspends in $LOAD_S s"
oracle_clean
check_eq "mode" "$(vol_get mode)" write
vol_down
vol_check
vol_up
oracle_clean
vol_down
pass "$rounds suspends under load"
