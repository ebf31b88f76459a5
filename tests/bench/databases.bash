# SPDX-License-Identifier: GPL-2.0-or-later
# Databases that are measured, unmodified, each in the folder $DIR; sourced by db.sh.
#
# NAME_ready		once: programs are in RAM
# NAME_load		makes the database and loads it
# NAME_rows		the rows that NAME_run knows, or $ROWS of them
# NAME_run ROW SEED	does NAME_ops of them: RATE, P99, P999 (us)
# NAME_ops ROW		$OPS, or less where one of them takes long
# NAME_end		whatever it runs has ended
# NAME_settings		one line: how it is set
#
# The machine has more memory than the databases are large. RocksDB and MyRocks read past the page cache; SQLite and
# PostgreSQL, which cannot, run with PAGE_MB and PG_MB of memory for themselves and their part of the page cache (a cgroup).
#
# With $WARMS_INSIDE rocksdb_run does $WARM operations in the same process before those that count, by the seed SEED - 1, and
# has what the drives have done counted then.
#
# shellcheck shell=bash disable=SC2034

KEYS=${KEYS:-100000}	# three times the fast drive
OPS=${OPS:-4000}
PAGE_MB=${PAGE_MB:-24}
PG_MB=${PG_MB:-48}		# its processes alone take half of that
CGROUP=/sys/fs/cgroup/database

# only ROW...: those of them that are in $ROWS
only() {
	local row found=()
	for row; do [[ ${ROWS:-} && $row != load && ,$ROWS, != *,$row,* ]] || found+=("$row"); done
	echo "${found[*]}"
}

word() { sed -n "s/.*\b$1=\([0-9]*\).*/\1/p" <<< "$SAID"; }

# small MB COMMAND...: in a cgroup with so little memory
small() {
	if [ ! -d $CGROUP ]; then
		mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup
		echo +memory > /sys/fs/cgroup/cgroup.subtree_control
		mkdir $CGROUP
	fi
	echo "$1M" > $CGROUP/memory.max
	shift
	(echo "$BASHPID" > $CGROUP/cgroup.procs && exec "$@")
}

# counters: what the drives have read and written so far, as a command for any shell, into /dev/shm/counted
counters() { echo "for drive in fastd slowd; do LD_LIBRARY_PATH=$RAM/lib $RAM/dmsetup status --noflush \$drive; done > /dev/shm/counted"; }

# ---- RocksDB and SQLite, by build/ycsb ----

mixes() {	# ENGINE ARG...
	SAID=$(from_ram ycsb "$@" 2>&1) || die "ycsb $*: $SAID"
	RATE=$(word rate) P99=$(word p99) P999=$(word p999)
	[ "$RATE" ] || die "ycsb $*: $SAID"
}

rocksdb_ready() { PATH=$TERRACE_TREE/build:$PATH in_ram ycsb; }
rocksdb_load() { mkdir -p $DIR/data && mixes rocksdb $DIR/data load "$KEYS"; }
rocksdb_rows() { only load C B A F D E hot near; }
rocksdb_ops() { if [ "$1" = E ]; then echo $((OPS / 10)); else echo "$OPS"; fi; }
rocksdb_run() {
	local -x WARM_OPS WARM_SEED=$((SEED - 1)) WARMED
	if [ "${WARMS_INSIDE:-}" ]; then WARM_OPS=$WARM WARMED=$(counters); fi
	mixes rocksdb $DIR/data "$1" "$KEYS" "$(rocksdb_ops "$1")" "$2"
}
rocksdb_end() { :; }
rocksdb_settings() {
	echo "$KEYS records of 1,016 bytes that compress by half, nothing compressed by the database; block cache 8 MiB, memtable and tables 2 MiB, level 1 8 MiB, at most 6 tables in level 0, bloom filters of 10 bits, direct reads, WAL not synced; its own threads"
}

sqlite_ready() { rocksdb_ready; }
sqlite() {
	SAID=$(small "$PAGE_MB" env LD_LIBRARY_PATH=$RAM/lib CACHE_MB=8 "$RAM/ycsb" sqlite $DIR/data "$@" 2>&1) || die "ycsb sqlite $*: $SAID"
	RATE=$(word rate) P99=$(word p99) P999=$(word p999)
}
sqlite_load() { mkdir -p $DIR/data && sqlite load "$KEYS"; }
sqlite_rows() { only load C B A; }
sqlite_ops() { if [ "$1" = A ]; then echo $((OPS / 4)); else echo "$OPS"; fi; }
sqlite_run() { sqlite "$1" "$KEYS" "$(sqlite_ops "$1")" "$2"; }
sqlite_end() { :; }
sqlite_settings() {
	echo "$KEYS records of 1,008 bytes in a table; cache 8 MiB and $PAGE_MB MiB of memory in all, write-ahead log, each write a transaction with synchronous = FULL"
}

# ---- PostgreSQL, by pgbench ----

# Its programs find their files beside themselves, so all of it goes to RAM. The cluster is made once.
PG=/dev/shm/pg
PG_SCALE=${PG_SCALE:-6}		# 15 MiB each

as_postgres() { setpriv --reuid=postgres --regid=postgres --clear-groups env -i LD_LIBRARY_PATH=$RAM/lib HOME=$PG PATH="$PG_BIN:/usr/bin:/bin" LC_ALL=C "$@"; }

postgres_ready() {
	local version
	version=$(find /usr/lib/postgresql -mindepth 1 -maxdepth 1 -printf '%f\n' 2> /dev/null | sort -n | tail -1)
	[ "$version" ] || skip "no PostgreSQL is installed"
	PG_BIN=$PG/usr/lib/postgresql/$version/bin
	[ ! -e "$PG_BIN" ] || return 0
	mkdir -p $PG/usr/lib/postgresql $PG/usr/share/postgresql
	cp -r "/usr/lib/postgresql/$version" $PG/usr/lib/postgresql/
	cp -r "/usr/share/postgresql/$version" $PG/usr/share/postgresql/
	PATH=$PG_BIN:$PATH in_ram postgres pgbench initdb
	chown -R postgres $PG
	as_postgres initdb -D $PG/cluster -A trust --no-sync -U postgres > /dev/shm/said 2>&1 || die "initdb: $(tail -3 /dev/shm/said)"
	cat >> $PG/cluster/postgresql.conf <<-TEXT
		listen_addresses = ''
		unix_socket_directories = '$PG'
		shared_buffers = 8MB
		max_connections = 8
		maintenance_work_mem = 4MB
		wal_recycle = off
		max_wal_size = 64MB
		autovacuum = off
		jit = off
	TEXT
}

pg_start() {	# FOLDER
	chown -R postgres "$1"
	small "$PG_MB" setpriv --reuid=postgres --regid=postgres --clear-groups env -i LD_LIBRARY_PATH=$RAM/lib LC_ALL=C "$PG_BIN/postgres" -D "$1" > /dev/shm/postgres.log 2>&1 &
	PG_PID=$!
	wait_for "PostgreSQL answers: $(tail -3 /dev/shm/postgres.log)" pg_answers
}
pg_answers() { as_postgres "$PG_BIN/pg_isready" -q -h $PG; }
postgres_end() {
	kill -INT "$(head -1 $DIR/data/postmaster.pid)"
	wait "$PG_PID" || true
}

postgres_load() {
	cp -r $PG/cluster $DIR/data
	chmod 700 $DIR/data
	pg_start $DIR/data
	local from=$EPOCHREALTIME
	as_postgres pgbench -h $PG -U postgres -i -q -s "$PG_SCALE" postgres > /dev/shm/said 2>&1 || die "pgbench -i: $(tail -3 /dev/shm/said)"
	RATE=$(awk -v n=$((PG_SCALE * 100000)) -v a="$from" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.0f", n / (b - a) }')
	P99= P999=
}
postgres_rows() { only load select simple; }
postgres_ops() { if [ "$1" = simple ]; then echo $((OPS / 4)); else echo "$OPS"; fi; }
# accounts by Zipf 1.1 (pgbench's is above 1), scattered; select: one by its number; simple: pgbench's "simple update", three statements and a commit
postgres_run() {
	local n=$((PG_SCALE * 100000)) ops
	ops=$(postgres_ops "$1")
	{
		echo "\\set aid 1 + permute(random_zipfian(1, $n, 1.1) - 1, $n)"
		echo "\\set delta random(-5000, 5000)"
		if [ "$1" = select ]; then
			echo "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;"
		else
			printf '%s\n' "BEGIN;" "UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;" \
				"SELECT abalance FROM pgbench_accounts WHERE aid = :aid;" \
				"INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, :aid, :delta, CURRENT_TIMESTAMP);" "END;"
		fi
	} > $PG/script
	rm -f $PG/log.*
	(cd $PG && as_postgres pgbench -h $PG -U postgres -n -f $PG/script -t "$ops" --random-seed="$2" -l --log-prefix=$PG/log postgres) > /dev/shm/said 2>&1 ||
		die "pgbench: $(tail -3 /dev/shm/said)"
	RATE=$(sed -n 's/^tps = \([0-9]*\).*/\1/p' /dev/shm/said)
	# the third word of a line of the log is the latency in us
	read -r P99 P999 < <(sort -n -k3,3 $PG/log.* | awk '{ t[NR] = $3 } END { print t[int((NR - 1) * 0.99) + 1], t[int((NR - 1) * 0.999) + 1] }')
	[ "$RATE" ] || die "pgbench printed no rate: $(tail -3 /dev/shm/said)"
}
postgres_settings() {
	echo "PostgreSQL $(basename "$(dirname "$PG_BIN")"), pgbench at scale $PG_SCALE, one client, accounts by Zipf 1.1, scattered; shared_buffers 8 MB and $PG_MB MiB of memory in all, fsync on, autovacuum off"
}

# ---- MyRocks: a MariaDB server, by build/ycsb ----

# Its plugin and its messages lie in folders of their own, so they go to RAM as well. System tables it needs none:
# nobody has a password, and without InnoDB a server is there in a second.
MYROCKS=/dev/shm/myrocks
MYROCKS_CF="write_buffer_size=2m;target_file_size_base=2m;max_bytes_for_level_base=8m;level0_slowdown_writes_trigger=5;level0_stop_writes_trigger=6;compression=kNoCompression;block_based_table_factory={filter_policy=bloomfilter:10:false;whole_key_filtering=1}"

myrocks_ready() {
	local plugin=/usr/lib/mysql/plugin/ha_rocksdb.so lib
	[ -e $plugin ] || skip "no MyRocks is installed"
	[ ! -e $MYROCKS ] || return 0
	rocksdb_ready
	PATH=/usr/sbin:$PATH in_ram mariadbd
	mkdir -p $MYROCKS/plugin $MYROCKS/share
	cp $plugin $MYROCKS/plugin/
	cp -r /usr/share/mysql/english /usr/share/mysql/charsets $MYROCKS/share/
	while read -r _ _ lib _; do
		[[ $lib != /* || -e $RAM/lib/${lib##*/} ]] || cp -L "$lib" "$RAM/lib/"
	done <<< "$(ldd $plugin)"
	cat > $MYROCKS/my.cnf <<-TEXT
		[mariadbd]
		user = root
		skip_networking
		skip_grant_tables
		skip_ssl
		skip_innodb
		performance_schema = off
		tmpdir = $MYROCKS
		plugin_dir = $MYROCKS/plugin
		lc_messages_dir = $MYROCKS/share
		character_sets_dir = $MYROCKS/share/charsets
		plugin_load_add = ha_rocksdb
		plugin_maturity = gamma
		default_storage_engine = rocksdb
		rocksdb_block_cache_size = 8M
		rocksdb_use_direct_reads = on
		rocksdb_default_cf_options = $MYROCKS_CF
	TEXT
}

myrocks_answers() {
	kill -0 "$MYROCKS_PID" 2> /dev/null || die "MariaDB: $(tail -3 /dev/shm/mariadbd.log)"
	grep -q 'ready for connections' /dev/shm/mariadbd.log
}
myrocks_load() {
	mkdir -p $DIR/data
	: > /dev/shm/mariadbd.log	# the last one's said that it was ready
	LD_LIBRARY_PATH=$RAM/lib "$RAM/mariadbd" --defaults-file=$MYROCKS/my.cnf --datadir=$DIR/data --socket=$DIR/data/socket > /dev/shm/mariadbd.log 2>&1 &
	MYROCKS_PID=$!
	wait_for "MariaDB answers" myrocks_answers
	mixes myrocks $DIR/data load "$KEYS"
}
myrocks_rows() { only load C B A hot; }
myrocks_ops() { if [ "$1" = A ]; then echo $((OPS / 4)); else echo "$OPS"; fi; }
myrocks_run() { mixes myrocks $DIR/data "$1" "$KEYS" "$(myrocks_ops "$1")" "$2"; }
myrocks_end() {
	kill "$MYROCKS_PID"
	wait "$MYROCKS_PID" || die "MariaDB: $(tail -3 /dev/shm/mariadbd.log)"
}
myrocks_settings() {
	echo "$(sed -n "s/^Version: '\([^']*\)'.*/MariaDB \1/p" /dev/shm/mariadbd.log) with MyRocks, one client, $KEYS rows of 1,008 bytes in a table, prepared statements, each write a transaction with rocksdb_flush_log_at_trx_commit = 1, its default; rocksdb_block_cache_size 8 MiB, rocksdb_use_direct_reads on, rocksdb_default_cf_options $MYROCKS_CF; InnoDB, TLS, grant tables and performance_schema off; loaded 100 rows a statement and 500 a transaction with unique_checks = 0"
}
