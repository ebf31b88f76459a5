# SPDX-License-Identifier: GPL-2.0-or-later
# Words for the tests of policies, which run the daemon's sources against a simulated volume.
#
# claim TEXT FIGURE OP BAR	prints the figure beside its bar; missed ones make `policy_end` fail
# figure TEXT...		prints what has no bar
# replay NAME ARGS...		tests/replay/replay, its output in $work/NAME
# total NAME KEY		of its last line
# last_window NAME [STAGE]	hit rate in the last window of the stage
#
# shellcheck shell=bash
work=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)/policy.XXXXXX")
trap 'rm -rf "$work"' EXIT
blocks=204800 fast=20480 failed=0

claim() {
	local verdict=ok
	awk "BEGIN { exit !($2 $3 $4) }" || { verdict=MISSED; failed=1; }
	printf '%-8s %-64s %s %s %s\n' "$verdict" "$1" "$2" "$3" "$4"
}

figure() { echo "figure   $*"; }

replay() {
	local name=$1
	shift
	mkdir "$work/store"
	"$work/bin/replay" dir="$work/store" blocks=$blocks "$@" >"$work/$name"
	rm -rf "$work/store"
}

total() { sed -n "s/^total.* $2=\([0-9.]*\).*/\1/p" "$work/$1"; }
last_window() { grep "^window stage=${2:-0} " "$work/$1" | tail -1 | sed 's/.* hit=\([0-9.]*\).*/\1/'; }
policy_end() { exit $failed; }
