#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Do no harm: the loop against the janitor alone and against no moves at all, on each load, in operations per second
# host: timeout=300 long
# shellcheck disable=SC2086,SC2154
set -eu
cd "$(dirname "$0")/../.."
. tests/host/policy.bash
tests/replay/build "$work/bin" harm

# judge LOAD DRIVE
judge() {
	local said
	said=$("$work/bin/harm" "$1" "$2" "${OPERATIONS:-400000}")
	figure "${said#* }"
	at_least "$1 over $2" 0.98 best "$said"
	[[ $1 != all-hot-* ]] || at_least "$1 over $2" 0.9 frozen "$said"
}
at_least() {
	claim "$1: at least $2 x $3" "$(sed -n 's/.* governed=\([0-9]*\).*/\1/p' <<< "$4")" '>=' \
		"$2 * $(sed -n "s/.* $3=\([0-9]*\).*/\1/p" <<< "$4")"
}

for drive in ${DRIVES:-qlc}; do
	for load in ${LOADS:-uniform-mixed uniform-write all-hot-mixed}; do judge "$load" "$drive"; done
done
policy_end
