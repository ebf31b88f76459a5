#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Thousands of random operations, with clean stops and power cuts between: every block holds what it may, the volume is sound.
# vm: mode=functional memory=3G timeout=450 build=oracle
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}
STEPS=${STEPS:-10}
RANDOM=$SEED
vol_drives 64 384
vol_format
vol_up stream_kb=2048 commit_ms=200
oracle_new "$SEED"
for ((step = 0; step < STEPS; step++)); do
	oracle_run --seed "$SEED" --ops $((200 + RANDOM % 600)) --threads 2 --depth $((1 + RANDOM % 12)) --max-kb $((4 << RANDOM % 9)) \
		--hot $((RANDOM % 90)) --max-discard-kb $((4 << RANDOM % 14))
	case $((RANDOM % 4)) in
	0)	vol_message checkpoint
		vol_message evict
		oracle_clean --touched --sample 8
		continue ;;
	1)	vol_cut
		vol_check
		vol_up stream_kb=2048 commit_ms=200
		oracle_crash ;;
	*)	vol_down
		vol_check
		vol_up
		oracle_clean --touched --sample 4 ;;
	esac
done
oracle_clean
vol_down
vol_check
vol_up
oracle_clean
vol_down
