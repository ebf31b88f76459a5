#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A drive that has the volume's label but is not the one that the tier is made of, as one that was replaced: terracectl repair refuses it, salvage leaves it out. It would be read as if it held the last values.
# host: timeout=120 build=daemon
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
