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
LIMIT=${LIMIT:-30}	# seconds
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
sound=0 repaired=0
for ((round = FIRST; round < FIRST + ROUNDS && SECONDS < LIMIT; round++)); do
	kind=clean how=(sealed) drive=fast
	[ $((round % 2)) = 0 ] || kind=journal
	[ $((round % 5)) -lt 4 ] || how=(shelf sealed) drive=slow
	[ $((round % 4)) -lt 3 ] || how[-1]=raw
	cp --sparse=always $kind/fast $kind/slow .
	what="$kind, ${how[*]}, $("$scribble" "${how[@]}" $((SEED * 1000000 + round)) $drive)"
	ends check --full fast slow
	[ $status != 0 ] || sound=$((sound + 1))
	ends dump all fast slow
	ends salvage --dry-run --limit 5 fast slow
	ends repair --dry-run --limit 5 fast slow
	ends repair --in-place --limit 5 fast slow
	[ $status = 0 ] || continue
	repaired=$((repaired + 1))
	ends check --full fast slow
	[ $status = 0 ] || { cat said; die "round $round (seed $SEED), $what: repaired without loss, and not sound"; }
done
echo "ok: $((round - FIRST)) damaged volumes: $sound found sound, $repaired repaired without loss"
