# SPDX-License-Identifier: GPL-2.0-or-later
# What terracectl says, in scripts that run inside the virtual machine; sourced after tests/vm/volume.bash.
#
# says PATTERN ARG...		terracectl succeeds and says it
# refuses STATUS PATTERN ARG...	it ends with that status and says it
# becomes DEVICE TABLE		the mapping gets another table; what waits below it does not hold it up
# gone PID			it has ended
# until_ WHAT COMMAND...		waits until the command succeeds, while $pid runs, which writes to /dev/shm/said
# json EXPRESSION < TEXT		python expression of the object o
#
# shellcheck shell=bash disable=SC2154

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
becomes() {
	dmsetup load "$1" --table "$2"
	dmsetup suspend --noudevsync --nolockfs --noflush "$1"
	dmsetup resume --noudevsync --noudevrules "$1"
}
gone() { ! kill -0 "$1" 2> /dev/null; }
until_() {
	local what=$1 tries
	shift
	for ((tries = 0; tries < 800; tries++)); do
		if "$@"; then return; fi
		gone "$pid" && break
		sleep 0.1
	done
	cat /dev/shm/said
	die "$what: never"
}
json() { /usr/bin/python3 -ISc 'import json, sys; o = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"; }
