#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# PostgreSQL on ext4 on a volume keeps every transaction that it was told is committed, wherever the power goes; one that syncs nothing does not.
# vm: mode=functional memory=2G timeout=3600 long
#
# A server of one process (postgres --single), with checksums of its pages, that says
# each generation when COMMIT has returned. After a cut it must find that generation or
# the next one that was under way, with each row as that one had it. CUTS= of them.
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

need ext4
BIN=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin 2> /dev/null | sort -V | tail -1)
[ "$BIN" ] || skip "no PostgreSQL is installed"
SEED=${SEED:-1}
CUTS=${CUTS:-12}
LIMIT=${LIMIT:-2400}	# seconds
RANDOM=$SEED
M=/dev/shm/mnt
ACKED=/dev/shm/acked
UP=(commit_ms=200 stream_kb=256)
PATH=$TERRACE_TREE/build:$PATH in_ram dmsetup
dmsetup() { from_ram dmsetup "$@"; }
klog_allow 'drive (fast|slow)|EXT4-fs|Buffer I/O|JBD2|Aborting journal'
mkdir -p $M

as_postgres() { setpriv --reuid=postgres --regid=postgres --clear-groups env -i HOME=/tmp PATH=/usr/bin:/bin LC_ALL=C "$@"; }
server() { as_postgres "$BIN/postgres" --single -D $M/db -c checkpoint_timeout=1h -c shared_buffers=4MB -c max_wal_size=2GB "$@" postgres; }

# a row's content follows from its number and version; which row a generation changes, from its number
CONTENT="repeat(md5(number || ' ' || version), 1 + (number + version) % 60)"
CHANGED="1 + (g * 7919::bigint) % g"
first() {
	echo "CREATE TABLE row (number int PRIMARY KEY, version int, content text)"
	echo "CREATE TABLE generation (nr int)"
	echo "INSERT INTO generation VALUES (0)"
}
generation() {
	echo "BEGIN"
	echo "INSERT INTO row SELECT number, version, $CONTENT FROM (SELECT $1 AS number, $1 AS version) x"
	echo "UPDATE row SET version = $1 WHERE number = (SELECT $CHANGED FROM (SELECT $1 AS g) x)"
	echo "UPDATE row SET content = $CONTENT WHERE version = $1"
	echo "UPDATE generation SET nr = $1"
	echo "COMMIT"
	echo "SELECT $1 AS acked"
	[ $(($1 % 25)) != 0 ] || echo "CHECKPOINT"
}
look() {
	echo "SELECT 'state', nr AS found, (SELECT count(*) FROM row) AS rows FROM generation"
	echo "SELECT count(*) AS bad FROM row LEFT JOIN (SELECT $CHANGED AS changed, max(g) AS last FROM generate_series(1, (SELECT nr FROM generation)) g GROUP BY 1) x ON changed = number WHERE version <> greatest(number, coalesce(last, 0)) OR content <> $CONTENT"
}
# word NAME: what the server has said of it
word() { sed -n "s/.*$1 = \"\([0-9]*\)\".*/\1/p" /dev/shm/said | tail -1; }
acked() { tail -1 $ACKED; }

# found: what is there is what was acknowledged, or the next; $nr is that
found() {
	local bad
	look | timeout 300 bash -c "$(declare -f server as_postgres); M=$M BIN=$BIN; server" > /dev/shm/said 2> /dev/shm/err || { cat /dev/shm/err; return 1; }
	nr=$(word found) bad=$(word bad)
	if [ -z "$nr" ] || [ "$(word rows)" != "$nr" ] || [ "$bad" != 0 ] || [ "$nr" -lt "$(acked)" ] || [ "$nr" -gt $(($(acked) + 1)) ]; then
		echo "generation '$nr', $(word rows) rows, $bad of them wrong; $(acked) was acknowledged"
		return 1
	fi
}
# write FROM COUNT [ARG...]: generations, until the power goes
write() {
	local from=$1 count=$2 n
	shift 2
	for ((n = from; n < from + count; n++)); do generation "$n" || break; done 2> /dev/null |
		timeout 300 bash -c "$(declare -f server as_postgres); M=$M BIN=$BIN; server $*" 2> /dev/shm/err |
		stdbuf -oL sed -n 's/.*acked = "\([0-9]*\)".*/\1/p' >> $ACKED || true
}
lay() {
	vol_drives 64 448 seed="$SEED" write_lat=100us flush_lat=500us channels=8 "$@"
	vol_format
	vol_up "${UP[@]}"
	mkfs.ext4 -q -F -J size=8 "$VOL"
	mount -t ext4 "$VOL" $M
	mkdir $M/db
	chown postgres $M/db
	as_postgres "$BIN/initdb" -D $M/db -k -A trust -U postgres > /dev/shm/said 2>&1 || die "initdb: $(tail -3 /dev/shm/said)"
	first | server > /dev/shm/said 2>&1
	echo 0 > $ACKED
	sync
}
after_cut() {
	umount $M || umount -l $M
	dmr vol
	drive_revive fast
	drive fast disarm
	vol_up "${UP[@]}"
	mount -t ext4 "$VOL" $M
}

# ---- a database that syncs nothing: the test must notice ----

lay survive=0 tear=0
write 1 40 -c fsync=off
[ "$(acked)" -ge 30 ] || die "only $(acked) transactions: $(cat /dev/shm/err)"
drive_cut fast
after_cut
if found > /dev/shm/lost; then die "nothing noticed that a database syncs nothing: $nr of $(acked)"; fi
pass "a database that syncs nothing is noticed: $(tail -1 /dev/shm/lost)"
umount $M
dmr vol
rmdrive fast
rmdrive slow

# ---- one that does ----

lay
nr=0
kinds=(write flush fua barrier)
for ((n = 0; n < CUTS && SECONDS < LIMIT; n++)); do
	kind=${kinds[RANDOM % 4]}
	at=$((RANDOM % 150 + 10))
	[ "$kind" != write ] || at=$((RANDOM % 600 + 20))
	drive fast arm "$kind" $at
	write $((nr + 1)) 400
	[ "$(drive_get fast state)" = off ] || drive_cut fast
	last=$(acked)
	after_cut
	found || { cp $ACKED "$OUT/"; die "after cut $n at $kind $at (seed $SEED)"; }
	echo "cut $n at $kind $at: $last acknowledged, $nr there"
	[ "$nr" = "$(acked)" ] || echo "$nr" >> $ACKED
done
umount $M
e2fsck -fn "$VOL" > /dev/shm/fsck 2>&1 || { cat /dev/shm/fsck; die "e2fsck"; }
vol_down
vol_check
[ "$n" -ge "$CUTS" ] || die "only $n of $CUTS cuts in $LIMIT s"
[ "$(acked)" -gt "$CUTS" ] || die "only $(acked) transactions"
pass "$n cuts, $(acked) transactions acknowledged, none lost"
counted "$n" cuts
