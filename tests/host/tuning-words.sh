#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Documentation/tuning.md lists exactly the tunables of terraced's policies, with default, range and effect; packaging/terraced.conf has every key.
# host: timeout=60 build=daemon
# shellcheck disable=SC2016 # the backticks are Markdown
. "$TERRACE_TREE/tests/host/lib.sh"
ctl=$TERRACE_TREE/build/terracectl

# as a row of the table
rows() { "$ctl" tunables | sed -nE '/^[a-z]/{N;s/^([a-z_.]+) = (.*)  \[(.*) … (.*)\]\n +(.*)$/| `\1` | \2 | \3 … \4 | \5 |/;p}'; }
documented() { grep -E '^\| `[a-z]+\.[a-z_]+` \| [^|]+ \| [^|]+ … [^|]+ \| ' "$1"; }
same() { diff <(rows) <(documented "$1") > "$OUT/diff"; }

rows > "$OUT/rows"
[ "$(wc -l < "$OUT/rows")" -gt 60 ] || die "only $(wc -l < "$OUT/rows") tunables: has the form of terracectl tunables changed?"
same Documentation/tuning.md || { cat "$OUT/diff"; die "Documentation/tuning.md and terracectl tunables disagree (< program, > documentation); the right rows: $OUT/rows"; }
sed '/^| `tracker.clock_bits`/d' Documentation/tuning.md > "$OUT/tuning.md"
if same "$OUT/tuning.md"; then die "a tunable that is not documented was not noticed"; fi

# keys without a dot
keys=$(sed -n '/^} settings_keys\[\]/,/^};/p' daemon/config.c | grep -oE '\{ "[a-z_]+"' | tr -d '{ "')
keys+=" $(grep -oE 'strcmp\(key, "[a-z_]+"\)' daemon/config.c | grep -oE '"[a-z_]+"' | tr -d '"')"
[ "$(wc -w <<< "$keys")" -gt 25 ] || die "only $(wc -w <<< "$keys") keys in daemon/config.c"
for key in $keys; do grep -qE "^;$key = " packaging/terraced.conf || die "packaging/terraced.conf lacks $key"; done
