#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terracectl format and check leave devices alone that are mounted, stacked or part of an active volume.
# vm: mode=functional memory=1G timeout=600
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

refuses() {
	local pattern=$1 said
	shift
	! said=$(terracectl "$@" 2>&1) || die "terracectl $* should refuse: $said"
	grep -qE -e "$pattern" <<< "$said" || die "terracectl $* said '$said' instead of '$pattern'"
}
tiers() { echo --tier nvme="${VOL_DRIVES[0]}" --tier hdd="${VOL_DRIVES[1]}"; }

vol_ram 64 256
fast=${VOL_DRIVES[0]}
dmsetup create stacked --table "0 1000 linear $fast 0"
# shellcheck disable=SC2046 # words
refuses "^terracectl: $fast is in use: part of /dev/dm-" format --force $(tiers)
dmsetup remove stacked
pass "a device below another one is refused"

mkfs.ext4 -q -F "$fast"
mkdir -p /tmp/mounted
mount "$fast" /tmp/mounted
# shellcheck disable=SC2046
refuses "^terracectl: $fast is in use: mounted at /tmp/mounted" format --force $(tiers)
umount /tmp/mounted
# shellcheck disable=SC2046
refuses "^terracectl: $fast holds a filesystem \(ext4\): nothing changed" format $(tiers)
pass "a mounted filesystem is refused, and one that is not as well"

vol_format
vol_up
dd if=/dev/urandom of="$VOL" bs=1M count=4 oflag=direct status=none
refuses "is in use: part of /dev/dm-" check "${VOL_DRIVES[@]}"
refuses "is in use: part of /dev/dm-" format --force --tier nvme="$fast" --tier hdd="${VOL_DRIVES[1]}"
terracectl dump "${VOL_DRIVES[@]}" > /tmp/shown
grep -q '^superblock ' /tmp/shown
vol_down
vol_check --owners
check_eq "mapped blocks" "$(terracectl check --full --json "${VOL_DRIVES[@]}" | sed -n 's/.*"mapped_blocks":\([0-9]*\).*/\1/p')" 1024
pass "an active volume is refused, and sound once it is closed"
