#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terracectl dump --all and restore: the way there and back is exact, as text and as JSON, and refuses what it should.
# host: timeout=600 build=daemon
. "$TERRACE_TREE/tests/host/lib.sh"
. "$TERRACE_TREE/tests/host/ctl.bash"
ctl=$TERRACE_TREE/build/terracectl
cd "$OUT" || exit
build_image

image() {
	new_images fast 128M slow 320M
	"$ctl" format --name kept "${@:2}" > /dev/null
	# shellcheck disable=SC2086 # words
	./image $1 fast slow > where
	meta=$(sed -n 's/^meta-start //p' where)
}
lazy=(--tier nvme=fast --tier hdd=slow)
sync=(--tier optane:atomic=fast --tier nvme:shelves:atomic=slow)
# wipe: labels and metadata become noise
wipe() { for file in fast slow; do dd if=/dev/urandom of=$file bs=4k count=1400 conv=notrunc status=none; done; }

for tiers in lazy sync; do
	if [ $tiers = lazy ]; then list=("${lazy[@]}"); else list=("${sync[@]}"); fi
	for form in text json; do
		image "--seed 4 --after 80" "${list[@]}"
		cp --sparse=always fast fast.was; cp --sparse=always slow slow.was
		option=()
		[ $form = text ] || option=(--json)
		unchanged fast slow -- expect 0 "." "$ctl" dump --all "${option[@]}" fast slow
		"$ctl" dump --all "${option[@]}" slow fast > dumped
		wipe
		unchanged fast slow -- expect 1 "fast holds .*: nothing changed; --force" "$ctl" restore dumped fast slow
		expect 0 "^volume 'kept' .* structures restored$" "$ctl" restore --force dumped fast slow
		for file in fast slow; do
			# what the format defines: labels and metadata area; the image has nothing else there
			cmp -n 8192 $file $file.was || die "$tiers $form: labels of $file"
			cmp -i $((meta * 4096)) -n $((690 * 4096)) $file $file.was || die "$tiers $form: metadata of $file"
		done
		# onto itself, in any order
		expect 0 "restored$" "$ctl" restore dumped slow fast
		cmp -i $((meta * 4096)) -n $((690 * 4096)) fast fast.was
		expect 0 ': sound$' "$ctl" check --full fast slow
	done
done
"$ctl" dump --all fast slow > text.out
"$ctl" dump --all --json fast slow > json.out
python3 - <<'PY'
import json
assert len(json.load(open('json.out'))['items']) == sum(not l.startswith(' ') for l in open('text.out'))
PY
# bytes that the format does not name are kept, too
printf 'x' | dd of=fast bs=1 seek=$((meta * 4096 + 4000)) conv=notrunc status=none
for item in map-page journal directory space-page meta-bitmap superblock label; do
	grep -q "^$item " text.out || die "no $item in the dump"
done
grep -q raw= text.out && die "raw bytes without need"

# a new device takes the place that is left
new_images other 128M
expect 0 "restored$" "$ctl" restore text.out other slow
expect 0 "^label device=other name=kept" "$ctl" dump other slow

# refused, and nothing changed
refused() { unchanged fast slow -- expect 1 "$1" "$ctl" restore "${@:2}"; }
head -c 20000 json.out > partial
refused "partial is not a dump, or is cut off" partial fast slow
# text that is cut off at a line, in the middle or just before its last one, looks whole
for lines in 20 -1 -2; do
	head -n $lines text.out > partial
	refused "partial is not a dump, or is cut off" partial fast slow
done
grep -vE '^superblock|^  tiers ' text.out | sed "s/^end .*/end items=$(grep -v '^ ' text.out | grep -cvE '^superblock|^end ')/" > none
refused "the dump has no superblock" none fast slow
sed '/^label/s/ version=1/ version=2/' text.out > newer
refused "newer: line 1 \(label\): a label of a newer format; nothing changed" newer fast slow
sed '/^superblock/s/ incompat=0/ incompat=4611686018427387904/' text.out > newer
refused "newer: line [0-9]+ \(superblock\): a superblock of a newer format; nothing changed" newer fast slow

# a dump that somebody has changed: what is wrong is said with its place, and nothing is written
# changed SED MESSAGE; changed_json PYTHON MESSAGE (i: the items)
changed() {
	sed -E "$1" text.out > changed
	cmp -s text.out changed && die "changes nothing: $1"
	refused "^terracectl: changed: $2; nothing changed$" changed fast slow
}
changed_json() {
	python3 - "$1" <<-'PY'
	import json, sys
	whole = json.load(open('json.out'))
	i = whole['items']
	def of(kind): return next(o for o in i if o['item'] == kind)
	exec(sys.argv[1])
	json.dump(whole, open('changed', 'w'))
	PY
	refused "^terracectl: changed: $2; nothing changed$" changed fast slow
}
area=$(sed -n 's/^label .* meta_blocks=\([0-9]*\) .*/\1/p' text.out | sort -n | tail -1)
page='line [0-9]+ \(map-page\)' super='line [0-9]+ \(superblock\)' label='line 1 \(label\)'
changed '/^map-page/s/ index=[0-9]*/ index=x/' "$page: index=x is not a number from 0 to 18446744073709551615"
changed '/^map-page/s/ index=[0-9]*/ index=-1/' "$page: index=-1 is not a number .*"
changed '/^map-page/s/ level=[0-9]*/ level=256/' "$page: level=256 is more than 255"
changed '/^map-page/s/ level=[0-9]*//' "$page: level is missing"
changed '/^map-page/s/ level=/ levle=/' "$page: levle is no field of it"
changed '/^map-page/s/ blocks=[0-9]*/ blocks=4/' "$page: blocks=4 is more than 3"
changed '/^map-page/s/ blocks=[0-9]*/ blocks=0/' "$page: blocks=0: there is no such page"
changed '/^ *run /s/ i=[0-9]*/ i=18446744073709551615/' "$page: run 1: i=18446744073709551615 is more than 1023"
changed '/^ *run /s/ blocks=[0-9]*/ blocks=1025/' "$page: run 1: blocks=1025 is more than [0-9]+"
changed '/^ *run /{h;G}' "$page: run 2: i=[0-9]+: the run before it goes to [0-9]+"
changed '/^ *run /s/ tier=[0-9]*/ tier=8/' "$page: run 1: tier=8 is more than 7"
changed '/^ *run /s/ place=[0-9]*/ place=137438953472/' "$page: run 1: place=137438953472 is more than [0-9]+"
changed '/^  record /{h;G}' "line [0-9]+ \(journal\): record 2: i=0 comes after i=0"
changed '/^  record i=0 /s/ i=0/ i=126/' "line [0-9]+ \(journal\): record 1: i=126 is more than 125"
changed 's/^  record /  records /' "line [0-9]+ \(journal\): records is no field of it"
changed 's/^(  blocks_used )0-/\18-3,/' "line [0-9]+ \(meta-bitmap\): blocks_used 1: 8-3,.* is not a range .*"
changed '/^superblock/s/ volume_uuid=[^ ]*/ volume_uuid=12345678-1234-1234-1234-123456789abc/' "$super: volume_uuid is that of another volume .*"
changed '/^superblock/s/ volume_uuid=[^ ]*/ volume_uuid=7/' "$super: volume_uuid=7 is not a UUID"
changed '/^superblock/s/^superblock/superblocks/' "line [0-9]+ \(superblocks\): there is no such structure"
changed '/^superblock/s/ area=[^ ]*/ area=here/' "$super: area=here: no label .*"
changed "/^superblock/s/ meta_block=[0-9]*/ meta_block=$area/" "$super: meta_block=$area: the 1 from there on are not in the area of $area .*"
changed '/^superblock/s/ meta_block=[0-9]*/ meta_block=1/' "$super: it is where that of line [0-9]+ is"
changed '/^superblock/s/$/ raw=00/' "$super: raw has 2 digits.*"
changed '1s/ meta_block=0/ meta_block=2/' "$label: meta_block=2: a label is in blocks 0 and 1"
changed '1s/ area=label0/ area=label1/' "$label: area=label1, and it is that of tier 0"
uuid=$(sed -n 's/^label area=label1 .* tier_uuid=\([^ ]*\) .*/\1/p' text.out | head -1)
changed "/^label area=label0/s/ tier_uuid=[^ ]*/ tier_uuid=$uuid/" "the labels of tiers 0 and 1 have the same tier_uuid"
changed '1s/ device_blocks=[0-9]*/ device_blocks=9/' "$label: a label with numbers that cannot be"
changed_json 'of("superblock")["nr_tiers"] = None' 'item [0-9]+ \(superblock\): nr_tiers is not a number'
changed_json 'of("superblock")["tiers"] = "x"' 'item [0-9]+ \(superblock\): tiers is not a list'
changed_json 'of("map-page")["run"][1] = None' 'item [0-9]+ \(map-page\): run 2: is not a list of fields'
changed_json 'of("meta-bitmap")["blocks_used"][0] = {}' 'item [0-9]+ \(meta-bitmap\): blocks_used 1: what is there is not a range .*'
changed_json 'of("label")["name"] = "x" * 65' 'item 1 \(label\): name has more than 64 bytes, or a zero byte'
changed_json 'i[3] = None' 'item 4 \(\): is not a list of fields'
# a page of two blocks at the last one of the area
at=$(sed -n 's/^map-page .* meta_block=\([0-9]*\) .*/\1/p' text.out | head -1)
changed "/^map-page .* meta_block=$at /{s/ meta_block=$at / meta_block=$((area - 1)) /;s/ blocks=1 / blocks=2 /}" "$page: meta_block=$((area - 1)): the 2 from there on are not in the area of $area .*"
# neither text nor JSON that can be read
sed '3s/ / x /' text.out > bad
refused "bad is not a dump, or is cut off: line 3: x should be NAME=VALUE; nothing changed" bad fast slow
sed '3s/ version=1/ version=1 version=1/' text.out > bad
refused "bad is not a dump, or is cut off: line 3: version is there twice; nothing changed" bad fast slow
sed '/^superblock/{n;s/^  tiers/  version/}' text.out > bad
refused "bad is not a dump, or is cut off: line [0-9]+: version is a field, and no list; nothing changed" bad fast slow
sed '1s/^/  /' text.out > bad
refused "bad is not a dump, or is cut off: line 1: a line that begins with blanks goes on with one that does not; nothing changed" bad fast slow
(cat json.out; echo x) > bad
refused "bad is not a dump, or is cut off: byte [0-9]+: there is more behind its end; nothing changed" bad fast slow
sed -E '/^label area=label0/{s/ data_start=1024 data_blocks=[0-9]*/ data_start=8192 data_blocks=24576/;s/ meta_start=16/ meta_start=4096/}' text.out > moved
refused "fast: the dump has metadata where its label says that data are; nothing changed; --force" moved fast slow
truncate -s 64M small
refused "small is too small: it has 64 MiB, the optane of the dump had 128 MiB" text.out small slow
refused "fast and fast are the same device" text.out fast fast
refused "nowhere: No such file" nowhere fast slow
# shellcheck disable=SC2094 # only locked
( flock 9; refused "slow is in use: " text.out fast slow ) 9< slow
unchanged fast slow -- expect 0 "would be restored" "$ctl" restore --dry-run text.out fast slow
expect 2 "the dump is of 2 devices, 1 given" "$ctl" restore text.out fast
expect 2 "FILE and the devices of the volume are needed" "$ctl" restore text.out
expect 0 "^usage: terracectl restore" "$ctl" restore --help

# metadata that were moved to a device of their own, while a tier still says that it has them
image "--seed 4 --after 80" "${lazy[@]}"
new_images new 64M
"$ctl" repair --to new fast slow > /dev/null
"$ctl" dump --all fast slow new > dumped
expect 0 "restored$" "$ctl" restore --force dumped fast slow new
expect 0 ': sound$' "$ctl" check --full fast slow new

# blocks that a crash has torn, where the drive does not write them whole: there again, and check says the same
image "--seed 4 --after 80" "${lazy[@]}"
dd if=/dev/urandom of=fast bs=512 seek=$((meta * 8 + 3)) count=5 conv=notrunc status=none
last=$(sed -n 's/^journal .* //p' where | tail -1)
flip fast $(((meta + last) * 4096 + 100))
"$ctl" check --full fast slow > before || die "a torn superblock: $(cat before)"
grep -q "superblock copy 0 .*: torn by a crash" before || die "no torn superblock: $(cat before)"
grep -q "journal block .*: torn by a crash" before || die "no torn journal block: $(cat before)"
for option in --all "--all --json"; do
	# shellcheck disable=SC2086 # words
	"$ctl" dump $option fast slow > dumped
	wipe
	expect 0 "restored$" "$ctl" restore --force dumped fast slow
	"$ctl" check --full fast slow > after || true
	check_eq "check after a restore of $option" "$(cat after)" "$(cat before)"
done
