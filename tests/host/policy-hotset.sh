#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A hot set that grows, shrinks and moves (HotRAP 4.6), plotted: RALT's limit follows it, the hit rate recovers
# host: timeout=300
# shellcheck disable=SC2086,SC2154
set -eu
cd "$(dirname "$0")/../.."
. tests/host/policy.bash
tests/replay/build "$work/bin" replay
accesses=400000 windows=8

# window NAME STAGE N KEY
window() { grep "^window stage=$2 " "$work/$1" | sed -n "$3s/.* $4=\([0-9.]*\).*/\1/p"; }
# one line a window: the hot set, # as RALT sees it, and its limit
plot() {
	local name=$1
	shift
	figure "$name: a column is 256 blocks; # counted hot, > the limit, | the true hot set of the stage"
	sed -n 's/^window stage=\([0-9]*\) .* hit=\([0-9.]*\) .* hot_limit=\([0-9]*\) hot=\([0-9]*\) .*/\1 \2 \3 \4/p' "$work/$name" |
		awk -v true="$*" 'BEGIN { split(true, t, " ") } {
			line = ""
			for (i = 0; i < 56; i++) line = line (i == int(t[$1 + 1] / 256) ? "|" : i == int($3 / 256) ? ">" : i < int($4 / 256) ? "#" : " ")
			printf "figure   stage %d %s hit rate %s\n", $1, line, $2 }'
}
# follows NAME STAGE HOT: in its last window
follows() {
	local limit
	limit=$(window "$1" "$2" $windows hot_limit)
	claim "$1: stage $2, counted hot within 5 % of $3" "$(window "$1" "$2" $windows hot)" '>=' "0.95 * $3"
	claim "" "$(window "$1" "$2" $windows hot)" '<=' "1.05 * $3"
	claim "$1: stage $2, the limit is the hot set and D_hs" "$limit" '<=' "1.1 * $3 + 0.07 * $fast"
	claim "" "$limit" '>=' "$3"
}

replay grow load=grow hot=0.0125 stages=3 accesses=$accesses windows=$windows
replay shrink load=shrink hot=0.05 stages=3 accesses=$accesses windows=$windows
replay shift load=shift hot=0.05 stages=3 accesses=$accesses windows=$windows
plot grow 2560 5120 10240
plot shrink 10240 5120 2560
plot shift 10240 10240 10240
for stage in 0 1 2; do
	follows grow $stage $((2560 << stage))
	follows shrink $stage $((10240 >> stage))
	follows shift $stage 10240
done
for stage in 1 2; do
	claim "grow, shrink: the hit rate of stage $stage is that of stage 0" "$(last_window grow $stage)" '>=' "$(last_window grow 0) - 0.02"
	claim "" "$(last_window shrink $stage)" '>=' "$(last_window shrink 0) - 0.02"
	claim "shift: back within 2 points after $((accesses / 10240)) accesses per hot block" "$(last_window shift $stage)" '>=' "$(last_window shift 0) - 0.02"
done
policy_end
