#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A clean stop that was cut off between its superblocks, or while it was copied to the lazy mirror, and one of that mirror's superblocks that was cut off: terracectl check notes it, and calls the volume sound. A lazy mirror in that state without a clean stop, or a synchronous one further behind, is a problem.
# host: timeout=600 build=daemon
. "$TERRACE_TREE/tests/host/lib.sh"
. "$TERRACE_TREE/tests/host/ctl.bash"
ctl=$TERRACE_TREE/build/terracectl
cd "$OUT" || exit
build_image

image() {
	new_images fast 256M slow 1G
	"$ctl" format --tier nvme=fast --tier hdd=slow > /dev/null
	./image "$@" fast slow > where
}
cut='slow: block 0 of meta bitmap [01] \(meta block [0-9]+\):'

image --clean --between 0 --after 0
expect 0 ': sound$' "$ctl" check --full fast slow
if "$ctl" check --full fast slow | grep -q note; then die "a note about a volume that was stopped in peace"; fi

image --clean --between 0 --after 0 --break lazy-cut
for full in "" --full; do
	expect 0 "^note: $cut of a copy that a crash cut off; the next activation copies it anew$" "$ctl" check $full fast slow
	expect 0 ': sound$' "$ctl" check $full fast slow
done

# the power went when the lazy mirror had been made void, both superblocks or one again; or tore one, which happens beside a clean primary, too
start=$("$ctl" dump super fast slow | sed -n 's/^label device=slow .* meta_start=\([0-9]*\).*/\1/p')
put() { dd if="$1" of=slow bs=4k seek=$((start + $2)) count=1 conv=notrunc status=none; }
for stop in "--clean --between 0 --after 0" "--between 20 --after 60"; do
	for places in 0 1 "0 1"; do
		# shellcheck disable=SC2086 # words
		image $stop
		for k in $places; do put /dev/zero "$k"; done
		for full in "" --full; do
			expect 0 "^note: slow: superblock copy ${places: -1} \(meta block .\): zeros: the lazy mirror was out of step, and is copied anew as a whole$" "$ctl" check $full fast slow
			expect 0 ': sound$' "$ctl" check $full fast slow
		done
		for k in $places; do put /dev/urandom "$k"; done
		expect 1 "^problem: slow: superblock copy ${places: -1} \(meta block .\): nothing of ours there" "$ctl" check fast slow
	done
	for k in 0 1; do
		# shellcheck disable=SC2086 # words
		image $stop
		flip slow $(((start + k) * 4096 + 2000))
		expect 0 "^note: slow: superblock copy $k .*torn by a crash, or damaged; the other copy serves$" "$ctl" check fast slow
		expect 0 ': sound$' "$ctl" check fast slow
	done
done

image --between 20 --after 60 --break lazy-cut
expect 1 "^problem: $cut" "$ctl" check fast slow

# the last superblock of a clean stop is on the first drive of two; both, then the second, are one behind
two=(fast slow)
supers() { dd if="$1" of="$2" bs=4k skip="$(field "$1" meta_start)" count=2 status=none; }
field() { "$ctl" dump super fast slow | sed -n "s/^label device=$1 .* $2=\([0-9]*\).*/\1/p"; }
for k in 0 1; do
	new_images fast 256M slow 256M
	"$ctl" format --tier optane:atomic=fast --tier nvme:atomic=slow > /dev/null
	supers "${two[k]}" old
	./image --clean --between 0 --after 0 fast slow > where
	expect 0 ': sound$' "$ctl" check --full fast slow
	newest=$("$ctl" dump super fast slow | sed -n 's/^superblock .* copy=\([01]\) current=true .*/\1/p' | head -1)
	dd if=old of="${two[k]}" bs=4k skip="$newest" seek=$(($(field "${two[k]}" meta_start) + newest)) count=1 conv=notrunc status=none
	for full in "" --full; do
		expect 0 "^note: slow: the mirror is at checkpoint [0-9]+, the primary at [0-9]+: stopped in between$" "$ctl" check $full fast slow
		expect 0 ': sound$' "$ctl" check $full fast slow
	done
done
