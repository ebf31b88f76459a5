// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * MyRocks in a server that runs beside us: its socket is DIR/socket. One table, a number and its value; prepared
 * statements, each a transaction. Loading takes 100 rows a statement and 500 a transaction, and has no row
 * looked for before it is inserted (unique_checks), as its documentation has it for loads.
 */
#include <mariadb/mysql.h>
#include <time.h>

#include "ycsb.h"

#define ROWS		100	/* of a statement */
#define STATEMENTS	5	/* of a transaction */

struct base {
	MYSQL *server;
	MYSQL_STMT *put, *put_rows, *get, *scan;
	bool loading;
	unsigned int rows, statements;
	long long keys[ROWS];
	char values[ROWS][VALUE_BYTES];
};

static void does(struct base *b, const char *sql)
{
	MYSQL_RES *result;

	if (mysql_query(b->server, sql))
		ycsb_die(sql, mysql_error(b->server));
	result = mysql_store_result(b->server);
	if (result)
		mysql_free_result(result);
}

static MYSQL_STMT *prepare(struct base *b, const char *sql)
{
	MYSQL_STMT *s = mysql_stmt_init(b->server);

	if (!s || mysql_stmt_prepare(s, sql, strlen(sql)))
		ycsb_die(sql, mysql_error(b->server));
	return s;
}

static void execute(MYSQL_STMT *s, MYSQL_BIND *in)
{
	if (mysql_stmt_bind_param(s, in) || mysql_stmt_execute(s))
		ycsb_die("statement", mysql_stmt_error(s));
}

static MYSQL_BIND number(long long *value)
{
	return (MYSQL_BIND){ .buffer_type = MYSQL_TYPE_LONGLONG, .buffer = value };
}

static MYSQL_BIND bytes(char *value, unsigned long *length)
{
	return (MYSQL_BIND){ .buffer_type = MYSQL_TYPE_STRING, .buffer = value, .buffer_length = VALUE_BYTES, .length = length };
}

static MYSQL_STMT *prepare_rows(struct base *b)
{
	char sql[64 + ROWS * 6] = "INSERT INTO data VALUES (?,?)";

	for (unsigned int k = 1; k < ROWS; k++)
		strcat(sql, ",(?,?)");
	return prepare(b, sql);
}

static void *base_open(const struct ycsb_options *o)
{
	struct base *b = calloc(1, sizeof(*b));
	char socket[4096];

	if (!b || o->lower_dir)
		ycsb_die("myrocks", "no memory, or two paths");
	snprintf(socket, sizeof(socket), "%s/socket", o->dir);
	b->server = mysql_init(NULL);
	if (!b->server || !mysql_real_connect(b->server, NULL, "root", NULL, NULL, 0, socket, 0))
		ycsb_die("connect", b->server ? mysql_error(b->server) : "no memory");
	does(b, "CREATE DATABASE IF NOT EXISTS ycsb");
	does(b, "USE ycsb");
	does(b, "CREATE TABLE IF NOT EXISTS data (k BIGINT PRIMARY KEY, v VARBINARY(1000) NOT NULL) ENGINE = ROCKSDB");
	b->put = prepare(b, "REPLACE INTO data VALUES (?,?)");
	b->get = prepare(b, "SELECT v FROM data WHERE k = ?");
	b->scan = prepare(b, "SELECT v FROM data WHERE k >= ? ORDER BY k LIMIT ?");
	b->loading = getenv("YCSB_LOADING") != NULL;
	if (b->loading) {
		b->put_rows = prepare_rows(b);
		does(b, "SET unique_checks = 0");
		does(b, "BEGIN");
	}
	return b;
}

static void put_one(struct base *b, long long key, const char *value)
{
	unsigned long length = VALUE_BYTES;
	char copy[VALUE_BYTES];
	MYSQL_BIND in[] = { number(&key), bytes(copy, &length) };

	memcpy(copy, value, VALUE_BYTES);
	execute(b->put, in);
}

static void put_all(struct base *b)
{
	unsigned long length = VALUE_BYTES;
	MYSQL_BIND in[ROWS * 2];

	for (unsigned int k = 0; k < ROWS; k++) {
		in[2 * k] = number(&b->keys[k]);
		in[2 * k + 1] = bytes(b->values[k], &length);
	}
	execute(b->put_rows, in);
	b->rows = 0;
	if (++b->statements == STATEMENTS) {
		does(b, "COMMIT");
		does(b, "BEGIN");
		b->statements = 0;
	}
}

static void base_put(void *db, uint64_t key, const char *value)
{
	struct base *b = db;

	if (!b->loading) {
		put_one(b, (long long)key, value);
		return;
	}
	b->keys[b->rows] = (long long)key;
	memcpy(b->values[b->rows], value, VALUE_BYTES);
	if (++b->rows == ROWS)
		put_all(b);
}

/* rows that came, of which each must have its value */
static unsigned int fetch(MYSQL_STMT *s)
{
	unsigned long length = 0;
	char value[VALUE_BYTES];
	MYSQL_BIND out = bytes(value, &length);
	unsigned int rows = 0;
	int result;

	if (mysql_stmt_bind_result(s, &out))
		ycsb_die("result", mysql_stmt_error(s));
	while (!(result = mysql_stmt_fetch(s)))
		rows += length == VALUE_BYTES;
	if (result != MYSQL_NO_DATA)
		ycsb_die("fetch", mysql_stmt_error(s));
	mysql_stmt_free_result(s);
	return rows;
}

static bool base_get(void *db, uint64_t key)
{
	struct base *b = db;
	long long k = (long long)key;
	MYSQL_BIND in = number(&k);

	execute(b->get, &in);
	return fetch(b->get) == 1;
}

static void base_scan(void *db, uint64_t from, unsigned int keys)
{
	struct base *b = db;
	long long k = (long long)from, most = keys;
	MYSQL_BIND in[] = { number(&k), number(&most) };

	execute(b->scan, in);
	fetch(b->scan);
}

static bool finds(struct base *b, const char *sql)
{
	MYSQL_RES *result;
	bool any;

	if (mysql_query(b->server, sql))
		ycsb_die(sql, mysql_error(b->server));
	result = mysql_store_result(b->server);
	any = result && mysql_num_rows(result);
	mysql_free_result(result);
	return any;
}

/* What its background threads are at only its status tells, in words. */
static bool compacts(struct base *b)
{
	MYSQL_RES *result;
	MYSQL_ROW row;
	bool any = false;

	if (mysql_query(b->server, "SHOW ENGINE ROCKSDB STATUS"))
		ycsb_die("status", mysql_error(b->server));
	result = mysql_store_result(b->server);
	while (result && (row = mysql_fetch_row(result)))
		any |= strstr(row[2], "operation_type: Compaction") || strstr(row[2], "operation_type: Flush");
	mysql_free_result(result);
	return any;
}

static void base_settle(void *db)
{
	struct base *b = db;
	static const char pending[] = "SELECT 1 FROM information_schema.rocksdb_cfstats WHERE value > 0 AND stat_type IN "
				      "('NUM_IMMUTABLE_MEM_TABLE', 'MEM_TABLE_FLUSH_PENDING', 'COMPACTION_PENDING')";

	while (b->rows)
		b->rows--, put_one(b, b->keys[b->rows], b->values[b->rows]);
	does(b, "COMMIT");
	does(b, "SET GLOBAL rocksdb_force_flush_memtable_now = 1");
	while (finds(b, pending) || compacts(b))
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
}

static void base_close(void *db)
{
	struct base *b = db;

	mysql_close(b->server);
	free(b);
}

const struct ycsb_engine ycsb_myrocks = {
	"myrocks", base_open, base_put, base_get, base_scan, base_settle, base_close,
};
