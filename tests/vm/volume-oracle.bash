# SPDX-License-Identifier: GPL-2.0-or-later
# A volume's life under the oracle; sourced after volume.bash.
#
# oracle_life	of the volume just formatted: random operations, with clean stops and power cuts between
#		and what "between STEP" does, if there is such a function
#
# shellcheck shell=bash disable=SC2119

SEED=${SEED:-1}
STEPS=${STEPS:-8}

oracle_life() {
	local step
	RANDOM=$SEED
	vol_up stream_kb=2048 commit_ms=200
	oracle_new "$SEED"
	for ((step = 0; step < STEPS; step++)); do
		oracle_run --seed "$SEED" --ops $((200 + RANDOM % 600)) --threads 2 --depth $((1 + RANDOM % 12)) --max-kb $((4 << RANDOM % 9)) \
			--hot $((RANDOM % 90)) --max-discard-kb $((4 << RANDOM % 14))
		! declare -F between > /dev/null || between "$step"
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
}
