#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terracectl's offline commands leave devices alone that are mounted, stacked or part of an active volume, and work on them afterwards.
# vm: mode=functional memory=1G timeout=600
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/ctl.bash"

tiers() { echo --tier nvme="${VOL_DRIVES[0]}" --tier hdd="${VOL_DRIVES[1]}"; }

vol_ram 64 256
fast=${VOL_DRIVES[0]}
dmsetup create stacked --table "0 1000 linear $fast 0"
# shellcheck disable=SC2046 # words
refuses 1 "^terracectl: $fast is in use: part of /dev/dm-" format --force $(tiers)
dmsetup remove stacked
pass "a device below another one is refused"

mkfs.ext4 -q -F "$fast"
mkdir -p /tmp/mounted
mount "$fast" /tmp/mounted
# shellcheck disable=SC2046
refuses 1 "^terracectl: $fast is in use: mounted at /tmp/mounted" format --force $(tiers)
umount /tmp/mounted
# shellcheck disable=SC2046
refuses 1 "^terracectl: $fast holds a filesystem \(ext4\): nothing changed" format $(tiers)
pass "a mounted filesystem is refused, and one that is not as well"

vol_format
vol_up
dd if=/dev/urandom of=/dev/shm/data bs=1M count=4 status=none
dd if=/dev/shm/data of="$VOL" bs=1M oflag=direct status=none
refuses 1 "is in use: part of /dev/dm-" check "${VOL_DRIVES[@]}"
refuses 1 "is in use: part of /dev/dm-" format --force --tier nvme="$fast" --tier hdd="${VOL_DRIVES[1]}"
terracectl dump "${VOL_DRIVES[@]}" > /tmp/shown
grep -q '^superblock ' /tmp/shown
terracectl dump --all "${VOL_DRIVES[@]}" > /dev/shm/early
refuses 1 "is in use: part of /dev/dm-" restore --force /dev/shm/early "${VOL_DRIVES[@]}"
refuses 1 "is in use: part of /dev/dm-" repair --in-place "${VOL_DRIVES[@]}"
refuses 1 "is in use: part of /dev/dm-" salvage --dry-run "${VOL_DRIVES[@]}"
says "tier 0 of .*'vol'" label "$fast"
check_eq "label --json" "$(terracectl label --json "${VOL_DRIVES[1]}" | json "o['name'], o['tier']")" "('vol', 1)"
says "^[a-z_.]+ " tunables
vol_down
vol_check --owners
check_eq "mapped blocks" "$(terracectl check --full --json "${VOL_DRIVES[@]}" | sed -n 's/.*"mapped_blocks":\([0-9]*\).*/\1/p')" 1024
pass "an active volume is refused, and sound once it is closed"

terracectl dump --all "${VOL_DRIVES[@]}" > /dev/shm/dump
says "certain" salvage --to /dev/shm/image "${VOL_DRIVES[@]}"
cmp -n $((4 << 20)) /dev/shm/image /dev/shm/data
start=$(terracectl dump --json super "${VOL_DRIVES[@]}" | json "[i for i in o['items'] if i['item'] == 'label'][0]['meta_start']")
dd if=/dev/zero of="$fast" bs=4k seek="$start" count=300 oflag=direct status=none
refuses 1 "superblock" activate "${VOL_DRIVES[@]}"
says "." restore --force /dev/shm/dump "${VOL_DRIVES[@]}"
vol_check --owners
says "^/dev/mapper/vol$" activate "${VOL_DRIVES[@]}"
cmp -n $((4 << 20)) "$VOL" /dev/shm/data
says "" deactivate vol
pass "dump, restore and salvage of what a volume has written"
