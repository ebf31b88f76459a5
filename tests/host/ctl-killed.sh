#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# format and repair killed before any of their writes: the same call, without --force, begins again or finds it done.
# host: timeout=600 build=daemon,die
. "$TERRACE_TREE/tests/host/lib.sh"
. "$TERRACE_TREE/tests/host/ctl.bash"
ctl=$TERRACE_TREE/build/terracectl
cd "$OUT" || exit
build_image
writes=0	# dies tells

# ---- format (create writes by the same code)
make=(format --name db --tier optane:atomic=fast --tier nvme:shelves:atomic=slow --meta meta)
fresh() { new_images fast 128M slow 320M meta 64M; }
fresh
dies 0 "${make[@]}"
[ "$writes" -gt 15 ] || die "format has only $writes writes"
again=0
for at in $(points 3 6 5); do
	fresh
	dies "$at" "${make[@]}"
	"$ctl" check fast slow meta > said 2>&1 && die "killed before write $at of $writes: a volume already"
	expect 0 "^Volume 'db'" "$ctl" "${make[@]}"
	"$ctl" "${make[@]}" > said 2>&1 && die "a finished volume was made anew"
	grep -q "holds tier 0 of Terrace volume 'db'" said || die "$(cat said)"
	expect 0 ': sound$' "$ctl" check --full fast slow meta
	again=$((again + 1))
done
echo "format: killed at $again of $writes writes"
# what is left says so, and only where it is so: the label of another volume is no part of it
fresh
dies $((writes - 1)) "${make[@]}"
expect 0 "^note: fast holds what is left of a volume whose making was stopped: it is made anew" "$ctl" "${make[@]}"
fresh
"$ctl" format --name other --tier optane:atomic=fast --tier nvme:shelves:atomic=slow > /dev/null
dies 10 format --force --name db --tier optane:atomic=meta --tier hdd=slow
expect 1 "fast holds tier 0 of Terrace volume 'other'" "$ctl" format --name db --tier optane=fast --tier hdd=slow --meta meta

# ---- repair
image() {
	new_images fast 128M slow 320M new 64M
	"$ctl" format --tier nvme=fast --tier hdd=slow > /dev/null
	./image --seed 4 --before 80 --between 20 --after 30 --packing 30 --blocks blocks fast slow > where
	meta=$(sed -n 's/^meta-start //p' where)
	flip fast $(((meta + $(sed -n 's/^map-directory .* //p' where | tail -1)) * 4096 + 300))
	pack=$(grep '^run .* [1-9][0-9]*$' where | sort -k6n | tail -1 | cut -d' ' -f4)
	flip slow $((pack * 4096 + 90))
}
all_there() {
	expect 0 ': sound$' "$ctl" check --full "$@"
	rm -f out out.json
	"$ctl" salvage --to out --map out.json "$@" > said 2>&1 || die "salvage: $(cat said)"
	check_eq "blocks" "$(judge_salvage blocks out out.json)" "$(wc -l < blocks) 0 0"
}
image
dies 0 repair --to new fast slow
for at in $(points 3 6 5 | sed -n '1~2p'); do
	new_images new 64M
	dies "$at" repair --to new fast slow
	"$ctl" check new fast slow > said 2>&1 && die "killed before write $at of $writes: repaired already"
	expect 1 "blocks mapped; [0-9]+ blocks lost" "$ctl" repair --to new fast slow
	expect 0 ': sound$' "$ctl" check new fast slow
done
echo "repair --to: $writes writes"
cp --sparse=always fast fast.damaged
cp --sparse=always slow slow.damaged
dies 0 repair --in-place fast slow
all_there fast slow
last=$writes
for at in $(points 3 6 5); do
	cp --sparse=always fast.damaged fast
	cp --sparse=always slow.damaged slow
	dies "$at" repair --in-place fast slow
	expect 0 "nothing lost" "$ctl" repair --in-place fast slow
	[ $((at % 2)) = 1 ] || all_there fast slow
done
all_there fast slow
echo "repair --in-place: $last writes"

# ---- repair --in-place where all pages are looked at, because a copy of the superblock is bad or a page is lost: what a repair
# that was killed has written counts for nothing
# again WHAT OPTION...
again() {
	local at mapped what=$1
	shift
	cp --sparse=always fast fast.damaged
	cp --sparse=always slow slow.damaged
	dies 0 repair --in-place "$@" fast slow
	mapped=$(grep -oE '[0-9]+ blocks mapped' said) || die "$what: $(cat said)"
	for at in $(points 3 6 5); do
		cp --sparse=always fast.damaged fast
		cp --sparse=always slow.damaged slow
		dies "$at" repair --in-place "$@" fast slow
		"$ctl" repair --in-place "$@" fast slow > said 2>&1 || true
		check_eq "$what: killed before write $at of $writes, repaired again" "$(grep -oE '[0-9]+ blocks mapped' said)" "$mapped"
		expect 0 ': sound$' "$ctl" check --full fast slow
	done
	echo "repair --in-place, $what: $writes writes, $mapped"
}
volume() {	# [MIRROR]
	new_images fast 128M slow 320M
	"$ctl" format --tier nvme:atomic=fast --tier hdd:atomic=slow --mirror "${1:-none}" > /dev/null
	./image --seed 4 --before 80 --between 20 --after 30 fast slow > where
	meta=$(sed -n 's/^meta-start //p' where)
}
spoil() { flip fast $(((meta + $1) * 4096 + 300)); }
volume
spoil 0
again "a copy of the superblock is bad"
volume
spoil "$(sed -n 's/^map-page .* //p' where | head -1)"
again "a page is lost"
again "a page is lost, and older values are accepted" --accept-older

# ---- repair --in-place of two copies, stopped between their superblocks: the one that lags behind would, used without the other,
# never come as far as that, so the labels say that it is out of date
dumped() { "$ctl" dump "$@" 2> /dev/null || true; }	# a tier is missing
# newest DEVICE: generation of its newest superblock; 0: none is good
newest() { dumped "$1" | sed -nE 's/^superblock .* copy=[01] current=.* generation=([0-9]+) .*/\1/p' | sort -n | tail -1 | grep . || echo 0; }
# noted DEVICE COPY: until which generation its label says that the copy is out of date
noted() { dumped --all "$1" | sed -nE "s/.*stale_until$2=([0-9]+).*/\1/p" | head -1 | grep . || echo 0; }
# two FIRST SECOND COPY: where each write of a repair may be the last
two() {
	local at first=$1 second=$2
	apart=0
	cp --sparse=always fast fast.damaged
	cp --sparse=always slow slow.damaged
	dies 0 repair --in-place fast slow
	for ((at = writes - 14; at <= writes; at++)); do
		cp --sparse=always fast.damaged fast
		cp --sparse=always slow.damaged slow
		dies "$at" repair --in-place fast slow
		[ "$(newest "$second")" -le "$(newest "$first")" ] || die "killed before write $at of $writes: $second went first"
		if [ $(($(newest "$first") - $(newest "$second"))) -gt 1 ] && [ "$(newest "$second")" -gt 0 ]; then
			apart=$((apart + 1))
			[ "$(noted "$second" "$3")" -ge "$(newest "$second")" ] || die "killed before write $at of $writes: $second would be used without $first"
		fi
		expect 0 "nothing lost" "$ctl" repair --in-place fast slow
		expect 0 ': sound$' "$ctl" check --full fast slow
	done
	echo "repair --in-place of two copies: $writes writes, $apart times stopped between them"
}
volume sync
two fast slow 1
[ $apart -gt 0 ] || die "never stopped between the two superblocks"
# one that has none goes second, whichever it is
volume sync
spoil 0
spoil 1
two slow fast 0
# so does one whose newest is bad: if the good one were out of date by the labels, nothing would be left of what is only there
volume sync
spoil "$(sed -n 's/^superblock //p' where)"
two slow fast 0
# of a label whose second copy is bad that one is written first: the good one may be torn
volume sync
flip slow 4396
cp --sparse=always fast fast.damaged
cp --sparse=always slow slow.damaged
dies 0 repair --in-place fast slow
second=0
for ((at = writes - 14; at <= writes; at++)); do
	cp --sparse=always fast.damaged fast
	cp --sparse=always slow.damaged slow
	dies "$at" repair --in-place fast slow
	if cmp -s -n 4096 slow slow.damaged; then
		cmp -s -n 4096 -i 4096 slow slow.damaged || second=$((second + 1))
	else
		! cmp -s -n 4096 -i 4096 slow slow.damaged || die "killed before write $at of $writes: the good copy of a label was written before the bad one"
	fi
done
[ $second -gt 0 ] || die "never stopped between the two copies of a label"

# --from-shelves leaves the map alone until the superblock says otherwise
volume
dies 25 repair --in-place --from-shelves fast slow
expect 0 "nothing lost" "$ctl" repair --dry-run fast slow
