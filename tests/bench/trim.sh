#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What it costs to trim a dead table's range on a fragmented filesystem: all free extents looked at, or the long ones.
# bench: mode=vtime memory=3G timeout=1500
#
# FILES files of 4 KiB, every second of which is deleted; then tables of 8 MiB are written and deleted. Each one's range
# is trimmed as terraced does it first (no free extent shorter than the range), another's with all free extents looked at.
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"

need_cmd python3 mkfs.xfs mkfs.ext4
FILES=${FILES:-20000} M=/dev/shm/m
mkdir -p $M
modprobe -q xfs || true
vol_ram 640 256
for fs in xfs ext4; do
	vol_format
	vol_up stream_kb=0
	if [ $fs = xfs ]; then mkfs.xfs -qfK "$VOL"; else mkfs.ext4 -q -E nodiscard,lazy_itable_init=0 -N $((FILES * 2)) "$VOL"; fi
	mount "$VOL" $M
	read -r long all extents <<< "$(python3 "$TERRACE_TREE/tests/bench/tools/trim.py" $M "$FILES")"
	figure "$fs: free extents" "$extents" "extents"
	figure "$fs: a trim of 8 MiB, all free extents looked at" "$all" "us"
	bar "$fs: a trim of 8 MiB, as terraced does it first" "$long" "us" 200
	umount $M
	vol_down
done
bars_end
