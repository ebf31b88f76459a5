#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terracectl check passes sound volumes and names every kind of damage at its exact place.
# host: timeout=600 build=daemon,scribble
. "$TERRACE_TREE/tests/host/lib.sh"
. "$TERRACE_TREE/tests/host/ctl.bash"
ctl=$TERRACE_TREE/build/terracectl
cd "$OUT" || exit
build_image

# ---- sound volumes in mid-life: whatever the model did, nothing is found and the counts agree
for seed in $(seq 12); do
	new_images a 256M b 256M c 1G
	case $((seed % 3)) in
	0) tiers=(nvme:atomic=a hdd=c) ;;
	1) tiers=(optane=a nvme:shelves=b) ;;
	2) tiers=(optane=a nvme=b hdd=c) ;;
	esac
	"$ctl" format "${tiers[@]/#/--tier=}" > /dev/null
	./image --seed "$seed" --before $((seed * 40)) --between $((seed * 4)) --after $((seed * 11 % 90)) "${tiers[@]#*=}" > where
	files=("${tiers[@]#*=}")
	unchanged "${files[@]}" -- expect 0 ': sound$' "$ctl" check "$([ "$seed" -gt 3 ] && echo --full || echo --owners)" "${files[@]}"
	"$ctl" check --full --json "${files[@]}" > json
	for count in mapped discarded; do
		want=$(sed -n "s/^$count //p" where)
		grep -q "\"${count}_blocks\":$want," json || die "seed $seed: $count blocks are not $want: $(cat json)"
	done
	grep -q "\"journal_records\":$(sed -n 's/^records //p' where)," json || die "seed $seed: journal records"
done

# ---- wrong devices
format() { new_images fast 256M slow 1G; "$ctl" format "$@" > /dev/null; }
format --name one --tier nvme:atomic=fast --tier nvme:shelves:atomic=slow
finds() { expect 1 "$1" "$ctl" check "${@:2}"; }
finds "^problem: tier 1: is missing \(nvme, kind shelves, 960 MiB, label uuid" fast
finds "^problem: volume 'one': the device that holds the metadata is missing; using the mirror" slow
finds "^problem: fast: is the same tier as fast: it is named twice" fast slow fast
cp --sparse=always slow copy
finds "^problem: copy: is the same tier as slow: one of them is a copy" fast slow copy
# of two labels of one tier the newer counts, whichever is named first: the power failed in the middle of a replace
"$TERRACE_TREE/build/scribble" label 48 99 copy
for order in "slow copy" "copy slow"; do
	# shellcheck disable=SC2086 # words
	expect 0 "^note: slow: has been replaced by copy, whose label is newer" "$ctl" check fast $order
done
dd if=/dev/zero of=copy bs=4k seek=1 count=1 conv=notrunc status=none
expect 0 "^note: copy: label copy 1 \(block 1\): nothing of ours" "$ctl" check fast slow copy
finds "^problem: copy: label copy 1 \(block 1\): nothing of ours" fast copy
truncate -s 900M copy
finds "^problem: copy: has 230400 blocks, its label says 262144: it has shrunk" fast copy
new_images blank 64M
finds "^problem: blank: is not part of a Terrace volume: it has no label" fast slow blank
mv fast one.fast; mv slow one.slow
format --name two --tier nvme=fast --tier hdd=slow
finds "^problem: slow: belongs to another volume: 'two' \(.*\), but one.fast to 'one'" one.fast slow
finds "^problem: nowhere: cannot be opened" one.fast nowhere
expect 2 "no devices given" "$ctl" check
expect 2 "10 devices given, a volume has at most 9" "$ctl" check 1 2 3 4 5 6 7 8 9 10
expect 2 "not a number" "$ctl" check --limit x fast
# shellcheck disable=SC2094 # only locked
( flock 9; finds "slow is in use: " fast slow ) 9< slow

# ---- one structure made wrong, with a right CRC
breaks() {
	local what=$1 pattern=$2
	new_images fast 256M slow 1G
	"$ctl" format --tier nvme=fast --tier hdd=slow > /dev/null
	# shellcheck disable=SC2086 # words
	./image --break "$what" --between 0 --after ${3-0} fast slow > where
	unchanged fast slow -- expect 1 "^problem: $pattern" "$ctl" check "${4---full}" fast slow
}
breaks double "slow|fast: tier [01] places ([0-9]+)-\1: 2 blocks live there: block [0-9]+ and block [0-9]+$"
breaks leak "fast: tier 0 places ([0-9]+)-\1: used in the space page of chunk 0, but no block lives there \(leaked\)"
breaks unmarked "fast: tier 0 places ([0-9]+)-\1: block [0-9]+ and what follows live there, but chunk 0 says they are free"
breaks count "fast: map page of region 0 \(meta block [0-9]+\): its entry counts [0-9]+ blocks, the page has"
breaks sum "fast: map directory of level 2 from region 0 \(meta block [0-9]+\): counts [0-9]+ blocks below it, there are [0-9]+"
breaks stale "fast: map page of region 0 .*: an older or another one than expected"
breaks age "fast: map page of region 0 .*: has age [0-9]+, its entry says [0-9]+"
breaks uuid "fast: map page of region 0 .*: an older or another one than expected"
breaks index "fast: map page of region 0 .*: an older or another one than expected"
breaks newest "fast: map page of region 0 .*: knows records up to 10[0-9]+, but the journal ends at [0-9]+"
breaks section "fast: map page of region 0 .*: has a section that this version does not know"
breaks beyond-place "fast: map page of region 0 .*: its sections or places are impossible"
breaks no-tier "fast: map page of region 0 .*: its sections or places are impossible"
breaks page-twice "fast: map page of region [1-9][0-9]* .*: meta block [0-9]+ belongs to another page as well"
breaks impossible-entry "fast: map page of region 0 \(meta block 1\): its entry names an impossible page: [12] blocks at 1"
breaks counter "fast: space page of tier 0 chunk 0 .*: its bitmap has [0-9]+ bits, its counter says otherwise"
breaks meta-leak "fast: meta blocks ([0-9]+)-\1: used in the meta bitmap, but no page lives there \(leaked\)"
breaks meta-missing "fast: meta blocks ([0-9]+)-\1: in use, but free in the meta bitmap"
breaks gap "fast: journal block [0-9]+ \(meta block [0-9]+\): starts with record [0-9]+, but the pages hold those up to [0-9]+" 50
breaks impossible-record "fast: journal block [0-9]+ .*: is intact and continues the journal, but holds an impossible record" 50
breaks record-place "fast: journal record [0-9]+: names places [0-9]+-[0-9]+ of tier 1, which do not exist" 50
breaks record-region "fast: journal record [0-9]+: is about region [0-9]+, the volume has [0-9]+" 50
breaks owner "slow: tier 1 shelf [0-9]+ offset [0-9]+: block [0-9]+ lives there, but the newest owner block says it is block" 0 --owners
breaks no-owner "slow: tier 1 shelf [0-9]+ offset [0-9]+: block [0-9]+ lives there, but no owner block says so" 0 --owners
breaks next-id "fast: map page of region [0-9]+ .*: names pack [0-9]+, the superblock says that 1 comes next" "50 --packing 40"

# ---- no damage: an earlier life of a shelf, whose owner block has a newer number than the present one's
for life in earlier-life earlier-life-open; do
	new_images fast 256M slow 1G
	"$ctl" format --tier nvme=fast --tier hdd=slow > /dev/null
	./image --break $life --between 0 --after 0 fast slow > where
	expect 0 ': sound$' "$ctl" check --owners fast slow
done

# ---- one byte changed
image() {
	new_images fast 256M slow 1G
	"$ctl" format "${@:2}" > /dev/null
	# shellcheck disable=SC2086 # words
	./image $1 fast slow > where
	meta=$(sed -n 's/^meta-start //p' where)
}
# at STRUCTURE: the meta block of the first one that fits
at() { sed -n "s/^$1.* \([0-9]*\)$/\1/p" where | head -1; }
damaged() {
	flip "$1" "$2"
	unchanged fast slow -- expect 1 "^problem: $3" "$ctl" check --full fast slow
	flip "$1" "$2"
	expect 0 ': sound$' "$ctl" check --full fast slow
}
lazy=(--tier nvme=fast --tier hdd=slow)
image "--clean --between 0 --after 0" "${lazy[@]}"
for copy in 0 1; do
	damaged fast $((copy * 4096 + 700)) "fast: label copy $copy \(block $copy\): damaged \(CRC mismatch\)"
	damaged slow $((copy * 4096)) "slow: label copy $copy \(block $copy\): nothing of ours there"
	damaged fast $(((meta + copy) * 4096 + 80)) "fast: superblock copy $copy \(meta block $copy\): damaged \(CRC mismatch\)"
done
for structure in map-page space-page map-directory; do
	block=$(at $structure)
	damaged fast $(((meta + block) * 4096 + 300)) "fast: ${structure/-/ } .*\(meta block $block\): damaged \(CRC mismatch\)"
done
block=$(at meta-bitmap)
damaged fast $(((meta + block) * 4096 + 100)) "fast: block 0 of meta bitmap 1 \(meta block $block\): damaged"
damaged slow $(((meta + block) * 4096 + 100)) "slow: block 0 of meta bitmap 1 \(meta block $block\): damaged"
block=$(at map-page)
damaged slow $(((meta + block) * 4096 + 300)) "slow: map page of region 0 .*: damaged"
flip fast 700; flip fast 4800
finds "fast: label copy 1 \(block 1\): damaged" fast slow
flip fast 700; flip fast 4800
flip fast $((meta * 4096 + 80)); flip fast $(((meta + 1) * 4096 + 80))
finds "fast: no superblock can be used; using the mirror" fast slow

# an unclean stop explains a torn superblock on a drive that tears, and a torn end of the journal
image "--after 60" "${lazy[@]}"
flip fast $((meta * 4096 + 80))
expect 0 'note: fast: superblock copy 0 .*: torn by a crash' "$ctl" check fast slow
flip fast $((meta * 4096 + 80))
block=$(sed -n 's/^journal [0-9]* //p' where | tail -1)
flip fast $(((meta + block) * 4096 + 2000))
expect 0 'note: fast: journal block [0-9]+ .*: torn by a crash' "$ctl" check --full fast slow

# a damaged journal that the pages rely on
image "--before 100 --between 100 --after 10" "${lazy[@]}"
block=$(at journal)
flip fast $(((meta + block) * 4096 + 2000))
finds "knows records up to [0-9]+, but the journal ends at [0-9]+: the end of the journal is lost" fast slow

# a synchronous mirror serves, and must be the same
sync=(--tier optane:atomic=fast --tier nvme:shelves:atomic=slow)
image "--after 60" "${sync[@]}"
damaged fast $((meta * 4096 + 80)) "fast: superblock copy 0 .*: damaged"
damaged slow $(((meta + 1) * 4096 + 80)) "slow: superblock copy 1 .*: damaged"
block=$(at map-page)
damaged slow $(((meta + block) * 4096 + 90)) "slow: meta blocks $block-$block: the mirror differs from the primary on fast"
block=$(at journal)
flip fast $(((meta + block) * 4096 + 90))
expect 0 "note: slow: the journal has [0-9]+ blocks here, 0 on fast" "$ctl" check --full fast slow
expect 0 ': sound$' "$ctl" check --full fast slow
image "--before 50 --between 600 --after 200" "${sync[@]}"
block=$(at journal)
flip fast $(((meta + block) * 4096 + 90))
finds "fast: journal block [0-9]+ \(meta block $block\): is damaged: slow has it and [0-9]+ more" --full fast slow

# what activation refuses: a range discard beyond the last region, two superblocks of one checkpoint
image "--after 60" "${lazy[@]}"
"$TERRACE_TREE/build/scribble" beyond fast
finds "fast: journal record [0-9]+: discards regions 0-1048575, the volume has [0-9]+" --full fast slow
image "--after 60" "${sync[@]}"
"$TERRACE_TREE/build/scribble" ahead fast
finds "slow: its superblock of checkpoint [0-9]+ is another one than that on fast" fast slow

# a superblock that says it is the newer one, but comes from before the other: somebody has changed its number
image "--clean --before 60" --tier nvme:atomic=fast --tier hdd:atomic=slow --mirror none
"$ctl" dump --all fast slow | sed '/^superblock/s/ generation=2 / generation=4 /' > dumped
"$ctl" restore --force dumped fast slow > /dev/null
finds "fast: superblock copy 0: is the newer one, but its pages hold records up to 0, those of the older up to [1-9][0-9]*" fast slow

# a journal block of another place's number was never written there: it is no later one, and what is repaired beside it is sound
image "--before 20 --after 20" --tier nvme:atomic=fast --tier hdd:atomic=slow --mirror none
"$ctl" dump --all fast slow | sed '/^journal /s/ block_seq=[0-9]* / block_seq=99999 /' > dumped
"$ctl" restore --force dumped fast slow > /dev/null
finds "fast: space page of tier 0 chunk 0 .*: knows records up to [0-9]+, but the journal ends at [0-9]+: the end of the journal is lost" fast slow
"$ctl" repair --in-place fast slow > /dev/null || [ $? = 1 ]
expect 0 "blocks mapped.*: sound$" "$ctl" check --full fast slow
