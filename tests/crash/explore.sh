#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A thousand states and more that power cuts could leave, from a record of the drives, are sound and hold what they may; with drives that lie they are not.
# host: timeout=900 build=kmod,drive,daemon,oracle,orders,explore
#
# The machine records (tests/explore/record.sh), this host explores. Another SEED=
# is another run; STATES= are built of each record, about, PER= of a moment; LIMIT=
# seconds for each.
. "$TERRACE_TREE/tests/host/lib.sh"

SEED=${SEED:-1}
STATES=${STATES:-3000}
PER=${PER:-10}
LIMIT=${LIMIT:-600}
LEAST=${LEAST:-1000}	# distinct states; fewer is a failure: something hangs or crawls
[ "${LAYOUTS:-}" ] || LAYOUTS="shared torn ranges" SHARE=2
explore=build/explore
liar=" liar"
[ ! "${HONEST:-}" ] || liar=

# recovered LAYOUT: the module recovers SAMPLE of the states that were saved
recovered() {
	local states=("$OUT/states-$1"/*) k
	for ((k = 0; k < ${#states[@]}; k++)); do
		[ $((k * SAMPLE / ${#states[@]})) != $(((k + 1) * SAMPLE / ${#states[@]})) ] || rm -r "${states[k]}"
	done
	scripts/vm -t 1200 -m 2G -o "$OUT/vm" -e "STATES=$OUT/states-$1" functional -- bash tests/explore/kernel.sh
	rm -r "$OUT/states-$1"
}

# The drives that lie come last: the record before them must be well. HONEST=1: they have shown already.
scripts/vm -t 600 -m 2G -o "$OUT" -e "LAYOUTS=$LAYOUTS$liar" -e "SEED=$SEED" ${WORK:+-e "WORK=$WORK"} -e "ROUNDS=${ROUNDS:-1}" ${SHARE:+-e "SHARE=$SHARE"} functional -- bash tests/explore/record.sh
total=0
for layout in $LAYOUTS; do
	need=
	[ "$layout" != ranges ] || need="--need discard=50"	# what the layout is there for
	# shellcheck disable=SC2086 # words
	said=$($explore $need --seed "$SEED" --per "$PER" --states "$STATES" --seconds "$LIMIT" ${TABLE:+--table --fill --counts "$OUT/counts"} ${SAMPLE:+--save "$OUT/states-$layout" --sample 400} "$OUT/$layout.record") || { echo "$said"; die "$layout: see above; the record is $OUT/$layout.record"; }
	echo "$layout: $said"
	total=$((total + $(sed -n 's/.* \([0-9]*\) of them distinct.*/\1/p' <<< "$said")))
	rm "$OUT/$layout.record"
	[ ! "${SAMPLE:-}" ] || recovered "$layout"
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
[ "$total" -ge "$LEAST" ] || die "only $total distinct states"
echo "ok: $total distinct states"
