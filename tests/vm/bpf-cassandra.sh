#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Files by Cassandra's names: the index and the filter of a table are kept fast, not the end of its data; so they are after a restart, until they die.
# vm: mode=functional memory=2G timeout=600 build=daemon,orders long
# debug-kernel: not, it has no BTF, which fentry programs need
# shellcheck disable=SC2119
M=/dev/shm/m
. "$TERRACE_TREE/tests/vm/files.bash"

need_cmd mkfs.ext4
# written PART KB: in order, synced and closed
written() { dd if=/dev/urandom of="$M/db/nb-1-big-$1.db" bs=64k count=$(($2 / 64)) conv=fsync status=none; }
vol_ram 96 256
vol_format
vol_up stream_kb=0
make_fs ext4
mount "$VOL" $M
mkdir $M/db
follows 'evaluate = yes' 'profiles = cassandra'
follow
written Data 8192
written Index 1024
written Filter 256
until_ "their places" at_least mapped 3
until_ "index and filter are pinned" is pinned_tails_blocks $(((1024 + 256) / 4))
pass "of 8 MiB of data nothing is pinned, of 1.25 MiB of index and filter all"

daemon_kill
follow
until_ "they are pinned after a restart" is pinned_tails_blocks $(((1024 + 256) / 4))
pass "so they are after a restart"

sums=$(md5sum < $M/db/nb-1-big-Data.db)
rm $M/db/nb-1-big-Index.db
sync
until_ "the index is let go" is pinned_tails_blocks $((256 / 4))
until_ "its room is trimmed" at_least trimmed_bytes $((1 << 20))
check_eq "the data" "$(md5sum < $M/db/nb-1-big-Data.db)" "$sums"
daemon_stop
unmounted
check_fs ext4
vol_down
vol_check
pass "what has died is let go and trimmed"
