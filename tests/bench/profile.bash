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

# above RAW FILE NAME: what each function takes more, or less, in instructions per I/O, into $OUT/NAME.txt
above() {
	awk 'NR == FNR { raw[$1] = $2; next } { print int(($2 - raw[$1]) / 1000 + (raw[$1] > $2 ? -0.5 : 0.5)), $1; delete raw[$1] }
		END { for (f in raw) print int(-raw[f] / 1000 - 0.5), f }' "$1" "$2" | sort -rn > "$OUT/$3.txt"
}
sum() { awk '{ n += $1 } END { print n }' "$OUT/$1.txt"; }

# apart NAME: what "of" takes apart
left=/dev/shm/left
apart() { cp "$OUT/$1.txt" $left; }
# of WHAT REGEX: functions that match, and no regex before
of() {
	figure "$1" "$(grep -E "$2" $left | awk '{ n += $1 } END { print n + 0 }')" instructions
	grep -vE "$2" $left > $left.new || true
	mv $left.new $left
}
