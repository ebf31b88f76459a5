#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What terraced leaves alone: a volume with drive = no, files with files = no, marks with ban_dead = no, and everything while a tier is to be left.
# vm: mode=functional memory=2G timeout=600 build=daemon,orders
# debug-kernel: not, it has no BTF, which fentry programs need
# shellcheck disable=SC2119,SC2086,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"

need_cmd python3 mkfs.ext4
M=/dev/shm/m
mkdir -p $M
said() { answers && grep -qE -e "$1" /dev/shm/status; }
driven() { said '"name": "vol"'; }
not_driven() { answers && ! grep -q '"name": "vol"' /dev/shm/status; }
ask() { from_ram orders /dev/terrace/vol "$@"; }
word() { sed -n "s/.*\b$1=\([^ ]*\).*/\1/p"; }
used() {
	vol_message commit
	vol_tier 0 used | cut -d/ -f1
}
at_most() { awk "BEGIN { exit !($(number "$1") <= $2) }"; }
at_least() { awk "BEGIN { exit !($(number "$1") >= $2) }"; }
configure() {	# LINE OF [policy]...
	printf '%s\n' "$@" | conf_written 50
}

vol_ram 64 512
vol_format
vol_up stream_kb=0 janitor_high=1000 janitor_low=990 heat_sample=1
dd if=/dev/urandom of=/dev/shm/data bs=1M count=44 status=none

# ---- drive, drive_all: this volume, or not; by SIGHUP as well. log_level, lock_memory ----
locked_kb() { sed -n 's/^VmLck:[^0-9]*\([0-9]*\) kB/\1/p' /proc/$daemon/status; }
locked() { [ "$(locked_kb)" -gt 0 ]; }
unlocked() { [ "$(locked_kb)" = 0 ]; }
configure
sed -i 's/^tick_ms.*/&\ndrive_all = no\nlog_level = error\nlock_memory = no/' $CONF
daemon_start
sleep 3
not_driven || die "driven in spite of drive_all = no"
check_eq "locked memory, lock_memory = no" "$(locked_kb)" 0
check_eq "what it says, log_level = error" "$(cat $LOG)" ""
sed -i 's/^lock_memory = no/lock_memory = yes/' $CONF
kill -HUP $daemon
until_ "memory is locked, lock_memory = yes by SIGHUP" locked
sed -i 's/^lock_memory = yes/lock_memory = no/' $CONF
kill -HUP $daemon
until_ "memory is let go, lock_memory = no by SIGHUP" unlocked
daemon_stop
configure '[volume vol]' 'drive = no'
daemon_start
sleep 3
not_driven || die "driven in spite of drive = no"
locked || die "no memory is locked, in spite of lock_memory"
logged "no volume is active yet" || die "nothing is said with the log level as it is"
sed -i 's/^drive = no/drive = yes/' $CONF
kill -HUP $daemon
until_ "driven with drive = yes" driven
sed -i 's/^drive = yes/drive = no/' $CONF
kill -HUP $daemon
until_ "let go with drive = no" not_driven
daemon_stop
pass "drive"

# ---- a tier that is to be left: nothing moves, and the reason is said; an evacuation is not disturbed ----
configure 'watermark.high = 0.4' 'watermark.low = 0.3' 'idle.idle_seconds = 1' 'admit.min_accesses = 100' 'admit.uniform = 0'
dd if=/dev/shm/data of="$VOL" bs=1M oflag=direct status=none
before=$(used)
[ "$before" -gt 8000 ] || die "only $before blocks are fast"
vol_message set avoid_tiers=1
: > $LOG
daemon_start
until_ "driven" driven
said '"nothing_moves_because": "a tier is to be left \(avoid_tiers\)"' || { cat /dev/shm/status; die "not said why nothing moves"; }
logged "nothing moves: a tier is to be left" || die "not logged why nothing moves"
for ((i = 0; i < 8; i++)); do dd if="$VOL" of=/dev/null bs=64k count=64 iflag=direct status=none; done
sleep 3
for word in orders_for_room orders_for_flush orders_for_epoch orders_for_loose; do check_eq "$word while a tier is to be left" "$(number $word)" 0; done
check_eq "blocks on the tier" "$(used)" "$before"
ask hold > /dev/shm/held &
holder=$!
until_ "the volume can be claimed meanwhile" grep -q held /dev/shm/held
kill $holder
wait $holder 2> /dev/null || true
terracectl evacuate vol 0 > /dev/shm/said || { cat /dev/shm/said; die "evacuate beside terraced"; }
check_eq "blocks on the tier" "$(used)" 0
# slow reads of the same few blocks: what would come up otherwise
for ((i = 0; i < 8; i++)); do dd if="$VOL" of=/dev/null bs=64k count=64 iflag=direct status=none; done
sleep 3
check_eq "blocks on the tier that was left" "$(used)" 0
check_eq "orders" "$(number "done")" 0
terracectl evacuate --undo vol 0 > /dev/null
until_ "moves go on" said '"nothing_moves_because": null'
dd if=/dev/shm/data of="$VOL" bs=1M seek=48 oflag=direct status=none
until_ "room is made again" at_least demoted_blocks 2000
cmp -n $((44 << 20)) /dev/shm/data "$VOL" || die "data differ"
daemon_stop
pass "a tier to be left: nothing moves beside its evacuation, and again after it"

# ---- files: followed, or not; ... and what its own switches change ----
vol_down
vol_format
vol_up stream_kb=0 heat_sample=1 janitor_high=1000 janitor_low=990
mkfs.ext4 -q -E nodiscard,lazy_itable_init=0 "$VOL"
mount "$VOL" $M
mkdir $M/db
tables() { python3 "$TERRACE_TREE/tests/vm/tables.py" $M/db "$@"; }
configure 'evaluate = yes' 'files = no'
daemon_start
until_ "driven" driven
tables write 1 1 1
rm $M/db/000001.ldb
sync
sleep 2
! said '"filesystems"' || die "files are followed in spite of files = no"
# ... and by SIGHUP: from now on, and no longer
sed -i 's/^files = no/files = yes\npin_share = 0.5/' $CONF
kill -HUP $daemon
until_ "files are followed with files = yes" logged "the files of $M are followed"
tables write 5 1 4
sync
until_ "tails are kept" at_least pinned_tails_blocks 16
sed -i 's/^files = yes/files = no/' $CONF
kill -HUP $daemon
until_ "files are let go with files = no" logged "files are not followed any more"
until_ "tails are let go" at_most pinned_tails_blocks 0
! said '"filesystems"' || die "files are followed in spite of files = no by SIGHUP"
sed -i 's/^files = no/files = yes/' $CONF
kill -HUP $daemon
until_ "the table that was there is found again" at_least pinned_tails_blocks 16
rm $M/db/000005.ldb
sync
until_ "its death" at_least died 1
daemon_stop
pass "files"
cp "$TERRACE_TREE/tests/data/rocksdb-LOG" $M/db/LOG
for some in no yes; do
	share=$([ $some = yes ] && echo 0.5 || echo 0.02)
	configure 'evaluate = yes' 'files = yes' "ignore_compactions = $some" "database_logs = $some" "tail_share = $share" 'pin_share = 0.5'
	: > $LOG
	daemon_start
	until_ "files are followed" logged "the files of $M are followed"
	tables write 3 2 4
	sync
	until_ "the tables' places" at_least mapped 2
	tails=$(number pinned_tails_blocks)
	echo 3 > /proc/sys/vm/drop_caches
	tables compact 3,4 13,14
	sync
	until_ "a compaction" at_least compactions 1
	sleep 1
	ignored=$(number ignored) logs=$(number databases_with_logs)
	echo "ignore_compactions, database_logs = $some, tail_share = $share: $ignored reads ignored, $logs logs, tails of $tails blocks"
	if [ $some = yes ]; then
		[ "$ignored" -ge 10 ] || die "only $ignored reads of a compaction were ignored"
		[ "$logs" -ge 1 ] || die "the database's log is not read"
		[ "$tails" -ge 1000 ] || die "tails of $tails blocks, with half of two tables of 1024"
	else
		check_eq "ignored reads, ignore_compactions = no" "$ignored" 0
		check_eq "logs read, database_logs = no" "$logs" 0
		[ "$tails" -le 100 ] || die "tails of $tails blocks, with a fiftieth of two tables of 1024"
	fi
	daemon_stop
	rm $M/db/*.ldb
	sync
done
pass "ignore_compactions, database_logs, tail_share"

# ---- ban_dead: until the marks are taken back nobody raises what a dead table held ----
for ban in yes no; do
	configure 'evaluate = yes' 'files = yes' 'trim_dead = no' 'dead_wait_ms = 8000' "ban_dead = $ban"
	: > $LOG
	daemon_start
	until_ "files are followed" logged "the files of $M are followed"
	tables write 2 1 8
	sync
	until_ "the table's place" at_least mapped 1
	python3 "$TERRACE_TREE/tests/vm/where.py" $M/db/000002.ldb "0:$((576 << 8)):0" > /dev/shm/blocks
	block=$(awk '$1 % 1024 == 100 { print; exit }' /dev/shm/blocks)
	[ "$block" ] || die "the table has no block 100 of a region"
	region=$((block / 1024))
	ask move $region append tier_down=1 codec=lz4 > /dev/shm/said || { cat /dev/shm/said; die "the table does not go down"; }
	rm $M/db/000002.ldb
	sync
	until_ "its death" at_least died 1
	sleep 0.5
	up=$(ask move $region raise up=100 2> /dev/null | word up || true)
	if [ $ban = yes ]; then
		check_eq "blocks of a dead table that came up, ban_dead = yes" "${up:-0}" 0
		raised() { [ "$(ask move $region raise up=101 2> /dev/null | word up || true)" = 1 ]; }
		until_ "the marks are taken back after dead_wait_ms" raised
	else
		check_eq "blocks of a dead table that came up, ban_dead = no" "$up" 1
	fi
	daemon_stop
done
umount $M
fsck.ext4 -fn "$VOL" > /dev/shm/said 2>&1 || { cat /dev/shm/said; die "ext4 is damaged"; }
vol_down
vol_check
pass "ban_dead"
