#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Documentation/target.md lists exactly the tunables, status words and sysfs files that the module has, with their limits.
# host: timeout=600
# shellcheck disable=SC2016 # the backticks are Markdown
. "$TERRACE_TREE/tests/host/lib.sh"

# tables of the source: one line per entry
words() { # ARRAY FILE PREFIX
	sed -n "/^struct tr_word $1\[\] = {/,/^};/p" "$2" |
		sed -nE "s~^\t[A-Z]+\(\"([^\"]*)\", (NULL|\" ?([^\"]*)\"), .*~$3\1 \3~p"
}
source_words() {
	words tr_volume_words "$1" ""
	words tr_tier_words "$1" tierN/
}
source_tunes() {
	local name min max initial
	sed -nE 's/^\t\[TR_TUNE_[A-Z0-9_]*\]\s*= \{ (.*) \},$/\1/p' "$1" |
		while IFS=, read -r name min max initial; do
			echo "${name//\"/} $((initial)) $((min)) $((max))"
		done
}

# tables of the documentation
doc_words() {
	sed -n '/^## Status and sysfs/,/^## [^S]/p' "$1" | sed -nE 's/^\| `([^`]*)` \|( `([^`]*)`)? \| .*/\1 \3/p'
}
doc_tunes() {
	sed -n '/^## Options and tunables/,/^## Messages/p' "$1" |
		sed -nE 's/^\| `([a-z0-9_]*)` \| ([0-9]+) \| ([0-9]+) … ([0-9]+) \| .*/\1 \2 \3 \4/p'
}

same() { # WHAT FILE FILE LEAST
	[ "$(wc -l < "$2")" -ge "$4" ] || die "$1: only $(wc -l < "$2") found in the source: has its form changed?"
	diff <(sort "$2") <(sort "$3") > "$OUT/diff" || { cat "$OUT/diff"; return 1; }
}
check() { # STATUS.C TUNE.C TARGET.MD
	source_words "$1" > "$OUT/a"
	doc_words "$3" > "$OUT/b"
	same words "$OUT/a" "$OUT/b" 20 || return 1
	source_tunes "$2" > "$OUT/a"
	doc_tunes "$3" > "$OUT/b"
	same tunables "$OUT/a" "$OUT/b" 7
}

status=kmod/status.c tune=kmod/tune.c doc=Documentation/target.md
check $status $tune $doc || die "$doc and the module disagree (< module, > documentation)"

# it can fail: a word that is not documented, one that is not there, another limit
sed 's/^\tNUMBER("zeros".*/&\n\tNUMBER("fresh", " fresh=", zeros),/' $status > "$OUT/status.c"
if check "$OUT/status.c" $tune $doc > /dev/null; then die "a new word was not noticed"; fi
sed '/^| `tierN\/reads`/d' $doc > "$OUT/doc.md"
if check $status $tune "$OUT/doc.md" > /dev/null; then die "a word that is not documented was not noticed"; fi
sed 's/^\(| `age_s` | 60 | 1 … \)86400/\1100000/' $doc > "$OUT/doc.md"
if check $status $tune "$OUT/doc.md" > /dev/null; then die "another limit was not noticed"; fi
