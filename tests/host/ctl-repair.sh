#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terracectl repair: after any damage the volume is sound again, keeps only what is certain, and says what is lost.
# host: timeout=600 build=daemon,scribble
. "$TERRACE_TREE/tests/host/lib.sh"
. "$TERRACE_TREE/tests/host/ctl.bash"
ctl=$TERRACE_TREE/build/terracectl
cd "$OUT" || exit
build_image

image() {
	new_images fast 128M slow 320M new 64M
	"$ctl" format "${@:2}" > /dev/null
	# shellcheck disable=SC2086 # words
	./image $1 --blocks blocks fast slow > where
	meta=$(sed -n 's/^meta-start //p' where)
}
# at STRUCTURE: the meta block of the first one that fits
at() { sed -n "s/^$1.* \([0-9]*\)$/\1/p" where | head -1; }
spoil_at() { flip "${2-fast}" $(((meta + $1) * 4096 + 300)); }
# sound DEVICE...: check finds nothing, and each block is what it should be; "$got": CERTAIN OLDER LOST
sound() {
	expect 0 ': sound$' "$ctl" check --full "$@"
	rm -f out out.json
	"$ctl" salvage --to out --map out.json "$@" > said 2>&1 || die "salvage after repair: $(cat said)"
	got=$(judge_salvage blocks out out.json) || die "after repair: $got"
}
lazy=(--tier nvme=fast --tier hdd=slow)
sync=(--tier optane:atomic=fast --tier nvme:shelves:atomic=slow)
all() { echo "$(wc -l < blocks) 0 0"; }

# ---- to a new device: nothing else is written
image "--after 60" "${lazy[@]}"
unchanged fast slow new -- expect 0 "nothing lost" "$ctl" repair --dry-run fast slow
unchanged fast slow -- expect 0 "activate it with the new metadata device: terracectl activate fast slow new$" "$ctl" repair --to new fast slow
sound new fast slow
check_eq "repaired to a new device" "$got" "$(all)"
expect 1 "new holds the metadata of Terrace volume 'terrace' .*: nothing changed; --force" "$ctl" repair --to new fast slow

# ---- one structure after the other, in place
for structure in map-directory space-page space-directory meta-bitmap superblock; do
	image "--seed 7 --after 60" "${lazy[@]}"
	spoil_at "$(at $structure)"
	before=$(sha256sum slow)
	expect 0 "nothing lost" "$ctl" repair --in-place fast slow
	check_eq "the other device" "$(sha256sum slow)" "$before"
	sound fast slow
	check_eq "after damage to $structure" "$got" "$(all)"
done
image "--after 60" "${lazy[@]}"
flip fast 700; flip slow 4900
expect 0 "nothing lost" "$ctl" repair --in-place fast slow
sound fast slow

# ---- the lazy mirror is not written. Its drive, left out, comes back some day: the superblock says that it is not in step
flags() { "$ctl" dump super "$@" | awk '/^superblock/ { current = / current=true / } current && $1 == "flag" { printf "%s ", $2 }'; }
for mirror in "" slow; do
	image "--after 60" "${lazy[@]}"
	check_eq "before repair" "$(flags fast slow)" ""
	# shellcheck disable=SC2086 # words
	expect 0 "nothing lost" "$ctl" repair --to new fast $mirror
	check_eq "repaired to a new device, the mirror's drive: '$mirror'" "$(flags new fast slow)" "clean lazy-lost "
	expect 0 ': sound$' "$ctl" check --full new fast slow
	for again in 1 2; do
		# shellcheck disable=SC2086 # words
		expect 0 "nothing lost" "$ctl" repair --in-place fast $mirror
		check_eq "repaired in place, time $again, the mirror's drive: '$mirror'" "$(flags fast slow)" "clean lazy-lost "
	done
	sound fast slow
	check_eq "the mirror's drive: '$mirror'" "$got" "$(all)"
done

# two whole copies of a label that say different things, as old as each other (byte 120: the name)
image "--after 60" "${lazy[@]}"
cp --sparse=always slow other
"$TERRACE_TREE/build/scribble" label 120 0x61616161 other
dd if=other of=slow bs=4096 skip=1 seek=1 count=1 conv=notrunc status=none
expect 1 "slow: label: the copies differ, both are of generation 1" "$ctl" check fast slow
expect 0 "nothing lost" "$ctl" repair --in-place fast slow
sound fast slow
check_eq "after copies of a label that differ" "$got" "$(all)"

# ---- a map page: what the journal does not know is lost, exactly that
image "--seed 3 --after 10" "${lazy[@]}"
spoil_at "$(at map-page)"
expect 0 "nothing lost" "$ctl" repair --dry-run fast slow	# thanks to the lazy mirror
spoil_at "$(at map-page)" slow
"$ctl" repair --in-place --json fast slow > said.json || [ $? = 1 ]
expect 0 ': sound$' "$ctl" check --full fast slow
rm -f out out.json
"$ctl" salvage --to out --map out.json fast slow > /dev/null
python3 - <<'PY'
import json
true = {int(l.split()[0]) for l in open('blocks')}
repair, now = json.load(open('said.json')), json.load(open('out.json'))
said = {b for r in repair['ranges'] for b in range(r['block'], r['block'] + r['blocks'])}
kept = {b for r in now['ranges'] for b in range(r['block'], r['block'] + r['blocks'])}
assert repair['written'] and len(kept) == repair['mapped_blocks'], (len(kept), repair['mapped_blocks'])
assert true - kept and true - kept <= said, ('lost and not said', sorted(true - kept - said)[:5])
assert not said & kept, 'said to be lost, and kept'
assert kept <= true, 'kept what was not there'
PY
# its copy on a synchronous mirror serves
image "--seed 3 --after 10" "${sync[@]}"
spoil_at "$(at map-page)"
expect 0 "nothing lost" "$ctl" repair --in-place fast slow
sound fast slow
check_eq "with a synchronous mirror" "$got" "$(all)"

# ---- damage anywhere, both ways
for seed in 2 4 5; do
	image "--seed $seed --before $((seed * 60)) --between $((seed * 7)) --after $((seed * 11))" "${lazy[@]}"
	spoil "$seed" $((2 * seed)) fast "$meta" 700
	[ $((seed % 3)) = 0 ] || spoil $((seed + 100)) $((3 * seed)) slow "$meta" 700
	how=(--to new)
	[ $((seed % 2)) = 0 ] || how=(--in-place)
	"$ctl" repair "${how[@]}" fast slow > said 2>&1 || [ $? = 1 ] || die "seed $seed: $(cat said)"
	if ! grep -q 'blocks mapped;' said; then
		grep -qE "no superblock|only the lazy mirror" said || die "seed $seed: $(cat said)"
		continue
	fi
	devices=(fast slow)
	[ "${how[0]}" = --in-place ] || devices=(new fast slow)
	expect 0 ': sound$' "$ctl" check --full "${devices[@]}"
	rm -f out out.json
	"$ctl" salvage --to out --map out.json "${devices[@]}" > /dev/null
	# what is lost reads as zeros by now: that is known, and was said
	sed -i 's/"unmapped_certain":true/"unmapped_certain":false/' out.json
	got=$(judge_salvage blocks out out.json) || die "seed $seed: $got"
	echo "seed $seed ${how[0]}: $got"
done

# ---- superblocks that can be read again after a repair without them, as with a loose cable: the new ones count
image "--generation 5000 --after 60" "${sync[@]}"
for copy in 0 1; do
	for file in fast slow; do spoil_at $copy $file; done
done
"$ctl" repair --from-shelves --to new fast slow > said || [ $? = 1 ] || die "$(cat said)"
for copy in 0 1; do
	for file in fast slow; do spoil_at $copy $file; done	# which gives them back
done
"$ctl" check --full new fast slow > said 2>&1 || die "superblocks that are back: $(cat said)"
[ "$("$ctl" dump super new fast slow | sed -n 's/^superblock device=new .* generation=\([0-9]*\) .*/\1/p' | sort -n | tail -1)" -gt 5000 ] ||
	die "what repair made is older than what was there: $("$ctl" dump super new fast slow)"

# ---- from the shelves alone: each block is its own, if older; also without any superblock
image "--after 60" "${lazy[@]}"
expect 1 "^newer: blocks|^older: blocks|^lost: blocks .*the map has them, no shelf does" "$ctl" repair --from-shelves --dry-run fast slow
for copy in 0 1; do
	for file in fast slow; do spoil_at $copy $file; done
done
expect 1 "no superblock is left: --from-shelves" "$ctl" repair --to new fast slow
"$ctl" repair --from-shelves --to new fast slow > said || [ $? = 1 ] || die "$(cat said)"
grep -q "no superblock is left: the volume is taken to have" said || die "$(cat said)"
expect 0 ': sound$' "$ctl" check --owners new fast slow
rm -f out out.json
"$ctl" salvage --to out --map out.json new fast slow > /dev/null
sed -i 's/"state":"certain"/"state":"possibly older"/; s/"unmapped_certain":true/"unmapped_certain":false/' out.json
got=$(judge_salvage blocks out out.json) || die "from shelves: $got"
read -r _ older _ <<< "$got"
[ "$older" -gt "$(awk '$2 == 1' blocks | wc -l)" ] || die "only $older blocks from shelves"
# (the images name up to 250 blocks, written over many records, by the newest of these: some order is lost)
now=$(
	python3 -c '
import json
at = {}
for r in json.load(open("out.json"))["ranges"]:
    for i in range(r["blocks"]):
        at[r["block"] + i] = r["place"] + i
print(sum(at.get(int(b)) == int(p) for b, t, p, _ in map(str.split, open("blocks")) if t == "1"))')
[ "$now" -ge $(($(awk '$2 == 1' blocks | wc -l) * 9 / 10)) ] || die "only $now of $(awk '$2 == 1' blocks | wc -l) are at their last place"

# by the superblock of a lazy mirror that is laps of the ring behind: nothing that still stands in the ring is taken for the new journal's
for how in "" --from-shelves; do
	image "--generation 21 --after 60 --break lazy-laps" "${lazy[@]}"
	for copy in 0 1; do spoil_at $copy; done
	# shellcheck disable=SC2086 # a word or none
	"$ctl" repair --in-place $how fast slow > said || [ $? = 1 ] || die "$(cat said)"
	expect 0 ': sound$' "$ctl" check --full fast slow
done

# ---- wrong calls, and what is refused
image "--after 60" "${lazy[@]}"
expect 2 "where to\? --to NEW_DEVICE, --in-place" "$ctl" repair fast slow
expect 2 "--to and --in-place: one of them" "$ctl" repair --to new --in-place fast slow
expect 2 "no devices given" "$ctl" repair --dry-run
expect 2 "--size 5: not a multiple" "$ctl" repair --size 5 --dry-run fast
unchanged fast slow -- expect 1 "fast is a device of the volume" "$ctl" repair --force --to fast fast slow
truncate -s 1M tiny
expect 1 "tiny is too small: it has 1 MiB, the metadata need" "$ctl" repair --to tiny fast slow
mkfs.ext4 -q -F new
unchanged new -- expect 1 "new holds a filesystem \(ext4\): nothing changed; --force" "$ctl" repair --to new fast slow
# shellcheck disable=SC2094 # only locked
( flock 9; expect 1 "slow is in use: " "$ctl" repair --in-place fast slow ) 9< slow
expect 0 "^usage: terracectl repair" "$ctl" repair --help

# ---- packs: what is damaged of them is lost, block by block, and nothing else
# of blocks 0-39 of each region all but 7 are live in its pack, 9 has a clean slot as well; every fourth region has an index copy
packed() {
	new_images fast 128M slow 320M new 64M
	"$ctl" format "${lazy[@]}" > /dev/null
	./image --packs 9 fast slow > where
}
# pack REGION: sets place (in blocks of the device) and payload (bytes from there)
pack() { read -r _ _ _ place payload < <(grep "^pack $1 " where); }
packed
unchanged fast slow -- expect 0 "; 9 blocks mapped; nothing lost|360 blocks mapped; nothing lost" "$ctl" repair --to new fast slow
expect 0 "; 9 packs with 351 blocks: sound$" "$ctl" check --full new fast slow
pack 6; flip slow $((place * 4096 + 90))
expect 1 "pack [0-9]+ of region 6: its header: damaged" "$ctl" repair --force --to new fast slow
for range in "6144-6150 .7." "6152-6152 .1." "6154-6183 .30."; do
	expect 1 "^lost: blocks $range: their pack is not there, or its header is damaged$" "$ctl" repair --dry-run fast slow
done
expect 0 "; 8 packs with 312 blocks: sound$" "$ctl" check --full new fast slow
pack 2; flip slow $((place * 4096 + payload + 100))
expect 1 "^lost: blocks 2072-2087 .16.: their bytes in the pack are damaged$" "$ctl" repair --in-place fast slow
expect 0 "; 8 packs with 296 blocks: sound$" "$ctl" check --full fast slow
# a header that has a good copy on the fast tier; a copy that is none
packed
pack 4; flip slow $((place * 4096 + 90))
expect 1 "the copy on the fast tier is good: --in-place would write it there" "$ctl" repair --dry-run fast slow
expect 0 "nothing lost" "$ctl" repair --in-place fast slow
expect 0 "; 9 packs with 351 blocks: sound$" "$ctl" check --full fast slow
index=$(sed -n 's/^run 8 .* //p' where); flip fast $((index * 4096 + 77))
expect 0 "nothing lost" "$ctl" repair --in-place fast slow
expect 0 "; 9 packs with 351 blocks: sound$" "$ctl" check --full fast slow
check_eq "copies of headers" "$("$ctl" dump packs fast slow | grep -c index_tier=)" 2

# ---- volumes with packs of all codecs and clusters, up to eight in a region, blocks overwritten, raised, dropped, discarded
for seed in 1 4; do
	image "--seed $seed --before 200 --between 30 --after 40 --packing 40" "${lazy[@]}"
	[ "$(sed -n 's/^packed-blocks //p' where)" -gt 300 ] || die "seed $seed: hardly any packs"
	spoil_at "$(at map-directory)"; spoil_at "$(at meta-bitmap)"
	expect 0 "nothing lost" "$ctl" repair --to new fast slow
	sound new fast slow
	check_eq "volume with packs, seed $seed" "$got" "$(all)"
	# its two map pages lost in both copies, half of the packs' runs damaged: whatever is kept is right and sound
	for page in $(sed -n 's/^map-page [0-3] //p' where | head -2); do spoil_at "$page"; spoil_at "$page" slow; done
	while read -r _ _ _ run blocks _; do
		[ $((run % 2)) = 0 ] || flip slow $((run * 4096 + (run * 7919) % (blocks * 4096)))
	done < <(grep '^run ' where)
	"$ctl" repair --in-place fast slow > said 2>&1 || [ $? = 1 ] || die "$(cat said)"
	expect 0 ': sound$' "$ctl" check --full fast slow
	rm -f out out.json
	"$ctl" salvage --to out --map out.json fast slow > /dev/null
	sed -i 's/"unmapped_certain":true/"unmapped_certain":false/' out.json
	got=$(judge_salvage blocks out out.json) || die "seed $seed, damaged packs: $got"
	echo "seed $seed, damaged packs: $got"
done

# ---- from the shelves alone, with packs: what they hold is got, the newest of it, and never called current
image "--seed 4 --before 200 --between 30 --after 40 --packing 40" "${lazy[@]}"
on_shelves=$(($(awk '$2 == 1' blocks | wc -l) + $(sed -n 's/^clean-slots //p' where)))
for copy in 0 1; do
	for file in fast slow; do spoil_at $copy $file; done
done
"$ctl" repair --from-shelves --to new fast slow > said || [ $? = 1 ] || die "$(cat said)"
expect 0 '[1-9][0-9]* packs with [0-9]* blocks: sound$' "$ctl" check --full new fast slow
rm -f out out.json
"$ctl" salvage --to out --map out.json new fast slow > /dev/null
sed -i 's/"state":"certain"/"state":"possibly older"/; s/"unmapped_certain":true/"unmapped_certain":false/' out.json
got=$(judge_salvage blocks out out.json) || die "from shelves with packs: $got"
read -r _ older _ <<< "$got"
[ "$older" -ge "$on_shelves" ] || die "only $older blocks from shelves, $on_shelves are there"
now=$(
	python3 -c '
import struct
n, out = 0, open("out", "rb")
for b, _, _, record in map(str.split, open("blocks")):
    out.seek(int(b) * 4096)
    n += struct.unpack("<QQ", out.read(16)) == (int(b), int(record))
print(n)')
# (nearly, for the reason above; the older one of two packs would give 95 in 100)
[ "$now" -ge $((on_shelves * 98 / 100)) ] || die "only $now of $on_shelves blocks have their last value"
# ids go on behind those that were found
expect 0 ' next_id=[0-9]{7,}' "$ctl" dump super new fast slow

# ---- the fast drive destroyed, with no mirror: a superblock is made up without it, what the shelves hold comes back
new_images fast 128M slow 320M new 64M
"$ctl" format --tier nvme=fast --tier hdd=slow --mirror none > /dev/null
./image --seed 4 --before 200 --between 30 --after 40 --packing 40 --blocks blocks fast slow > where
on_shelves=$(($(awk '$2 == 1' blocks | wc -l) + $(sed -n 's/^clean-slots //p' where)))
unchanged slow new -- expect 1 "^terracectl: tier 0 is missing, and no superblock is left to say how large the volume was: --size SIZE" "$ctl" repair --from-shelves --to new slow
expect 1 "no superblock can be read: terracectl repair --from-shelves --to FILE makes one" "$ctl" salvage --dry-run slow
expect 1 "blocks mapped; what was in slots is lost, .* any block may be older" "$ctl" repair --from-shelves --size 1G --to new slow
expect 1 "^problem: tier 0: is missing \(hdd, kind slots" "$ctl" check --full new slow
expect 1 ": 1 problem$" "$ctl" check --full new slow
rm -f out out.json
"$ctl" salvage --to out --map out.json new slow > /dev/null || [ $? = 1 ]
sed -i 's/"state":"certain"/"state":"possibly older"/; s/"unmapped_certain":true/"unmapped_certain":false/' out.json
got=$(judge_salvage blocks out out.json) || die "from shelves, without the fast drive: $got"
read -r _ older _ <<< "$got"
[ "$older" -ge "$on_shelves" ] || die "only $older blocks from shelves without the fast drive, $on_shelves are there"
