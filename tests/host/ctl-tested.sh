#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every command of terracectl is run by a test in a machine that is part of make check; prints which.
# host: timeout=60 build=daemon
. "$TERRACE_TREE/tests/host/lib.sh"
ctl=$TERRACE_TREE/build/terracectl
# tests of every day; what they share
mapfile -t tests < <(grep -LE '^# vm:.* long( |$)' tests/vm/*.sh tests/crash/*.sh; ls tests/vm/*.bash)
# a call: terracectl COMMAND, or its forms in tests/vm/ctl.bash
call='(terracectl"?|says "[^"]*"|refuses [12] "[^"]*")'
missing=
for command in $("$ctl" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
	mapfile -t found < <(grep -lE "$call $command( |\$)" "${tests[@]}")
	found=("${found[@]##*/}")
	printf '%-11s %s\n' "$command" "${found[*]%.*}"
	[ ${#found[@]} != 0 ] || missing+=" $command"
done
[ -z "$missing" ] || die "no test in tests/vm runs terracectl$missing"
! grep -qE "$call nosuch( |\$)" "${tests[@]}" || die "the pattern finds what is not there"
