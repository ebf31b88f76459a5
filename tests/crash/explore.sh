#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A thousand states and more that power cuts could leave, from a record of the drives, are sound and hold what they may; with drives that lie they are not.
# host: timeout=900 build=kmod,drive,daemon,oracle,orders,explore
#
# The machine records (tests/explore/record.sh), this host explores. Another SEED=
# is another run; STATES= are built of each record, about, PER= of a moment; LIMIT=
# seconds for each. SAMPLE= of them, of as many record types, modes and stages as can
# be, are recovered by the module, which goes on from there (tests/explore/kernel.sh).
# VM_LIMIT= seconds for each machine, where one is slow.
. "$TERRACE_TREE/tests/host/lib.sh"

SEED=${SEED:-1}
STATES=${STATES:-3000}
PER=${PER:-10}
LIMIT=${LIMIT:-600}
SAMPLE=${SAMPLE:-2}	# of each layout the module recovers so many, and goes on
LEAST=${LEAST:-1000}	# distinct states; fewer is a failure: something hangs or crawls
[ "${LAYOUTS:-}" ] || LAYOUTS="shared torn ranges" SHARE=2
explore=build/explore
liar=" liar"
[ ! "${HONEST:-}" ] || liar=

# drawn LAYOUT: SAMPLE of the states that were built, drawn evenly from what $said picked
drawn() {
	local at state
	mkdir -p "$OUT/states/$1"
	while read -r _ at state _; do
		$explore --seed "$SEED" --at "$at" --state "$state" --save "$OUT/states/$1" "$OUT/$1.record" > "$OUT/again"
	done <<< "$(grep '^pick: ' <<< "$said" | sort -u -k 2,3 | shuf -n "$SAMPLE" --random-source=<(openssl enc -aes-128-ctr -pass "pass:$SEED" -nosalt -pbkdf2 < /dev/zero 2> /dev/null))"
}

# The drives that lie come last: the record before them must be well. HONEST=1: they have shown already.
scripts/vm -t "${VM_LIMIT:-600}" -m 2G -o "$OUT" -e "LAYOUTS=$LAYOUTS$liar" -e "SEED=$SEED" ${WORK:+-e "WORK=$WORK"} -e "ROUNDS=${ROUNDS:-1}" ${SHARE:+-e "SHARE=$SHARE"} functional -- bash tests/explore/record.sh
total=0
for layout in $LAYOUTS; do
	need=
	[ "$layout" != ranges ] || need="--need discard=50"	# what the layout is there for
	# shellcheck disable=SC2086 # words
	said=$($explore $need --seed "$SEED" --per "$PER" --states "$STATES" --seconds "$LIMIT" ${TABLE:+--table --fill --counts "$OUT/counts"} --picks "$OUT/$layout.record") || { echo "$said"; die "$layout: see above; the record is $OUT/$layout.record"; }
	echo "$layout: $(grep -v '^pick: ' <<< "$said")"
	total=$((total + $(sed -n 's/.* \([0-9]*\) of them distinct.*/\1/p' <<< "$said")))
	[ "$SAMPLE" = 0 ] || drawn "$layout"
	rm "$OUT/$layout.record"
done
lies_show() {
	local said again
	if said=$($explore --limit 1 --seconds 60 "$OUT/liar.record"); then die "drives that lie are not noticed: $said"; fi
	again=$(sed -n 's/^again: explore //p' <<< "$said")
	[ "$again" ] || die "drives that lie: $said"
	# shellcheck disable=SC2086 # words
	if $explore $again > "$OUT/again"; then die "'$again' does not show it again"; fi
	grep -q BROKEN "$OUT/again" || die "'$again': $(cat "$OUT/again")"
	rm "$OUT/liar.record"
	echo "drives that lie are noticed: $(sed -n 2p <<< "$said")"
}
[ ! "$liar" ] || lies_show
[ "$SAMPLE" = 0 ] || scripts/vm -t "${VM_LIMIT:-1200}" -m 2G -o "$OUT/vm" -e "STATES=$OUT/states" -e "SEED=$SEED" -e "TURNS=${TURNS:-1}" functional -- bash tests/explore/kernel.sh
rm -rf "$OUT/states"
[ "$total" -ge "$LEAST" ] || die "only $total distinct states"
counted "$total" states
echo "ok: $total distinct states"
