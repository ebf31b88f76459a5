#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terracectl dump prints every structure, in text and as JSON, and the same in both.
# host: timeout=600 build=daemon
. "$TERRACE_TREE/tests/host/lib.sh"
. "$TERRACE_TREE/tests/host/ctl.bash"
ctl=$TERRACE_TREE/build/terracectl
cd "$OUT" || exit
build_image

new_images fast 256M slow 1G
"$ctl" format --name shown --tier nvme=fast --tier hdd=slow > /dev/null
./image fast slow > where

# one line, one JSON object for each structure that the builder wrote
count() { "$ctl" dump "$1" slow fast | grep -c "^$2 " || true; }
json() { "$ctl" dump --json "$1" fast slow | python3 -c 'import json, sys; o = json.load(sys.stdin); print(eval(sys.argv[1]))' "$2"; }
for pair in "map region map-page" "map directory map-directory" "space chunk space-page" "journal journal journal"; do
	read -r what item name <<< "$pair"
	want=$(grep -c "^$name " where)
	check_eq "$item lines of dump $what" "$(count "$what" "$item")" "$want"
	check_eq "$item objects of dump $what" "$(json "$what" "len([i for i in o['items'] if i['item'] == '$item'])")" "$want"
done
check_eq "records" "$(json journal "sum(len(i['record']) for i in o['items'])")" "$(sed -n 's/^records //p' where)"
check_eq "records as text" "$("$ctl" dump journal fast slow | grep -c '^  record seq=')" "$(sed -n 's/^records //p' where)"
check_eq "labels" "$(count super label)" 2
check_eq "superblocks" "$(count super superblock)" 4
expect 0 '^label device=fast name=shown .* class=nvme kind=slots' "$ctl" dump fast slow
expect 0 '^superblock device=fast role=primary copy=1 current=true generation=3 ' "$ctl" dump super fast slow
check_eq "owner tables" "$(json owners "len([i for i in o['items'] if i['item'] == 'table'])")" $((15 * 33))
check_eq "owner tables of a shelf" "$("$ctl" dump owners --range 3 fast slow | grep -c '^table tier=1 shelf=3 ')" 33

# where a region's page is, is what the builder said
read -r _ region block < <(grep '^map-page ' where)
expect 0 "^region number=$region meta_block=$block " "$ctl" dump map --range "$region" fast slow
check_eq "regions of a range" "$("$ctl" dump map --range 0-1 fast slow | grep -c '^region')" 2

# damage and missing devices: the rest is shown, the exit status tells
expect 1 'tier 1: is missing' "$ctl" dump map fast
expect 1 '^region number=0 ' "$ctl" dump map fast
meta=$(sed -n 's/^meta-start //p' where)
flip fast $(((meta + block) * 4096 + 300))
expect 1 "^problem: fast: map page of region $region .*: damaged" "$ctl" dump map fast slow
flip fast $((meta * 4096 + 80)); flip fast $(((meta + 1) * 4096 + 80))
flip slow $((meta * 4096 + 80)); flip slow $(((meta + 1) * 4096 + 80))
expect 1 '^label device=fast' "$ctl" dump fast slow

expect 2 "no devices given" "$ctl" dump map
expect 2 "--range 5-3: must be N or N-M" "$ctl" dump map --range 5-3 fast slow
expect 2 "--range x: must be N or N-M" "$ctl" dump map --range x fast slow
expect 0 '^usage: terracectl dump' "$ctl" dump --help
