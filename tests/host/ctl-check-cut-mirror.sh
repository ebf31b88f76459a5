#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A clean stop whose copy to the lazy mirror was cut off: terracectl check notes it, and calls the volume sound. If the volume was not stopped cleanly, the same is a problem.
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

image --between 20 --after 60 --break lazy-cut
expect 1 "^problem: $cut" "$ctl" check fast slow
