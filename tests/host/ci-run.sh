#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# .ci/run is what the README says, ends in the plain line of counts and passes the verdict on.
# host: timeout=600
. "$TERRACE_TREE/tests/host/lib.sh"

check_eq "the README's first command" "$(grep -m1 -oE '^    make [a-z]+' README.md)" "    make check"
grep -qE '^make check( |$)' .ci/run || die ".ci/run does not call make check"

mkdir -p "$OUT/tree"
cp -r .ci "$OUT/tree/"
cd "$OUT/tree" || exit
# ends STATUS LINE RECIPE: what .ci/run makes of it
ends() {
	local want=$1 line=$2 status=0 said
	printf 'check:\n\t@%s\n' "$3" > Makefile
	said=$(.ci/run 2>/dev/null) || status=$?
	[ "$status" = "$want" ] || [[ $want = fails && $status != 0 ]] || die "status $status instead of $want"
	check_eq "last line" "$(tail -1 <<< "$said")" "$line"
}
ends 0 '3 passed, 0 failed, 1 skipped' 'echo "3 passed, 0 failed, 1 skipped"'
ends fails '3 passed, 2 failed, 1 skipped' 'echo "3 passed, 2 failed, 1 skipped"; exit 1'
ends fails '0 passed, 1 failed, 0 skipped' 'echo "setup: no network"; exit 1'
