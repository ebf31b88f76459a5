#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A drive that has the volume's label but is not the one that the tier is made of, as one that was replaced: terracectl repair refuses it, salvage leaves it out. It would be read as if it held the last values.
# So with a label that is intact but does not fit the superblock, and with a drive that has become smaller: repair would call sound what cannot be activated.
# host: timeout=120 build=daemon,scribble
. "$TERRACE_TREE/tests/host/lib.sh"
. "$TERRACE_TREE/tests/host/ctl.bash"
ctl=$TERRACE_TREE/build/terracectl
cd "$OUT" || exit
uuid=6f1c4a52-7d3b-4b0e-9a75-1f2e3d4c5b6a
tiers=(--tier optane:atomic=fast --tier hdd:atomic=slow --mirror none)

new_images fast 128M slow 320M
"$ctl" format --uuid $uuid "${tiers[@]}" > /dev/null
mv slow old
new_images slow 320M
"$ctl" format --force --uuid $uuid "${tiers[@]}" > /dev/null
expect 1 "^problem: old: is not the device that tier 1 is made of" "$ctl" check fast old
for how in --dry-run --in-place; do
	unchanged fast old -- expect 1 "old is not the device that tier 1 is made of: nothing changed" "$ctl" repair $how fast old
	expect 0 "nothing lost" "$ctl" repair $how fast slow
done
expect 0 ': sound$' "$ctl" check --full fast slow

# salvage: what is on that tier is lost
build_image
new_images fast 128M slow 320M
"$ctl" format --force --uuid $uuid "${tiers[@]}" > /dev/null
./image --seed 4 --after 80 fast slow > where
expect 0 " 0 lost" "$ctl" salvage --dry-run fast slow
expect 1 "old is left out: it is not the device that tier 1 is made of" "$ctl" salvage --dry-run fast old
expect 1 " [1-9][0-9]* lost" "$ctl" salvage --dry-run fast old

# labels with another class, other room, a larger device (bytes 60, 96 and 80 of the label); class and room are one tier's alone
for change in "60 2" "96 1000" "80 99999999"; do
	cp --sparse=always slow misfit
	# shellcheck disable=SC2086 # two words
	"$TERRACE_TREE/build/scribble" label $change misfit
	expect 1 "^problem: misfit" "$ctl" check fast misfit
	for how in --dry-run --in-place; do
		unchanged fast misfit -- expect 1 "misfit: .*: nothing changed" "$ctl" repair $how fast misfit
	done
done
for change in "60 2" "96 1000"; do
	cp --sparse=always slow misfit
	# shellcheck disable=SC2086 # two words
	"$TERRACE_TREE/build/scribble" label $change misfit
	expect 1 "misfit is left out: its label does not fit tier 1" "$ctl" salvage --dry-run fast misfit
	expect 1 " [1-9][0-9]* lost" "$ctl" salvage --dry-run fast misfit
done

# a smaller drive: what is on the rest of it can still be read
cp --sparse=always slow misfit
truncate -s 200M misfit
unchanged fast misfit -- expect 1 "misfit: .*: nothing changed" "$ctl" repair --in-place fast misfit
expect 1 " [1-9][0-9]* blocks certain, .* [1-9][0-9]* lost" "$ctl" salvage --dry-run fast misfit

# a label that says that the metadata area is smaller (byte 112), the mirror is good: what is written there nobody would read
new_images fast 128M slow 320M new 64M
"$ctl" format --force --uuid $uuid --tier optane:atomic=fast --tier nvme:shelves:atomic=slow --mirror sync > /dev/null
./image --seed 4 --after 80 fast slow > where
"$TERRACE_TREE/build/scribble" label 112 64 fast
unchanged fast slow -- expect 1 "fast: its label says that the metadata have 64 blocks, .*: nothing changed; repair --to" "$ctl" repair --in-place fast slow
expect 0 "nothing lost" "$ctl" repair --to new fast slow
expect 0 ': sound$' "$ctl" check --full fast slow new
