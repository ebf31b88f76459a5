# SPDX-License-Identifier: GPL-2.0-or-later
# Helpers for tests that run on this machine; sourced, not run.  $OUT is scratch room.
#
# expect STATUS PATTERN CMD...   the command must end with STATUS and say PATTERN (grep -E) on either
#                                output; PATTERN "" demands silence
#
# counted N WHAT [SEED]          tests/run --made adds it up: states (distinct ones, of the explorer) or cuts (recovered by
#                                the module); at the end, when nothing was wrong. SEED kept: with earlier runs' (default: $SEED)
#
# shellcheck shell=bash

set -eu -o pipefail
cd "$TERRACE_TREE"

die() { echo "FAIL: $*" >&2; exit 1; }
skip() { echo "skip: $*"; exit 77; }
counted() { echo "counted: $1 $2, seed ${3:-${SEED:-1}}"; }
check_eq() { [ "$2" = "$3" ] || die "$1: got '$2', wanted '$3'"; }

expect() {
	local want=$1 pattern=$2 said status=0
	shift 2
	said=$("$@" 2>&1 </dev/null) || status=$?
	[ "$status" = "$want" ] || die "$* ended with $status instead of $want: $said"
	if [ -n "$pattern" ]; then
		grep -qE -e "$pattern" <<< "$said" || die "$* said '$said' instead of '$pattern'"
	elif [ -n "$said" ]; then
		die "$* should be silent, but said '$said'"
	fi
}

# one_line CMD...: what a refused command says must be a single line
one_line() {
	local said
	said=$("$@" 2>&1 </dev/null || true)
	check_eq "lines said by $*" "$(wc -l <<< "$said")" 1
}
