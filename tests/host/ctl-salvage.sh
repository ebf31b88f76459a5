#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terracectl salvage gets what there is with a tier missing or a lazy map, and never calls an old value current.
# host: timeout=600 build=daemon,scribble
. "$TERRACE_TREE/tests/host/lib.sh"
. "$TERRACE_TREE/tests/host/ctl.bash"
ctl=$TERRACE_TREE/build/terracectl
cd "$OUT" || exit
build_image

image() {
	new_images fast 128M slow 320M
	"$ctl" format "${@:2}" > /dev/null
	# shellcheck disable=SC2086 # words
	./image $1 --blocks blocks fast slow > where
}
# salvages STATUS PATTERN ARG...: and what it says of each block holds; "$got" is CERTAIN OLDER LOST
salvages() {
	local status=$1 pattern=$2
	shift 2
	rm -f out out.json
	expect "$status" "$pattern" "$ctl" salvage --to out --map out.json "$@"
	got=$(judge_salvage blocks out out.json) || die "salvage $*: $got"
}
lazy=(--tier nvme=fast --tier hdd=slow)
sync=(--tier optane:atomic=fast --tier nvme:shelves:atomic=slow)
all() { echo "$(wc -l < blocks) 0 0"; }
on_tier() { awk -v t="$1" '$2 == t' blocks | wc -l; }

# ---- nothing is wrong: all of it, and the devices are not written
for seed in 1 2 3; do
	image "--seed $seed --after $((seed * 40))" "${lazy[@]}"
	unchanged fast slow -- salvages 0 "blocks certain, 0 possibly older, 0 doubtful" fast slow
	check_eq "salvaged" "$got" "$(wc -l < blocks) 0 0"
done

# ---- a synchronous mirror: what is left of the volume is certain
image "--after 60" "${sync[@]}"
salvages 1 "^lost: blocks .* on tier 0, which is missing$" slow
check_eq "without the fast tier" "$got" "$(on_tier 1) 0 $(on_tier 0)"
salvages 1 "^possibly older: blocks .* from owner blocks of shelves$" --older slow
read -r certain older lost <<< "$got"
check_eq "certain with --older" "$certain" "$(on_tier 1)"
if [ "$older" = 0 ] || [ $((older + lost)) != "$(on_tier 0)" ]; then die "--older got $older of $(on_tier 0)"; fi
salvages 1 "on tier 1, which is missing" fast
check_eq "without the slow tier" "$got" "$(on_tier 0) 0 $(on_tier 1)"

# ---- journals that part: the one that a new activation went on with counts, and not the longer one
image "--after 60 --break parted" "${sync[@]}"
expect 1 "^problem: slow: the journal of the mirror is another one than the primary's" "$ctl" check --full fast slow
salvages 0 "blocks certain, 0 possibly older, 0 doubtful" fast slow
check_eq "salvaged by the right journal" "$got" "$(all)"

# ---- a lazy mirror that is behind: nothing is certain any more
image "--after 60" "${lazy[@]}"
salvages 1 "unmapped blocks: zeros; blocks may have been written after" slow
read -r certain older lost <<< "$got"
check_eq "certain from a lazy copy" "$certain" 0
[ "$older" -gt 0 ] || die "nothing salvaged from a lazy copy"
salvages 1 "^possibly older: " --from-shelves slow
check_eq "certain from shelves" "${got%% *}" 0
# one that was brought up to date at a clean stop is current
image "--clean --between 0 --after 0" "${lazy[@]}"
salvages 1 "on tier 0, which is missing" slow
check_eq "after a clean stop" "$got" "$(on_tier 1) 0 $(on_tier 0)"
# … also when the older of its superblocks is damaged. An older one that says so is not, when the newer is
meta=$(sed -n "s/^meta-start //p" where)
flip slow $((meta * 4096 + 300))
salvages 1 "on tier 0, which is missing" slow
check_eq "after a clean stop, without the older superblock" "$got" "$(on_tier 1) 0 $(on_tier 0)"
image "--after 60 --generation 21 --break lazy-older-clean" "${lazy[@]}"
flip slow $(((meta + 1) * 4096 + 300))
salvages 1 "unmapped blocks: zeros; blocks may have been written after" slow
check_eq "by the older superblock" "${got%% *}" 0

# what an earlier life of a shelf says does not count, whatever record number it has
image "--after 60" "${lazy[@]}"
salvages 1 "^possibly older: " --from-shelves slow
want=$got
for life in earlier-life earlier-life-open; do
	image "--after 60 --break $life" "${lazy[@]}"
	salvages 1 "^possibly older: " --from-shelves slow
	check_eq "$life, salvaged from shelves" "$got" "$want"
done

# ---- damage anywhere: whatever is said, it is true
for seed in 2 5 8 10 11 15 19 23; do
	image "--seed $seed --before $((seed * 20)) --between $((seed * 7 % 90)) --after $((seed * 11 % 90)) --packing $((seed % 2 * 35))" "${lazy[@]}"
	meta=$(sed -n 's/^meta-start //p' where)
	spoil "$seed" $((1 + seed % 12)) fast "$meta" 700
	# the lazy mirror would give most of it back
	[ $((seed % 4)) = 2 ] || spoil $((seed + 100)) $((4 + seed % 12)) slow "$meta" 700
	rm -f out out.json
	"$ctl" salvage --to out --map out.json fast slow > said 2>&1 || [ $? = 1 ] || die "seed $seed: $(cat said)"
	if [ ! -e out.json ]; then
		grep -qE "no superblock can be read|cannot be" said || die "seed $seed: no result: $(cat said)"
		continue
	fi
	got=$(judge_salvage blocks out out.json) || die "seed $seed: $got"
	echo "seed $seed: $got"
done > results
cat results
[ "$(awk '$4 > 0 || $5 > 0' results | wc -l)" -gt 3 ] || die "the damage did no harm: the test tests nothing"
[ "$(awk '$3 > 0' results | wc -l)" -gt 4 ] || die "hardly anything was certain: $(cat results)"

# ---- a synchronous mirror that was left behind: where the meta bitmap has a page, it has an old one, whole
field() { "$ctl" dump super slow | sed -n "s/^label .* $1=\([0-9]*\).*/\1/p"; }
for seed in 1 2 3; do
	new_images fast 128M slow 320M
	"$ctl" format "${sync[@]}" > /dev/null
	cp --sparse=always fast fast.old
	cp --sparse=always slow slow.old
	./image --seed $seed --before 150 --between 0 --after 0 fast.old slow.old > /dev/null
	./image --seed $seed --before 400 --between 20 --after 0 --blocks blocks fast slow > where
	dd if=slow.old of=slow bs=4k skip="$(field meta_start)" seek="$(field meta_start)" count="$(field meta_blocks)" conv=notrunc status=none
	"$TERRACE_TREE/build/scribble" label 192 1000000 fast	# stale_until of the mirror
	meta=$(sed -n 's/^meta-start //p' where)
	while read -r page; do flip fast $(((meta + page) * 4096 + 900)); done < <(sed -n 's/^map-page [0-9]* //p' where | head -8)
	rm -f out out.json
	expect 1 " [1-9][0-9]* lost" "$ctl" salvage --to out --map out.json fast slow
	got=$(judge_salvage blocks out out.json) || die "seed $seed, a stale mirror: $got"
	[ "${got%% *}" -gt 0 ] || die "seed $seed: nothing is certain, although most pages are whole"
done

# ---- packs of all codecs and clusters: decoded, each block its own, with a header or some bytes damaged as well
image "--seed 4 --before 250 --between 30 --after 40 --packing 40" "${sync[@]}"
salvages 0 "blocks certain, 0 possibly older, 0 doubtful" fast slow
check_eq "salvaged with packs" "$got" "$(all)"
clean=$(sed -n 's/^clean-slots //p' where)
salvages 1 "^lost: blocks .* on tier 0, which is missing$" slow
check_eq "packs without the fast tier: a clean slot's original serves" "$got" \
	"$(($(on_tier 1) + clean)) 0 $(($(on_tier 0) - clean))"
read -r _ region _ run blocks live index < <(grep '^run .* [1-9][0-9]*$' where | sort -k6n | tail -1)
flip slow $((run * 4096 + 200))
salvages 0 "blocks certain" fast slow
check_eq "by the copy of a pack's header" "$got" "$(all)"
flip fast $((index * 4096 + 200))
salvages 1 "^lost: blocks .*: in pack [0-9]+ at place [0-9]+ of tier 1, whose header is damaged" fast slow
if [ "${got##* }" = 0 ] || [ "${got##* }" -gt "$live" ]; then die "region $region: $got lost, $live were live"; fi
flip fast $((index * 4096 + 200)); flip slow $((run * 4096 + 200))
# much of a pack is garbage: until something live is hit
for ((at = run + blocks / 2; at < run + blocks; at++)); do
	flip slow $((at * 4096 + 9))
	"$ctl" salvage --dry-run fast slow > /dev/null || break
	flip slow $((at * 4096 + 9))
done
salvages 1 "^lost: blocks .*: their bytes in the pack are damaged" fast slow
if [ "${got##* }" = 0 ] || [ "${got##* }" -gt 16 ]; then die "region $region: $got lost of one cluster"; fi
salvages 1 "^possibly older: .* from packs on shelves, by their headers" --from-shelves slow
check_eq "certain from shelves with packs" "${got%% *}" 0

# ---- a journal damaged in its middle: what may have changed since is not certain, and nothing called so is old
for seed in 1 2 3; do
	image "--seed $seed --before 100 --between 60 --after 500" "${lazy[@]}"
	meta=$(sed -n 's/^meta-start //p' where)
	[ "$(grep -c '^journal ' where)" -ge 80 ] || die "only $(grep -c '^journal ' where) journal blocks"
	block=$(sed -n 's/^journal [0-9]* //p' where | sed -n 20p)
	flip fast $(((meta + block) * 4096 + 2000))
	salvages 1 "^problem: fast: journal block [0-9]+: is damaged: later ones up to [0-9]+ are there" fast slow
	[ "${got%% *}" -lt $(($(wc -l < blocks) / 2)) ] || die "seed $seed: $got of $(wc -l < blocks)"
done
# its last block damaged or torn: said, not judged
image "--seed 1 --after 60" "${lazy[@]}"
meta=$(sed -n 's/^meta-start //p' where)
flip fast $(((meta + $(sed -n 's/^journal [0-9]* //p' where | tail -1)) * 4096 + 2000))
expect 0 "^note: the journal ends in a block that a crash tore, .* or that is damaged" "$ctl" salvage --dry-run fast slow

# ---- data that cannot be read; where to
image "--after 30" "${lazy[@]}"
head -c 5M fast > short
expect 1 "has shrunk" "$ctl" salvage --dry-run short slow
expect 1 "out: File exists: --force overwrites it" "$ctl" salvage --to out fast slow
expect 1 "^terracectl: fast is a device of the volume$" "$ctl" salvage --force --to fast fast slow
expect 0 "blocks certain" "$ctl" salvage --force --to out fast slow
"$ctl" salvage --json --dry-run fast slow | python3 -c 'import json, sys; o = json.load(sys.stdin); assert o["unmapped_certain"] and o["ranges"]'
expect 2 "where to\? --to FILE or DEVICE" "$ctl" salvage fast slow
expect 2 "no devices given" "$ctl" salvage --dry-run
expect 2 "not a number" "$ctl" salvage --dry-run --limit x fast
expect 0 "^usage: terracectl salvage" "$ctl" salvage --help

# ---- the map's name forgotten: it would be written over a drive
unchanged fast slow -- expect 1 "^terracectl: --map slow is a device of the volume$" "$ctl" salvage --force --to out --map slow fast slow
unchanged fast slow -- expect 1 "^terracectl: --map fast exists, and is no map: --force overwrites it$" "$ctl" salvage --dry-run --map fast slow
expect 1 "^terracectl: --map and --to name the same file$" "$ctl" salvage --force --to out --map out fast slow
expect 0 "blocks certain" "$ctl" salvage --dry-run --map out.json fast slow
expect 0 "blocks certain" "$ctl" salvage --dry-run --map out.json fast slow
