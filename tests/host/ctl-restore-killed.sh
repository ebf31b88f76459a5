#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# restore killed before any of its writes, or amid one of a label: no two drives of equal size are taken for each other by the same call.
# host: timeout=600 build=daemon,die
. "$TERRACE_TREE/tests/host/lib.sh"
. "$TERRACE_TREE/tests/host/ctl.bash"
ctl=$TERRACE_TREE/build/terracectl
cd "$OUT" || exit
build_image
writes=0 ended=1	# dies tells

# volume OPTION...: two drives of one size, a fast and a slow one
volume() {
	new_images a 256M b 256M
	"$ctl" format --name kept --tier optane:atomic=a --tier hdd=b "$@" > /dev/null
	./image --seed 4 --before 80 --between 20 --after 30 a b > where
	"$ctl" dump --all a b > dumped
	cp --sparse=always a a.was; cp --sparse=always b b.was
}
# as_before WHEN FILE...: all of their bytes: the labels, the metadata, the data; what neither has written is left out
as_before() {
	python3 - "${@:2}" <<-'PY' || die "$1: a device is another one"
	import os, sys
	def pieces(fd):
	    at, end = 0, os.fstat(fd).st_size
	    while at < end:
	        try:
	            at = os.lseek(fd, at, os.SEEK_DATA)
	        except OSError:
	            return
	        hole = os.lseek(fd, at, os.SEEK_HOLE)
	        yield at, hole - at
	        at = hole
	for name in sys.argv[1:]:
	    fds = [os.open(n, os.O_RDONLY) for n in (name, name + '.was')]
	    for at, bytes in {p for fd in fds for p in pieces(fd)}:
	        if os.pread(fds[0], bytes, at) != os.pread(fds[1], bytes, at):
	            sys.exit(f'{name} differs from byte {at} on')
	PY
}
not_sound() { ! "$ctl" check a b > said 2>&1 || die "$1: sound already"; }

# ---- the same call again, in an order that is not that of the tiers
for mirror in none sync; do
	volume --mirror $mirror
	expect 0 ': sound$' "$ctl" check --full a b
	dies 0 restore dumped b a
	check_eq "status of a restore" "$ended" 0
	as_before "mirror $mirror, not killed" a b
	for at in $(points 11 5 3); do
		dies "$at" restore dumped b a
		[ "$at" = 1 ] || not_sound "killed before write $at of $writes"
		expect 0 "restored$" "$ctl" restore dumped b a
		as_before "mirror $mirror, killed before write $at of $writes" a b
	done
	expect 0 ': sound$' "$ctl" check --full a b
	echo "mirror $mirror: $writes writes"
done

# ---- a power cut amid a write of block 0 or 1, on a drive that tears even sectors
# back [COPY]: as before; that copy of the labels is bad
back() {
	local file
	for file in a b; do
		cp --sparse=always $file.was $file
		[ $# = 0 ] || flip $file $(($1 * 4096 + 100))
	done
}
# torn N [COPY]: write N was the last one, and only the beginning of it is there; false: it was none of a label's place
torn() {
	back "${@:2}"
	dies "$1" restore dumped b a
	head -c 8192 a > a.head; head -c 8192 b > b.head
	back "${@:2}"
	dies $(($1 + 1)) restore dumped b a
	python3 - <<-'PY'
	import sys
	found = False
	for name in 'ab':
	    with open(name, 'r+b') as f, open(name + '.head', 'rb') as was:
	        for at in (0, 4096):
	            f.seek(at)
	            new, old = f.read(4096), was.read(4096)
	            if new != old:
	                f.seek(at)
	                f.write(new[:60] + old[60:])
	                found = True
	sys.exit(not found)
	PY
}
tears=0
for at in $(seq 1 11) $(seq $((writes - 6)) $((writes - 1))); do
	torn "$at" || continue
	not_sound "torn in write $at of $writes"
	expect 0 "restored$" "$ctl" restore dumped b a
	as_before "torn in write $at of $writes" a b
	tears=$((tears + 1))
done
[ $tears -gt 4 ] || die "only $tears writes of labels were torn"
echo "torn: $tears writes of labels"
# one copy of a label was bad before: the other one is not written over first
for copy in 0 1; do
	for at in 1 2 3 4; do
		torn "$at" $copy || die "write $at is that of no mark"
		expect 0 "restored$" "$ctl" restore dumped b a
		as_before "label copy $copy bad, torn in write $at" a b
	done
done

# ---- drives without a label: the first call gives them their places, whatever the order of the second
for at in 1 2 3 4 5 6 8 11; do
	new_images a 256M
	dies "$at" restore dumped a b
	expect 0 "restored$" "$ctl" restore dumped b a
	head -c 8192 a | cmp - <(head -c 8192 a.was) || die "killed before write $at: the new drive"
	as_before "new drive, killed before write $at" b
done
for at in 1 2 3 4 5 6 8 11; do
	new_images a 256M b 256M
	dies "$at" restore dumped a b
	if [ "$at" -gt 4 ]; then order='b a'; else order='a b'; fi
	# shellcheck disable=SC2086 # words
	expect 0 "restored$" "$ctl" restore dumped $order
	for file in a b; do
		head -c 8192 $file | cmp - <(head -c 8192 $file.was) || die "killed before write $at, again with $order: $file"
	done
done

# ---- what is left says so, and is nothing that another command may take
back
dies 20 restore dumped b a
expect 1 "a.* a restore was stopped.*: terracectl restore" "$ctl" check a b
expect 1 "a holds what a restore that was stopped has left of Terrace volume [0-9a-f-]+: nothing changed; --force" \
	"$ctl" format --tier optane=a --tier hdd=b
unchanged a b -- expect 0 "would be restored" "$ctl" restore --dry-run dumped b a
expect 0 "^note: a holds what is left of a restore that was stopped: it is begun again" "$ctl" restore dumped b a
as_before "begun again" a b

# ---- where the data are is known afterwards, too
start=$(sed -n 's/^label area=label0 .* data_start=\([0-9]*\) .*/\1/p' dumped | head -1)
meta=$(sed -n 's/^label area=label0 .* meta_start=\([0-9]*\) .*/\1/p' dumped | head -1)
sed -E "/^label area=label0/{s/ data_start=$start data_blocks=[0-9]*/ data_start=8192 data_blocks=16384/;s/ meta_start=$meta/ meta_start=4096/}" dumped > moved
refused() { unchanged a b -- expect 1 "$1" "$ctl" restore "${@:2}"; }
refused "a: the dump has metadata where its label says that data are; nothing changed; --force" moved b a
dies 20 restore dumped b a
refused "a: the dump has metadata where its label says that data are; nothing changed; --force" moved b a
expect 0 "restored$" "$ctl" restore dumped b a
as_before "after one that was refused" a b

# ---- two that say they are the same
cp --sparse=always a copy
refused "copy and a are both tier 0 of the dump's volume: .* nothing changed" --force dumped copy a
dies 3 restore dumped b a
refused "a and copy are both tier 0 of the dump's volume: .* nothing changed" --force dumped a copy
