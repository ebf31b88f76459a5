#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# crash/explore with every layout, seed after seed, until each stage of a commit that occurs, by record type and mode of a move, has fifty distinct cuts; some of the states are recovered by the module as well.
# host: timeout=7200 build=kmod,drive,daemon,oracle,orders,explore long
#
# BUDGET= seconds; no seed is begun after that. Counts add up in $OUT/counts, layout
# by layout, so that an end in the middle has what was done; COUNTS= goes on with those
# of another run. What has fewer than fifty in the end is listed ("few: RECORD, MODE, STAGE: N"),
# and is a failure unless tests/explore/few-allowed says why it cannot have more; so are
# fewer than ENOUGH= states in all.
. "$TERRACE_TREE/tests/host/lib.sh"

first=${SEED:-1}
BUDGET=${BUDGET:-5400}
ENOUGH=${ENOUGH:-10000}
all=${LAYOUTS:-shared torn sync apart home tight wide ranges uncached added replaced}
export ROUNDS=${ROUNDS:-2} PER=${PER:-40} STATES=${STATES:-4000} LIMIT=${LIMIT:-300} LEAST=${LEAST:-300} SAMPLE=${SAMPLE:-12} TURNS=${TURNS:-2} TABLE=1
export SEED LAYOUTS
unset SHARE

# too_few: of what the last record had listed, what nobody has a reason for
too_few() {
	local line pattern
	while IFS= read -r line; do
		while IFS= read -r pattern; do
			# shellcheck disable=SC2053 # a pattern
			[[ $line != ${pattern%%:*}:* ]] || continue 2
		done < <(grep -v '^#' "$TERRACE_TREE/tests/explore/few-allowed")
		echo "few: $line"
	done < <(sed -n 's/^few: //p' "$1")
}

rm -f "$OUT/counts"
[ ! "${COUNTS:-}" ] || cp "$COUNTS" "$OUT/counts"
total=0 few=-1
for ((SEED = first; SECONDS < BUDGET && few != 0; SEED++)); do
	for LAYOUTS in $all; do
		[ $SECONDS -lt "$BUDGET" ] || break
		bash "$TERRACE_TREE/tests/crash/explore.sh" > "$OUT/said" 2>&1 || { cat "$OUT/said"; die "layout $LAYOUTS, seed $SEED"; }
		export HONEST=1
		grep -E '^(explore|ok): |states recovered' "$OUT/said" | tail -3
		total=$((total + $(sed -n 's/^ok: \([0-9]*\) distinct states$/\1/p' "$OUT/said")))
	done
	grep -q '^explore: of the stages that were met' "$OUT/said" || die "no table of the stages"
	few=$(too_few "$OUT/said" | wc -l)
	echo "seed $SEED: $total distinct states so far, $few stages with fewer than 50, $(($(grep -c '^few: ' "$OUT/said" || true) - few)) more that may have"
done
too_few "$OUT/said"
wrong=
[ "$few" = 0 ] || wrong="$few stages that were met have fewer than 50 states, and no reason in tests/explore/few-allowed"
[ "$total" -ge "$ENOUGH" ] || wrong+="${wrong:+; }only $total distinct states"
[ ! "$wrong" ] || die "$wrong"
echo "ok: $total distinct states, none wrong, $((SEED - first)) seeds"
