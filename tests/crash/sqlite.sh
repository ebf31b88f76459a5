#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A database on a filesystem on a volume keeps every transaction that it was told is committed, wherever the power goes; one that syncs nothing does not.
# vm: mode=functional cpus=1 memory=2G timeout=300
#
# SQLite on xfs, with a rollback journal and with a write-ahead log in turn. The
# power goes at a random write or barrier of all drives. CUTS= of each kind.
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

need xfs
need_cmd mkfs.xfs
PYTHON=/usr/bin/python3
$PYTHON -c 'import sqlite3' 2> /dev/null || skip "no python3 with sqlite3"
SEED=${SEED:-1}
CUTS=${CUTS:-3}
LIMIT=${LIMIT:-3000}	# seconds
RANDOM=$SEED
M=/dev/shm/mnt
ACKED=/dev/shm/acked
UP=(commit_ms=200 stream_kb=256)
sqlite() { $PYTHON "$TERRACE_TREE/tests/crash/sqlite.py" "$@"; }
PATH=$TERRACE_TREE/build:$PATH in_ram dmsetup
dmsetup() { from_ram dmsetup "$@"; }
klog_allow 'drive (fast|slow)'
mkdir -p $M

lay() {
	vol_drives 64 448 seed="$SEED" write_lat=100us flush_lat=500us channels=8 "$@"
	vol_format
	vol_up "${UP[@]}"
	mkfs.xfs -q -f -s size=4096 "$VOL"
	echo "$SEED" > $ACKED
}
# cut MODE [KIND N]: what is there is looked at, then transactions until the power goes at that, or has to
cut() {
	local status=0
	[ $# = 1 ] || drive fast arm "$2" "$3"
	sqlite run $M/db $ACKED "$1" > /dev/shm/verified 2> /dev/shm/said || status=$?
	if [ $status != 3 ]; then drive fast disarm; return 1; fi
	[ $# != 1 ] || drive_cut fast
	[ "$(drive_get fast state)" = off ] || die "the database ended with the power on: $(cat /dev/shm/said)"
	umount $M || umount -l $M
	dmr vol
	drive_revive fast
	drive fast disarm
	vol_up "${UP[@]}"
	mount -t xfs "$VOL" $M
}

# ---- a database that syncs nothing: the test must notice ----

lay survive=0 tear=0
mount -t xfs "$VOL" $M
cut OFF
status=0
sqlite verify $M/db $ACKED > /dev/shm/verified || status=$?
[ $status = 1 ] || die "nothing noticed that a database syncs nothing: $(cat /dev/shm/verified)"
grep BROKEN /dev/shm/verified
umount $M
dmr vol
rmdrive fast
rmdrive slow

# ---- databases that do ----

lay
mount -t xfs "$VOL" $M
began=$SECONDS
for ((n = 0; n < CUTS && SECONDS - began < LIMIT; n++)); do
	mode=WAL
	[ $((n % 2)) = 1 ] || mode=DELETE
	kinds=(write flush fua barrier)
	kind=${kinds[RANDOM % 4]}
	at=$((RANDOM % 100 + 10))
	[ "$kind" != write ] || at=$((RANDOM % 300 + 20))
	before=$(wc -l < $ACKED)
	cut $mode "$kind" $at || { cat /dev/shm/verified /dev/shm/said; cp $ACKED "$OUT/"; die "after cut $((n - 1)) (seed $SEED)"; }
	[ "$CUTS" -gt 5 ] || echo "cut $n at $kind $at, $mode: $(($(wc -l < $ACKED) - before)) transactions; before: $(cat /dev/shm/verified)"
done
sqlite verify $M/db $ACKED || { cp $ACKED "$OUT/"; die "after cut $((n - 1)) (seed $SEED)"; }
umount $M
xfs_repair -n "$VOL" > /dev/shm/fsck 2>&1 || { cat /dev/shm/fsck; die "xfs_repair"; }
vol_down
vol_check
[ "$n" -ge "$CUTS" ] || die "only $n of $CUTS cuts in $LIMIT s"
pass "$n cuts, $(($(wc -l < $ACKED) - 1)) transactions acknowledged, none lost"
counted "$n" cuts
