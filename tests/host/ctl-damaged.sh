#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every structure damaged: terracectl check and repair say what tests/data/README has, and repair makes it sound.
# host: timeout=600 build=daemon
. "$TERRACE_TREE/tests/host/lib.sh"
. "$TERRACE_TREE/tests/host/ctl.bash"
ctl=$TERRACE_TREE/build/terracectl
cd "$OUT" || exit
build_image

new_images whole.fast 128M whole.slow 320M
"$ctl" format --tier nvme=whole.fast --tier hdd=whole.slow > /dev/null
./image --seed 4 --before 150 --between 30 --after 60 --packing 30 whole.fast whole.slow > where
meta=$(sed -n 's/^meta-start //p' where)
expect 0 ': sound$' "$ctl" check --owners whole.fast whole.slow

# at STRUCTURE [N]: the meta block of the first one, or of line N
at() { sed -n "s/^$1 .* \([0-9]*\)$/\1/p; s/^$1 \([0-9]*\)$/\1/p" where | sed -n "${2-1}p"; }
spoil_at() { flip "${2-fast}" $(((meta + $1) * 4096 + 300)); }
superblocks() { local k; for k in 0 1; do flip "$1" $(((meta + k) * 4096 + 300)); done; }
# pack_with yes|no: a pack with much in it, with or without an index copy: sets run, blocks, index
pack_with() {
	local index_is='[1-9][0-9]*'
	[ "$1" = yes ] || index_is=0
	read -r _ _ _ run blocks _ index < <(grep -E "^run .* $index_is$" where | sort -k6n | tail -1)
}

image_label() { flip slow 700; }
image_label-both() { flip slow 700; flip slow 4796; }
image_superblock() { spoil_at "$(at superblock)"; }
image_superblocks() { superblocks fast; }
image_superblocks-all() { superblocks fast; superblocks slow; }
image_journal() { spoil_at "$(at journal 2)"; }
image_journal-end() { spoil_at "$(sed -n 's/^journal [0-9]* //p' where | tail -1)"; }
image_map-page() { spoil_at "$(at map-page)"; }
image_map-page-both() { spoil_at "$(at map-page)"; spoil_at "$(at map-page)" slow; }
image_map-page-old() {
	dd if=fast of=fast bs=4096 count=1 skip=$((meta + $(at map-page 2))) seek=$((meta + $(at map-page))) conv=notrunc status=none
}
image_directory() { spoil_at "$(at map-directory)"; }
image_space-directory() { spoil_at "$(at space-directory)"; }
image_bitmap() { spoil_at "$(at space-page)"; }
image_meta-bitmap() { spoil_at "$(at meta-bitmap)"; }
image_mirror() { spoil_at "$(at map-page)" slow; }
image_owner-block() { flip slow $(($(at owner-block) * 4096 + 100)); }
image_owner-table() { flip slow $(($(at owner-table) * 4096 + 100)); }
image_owner-both() {
	local block
	while read -r block; do flip slow $((block * 4096 + 100)); done < <(sed -n 's/^owner-\(block\|table\) 1 0 //p' where)
}
# every owner is another block than it is; the CRC is made right again. The table, which is newer, is damaged
image_owner-header() {
	local block
	while read -r block; do flip slow $((block * 4096 + 100)); done < <(sed -n 's/^owner-table 1 0 //p' where)
	python3 - $(($(at owner-block) * 4096)) <<-'PY'
	import struct, sys
	table = []
	for i in range(256):
	    for _ in range(8):
	        i = i >> 1 ^ (0x82f63b78 if i & 1 else 0)
	    table.append(i)
	with open('slow', 'r+b') as f:
	    f.seek(int(sys.argv[1]))
	    block = bytearray(f.read(4096))
	    for owner in range(struct.unpack_from('<H', block, 48)[0]):
	        block[96 + 16 * owner] ^= 1
	    block[4:8] = bytes(4)
	    crc = 0xffffffff
	    for byte in block:
	        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
	    struct.pack_into('<I', block, 4, crc)
	    f.seek(int(sys.argv[1]))
	    f.write(block)
	PY
}
image_pack-header() { pack_with yes; flip slow $((run * 4096 + 90)); }
image_pack-header-both() { image_pack-header; flip fast $((index * 4096 + 90)); }
image_pack-header-other() {
	local other
	pack_with no
	other=$run
	pack_with yes
	dd if=slow of=slow bs=4096 count=1 skip="$other" seek="$run" conv=notrunc status=none
	flip fast $((index * 4096 + 90))
}
image_pack-index() { pack_with yes; flip fast $((index * 4096 + 90)); }
# much of a pack is garbage: a byte of each block of its payload
image_pack-payload() {
	pack_with yes
	for ((k = 2; k < blocks; k++)); do flip slow $(((run + k) * 4096 + 9)); done
}

# ---- one line after the other
lines() { sed -n '/ | .* | .* | /p' "$TERRACE_TREE/tests/data/README" | grep -v '^The columns'; }
lines | sed 's/ *|.*//' | sort > named
declare -F | sed -n 's/^declare -f image_//p' | sort > made
diff named made > said || die "tests/data/README and this test do not have the same images: $(cat said)"
[ "$(wc -l < named)" -ge 20 ] || die "only $(wc -l < named) images"

line=0
while read -r text; do
	# cut at " | " followed by blanks only where columns are: alternatives in patterns have no blanks around
	IFS=$'\t' read -r name wrong checked repaired <<< "$(sed -E 's/ +\| /\t/g' <<< "$text")"
	line=$((line + 1))
	cp --sparse=always whole.fast fast
	cp --sparse=always whole.slow slow
	new_images new 64M
	"image_$name"
	how=--full
	[[ $name != owner-* ]] || how=--owners
	if [ "$checked" = sound ]; then
		expect 0 ': sound$' "$ctl" check $how fast slow
	else
		expect 1 "^problem: .*($checked)|$checked" "$ctl" check $how fast slow
	fi
	status=0
	before=$(stat -c '%n %s %b %y' fast slow)
	"$ctl" repair --to new fast slow > said 2>&1 < /dev/null || status=$?
	check_eq "time of last change after repair --to, $name" "$(stat -c '%n %s %b %y' fast slow)" "$before"
	grep -qE "${repaired#refused: }" said || die "$name ($wrong): repair said '$(cat said)' instead of '$repaired'"
	case $repaired in
	refused:*)
		if [ $status != 1 ] || grep -q 'blocks mapped' said; then die "$name: not refused"; fi ;;
	*)
		grep -q 'blocks mapped' said || die "$name: not repaired: $(cat said)"
		if grep -q 'nothing lost' said; then check_eq "status of repair, $name" $status 0; else check_eq "status of repair, $name" $status 1; fi
		# labels and what is on the shelves are not mended --to a new device; nothing else may be left
		if [[ $name != label && $name != owner-both && $name != owner-header ]]; then
			"$ctl" check $how new fast slow > said 2>&1 || die "$name: not sound after repair: $(cat said)"
		fi ;;
	esac
	echo "$name: $wrong"
done < <(lines)
check_eq "lines" $line "$(wc -l < named)"
