# SPDX-License-Identifier: GPL-2.0-or-later
# What terracectl says, in scripts that run inside the virtual machine; sourced after tests/vm/volume.bash.
#
# says PATTERN ARG...		terracectl succeeds and says it
# refuses STATUS PATTERN ARG...	it ends with that status and says it
# json EXPRESSION < TEXT		python expression of the object o
#
# shellcheck shell=bash

says() {
	local pattern=$1 said
	shift
	said=$(terracectl "$@" 2>&1 < /dev/null) || die "terracectl $* ended with $?: $said"
	grep -qE -e "$pattern" <<< "$said" || die "terracectl $* said '$said' instead of '$pattern'"
}
refuses() {
	local want=$1 pattern=$2 said status=0
	shift 2
	said=$(terracectl "$@" 2>&1 < /dev/null) || status=$?
	check_eq "exit status of terracectl $* ($said)" "$status" "$want"
	grep -qE -e "$pattern" <<< "$said" || die "terracectl $* said '$said' instead of '$pattern'"
}
json() { /usr/bin/python3 -ISc 'import json, sys; o = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"; }
