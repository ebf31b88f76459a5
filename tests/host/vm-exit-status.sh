#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Exit status, arguments and output come through the machine, several at a time.
# host: timeout=600
# shellcheck disable=SC2016 # the guest expands it
. "$TERRACE_TREE/tests/host/lib.sh"
vm() { scripts/vm --memory 512M --out "$OUT/$1" "${@:2}"; }

expect 7 "^seven$" vm a functional -- sh -c 'echo seven; exit 7' & a=$!
expect 0 '^<two words> <\$HOME> <>$' vm b functional -- printf '<%s> <%s> <%s>\n' "two words" '$HOME' '' & b=$!
wait $a && wait $b

expect 137 '^Killed$' vm c functional -- bash -c 'kill -9 $$' & c=$!
expect 0 "^5 from outside$" vm d --env WHAT="from outside" functional -- 'echo $((2+3)) $WHAT; seq 20000 > $OUT/numbers' & d=$!
wait $c && wait $d
check_eq "lines of the file brought out" "$(wc -l < "$OUT/d/numbers")" 20000
grep -q 'terrace-vm: command starts' "$OUT/d/kernel.log" || die "no kernel log was kept"

# much output arrives complete and in order
scripts/vm --memory 512M --out "$OUT/e" functional -- seq 30000 > "$OUT/seq"
seq 30000 | cmp - "$OUT/seq"
