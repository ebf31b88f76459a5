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
grep -v '^superblock' text.out | sed "s/^end .*/end items=$(grep -v '^ ' text.out | grep -cvE '^superblock|^end ')/" > none
refused "the dump has no superblock" none fast slow
sed '/^label/s/ version=1/ version=2/' text.out > newer
refused "item 1 of the dump: a label of a newer format; nothing changed" newer fast slow
sed '/^superblock/s/ incompat=0/ incompat=4611686018427387904/' text.out > newer
refused "item [0-9]+ of the dump: a superblock of a newer format; nothing changed" newer fast slow
sed '/^map-page/s/ index=[0-9]*/ index=x/' text.out > bad
refused "item [0-9]+ of the dump: not one of dump --all, or damaged" bad fast slow
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
