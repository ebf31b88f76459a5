#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Logs and manifests stay fast: a thread's tables go past the fast tier while it compacts, the log that it writes meanwhile does not; without their names it would.
# vm: mode=functional memory=2G timeout=600 build=daemon,orders long
# debug-kernel: not, it has no BTF, which fentry programs need
# shellcheck disable=SC2119,SC2154
M=/dev/shm/m
. "$TERRACE_TREE/tests/vm/files.bash"

need_cmd python3 mkfs.ext4

# state FILE...: into $mapped, $fast, $all
state() {
	local file
	sync
	vol_message commit
	for file; do where "$M/db/$file" "0:$(($(sectors "$VOL") / 8)):0"; done > /dev/shm/blocks
	read -r mapped fast all <<< "$(where --state /dev/terrace/vol /dev/shm/blocks)"
	echo "${profiles:-all}: $*: $fast of $all blocks are fast"
}

vol_ram 448 256
for profiles in '' generic; do
	vol_format
	vol_up stream_kb=0
	make_fs ext4
	mount "$VOL" $M
	mkdir $M/db
	# as if the fast tier were full, and whatever a compaction reads cold
	follows 'evaluate = yes' 'admit.fill = 0' 'cold_share = 1' ${profiles:+"profiles = $profiles"}
	follow
	tables write 1 2 4
	until_ "tables' places" at_least mapped 2
	sync
	tables compact 1,2 11,12 log
	until_ "a compaction" is compactions 1
	state 000011.ldb 000012.ldb
	check_eq "blocks of tables" "$mapped" 2048
	[ "$fast" -le 1536 ] || die "$fast of 2048 blocks of cold streams are fast: this shows nothing"
	state 000009.log
	check_eq "blocks of the log" "$mapped" 256
	if [ "$profiles" ]; then
		[ "$fast" -le 128 ] || die "$fast of 256 blocks of what is taken for a table are fast: names are not what kept the log there"
	else
		check_eq "cold streams" "$(number cold_streams)" 2
		check_eq "fast blocks of the log" "$fast" 256
		state MANIFEST-000001
		check_eq "fast blocks of the manifest" "$fast" "$all"
		[ "$all" -ge 1 ] || die "the manifest has no blocks"
	fi
	unmounted
	daemon_stop
	check_fs ext4
	vol_down
	vol_check
done
pass "a log and a manifest stay on the fast tier while tables of the same thread go past it"
