#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A daemon that is killed and started again knows the tables that are there: their tails are kept, their deaths are trimmed; ext4 and xfs.
# vm: mode=functional memory=2G timeout=600 build=daemon,orders long
# debug-kernel: not, it has no BTF, which fentry programs need
# shellcheck disable=SC2119,SC2154
M=/dev/shm/m
. "$TERRACE_TREE/tests/vm/files.bash"

need_cmd python3 mkfs.ext4 mkfs.xfs
TAIL=21		# blocks: the last 2 % of 4 MiB; of tables of a block that
BEFORE=${BEFORE:-300}	# small tables from before: many more than are asked at a time

vol_ram 448 256
for fs in ${FILESYSTEMS:-ext4 xfs}; do
	vol_format
	vol_up stream_kb=0
	make_fs "$fs"
	mount "$VOL" $M
	mkdir -p $M/db/deeper
	python3 "$TERRACE_TREE/tests/vm/tables.py" $M/db/deeper write 1 4 4
	python3 "$TERRACE_TREE/tests/vm/tables.py" $M/db/deeper crowd 1000 "$BEFORE"
	sync
	sums=$(cd $M/db/deeper && md5sum 00000[34].ldb)
	follows 'evaluate = yes'
	follow
	# ---- fresh ones do not wait for those that are found ----
	tables write 11 1 4
	until_ "a fresh table's place" at_least mapped 1
	until_ "all others" is found $((BEFORE + 4))
	until_ "tails" is pinned_tails_blocks $((5 * TAIL + BEFORE))
	rm $M/db/deeper/000001.ldb
	until_ "its death" is died 1
	check_eq "blocks of its own when it died" "$(number dead_blocks)" 1024
	until_ "4 MiB trimmed" at_least trimmed_bytes $((4 << 20))
	pass "$fs: tables from before the daemon's start are found, their tails are kept, and one that dies is trimmed"

	# ---- killed: what it knew is known again; what died meanwhile is not ----
	kill -KILL "$daemon"
	wait "$daemon" || true
	rm $M/db/deeper/000002.ldb
	follow
	until_ "all that are left" is found $((BEFORE + 3))
	until_ "their tails" is pinned_tails_blocks $((3 * TAIL + BEFORE))
	rm $M/db/000011.ldb
	until_ "the death of one of its predecessor's" is died 1
	until_ "4 MiB trimmed" at_least trimmed_bytes $((4 << 20))
	check_eq "tables that were written since" "$(number mapped)" 0
	pass "$fs: killed and started again, it knows the same tables"

	unmounted
	daemon_stop
	check_fs "$fs"
	mount "$VOL" $M
	check_eq "tables" "$(cd $M/db/deeper && md5sum 00000[34].ldb)" "$sums"
	umount $M
	vol_down
	vol_check
done
