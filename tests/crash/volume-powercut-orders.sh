#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The power cuts of crash/volume-powercut, while random orders of every mode run: each mode was at work in rounds that a cut ended.
# vm: mode=functional memory=3G timeout=1000 build=oracle,orders long
export ORDERS=1
LIMIT=${LIMIT:-80} LEAST=${LEAST:-8}	# a round lasts seconds, or no order would come to its end in it
. "$TERRACE_TREE/tests/crash/volume-powercut.sh"

# given, ended, executed: eight numbers each, by mode (enum terrace_move_mode)
read -ra tally < <(od -An -v -w192 -tu8 /dev/shm/tally)
said=() none=()
for mode in append:1 merge:2 raise:3 clean:4 drop:5 scrub:6; do
	nr=${mode#*:}
	done=${tally[16 + nr]} open=$((tally[nr] - tally[8 + nr]))
	said+=("${mode%:*} $done and $open")
	[ $((done + open)) -gt 0 ] || none+=("${mode%:*}")
done
printf -v said '%s, ' "${said[@]}"
if [ ${#none[@]} != 0 ] || [ "${tally[17]}" = 0 ]; then
	sort /dev/shm/orders | uniq -c | sort -rn | head -20
	die "orders of these modes were not at work: ${none[*]:-append} (carried out, and under way when the power went: $said)"
fi
pass "orders carried out, and under way when the power went: ${said%, }"
