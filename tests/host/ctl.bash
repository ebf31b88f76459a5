# SPDX-License-Identifier: GPL-2.0-or-later
# Helpers for tests of terracectl's offline commands; sourced after lib.sh.
#
# shellcheck shell=bash

[ -x "$TERRACE_TREE/build/terracectl" ] || die "build/terracectl is missing"

# new_images FILE SIZE...: new sparse image files
new_images() {
	while [ $# -gt 0 ]; do
		rm -f "$1"
		truncate -s "$2" "$1"
		shift 2
	done
}

# build_image: the program that fills formatted images, see tests/host/image.c
build_image() {
	gcc -O1 -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -I"$TERRACE_TREE/tests/compat" -I"$TERRACE_TREE/uapi" \
		-I"$TERRACE_TREE/kmod" -o "$OUT/image" "$TERRACE_TREE"/tests/host/image.c "$TERRACE_TREE"/kmod/core/*.c
}

# flip FILE BYTE: the byte there becomes another one
flip() {
	local old
	old=$(od -An -tu1 -j "$2" -N 1 "$1")
	# shellcheck disable=SC2059 # the format is the byte
	printf "\\x$(printf %x $((old ^ 0x55)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# unchanged FILE... -- CMD...: the command must not change the files, whatever it says
unchanged() {
	local files=() before
	while [ "$1" != -- ]; do files+=("$1"); shift; done
	shift
	before=$(stat -c '%n %s %b %y' "${files[@]}")
	"$@"
	check_eq "time of last change after $*" "$(stat -c '%n %s %b %y' "${files[@]}")" "$before"
}
