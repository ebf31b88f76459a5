# SPDX-License-Identifier: GPL-2.0-or-later
# What the plugin "profile" (profile/plugin.c) has counted, function by function; sourced after tests/vm/lib.sh.
# The symbols are in /dev/shm/symbols: grep -E ' [tTwW] ' /proc/kallsyms, once the module is loaded.
#
# shellcheck shell=bash

# functions COUNTED FILE: instructions of each, per 1000 reads, when each I/O of the plugin's was so many
functions() {
	[ -s "$OUT/profile" ] || die "the plugin counted nothing: is the machine run with --plugin?"
	# both begin with addresses of one length: a code's line sorts behind its function's
	{ sed -E 's/^([0-9a-f]{16}) [a-zA-Z] (\S+)\s*(\S*)$/\1 - \2\3/' /dev/shm/symbols; cat "$OUT/profile"; } | LC_ALL=C sort -s -k1,1 |
		awk -v counted="$1" '$2 == "-" { name = $3; next } { sum[substr($1, 1, 1) < "8" ? "program" : name] += $2 }
			END { for (f in sum) printf "%s %.0f\n", f, sum[f] / counted }' > "$2"
}
