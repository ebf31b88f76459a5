#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# ext4 lives on a volume: files, renames, holes, trims; fsck is clean and synced files whole after clean stops and power cuts.
# vm: mode=functional memory=3G timeout=750 build=oracle
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/volume-fs.bash"

need ext4
need_cmd mkfs.ext4 e2fsck
fs_life ext4
