#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The guest sees the host's files, forgets what it writes, and keeps what goes to $OUT.
# vm: mode=functional memory=1G timeout=600
. "$TERRACE_TREE/tests/vm/lib.sh"

check_eq "host name" "$(hostname)" terrace-vm
check_eq "CPUs" "$(nproc)" 2
[ "$PWD" = "$TERRACE_TREE" ] || die "started in $PWD"
[ -e Makefile ] || die "the work tree is not visible"

echo guest > "$TERRACE_TREE/written-in-guest"
check_eq "file written over the tree" "$(cat "$TERRACE_TREE/written-in-guest")" guest
echo kept > "$OUT/kept"

mkram a 64
check_eq "sector size" "$(blockdev --getss /dev/ram/a)" 4096
check_eq "size" "$(sectors /dev/ram/a)" $((64 * 2048))
dd if=/dev/urandom of=/dev/shm/data bs=1M count=4 status=none
dd if=/dev/shm/data of=/dev/ram/a bs=1M oflag=direct status=none
cmp -n $((4 << 20)) /dev/shm/data /dev/ram/a
blkdiscard /dev/ram/a
cmp -n $((4 << 20)) /dev/zero /dev/ram/a

dmc lin "0 $(sectors /dev/ram/a) linear /dev/ram/a 0"
dd if=/dev/shm/data of=/dev/mapper/lin bs=1M oflag=direct status=none
cmp -n $((4 << 20)) /dev/shm/data /dev/ram/a
dmr lin
rmram a

mkzram z 64
dd if=/dev/shm/data of=/dev/ram/z bs=1M oflag=direct status=none
cmp -n $((4 << 20)) /dev/shm/data /dev/ram/z
expect_fail "No such file" cat /does/not/exist
