#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terracectl knows packs: dump shows them, check --full verifies header, payload, index copy and map against each other.
# host: timeout=600 build=daemon
. "$TERRACE_TREE/tests/host/lib.sh"
. "$TERRACE_TREE/tests/host/ctl.bash"
ctl=$TERRACE_TREE/build/terracectl
cd "$OUT" || exit
build_image

make() {
	new_images fast 256M slow 1G
	"$ctl" format --name packed --tier nvme=fast --tier hdd=slow > /dev/null
	./image --packs 9 fast slow > where
}
finds() { expect 1 "$1" "$ctl" check --full fast slow; }
# pack REGION: sets place (in blocks of the device) and payload (bytes from there)
pack() { read -r _ _ id place payload < <(grep "^pack $1 " where); }

# five in pages, four in the journal only; in each all but one of 40 blocks are live, one has a clean slot
make
expect 0 '; 9 packs with 351 blocks: sound$' "$ctl" check --full fast slow
expect 0 '"packed_blocks":351,' "$ctl" check --full --json fast slow
check_eq "packs of pages" "$("$ctl" dump packs fast slow | grep -c '^pack ')" 5
pack 4
expect 0 "^pack region=4 id=$id tier=1 .* index_tier=0 .* live_blocks=39 .* codec=lz4 .* cluster_blocks=16 packed_blocks=40 clusters=3 raw_clusters=0" \
	"$ctl" dump packs --range 4 fast slow
expect 0 '^  contains 4096-4135$' "$ctl" dump packs --range 4 fast slow
expect 0 "^  pack id=$id tier=1 .* live_blocks=39" "$ctl" dump map --range 4 fast slow
expect 0 'type=pack-add region=1 id=' "$ctl" dump journal fast slow
expect 0 'type=packed block=1024 ' "$ctl" dump journal fast slow
expect 0 'type=clean block=1033 .* kept=true' "$ctl" dump journal fast slow
expect 0 'type=index-add region=' "$ctl" dump journal fast slow

# a flipped bit in the first block of a cluster (region 2, blocks 39 and on), in page and journal packs
pack 2; flip slow $((place * 4096 + payload + 100))
finds "pack $id of region 2: block 2087: the bytes at $payload-$((payload + 1023)) of the run are damaged"
check_eq "blocks damaged" "$("$ctl" check --full fast slow | grep -c 'of the run are damaged')" 16
make
# in the last segment of the first cluster: its four first blocks are sound
pack 3; flip slow $((place * 4096 + payload + 16 * 1024 - 1))
finds "pack $id of region 3: block 3107: .* damaged"
check_eq "blocks damaged" "$("$ctl" check --full fast slow | grep -c 'of the run are damaged')" 12
make
# what is damaged is not used any more (slot 0 of the last cluster holds block 7 … 0: block 7 is garbage)
pack 2; flip slow $((place * 4096 + payload + 32 * 1024 + 100))
expect 1 "note: .*: pack $id of region 2: block 2055, no longer used, is damaged" "$ctl" check --full fast slow
check_eq "blocks damaged" "$("$ctl" check --full fast slow | grep -c 'of the run are damaged')" 7
make
pack 6; flip slow $((place * 4096 + 90))
finds "pack $id of region 6: its header: damaged"
expect 1 "^problem: slow: tier 1 place [0-9]*: pack $id of region 6: damaged" "$ctl" dump packs fast slow
make
# another pack's header, whole and good
pack 6; other=$place; pack 8
dd if=slow of=slow bs=4096 count=1 skip="$other" seek="$place" conv=notrunc status=none
finds "pack $id of region 8: its header: a good one, but not that of this pack"
make
# the index copy
index=$("$ctl" dump packs --json --range 4 fast slow | python3 -c 'import json, sys; print(json.load(sys.stdin)["items"][0]["index_place"])')
data=$("$ctl" dump --json fast slow | python3 -c 'import json, sys; print([i for i in json.load(sys.stdin)["items"] if i["item"] == "label"][0]["data_start"])')
pack 4; flip fast $(((data + index) * 4096 + 77))
finds "pack $id of region 4: its index copy, at place $index of tier 0, is not its header"
