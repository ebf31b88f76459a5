#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# An unmodified LevelDB, which maps its tables: compactions beside its own log, dead tables trimmed; and files of names that nobody knows.
# vm: mode=functional memory=2G timeout=900 build=daemon,orders long
# debug-kernel: not, it has no BTF, which fentry programs need
# shellcheck disable=SC2119
M=/dev/shm/m
. "$TERRACE_TREE/tests/vm/files.bash"

need_cmd /usr/bin/python3 mkfs.ext4
KEYS=${KEYS:-30000}
leveldb() { /usr/bin/python3 "$TERRACE_TREE/tests/vm/leveldb.py" "$@"; }
/usr/bin/python3 -c 'import plyvel' 2> /dev/null || skip "python3-plyvel is not installed: scripts/setup --demo"
trap 'cp $LOG /dev/shm/status $M/level/LOG* "$OUT/" 2> /dev/null || true' EXIT

vol_ram 448 256
vol_format
vol_up stream_kb=0 heat_sample=1
make_fs ext4
mount "$VOL" $M
follows 'evaluate = yes'
follow

# ---- LevelDB ----
sum=$(leveldb fill $M/level "$KEYS")
sync
until_ "dead tables are trimmed" at_least trimmed_bytes 1000000
sleep 2
leveldb compare 95 "$LOG" $M/level/LOG* || { grep compaction: "$LOG" | tail -20; die "compactions"; }
check_eq "events lost" "$(number events_lost)" 0
[ "$(number bequests)" -ge 3 ] || die "heat was passed on $(number bequests) times"
pass "LevelDB: $(number compactions) compactions, $(number bequests) times heat was passed on, $(number trimmed_bytes) bytes trimmed"

# ---- another tree of the kind, which nobody has a profile for ----
mkdir $M/db
export NAMES='part-{:04}.seg'
compactions=$(number compactions) mapped=$(number mapped) trimmed=$(number trimmed_bytes)
tables write 1 2 4
until_ "places of files with any name" at_least mapped $((mapped + 2))
echo 3 > /proc/sys/vm/drop_caches
ignored=$(number ignored)
tables compact 1,2 11,12
until_ "a compaction" is compactions $((compactions + 1))
logged "compaction: part-0001.seg part-0002.seg -> part-0011.seg part-0012.seg" || { grep compaction: "$LOG" | tail -3; die "another compaction"; }
[ "$(number ignored)" -gt "$ignored" ] || die "its reads heated"
until_ "its inputs are trimmed" at_least trimmed_bytes $((trimmed + (8 << 20)))
sums=$(cd $M/db && md5sum part-*)
pass "files of any name: compaction, heat, trim; $(($(number ignored) - ignored)) reads ignored"

unmounted
daemon_stop
check_fs ext4
mount "$VOL" $M
check_eq "the database" "$(leveldb sum $M/level)" "$sum"
check_eq "the files" "$(cd $M/db && md5sum part-*)" "$sums"
umount $M
vol_down
vol_check
pass "checksums and fsck"
