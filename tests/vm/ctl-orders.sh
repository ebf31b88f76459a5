#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terracectl which, explain, move, pin, unpin, scrub: what a volume in use can be told, and what each of them refuses.
# vm: mode=functional cpus=1 memory=1G timeout=680
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/ctl.bash"

vol_ram 64 512
vol_format
vol_up stream_kb=0 janitor_high=1000 janitor_low=990
M=/tmp/mounted
mkdir -p $M
# half random, half zeros: packs gain
for ((i = 0; i < 4; i++)); do head -c 1M /dev/urandom; head -c 1M /dev/zero; done > /dev/shm/a
mkfs.ext4 -q -F -E nodiscard "$VOL"
mount "$VOL" $M
mkdir $M/folder
cp /dev/shm/a $M/a
cp /dev/shm/a $M/folder/b
sync -f $M
# in haste some went to a shelf
terracectl move --to optane $M > /dev/null
first=$(terracectl which --json $M/a | json "o[0]['block']")
same() {
	echo 1 > /proc/sys/vm/drop_caches
	if ! cmp /dev/shm/a $M/a || ! cmp /dev/shm/a $M/folder/b; then die "data differ $1"; fi
}

# ---- move
says "^$M/a: 0 blocks up, 2048 down, 0 dropped" move --to hdd $M/a
says "^$M/a: 2048 packed$" which $M/a
says "^$M/folder: 2048 fast$" which $M/folder
says "^  compressed: 8 MiB in packs take [0-9.]+ MiB: 1\.[5-9][0-9] to 1$" status vol
says "^  pending: .* .at a checkpoint.; terraced does not drive it: only the janitor moves, when room is short$" status vol
check_eq "compression" "$(terracectl status --json vol | json "o[0]['packs']['packed_blocks'], 1.5 < o[0]['packs']['ratio'] <= 2")" "(2048, True)"
same "after a move down"
says "^$M/a: 2048 blocks up, 0 down, 0 dropped" move --to 0 $M/a
says "^$M/a: 2048 fast, with its packed original$" which $M/a
says "^$M/a: 0 blocks up, 0 down, 0 dropped" move --to optane $M/a
check_eq "json" "$(terracectl move --json --to hdd --codec zstd $M/folder/ | json "o['blocks_down'], o['regions_failed'], o['interrupted']")" "(2048, 0, False)"
says ": 2048 packed$" which $M/folder/b
same "after moves"
says "0 blocks up, 0 down, 1 dropped" move --to hdd vol "$first"
refuses 2 "'qlc' names no tier of volume 'vol'" move --to qlc $M/a
refuses 2 "There are: 0 \(optane, slots\) 1 \(hdd, shelves\)" move --to 2 $M/a
refuses 2 "where to\? --to TIER" move $M/a
refuses 2 "'9-1' is no range of blocks" move --to hdd vol 9-1
refuses 2 "codec brotli: none, lz4 or zstd" move --to hdd --codec brotli $M/a
refuses 1 "no volume 'nodb' is active" move --to hdd nodb
refuses 1 "is not on an active volume" move --to hdd /dev/shm/a
refuses 1 "is no file and no folder" move --to hdd /dev/null
pass "move"

# ---- pin, unpin: the order leaves what is pinned
terracectl move --to optane $M/a > /dev/null
says "^$M/a: pinned fast: 2048 blocks in [0-9]+ ranges of volume 'vol'$" pin $M/a
says "^vol: 0 blocks up" move --to hdd vol
says "^$M/a: 2048 fast" which $M/a
says "pins lie over" explain $M/a
says "unpinned" unpin $M/
says "2048 dropped" move --to hdd $M/a
says "pinned slow" pin --slow $M/a
says "0 blocks up" move --to optane $M/a
check_eq "json" "$(terracectl unpin --json vol | json "o['volume'], o['done'], o['ranges']")" "('vol', 'unpinned', 1)"
says "2048 blocks up" move --to optane $M/a
refuses 1 "volume 'vol' has blocks 0 to" pin vol 99999999
refuses 2 "one file, or one range of blocks, at a time" pin $M/a 5
/usr/bin/python3 -ISc 'import os, sys; f = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR); [os.pwrite(f, b"x", 8192 * i) for i in range(2500)]' $M/holes
sync -f $M
refuses 1 "too many pieces: .* may form at most [0-9]+ ranges" pin $M/holes
pass "pin, unpin"

# ---- explain
says "^block $first of volume 'vol': fast, with its packed original$" explain $M/a
says "pack [0-9]+: codec lz4, [0-9]+ live blocks" explain vol "$first"
says "terraced does not run" explain vol "$first"
check_eq "where" "$(terracectl explain --json $M/a 4M | json "o['block'] > $first, o['where'], o['decisions']")" "(True, 'fast+packed', [])"
refuses 1 "the file has no block there" explain $M/a 1G
refuses 1 "volume 'vol' has blocks 0 to" explain vol 99999999
refuses 2 "'x' is no block: a number" explain vol x
refuses 2 "'5x' is no offset" explain $M/a 5x
refuses 2 "name a volume and a block" explain vol
pass "explain"

# ---- evacuate
refuses 2 "name a volume and one of its tiers" evacuate vol
refuses 2 "'qlc' names no tier" evacuate vol qlc
refuses 2 "tier 0 cannot take its own blocks" evacuate --to 0 vol 0
says "^tier 0, to tier 1: 0 blocks up, [0-9]+ down, [0-9]+ dropped" evacuate vol optane
fast_blocks() { terracectl which --json vol | json "sum(r['blocks'] for r in o if r['where'].startswith('fast'))"; }
check_eq "blocks on the fast tier" "$(fast_blocks)" 0
dd if=/dev/shm/a of=$M/c bs=1M count=2 oflag=direct status=none
check_eq "blocks on the fast tier after new writes" "$(fast_blocks)" 0
refuses 1 "tier 0 is to be left, and takes nothing" move --to optane $M/a
check_eq "json" "$(terracectl evacuate --json vol 0 | json "o['to'], o['used_blocks'], o['interrupted']")" "(1, 0, False)"
terracectl evacuate --undo vol 0
says "2048 blocks up" move --to optane $M/a
same "after evacuation"
pass "evacuate"

# ---- top, report
echo 1 > /proc/sys/vm/drop_caches
(while dd if=$M/a of=/dev/null bs=64k iflag=direct status=none; do :; done) &
reader=$!
says "^ +0 +optane +slots +\[#*\.*\] .* [0-9]+ +[0-9]+$" top --every 0.5 vol
says "hit rate +100.0 % of reads" top --once --every 3 vol
says "terraced  does not run" top --once --every 0.1 vol
check_eq "json" "$(terracectl top --json --every 3 vol | json "o['mode'], len(o['tiers']), o['hit_rate'] > 0.9, o['tiers'][0]['reads_per_second'] > 0")" "('write', 2, True, True)"
said=$(terracectl top --once --every 0.1 vol)
[[ $said != *$'\e'* ]] || die "terminal codes in a pipe"
check_eq "json" "$(terracectl report --json --seconds 3 --every 0.6 --output /dev/shm/report.html vol | json "o['samples'], o['hit_rate'] > 0.9")" "(6, True)"
mount -t tracefs tracefs /sys/kernel/tracing 2> /dev/null || true
check_eq "json" "$(terracectl trace --json record --seconds 3 --output /dev/shm/trace vol | json "o['blocks'] > 16, o['blocks'] * 8 == __import__('os').path.getsize('/dev/shm/trace')")" "(True, True)"
refuses 2 "say 'record'" trace vol
kill $reader
wait $reader 2> /dev/null || true
cp /dev/shm/report.html "$OUT/"
/usr/bin/python3 -IS - /dev/shm/report.html <<-'EOT' || die "the report is no good HTML"
	import html.parser, re, sys, xml.etree.ElementTree
	text = open(sys.argv[1]).read()
	html.parser.HTMLParser().feed(text)
	plots = re.findall(r'<svg.*?</svg>', text, re.S)
	assert len(plots) == 8, len(plots)
	for plot in plots:
	    xml.etree.ElementTree.fromstring(plot)
	    assert not re.search(r'>[0-9.]+e[+-]', plot) and '>0<' in plot and re.search(r'>3[.0-9]* s<', plot), plot[:600]
	assert '>00000000-0000' not in text
	assert 'http' not in text and 'polyline' in plots[0]
EOT
refuses 2 "every 0: seconds, from 0.1 to 3600" top --every 0 vol
refuses 1 "no volume 'nodb' is active" top --once nodb
refuses 2 "where to\? --output FILE" report vol
refuses 2 "every 60: 1 to 2000 looks in 1 seconds" report --output /dev/shm/x --seconds 1 --every 60 vol
refuses 1 "cannot be written: No such file" report --output /nowhere/x --seconds 0.2 --every 0.1 vol
pass "top, report"

# ---- scrub: a damaged pack is found
terracectl move --to hdd $M > /dev/null
says "^[0-9]+ packs with [0-9]+ live blocks read, 0 blocks cannot be read; [0-9]+ tables of shelves, 0 bad$" scrub vol
# within a limit: all that was read before the last region has had its time
began=$(date +%s%3N)
bytes=$(terracectl scrub --json --limit 4 vol | json "o['read_bytes']")
took=$(($(date +%s%3N) - began))
[ "$bytes" -gt 7000000 ] || die "a scrub read $bytes bytes of 16 MiB that compress by half"
[ $((took * 4000)) -ge $((bytes - 4300000)) ] || die "$bytes bytes within $took ms, at 4 MB/s"
refuses 2 "limit 0: megabytes per second" scrub --limit 0 vol
read -r place blocks <<< "$(umount $M; vol_down; terracectl dump --json packs "${VOL_DRIVES[@]}" | json "[(p['place'], p['blocks']) for p in o['items'] if p['item'] == 'pack' and p['tier'] == 1][0]" | tr -d '(,)')"
start=$(terracectl dump --json super "${VOL_DRIVES[@]}" | json "[i for i in o['items'] if i['item'] == 'label' and i['tier'] == 1][0]['data_start']")
dd if=/dev/urandom of="${VOL_DRIVES[1]}" bs=4k seek=$((start + place + blocks - 1)) count=1 oflag=direct conv=notrunc status=none
vol_up
klog_allow "terrace: .*pack"
refuses 1 "blocks cannot be read; the first is block [0-9]+" scrub vol
check_eq "json" "$(terracectl scrub --json vol 2> /dev/null | json "len(o['bad']), o['complete']")" "(1, True)"
refuses 2 "name one volume" scrub
vol_down
pass "scrub"
