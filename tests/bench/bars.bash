# SPDX-License-Identifier: GPL-2.0-or-later
# Figures and their bars, for the measuring scripts; sourced after tests/vm/lib.sh.
#
# bar WHAT FIGURE UNIT MOST	print it with its bar: met or MISSED
# bar WHAT FIGURE UNIT -LEAST	the same for a figure that should be large
# figure WHAT FIGURE UNIT	print it: no bar
# bars_end			the last line; fails if a bar was missed, or there is no figure at all
#
# Figures are whole numbers. Each row is also a line of $OUT/bars.csv
# (script,what,figure,unit,kind,bar,verdict), from which tests/bench/run makes
# build/bench/NAME.csv and .json.
#
# shellcheck shell=bash

BARS_SCRIPT=$(basename "$0" .sh)
bars_missed=0
bars_all=0
: > "$OUT/bars.csv"

bars_row() {
	local IFS=,
	echo "$*" >> "$OUT/bars.csv"
}

bar() {
	local what=$1 figure=$2 unit=$3 limit=${4#-} kind='<=' verdict=met
	[ "$limit" = "$4" ] || kind='>='
	[ "$figure" ] || die "no figure for: $what"
	if [ $kind = '<=' ]; then
		[ "$figure" -le "$limit" ] || verdict=MISSED
	else
		[ "$figure" -ge "$limit" ] || verdict=MISSED
	fi
	bars_all=$((bars_all + 1))
	[ $verdict = met ] || bars_missed=$((bars_missed + 1))
	printf '%-66s %9s %-10s bar %10s  %s\n' "$what" "$figure" "$unit" "$kind $limit" $verdict
	bars_row "$BARS_SCRIPT" "${what//,/;}" "$figure" "$unit" "$kind" "$limit" $verdict
}

figure() {
	printf '%-66s %9s %-10s\n' "$1" "$2" "$3"
	bars_row "$BARS_SCRIPT" "${1//,/;}" "$2" "$3" "" "" ""
}

bars_end() {
	[ -s "$OUT/bars.csv" ] || die "$BARS_SCRIPT: there is not one figure"
	echo "$BARS_SCRIPT: $bars_missed of $bars_all bars missed"
	[ $bars_missed = 0 ] || exit 1
}
