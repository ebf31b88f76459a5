#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# crash/explore with every layout, seed after seed, until each stage of a commit that occurs, by record type and mode of a move, has fifty distinct cuts; some of the states are recovered by the module as well.
# host: timeout=7200 build=kmod,drive,daemon,oracle,orders,explore long
#
# BUDGET= seconds; no layout is begun after that. Counts add up in $OUT/kept, which tests/run
# leaves where it is: the next run goes on with the next layout, and the next seed, until the
# sources of the module, of the tools, of the explorer or of the work, the kernel or the words
# that change the work are others. What has fewer than fifty in the end is listed
# ("few: RECORD, MODE, STAGE: N"), and is a failure unless tests/explore/few-allowed says why
# it cannot have more; so are fewer than ENOUGH= states in all. With COMPLETE=1 there is no
# BUDGET. When nothing is few any more the next run begins anew, with the seeds behind.
. "$TERRACE_TREE/tests/host/lib.sh"

first=${SEED:-1}
BUDGET=${BUDGET:-${COMPLETE:+1000000000}}
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

# ---- what earlier runs did: $KEPT/explored has a line for each layout of each seed, SOURCES SEED LAYOUT STATES CUTS ----

KEPT=$OUT/kept
mkdir -p "$KEPT"
sources=$({ cat kmod/*.[ch] kmod/core/*.[ch] uapi/*.h daemon/ctl/*.[ch] tests/explore/*.[ch] tests/explore/{record,kernel}.sh tests/drive/*.[ch] tests/orders/*.[ch] tests/oracle/*.[ch]
	scripts/vm --print-kernel; echo "$ROUNDS $PER ${WORK:-}"; } | sha256sum | cut -c 1-16)
# of other sources: anew
[ "$(tail -n 1 "$KEPT/explored" 2> /dev/null | cut -d ' ' -f 1)" = "$sources" ] || rm -f "$KEPT/explored" "$KEPT/counts" "$KEPT/few"
touch "$KEPT/explored"
if [ "$(tail -n 1 "$KEPT/explored" | cut -d ' ' -f 2-)" = complete ]; then
	echo "no stage was few: begun anew"
	rm "$KEPT/counts" "$KEPT/few"
	echo "$sources anew" >> "$KEPT/explored"
fi
# since it was begun anew the last time
of_now() { tac "$KEPT/explored" | awk '$2 == "anew" { exit } NF == 5'; }
sum() { awk -v w="$1" 'NF == 5 { n += $w } END { print n + 0 }'; }
explored() { grep -q "^$sources $SEED $LAYOUTS " "$KEPT/explored"; }
# one: LAYOUTS, which is one, with SEED
one() {
	rm -f "$OUT/counts"
	[ ! -e "$KEPT/counts" ] || cp "$KEPT/counts" "$OUT/counts"
	bash "$TERRACE_TREE/tests/crash/explore.sh" > "$OUT/said" 2>&1 || { cat "$OUT/said"; die "layout $LAYOUTS, seed $SEED"; }
	export HONEST=1
	grep -E '^(explore|ok): |states recovered' "$OUT/said" | tail -3
	grep -q '^explore: of the stages that were met' "$OUT/said" || die "no table of the stages"
	sed -n '/^few: /p' "$OUT/said" > "$KEPT/few"
	echo "$sources $SEED $LAYOUTS $(sed -n 's/^counted: \([0-9]*\) states, .*/\1/p' "$OUT/said") $(sed -n 's/^counted: \([0-9]*\) cuts, .*/\1/p' "$OUT/said" | grep . || echo 0)" >> "$KEPT/explored"
	mv "$OUT/counts" "$KEPT/counts"
}

few=-1
for ((SEED = first; SECONDS < BUDGET && few != 0; SEED++)); do
	begun=
	for LAYOUTS in $all; do
		[ $SECONDS -lt "$BUDGET" ] || break
		explored || { one; begun=1; }
	done
	[ "$begun" ] || continue
	few=$(too_few "$KEPT/few" | wc -l)
	echo "seed $SEED: $(of_now | sum 4) distinct states so far, $few stages with fewer than 50, $(($(wc -l < "$KEPT/few") - few)) more that may have"
done
total=$(of_now | sum 4)
too_few "$KEPT/few"
wrong=
[ "$few" = 0 ] || wrong="$few stages that were met have fewer than 50 states, and no reason in tests/explore/few-allowed"
[ "$total" -ge "$ENOUGH" ] || wrong+="${wrong:+; }only $total distinct states"
# with those before it was begun anew
counted "$(sum 4 < "$KEPT/explored")" states kept
counted "$(sum 5 < "$KEPT/explored")" cuts kept
[ ! "$wrong" ] || die "$wrong"
echo "$sources complete" >> "$KEPT/explored"
echo "ok: $total distinct states, none wrong, $(of_now | cut -d ' ' -f 2 | sort -u | wc -l) seeds"
