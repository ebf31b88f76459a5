#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terracectl check, dump, salvage and repair on damaged metadata and shelves, with wrong checksums and with right ones: each ends by itself with its answer, and what repair calls repaired is sound.
# host: timeout=600 build=daemon,scribble
#
# Each round prints its seed; FIRST=N ROUNDS=1 repeats round N. CTL= another terracectl, built with sanitizers perhaps.
. "$TERRACE_TREE/tests/host/lib.sh"
. "$TERRACE_TREE/tests/host/ctl.bash"
SEED=${SEED:-1}
FIRST=${FIRST:-1}
ROUNDS=${ROUNDS:-100000}
LIMIT=${LIMIT:-30}	# seconds, but
LEAST=20		# rounds: a busy machine may make fewer in that, and one in five damages shelves
MANY=64			# structures of theirs at once: of most all that lives has left, and sixteen are no more than half of the time one that has not
ctl=${CTL:-$TERRACE_TREE/build/terracectl}
scribble=$TERRACE_TREE/build/scribble
cd "$OUT" || exit
build_image

# ends ARG...: in time, with 0 or 1
ends() {
	status=0
	timeout 60 "$ctl" "$@" > said 2>&1 < /dev/null || status=$?
	[ $status -le 1 ] || { tail -5 said; die "round $round (seed $SEED), $what: terracectl $* ended with $status"; }
}

for kind in clean journal; do
	new_images fast 128M slow 320M
	"$ctl" format --tier nvme:atomic=fast --tier hdd:atomic=slow --mirror none > /dev/null
	if [ $kind = clean ]; then ./image --clean --between 0 --after 0 fast slow > where; else ./image --seed 4 --after 80 --packing 40 fast slow > where; fi
	mkdir -p $kind
	mv fast slow $kind/
done
SECONDS=0	# on a busy machine what comes before takes longer than LIMIT
sound=0 repaired=0 shelves=0 noticed=0
for ((round = FIRST; round < FIRST + ROUNDS && (SECONDS < LIMIT || round < FIRST + LEAST); round++)); do
	kind=clean how=(sealed) drive=fast check=--full many=1
	[ $((round % 2)) = 0 ] || kind=journal
	[ $((round % 4)) -lt 3 ] || how=(raw)
	if [ $((round % 5)) = 4 ]; then
		how=(shelf sealed) drive=slow check=--owners many=$MANY	# (which is full, too)
		[ $((round / 5 % 4)) -lt 2 ] || how=(shelf raw)
		shelves=$((shelves + 1))
	fi
	cp --sparse=always $kind/fast $kind/slow .
	what="$kind, ${how[*]}"
	for ((k = 0; k < many; k++)); do
		what+=", $("$scribble" "${how[@]}" $(((SEED * 1000000 + round) * many + k)) $drive)"
	done
	ends check $check fast slow
	[ $status != 0 ] || sound=$((sound + 1))
	[ $drive != slow ] || noticed=$((noticed + status))
	ends dump all fast slow
	ends salvage --dry-run --limit 5 fast slow
	ends repair --dry-run --limit 5 fast slow
	ends repair --in-place --limit 5 fast slow
	[ $status = 0 ] || continue
	repaired=$((repaired + 1))
	ends check --full fast slow
	[ $status = 0 ] || { cat said; die "round $round (seed $SEED), $what: repaired without loss, and not sound"; }
done
[ $shelves -gt 0 ] || [ "$ROUNDS" -lt $LEAST ] || die "none of them has a damaged shelf"
[ $noticed -gt 0 ] || [ "$ROUNDS" -lt $LEAST ] || die "check has noticed none of $shelves damaged shelves: what is damaged there is nothing that it reads"
echo "ok: $((round - FIRST)) damaged volumes: $sound found sound, $repaired repaired without loss; $shelves with a damaged shelf, which check noticed in $noticed"
