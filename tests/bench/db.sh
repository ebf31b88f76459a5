#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Databases, unmodified, on xfs and ext4: all on fast, all on slow, peers, RocksDB's own tiering, Terrace.
# bench: mode=vtime memory=4500M timeout=21600
#
# RocksDB and SQLite under YCSB's mixes, PostgreSQL under pgbench: databases.bash and ycsb/main.c
# say how. Each is loaded, then reads $WARM operations of the mix C (PostgreSQL: select), to warm up, with another seed;
# then come the rows, one after the other. Beside each figure (x - slow) / (fast - slow), in parts of a
# thousand: what share of what all on the fast drive would gain is had.
#
# System "paths" is RocksDB's own tiering (db_paths): a filesystem on each drive, the log and the
# upper levels on the fast one, as far as they fit. DBS=, FS=, SYSTEMS=, KEYS=, OPS= from the environment.
# shellcheck disable=SC2034
FAST=${FAST:-nvme-tlc} SLOW=${SLOW:-hdd}
VOLUME_MB=${VOLUME_MB:-384}
SHARE=${SHARE:-8}
FILL=no
CONF_LINES=${CONF_LINES:-files = yes}
SYSTEMS=${SYSTEMS:-fast slow cache-64 bcache paths terrace}
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"
. "$TERRACE_TREE/tests/bench/systems.bash"
. "$TERRACE_TREE/tests/bench/databases.bash"

DBS=${DBS:-rocksdb sqlite postgres}
FS=${FS:-xfs ext4}
SEED=${SEED:-1000}
WARM=${WARM:-$((KEYS / 2))}
LOAD=db
DIR=/dev/shm/db
UPPER_MB=$((FAST_MB * 3 / 10))	# of tables; beside them there must be room for the log, for compactions, and for more of level 0
declare -A GOT SAID_OF

in_ram mkfs.xfs mkfs.ext4
mkdir -p $DIR

make_fs() {	# FS DEVICE FOLDER
	case $1 in
	xfs)	from_ram mkfs.xfs -q -f -K "$2" ;;
	ext4)	from_ram mkfs.ext4 -q -F -E nodiscard "$2" ;;
	esac > /dev/shm/said 2>&1 || die "mkfs.$1: $(cat /dev/shm/said)"
	mkdir -p "$3"
	mount -t "$1" "$2" "$3"
}

paths_up() { drives "$FAST_MB"; }
paths_down() { :; }
paths_settings() { echo "RocksDB's db_paths: a filesystem on each drive (ext4 on the fast one: it is too small for xfs), log and upper levels (at most $UPPER_MB MiB of tables) on the fast one"; }

all_up() {	# FS SYSTEM
	if [ "$2" = paths ]; then
		paths_up
		make_fs ext4 /dev/mapper/fastd $DIR	# xfs takes no drive below 300 MB
		make_fs "$1" /dev/mapper/slowd $DIR.lower
		mkdir $DIR.lower/data
		export LOWER=$DIR.lower/data UPPER_MB
	else
		system_up "$2"
		make_fs "$1" "$DEV" $DIR
	fi
}
all_down() {	# FS SYSTEM
	umount $DIR
	[ "$2" != paths ] || umount $DIR.lower
	unset LOWER
	[ "$2" != terrace ] || { answers && cp /dev/shm/status "$OUT/status-$db-$1.json"; daemon_stop; }
	if [ "$2" = bcache ]; then bcache_settle; fi
	if [ "$2" = paths ]; then drives_off; else system_down "$2"; fi
}

keep() {	# ROW: at once, or what is stopped would have measured nothing
	GOT[$db-$fs-$s-$1]=$RATE
	printf '%-9s %-5s %-10s %-7s %8s a second  p99 %8s  p99.9 %8s us\n' "$db" "$fs" "$s" "$1" "$RATE" "${P99:--}" "${P999:--}"
	bars_row "$BARS_SCRIPT" "$db on $fs: $1; $s; rate" "$RATE" "a second" "" "" ""
	[ -z "${P99:-}" ] || bars_row "$BARS_SCRIPT" "$db on $fs: $1; $s; p99" "$P99" us "" "" ""
	[ -z "${P999:-}" ] || bars_row "$BARS_SCRIPT" "$db on $fs: $1; $s; p999" "$P999" us "" "" ""
}

run_on() {	# DB FS SYSTEM
	local db=$1 fs=$2 s=$3 rows row seed=$SEED
	all_up "$fs" "$s"
	"${db}_load"
	keep load
	sync -f $DIR
	rows=$("${db}_rows")
	rows=${rows#load }
	# nothing to warm up on one drive
	[[ $s = fast || $s = slow ]] || OPS=$WARM "${db}_run" "${rows%% *}" $((SEED - 1))
	for row in $rows; do
		"${db}_run" "$row" $((seed++))
		keep "$row"
	done
	"${db}_end"
	all_down "$fs" "$s"
}

# beside NAME: of the slow and the fast drive's figures, in o/oo
beside() {
	local x=${GOT[$1]:-} fast=${GOT[$db-$fs-fast-$row]:-} slow=${GOT[$db-$fs-slow-$row]:-}
	if [ -z "$x" ] || [ -z "$fast" ] || [ -z "$slow" ] || [ "$fast" -le "$slow" ]; then return; fi
	echo $(((x - slow) * 1000 / (fast - slow)))
}

table() {	# DB FS
	local db=$1 fs=$2 s row share
	for row in $("${db}_rows"); do
		for s in ${SYSTEMS//,/ }; do
			[ "${GOT[$db-$fs-$s-$row]:-}" ] || continue
			share=$(beside "$db-$fs-$s-$row")
			printf '%-9s %-5s %-7s %-10s %8s a second  (x - slow) / (fast - slow) %5s o/oo\n' "$db" "$fs" "$row" "$s" \
				"${GOT[$db-$fs-$s-$row]}" "${share:--}"
			[ -z "$share" ] || bars_row "$BARS_SCRIPT" "$db on $fs: $row; $s; share" "$share" "o/oo" "" "" ""
		done
	done
}

# Never below the slow drive alone. What the papers show, they show on other hardware: no bar.
bars() {	# DB FS
	local db=$1 fs=$2 row ours slow
	for row in $("${db}_rows"); do
		ours=${GOT[$db-$fs-terrace-$row]:-} slow=${GOT[$db-$fs-slow-$row]:-}
		if [ -z "$ours" ] || [ -z "$slow" ]; then continue; fi
		bar "$db on $fs: $row: terrace, of the slow drive alone" $((ours * 1000 / slow)) o/oo -1000
	done
}

modprobe -a xfs ext4
echo "# $(models); $FAST_MB MiB before $VOLUME_MB MiB; seeds: $((SEED - 1)) to warm up, from $SEED on to measure; $WARM operations to warm up, $OPS of each row"
for db in ${DBS//,/ }; do
	"${db}_ready"
	for fs in ${FS//,/ }; do
		for s in ${SYSTEMS//,/ }; do
			[ "$s" != paths ] || [ "$db" = rocksdb ] || continue
			run_on "$db" "$fs" "$s"
			[ "${SAID_OF[$s]:-}" ] || if [ "$s" = paths ]; then echo "# paths: $(paths_settings)"; else echo "# $s: $(system_settings "$s")"; fi
			SAID_OF[$s]=yes
		done
		echo "# $db on $fs: $("${db}_settings")"
		table "$db" "$fs"
		bars "$db" "$fs"
	done
done
bars_end
