#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What a checkpoint that a crash cut off has left says nothing of records that are missing, also beside a bad superblock.
# host: timeout=120 build=daemon
. "$TERRACE_TREE/tests/host/lib.sh"
. "$TERRACE_TREE/tests/host/ctl.bash"
ctl=$TERRACE_TREE/build/terracectl
cd "$OUT" || exit
build_image

# The module writes pages with records that become durable only later, with its last commit. Power fails between: the page is
# there, its records nowhere, and nobody was told that they are safe. The journal, which reads well up to its end, has all the
# others: no superblock was ever written for the page.
volume() {	# [IMAGE-OPTION...]
	new_images fast 128M slow 320M
	"$ctl" format --tier nvme:atomic=fast --tier hdd:atomic=slow --mirror none > /dev/null
	./image --seed 4 --before 80 --between 20 --after 30 "$@" fast slow > where
	meta=$(sed -n 's/^meta-start //p' where)
	used=$(sed -n 's/^superblock //p' where)
}
spoil() { flip fast $(((meta + $1) * 4096 + 300)); }
lost() { { "$ctl" repair --dry-run fast slow 2>&1 || true; } | grep -oE '[0-9]+ blocks lost|nothing lost' || echo "nothing said"; }

volume --break cut-checkpoint
check_eq "with a page of a checkpoint that was cut off" "$(lost)" "nothing lost"
spoil $((1 - used))
check_eq "beside a bad superblock" "$(lost)" "nothing lost"

# The newest superblock itself is bad, and the journal does not tell where it ends: there may have been more.
volume --break cut-checkpoint
spoil "$used"
got=$(lost)
[[ $got = *"blocks lost" ]] || die "the newest superblock is bad: $got"
