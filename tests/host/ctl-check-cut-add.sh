#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A tier that was to come when the power went, with one copy of its label or both: terracectl check notes it, and calls the volume sound. The same of a tier that the volume has is a problem.
# host: timeout=120 build=daemon
. "$TERRACE_TREE/tests/host/lib.sh"
. "$TERRACE_TREE/tests/host/ctl.bash"
ctl=$TERRACE_TREE/build/terracectl
cd "$OUT" || exit
uuid=6f1c4a52-7d3b-4b0e-9a75-1f2e3d4c5b6a
two=(--tier optane:atomic=fast --tier hdd:atomic=slow)

# what terracectl add writes first is the label
new_images fast 128M slow 320M extra 320M
"$ctl" format --uuid $uuid "${two[@]}" --tier hdd:atomic=extra > /dev/null
"$ctl" format --force --uuid $uuid "${two[@]}" > /dev/null
cp --sparse=always extra whole
to_come='^note: extra: says it is tier 2, the volume has 2 tiers: terracectl add was cut off'
expect 0 "$to_come" "$ctl" check --full fast slow extra
for copy in 0 1; do
	cp --sparse=always whole extra
	dd if=/dev/zero of=extra bs=4k seek=$copy count=1 conv=notrunc status=none
	for full in "" --full; do
		expect 0 "$to_come" "$ctl" check $full fast slow extra
		expect 0 "^note: extra: label copy $copy \(block $copy\): nothing of ours there" "$ctl" check $full fast slow extra
		expect 0 ': sound$' "$ctl" check $full fast slow extra
	done
done

cp --sparse=always slow whole
dd if=/dev/zero of=slow bs=4k count=1 conv=notrunc status=none
expect 1 "^problem: slow: label copy 0 \(block 0\): nothing of ours there" "$ctl" check fast slow extra
