#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Databases, unmodified, on xfs and ext4: all on fast, all on slow, peers, RocksDB's own tiering, Terrace.
# bench: mode=vtime memory=4500M timeout=21600 parts=ON:rocksdb-xfs,rocksdb-ext4,sqlite-xfs,sqlite-ext4,postgres-xfs,postgres-ext4,myrocks-xfs,myrocks-ext4,rocksdb-large-xfs
# seeds: SEED - 1 to warm up, SEED - 2 to learn, from SEED = 1000 on one for each row; of RocksDB's own threads none
# packages: librocksdb7.8 libsqlite3-0 postgresql-15 mariadb-server-core mariadb-plugin-rocksdb xfsprogs e2fsprogs bcache-tools
#
# RocksDB, SQLite and MyRocks under YCSB's mixes, PostgreSQL under pgbench: databases.bash and ycsb/main.c
# say how. Each is loaded; then come the rows, one after the other. Before the first of those that use the same keys
# come $WARM operations of it, to warm up, with another seed. Beside each figure (x - slow) / (fast - slow), in parts of a
# thousand: what share of what all on the fast drive would gain is had; what the slow drive had to
# read meanwhile; and what was written to each drive, once the filesystems were synced (what a cache holds dirty then
# counts in the row in which it is written down). Rates hide how much is had of a disk: with nine reads of ten from the fast drive, it still
# has a tenth of what the fast drive alone would have.
#
# So "ideal" stands beside them: a static placement of what was loaded, for rows that only read. $LEARN operations
# of the row, with a third seed, say which reads come; the blocks of the most frequent fill the fast drive. It is the best there
# is for those; the fewer they are the further from the best for others, so it is a lower bound of that.
#
# System "paths" is RocksDB's own tiering (db_paths): a filesystem on each drive, the log and the
# upper levels on the fast one, as far as they fit. System "pcache" is its persistent cache: a filesystem on each drive,
# the cache on the fast one. It takes no less than 100 MiB, so it has a database of its own size, "rocksdb-large". As it forgets all when
# the process ends, there each row is warmed up in the process that is measured, on all systems. ON= or DBS= and FS=, SYSTEMS=, ROWS=, KEYS=, OPS= from the environment.
# shellcheck disable=SC2034
if [[ ${ON:-}${DBS:-} = *-large* ]]; then
	VOLUME_MB=${VOLUME_MB:-1024} SHARE=${SHARE:-20} KEYS=${KEYS:-400000} WARMS_INSIDE=yes
	WARM=${WARM:-$((KEYS / 4))}	# before each row: enough to fill the fast drive
	ROWS=${ROWS:-C,A,hot}
	SYSTEMS=${SYSTEMS:-slow fast paths pcache terrace}
fi
FAST=${FAST:-nvme-tlc} SLOW=${SLOW:-hdd}
VOLUME_MB=${VOLUME_MB:-384}
SHARE=${SHARE:-8}
FILL=no
CONF_LINES=${CONF_LINES:-files = yes}
SYSTEMS=${SYSTEMS:-fast slow ideal cache-64 bcache paths terrace}
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"
. "$TERRACE_TREE/tests/bench/bars.bash"
. "$TERRACE_TREE/tests/bench/systems.bash"
. "$TERRACE_TREE/tests/bench/databases.bash"

ON=${ON:-}		# database-filesystem
DBS=${DBS:-${ON%-*}}
FS=${FS:-${ON##*-}}
DBS=${DBS:-rocksdb sqlite postgres myrocks}
FS=${FS:-xfs ext4}
SEED=${SEED:-1000}
WARM=${WARM:-$((KEYS / 2))}
LEARN=${LEARN:-$WARM}
LOAD=db
DIR=/dev/shm/db
UPPER_MB=$((FAST_MB * 3 / 10))	# of tables; beside them there must be room for the log, for compactions, and for more of level 0
declare -A GOT SAID_OF

# the WHAT ARG...: of the database $db
the() {
	local what=$1
	shift
	"${db%-large}_$what" "$@"
}

PATH=$TERRACE_TREE/build/bench:$PATH in_ram mkfs.xfs mkfs.ext4 ideal place
mkdir -p $DIR

make_fs() {	# FS DEVICE FOLDER
	case $1 in
	xfs)	from_ram mkfs.xfs -q -f -K "$2" ;;
	ext4)	from_ram mkfs.ext4 -q -F -E nodiscard "$2" ;;
	esac > /dev/shm/said 2>&1 || die "mkfs.$1: $(cat /dev/shm/said)"
	mkdir -p "$3"
	mount -t "$1" "$2" "$3"
}

# What RocksDB does by itself has a filesystem on each drive; ext4 on the fast one: xfs takes no drive below 300 MB.
paths_up() {	# FS
	make_fs ext4 /dev/mapper/fastd $DIR
	make_fs "$1" /dev/mapper/slowd $DIR.lower
	mkdir $DIR.lower/data
	export LOWER=$DIR.lower/data UPPER_MB
}
paths_down() {
	umount $DIR $DIR.lower
	unset LOWER
}
paths_settings() { echo "RocksDB's db_paths: a filesystem on each drive (ext4 on the fast one: it is too small for xfs), log and upper levels (at most $UPPER_MB MiB of tables) on the fast one"; }

pcache_up() {	# FS
	make_fs ext4 /dev/mapper/fastd $DIR.cache
	make_fs "$1" /dev/mapper/slowd $DIR
	PERSISTENT_MB=$(($(stat -f -c '%f * %S' $DIR.cache) / 1048576 - 2))
	[ "$PERSISTENT_MB" -ge 100 ] || die "pcache: RocksDB's persistent cache takes no less than 100 MiB, and there are $PERSISTENT_MB"
	export PERSISTENT=$DIR.cache PERSISTENT_MB
}
pcache_down() {
	umount $DIR $DIR.cache
	unset PERSISTENT
}
pcache_settings() { echo "RocksDB's persistent cache, NewPersistentCache() as for flash, of $PERSISTENT_MB MiB in an ext4 on the fast drive; the database on the slow one. Of its files of 100 MiB the one that is being filled is read from memory, as the library has it"; }

# by itself SYSTEM: is it a way of RocksDB's own?
by_itself() { [[ $1 = paths || $1 = pcache ]]; }

# fits SYSTEM: can $db have it? Who forgets between processes what it has learnt must not be warmed up in another one.
fits() {
	case $1 in
	paths)	[[ $db = rocksdb* ]] ;;
	pcache)	[[ $db = rocksdb* && ${WARMS_INSIDE:-} ]] ;;
	ideal)	[ -z "${WARMS_INSIDE:-}" ] ;;
	esac
}

all_up() {	# FS SYSTEM
	if by_itself "$2"; then
		drives "$FAST_MB"
		"$2_up" "$1"
	else
		system_up "$2"
		make_fs "$1" "$DEV" $DIR
	fi
}
all_down() {	# FS SYSTEM
	if by_itself "$2"; then
		"$2_down"
		drives_off
		return
	fi
	umount $DIR
	[ "$2" != terrace ] || { answers && cp /dev/shm/status "$OUT/status-$db-$1.json"; daemon_stop; }
	if [ "$2" = bcache ]; then bcache_settle; fi
	system_down "$2"
}

# counted: reads and bytes written of the fast drive, then of the slow one, when they were last counted
counted() {
	local line word
	while read -r line; do
		for word in $line; do [[ $word != reads=* && $word != write_bytes=* ]] || echo "${word#*=}"; done
	done < /dev/shm/counted
}

# measured OPS COMMAND...: SLOW_READS in 1,000 operations, WRITTEN_FAST and WRITTEN_SLOW in KiB, since it began, or had warmed up
measured() {
	local ops=$1 before after folder
	shift
	eval "$(counters)"
	"$@"
	mapfile -t before < <(counted)
	eval "$(counters)"
	mapfile -t after < <(counted)
	SLOW_READS=$(((after[2] - before[2]) * 1000 / ops))
	for folder in $DIR $DIR.lower $DIR.cache; do ! mountpoint -q "$folder" || sync -f "$folder"; done
	eval "$(counters)"
	mapfile -t after < <(counted)
	WRITTEN_FAST=$(((after[1] - before[1]) / 1024)) WRITTEN_SLOW=$(((after[3] - before[3]) / 1024))
}

keep() {	# ROW: at once, or what is stopped would have measured nothing
	GOT[$db-$fs-$s-$1]=$RATE
	printf '%-9s %-5s %-10s %-7s %8s a second  p99 %8s  p99.9 %8s us  slow reads %5s of 1,000 operations  written, KiB: fast %7s slow %7s\n' "$db" "$fs" "$s" "$1" "$RATE" "${P99:--}" "${P999:--}" \
		"${SLOW_READS:--}" "$WRITTEN_FAST" "$WRITTEN_SLOW"
	bars_row "$BARS_SCRIPT" "$db on $fs: $1; $s; rate" "$RATE" "a second" "" "" ""
	[ -z "${P99:-}" ] || bars_row "$BARS_SCRIPT" "$db on $fs: $1; $s; p99" "$P99" us "" "" ""
	[ -z "${P999:-}" ] || bars_row "$BARS_SCRIPT" "$db on $fs: $1; $s; p999" "$P999" us "" "" ""
	[ -z "${SLOW_READS:-}" ] || bars_row "$BARS_SCRIPT" "$db on $fs: $1; $s; slow_per_op" "$SLOW_READS" o/oo "" "" ""
	bars_row "$BARS_SCRIPT" "$db on $fs: $1; $s; fast_kib" "$WRITTEN_FAST" KiB "" "" ""
	bars_row "$BARS_SCRIPT" "$db on $fs: $1; $s; slow_kib" "$WRITTEN_SLOW" KiB "" "" ""
	[ "$s" != terrace ] || { answers && cp /dev/shm/status "$OUT/status-$db-$fs-$1.json"; }
	[[ $s != terrace && $s != slow ]] || bar_of_slow "$1"
}

# Never below the slow drive alone: said when both are known. What the papers show, they show on other hardware: no bar.
bar_of_slow() {	# ROW
	local ours=${GOT[$db-$fs-terrace-$1]:-} slow=${GOT[$db-$fs-slow-$1]:-}
	if [ -z "$ours" ] || [ -z "$slow" ]; then return; fi
	bar "$db on $fs: $1: terrace, of the slow drive alone" $((ours * 1000 / slow)) o/oo -1000
}

# seed_of ROW: the same for all systems
seed_of() {
	local row seed=$SEED
	for row in $(the rows); do
		[ "$row" != "$1" ] || break
		seed=$((seed + 1))
	done
	echo "$seed"
}

run_row() {	# ROW
	measured "$(the ops "$1")" the run "$1" "$(seed_of "$1")"
	keep "$1"
}

# which keys a row uses
keys_of() { case $1 in hot|near|D) echo "$1" ;; *) echo zipf ;; esac; }
only_reads() { case $1 in C|hot|near|select) return 0 ;; *) return 1 ;; esac; }

run_on() {	# DB FS SYSTEM
	local db=$1 fs=$2 s=$3 row warm=
	# nothing to warm up on one drive, or it is done inside
	[[ $s != fast && $s != slow && -z ${WARMS_INSIDE:-} ]] || warm="zipf D hot near"
	all_up "$fs" "$s"
	measured "$KEYS" the load
	SLOW_READS=
	keep load
	for row in $(the rows); do
		[ "$row" != load ] || continue
		if [[ " $warm " != *" $(keys_of "$row") "* ]]; then
			OPS=$WARM the run "$row" $((SEED - 1))
			warm+=" $(keys_of "$row")"
		fi
		run_row "$row"
	done
	the end
	all_down "$fs" "$s"
}

# ---- the best static placement ----

LEARNT=/sys/kernel/tracing/events/block/block_bio_queue/trigger
# learn ROW: lines "sector sectors count" of the reads of the device, into /dev/shm/reads
learn() {
	local device what
	device=$(stat -L -c '%t %T' /dev/mapper/tested)
	what="hist:keys=sector,nr_sector:size=65536 if dev == $(((0x${device% *} << 20) | 0x${device#* })) && rwbs ~ \"R*\""
	echo "$what" > $LEARNT
	OPS=$LEARN the run "$1" $((SEED - 2))
	sed -n 's/^{ sector: *\([0-9]*\), nr_sector: *\([0-9]*\) } hitcount: *\([0-9]*\).*/\1 \2 \3/p' "${LEARNT%/*}/hist" > /dev/shm/reads
	echo "!$what" > $LEARNT
}

tested() {	# TABLE
	from_ram dmsetup load tested < "$1"
	from_ram dmsetup suspend --noudevsync tested
	[ $# = 1 ] || from_ram place /dev/mapper/fastd /dev/mapper/slowd "$2" < "$3"
	from_ram dmsetup resume --noudevsync --noudevrules tested
}

run_ideal() {	# DB FS
	local db=$1 fs=$2 s=ideal row below=/dev/shm/below table=/dev/shm/ideal
	drives "$FAST_MB"
	echo "0 $SECTORS linear /dev/mapper/slowd 0" > $below
	DM_DISABLE_UDEV=1 from_ram dmsetup create tested $below
	DEV=/dev/mapper/tested
	make_fs "$fs" $DEV $DIR
	the load
	sync -f $DIR
	for row in $(the rows); do
		only_reads "$row" || continue
		learn "$row"
		IDEAL_PPM=$(from_ram ideal counted:/dev/shm/reads $((VOLUME_MB * 256)) $((FAST_MB * 256)) /dev/mapper/fastd /dev/mapper/slowd 2>&1 > $table)
		tested $table up $table
		echo "# ideal: $db on $fs, $row: learnt from $LEARN operations, of whose reads it has $((IDEAL_PPM / 1000)) of 1,000 on the fast drive$([ "$IDEAL_PPM" -lt 1000000 ] || echo ': all of them, so too few to fill it')"
		run_row "$row"
		tested $below back $table
	done
	the end
	umount $DIR
	dmr tested
	drives_off
}

# beside NAME: of the slow and the fast drive's figures, in o/oo
beside() {
	local x=${GOT[$1]:-} fast=${GOT[$db-$fs-fast-$row]:-} slow=${GOT[$db-$fs-slow-$row]:-}
	if [ -z "$x" ] || [ -z "$fast" ] || [ -z "$slow" ] || [ "$fast" -le "$slow" ]; then return; fi
	echo $(((x - slow) * 1000 / (fast - slow)))
}

# in_paper WHAT: the same of what others have published, as far as tests/bench/papers has it
in_paper() {
	local line pattern figure ratio
	while IFS= read -r line; do
		pattern=${line%% => *} line=${line#* => }
		[[ $pattern != '#'* && $1 =~ $pattern ]] || continue
		figure=${line%% => *} ratio=${line#* => }
		[ "$figure" != none ] && figure=" ($figure)" || figure=
		echo "  in a paper: ${ratio%% => *}$figure"
		return
	done < "$TERRACE_TREE/tests/bench/papers"
}

table() {	# DB FS
	local db=$1 fs=$2 s row share
	for row in $(the rows); do
		for s in ${SYSTEMS//,/ }; do
			[ "${GOT[$db-$fs-$s-$row]:-}" ] || continue
			share=$(beside "$db-$fs-$s-$row")
			printf '%-9s %-5s %-7s %-10s %8s a second  (x - slow) / (fast - slow) %5s o/oo%s\n' "$db" "$fs" "$row" "$s" \
				"${GOT[$db-$fs-$s-$row]}" "${share:--}" "$(in_paper "$db on $fs: $row; $s")"
			[ -z "$share" ] || bars_row "$BARS_SCRIPT" "$db on $fs: $row; $s; share" "$share" "o/oo" "" "" ""
		done
	done
}

modprobe -a xfs ext4
warmed="the first of the same keys"
[ -z "${WARMS_INSIDE:-}" ] || warmed="each row, in its process,"
echo "# $(models); $FAST_MB MiB before $VOLUME_MB MiB; seeds: $((SEED - 1)) to warm up, from $SEED on to measure; before $warmed $WARM operations to warm up, $OPS of each row"
for db in ${DBS//,/ }; do
	the ready
	for fs in ${FS//,/ }; do
		for s in ${SYSTEMS//,/ }; do
			fits "$s" || { [ "$s" != pcache ] || echo "# pcache: not run: only rocksdb-large has it"; continue; }
			if [ "$s" = ideal ]; then run_ideal "$db" "$fs"; else run_on "$db" "$fs" "$s"; fi
			[ "${SAID_OF[$s]:-}" ] || if by_itself "$s"; then echo "# $s: $("${s}_settings")"; else echo "# $s: $(system_settings "$s")"; fi
			SAID_OF[$s]=yes
		done
		echo "# $db on $fs: $(the settings)"
		table "$db" "$fs"
	done
done
bars_end
