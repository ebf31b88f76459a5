# SPDX-License-Identifier: GPL-2.0-or-later
# Words for scripts that give orders by hand; sourced after volume.bash.
#
# ask WORD...			the tool tests/orders on the volume
# order REGION MODE [WORD...]	one order: what came of it is in $said
# until_says WANTED CMD...	waits until what the command prints is this
#
# shellcheck shell=bash disable=SC2034

PATH=$TERRACE_TREE/build:$PATH in_ram orders

ask() { from_ram orders /dev/terrace/vol "$@"; }
order() { said=$(ask move "$@") || die "order $*: $said"; }
until_says() {
	local tries got=
	for ((tries = 0; tries < 150; tries++)); do
		got=$("${@:2}" || true)
		[ "$got" != "$1" ] || return 0
		sleep 0.2
	done
	die "${*:2}: got '$got', wanted '$1'"
}
