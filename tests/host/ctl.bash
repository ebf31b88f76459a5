# SPDX-License-Identifier: GPL-2.0-or-later
# Helpers for tests of terracectl's offline commands; sourced after lib.sh.
#
# shellcheck shell=bash

[ -x "$TERRACE_TREE/build/terracectl" ] || die "build/terracectl is missing"

# new_images FILE SIZE...: new sparse image files
new_images() {
	while [ $# -gt 0 ]; do
		rm -f "$1"
		truncate -s "$2" "$1"
		shift 2
	done
}

# build_image: the program that fills formatted images, see tests/host/image.c
build_image() {
	gcc -O1 -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -I"$TERRACE_TREE/tests/compat" -I"$TERRACE_TREE/uapi" \
		-I"$TERRACE_TREE/kmod" -I"$TERRACE_TREE/daemon" -o "$OUT/image" "$TERRACE_TREE"/tests/host/image{,_model,_packs,_shelves}.c \
		"$TERRACE_TREE"/daemon/pack_codec.c "$TERRACE_TREE"/kmod/core/*.c -llz4 -lzstd
}

# flip FILE BYTE: the byte there becomes another one
flip() {
	local old
	old=$(od -An -tu1 -j "$2" -N 1 "$1")
	# shellcheck disable=SC2059 # the format is the byte
	printf "\\x$(printf %x $((old ^ 0x55)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# unchanged FILE... -- CMD...: the command must not change the files, whatever it says
unchanged() {
	local files=() before
	while [ "$1" != -- ]; do files+=("$1"); shift; done
	shift
	before=$(stat -c '%n %s %b %y' "${files[@]}")
	"$@"
	check_eq "time of last change after $*" "$(stat -c '%n %s %b %y' "${files[@]}")" "$before"
}

# judge_salvage BLOCKS IMAGE MAP: is each block of a salvaged image what the map file says of it?  BLOCKS is
# what image --blocks wrote.  Prints how many are certain, older, lost (there were values, none was got).
judge_salvage() {
	python3 - "$@" <<-'PY'
	import json, struct, sys
	true = {int(b): int(seq) for b, _, _, seq in (l.split() for l in open(sys.argv[1]))}
	image, salvaged = open(sys.argv[2], 'rb'), json.load(open(sys.argv[3]))
	counts, seen = {'certain': 0, 'possibly older': 0, 'doubtful': 0, 'lost': 0}, set()
	def wrong(what):
	    print('WRONG:', what)
	    sys.exit(1)
	for r in salvaged['ranges']:
	    for b in range(r['block'], r['block'] + r['blocks']):
	        image.seek(b * 4096)
	        block = image.read(4096)
	        owner, seq = struct.unpack('<QQ', block[:16])
	        if b in seen:
	            wrong(f'block {b} is in two ranges')
	        seen.add(b)
	        if r['state'] == 'certain' and (b, true.get(b)) != (owner, seq):
	            wrong(f'block {b} is called certain, is {owner} of record {seq}, should be of record {true.get(b)}')
	        if r['state'] == 'possibly older' and (owner != b or seq > true.get(b, 1 << 63)):
	            wrong(f'block {b} is called older, is {owner} of record {seq}, last was {true.get(b)}')
	        if r['state'] in ('doubtful', 'lost') and any(block):
	            wrong(f'block {b} is {r["state"]} and not zero')
	        if r['state'] in counts and (r['state'] != 'lost' or b in true):
	            counts[r['state']] += 1
	missing = [b for b in true if b not in seen]
	if missing and salvaged['unmapped_certain']:
	    wrong(f'blocks {missing[:5]} are called unmapped for certain')
	for b in missing:
	    image.seek(b * 4096)
	    if any(image.read(4096)):
	        wrong(f'block {b} is not in the map file, but in the image')
	print(counts['certain'], counts['possibly older'], counts['lost'] + counts['doubtful'] + len(missing))
	PY
}

# spoil SEED COUNT FILE META_START META_BLOCKS: COUNT of the metadata blocks that hold something are damaged.  The
# journal is spared: its last block, damaged, cannot be told from one that a crash tore
spoil() {
	python3 - "$@" <<-'PY'
	import random, sys
	random.seed(int(sys.argv[1]))
	start, nr = int(sys.argv[4]), int(sys.argv[5])
	with open(sys.argv[3], 'r+b') as f:
	    f.seek(start * 4096)
	    area = f.read(nr * 4096)
	    some = [b for b in range(nr) if not 2 <= b < 258 and any(area[b * 4096:b * 4096 + 64])]
	    for b in random.sample(some, min(int(sys.argv[2]), len(some))):
	        f.seek((start + b) * 4096 + random.randrange(4096))
	        f.write(random.randbytes(8))
	PY
}

# dies N ARG...: terracectl dies before its write N (tests/die/die.c); 0: it does not, $writes is how many there were, and
# $ended how it ended
dies() {
	local at=$1
	shift
	ended=0
	{ WRITES=1 COUNT=$OUT/count DIE_AT=$at LD_PRELOAD=$TERRACE_TREE/build/die.so "$TERRACE_TREE/build/terracectl" "$@" > said 2>&1 < /dev/null || ended=$?; } 2> /dev/null
	if [ "$at" = 0 ]; then writes=$(cat "$OUT/count"); else check_eq "status of a $1 killed before write $at: $(cat said)" "$ended" 137; fi
}

# points FIRST LAST PARTS: of $writes where to die: so many first ones, so many last ones, and one for each part of all
points() {
	awk -v n="$writes" -v first="$1" -v last="$2" -v parts="$3" \
		'BEGIN { for (i = 1; i <= n; i++) if (i <= first || i > n - last || i % int(n / parts + 1) == 0) print i }'
}
