// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * SQLite: one table, a number and its value. Write-ahead log, each write a transaction
 * that is durable when it returns (synchronous = FULL); loading takes 500 of them together.
 */
#include <sqlite3.h>

#include "ycsb.h"

#define TOGETHER	500

struct base {
	sqlite3 *db;
	sqlite3_stmt *put, *get, *scan;
	unsigned int open_writes;
	bool loading;
};

static void check(struct base *b, const char *what, int result)
{
	if (result != SQLITE_OK && result != SQLITE_ROW && result != SQLITE_DONE)
		ycsb_die(what, sqlite3_errmsg(b->db));
}

static void does(struct base *b, const char *sql)
{
	check(b, sql, sqlite3_exec(b->db, sql, NULL, NULL, NULL));
}

static void prepare(struct base *b, sqlite3_stmt **statement, const char *sql)
{
	check(b, sql, sqlite3_prepare_v2(b->db, sql, -1, statement, NULL));
}

static void *base_open(const struct ycsb_options *o)
{
	struct base *b = calloc(1, sizeof(*b));
	char text[4096];

	if (!b || o->lower_dir)
		ycsb_die("sqlite", "no memory, or two paths");
	snprintf(text, sizeof(text), "%s/data", o->dir);
	check(b, "open", sqlite3_open(text, &b->db));
	snprintf(text, sizeof(text), "PRAGMA cache_size = -%lu", o->cache_bytes >> 10);
	does(b, text);
	does(b, "PRAGMA journal_mode = WAL");
	does(b, "PRAGMA synchronous = FULL");
	does(b, "CREATE TABLE IF NOT EXISTS data (key INTEGER PRIMARY KEY, value BLOB)");
	prepare(b, &b->put, "INSERT OR REPLACE INTO data VALUES (?, ?)");
	prepare(b, &b->get, "SELECT value FROM data WHERE key = ?");
	prepare(b, &b->scan, "SELECT value FROM data WHERE key >= ? ORDER BY key LIMIT ?");
	b->loading = getenv("YCSB_LOADING") != NULL;
	return b;
}

static void end_writes(struct base *b)
{
	if (b->open_writes)
		does(b, "COMMIT");
	b->open_writes = 0;
}

static void base_put(void *db, uint64_t key, const char *value)
{
	struct base *b = db;

	if (b->loading && !b->open_writes++)
		does(b, "BEGIN");
	sqlite3_bind_int64(b->put, 1, (sqlite3_int64)key);
	sqlite3_bind_blob(b->put, 2, value, VALUE_BYTES, SQLITE_STATIC);
	check(b, "put", sqlite3_step(b->put));
	sqlite3_reset(b->put);
	if (b->open_writes == TOGETHER)
		end_writes(b);
}

static bool base_get(void *db, uint64_t key)
{
	struct base *b = db;
	bool found;

	sqlite3_bind_int64(b->get, 1, (sqlite3_int64)key);
	check(b, "get", sqlite3_step(b->get));
	found = sqlite3_column_bytes(b->get, 0) == VALUE_BYTES;
	sqlite3_reset(b->get);
	return found;
}

static void base_scan(void *db, uint64_t from, unsigned int keys)
{
	struct base *b = db;
	int result;

	sqlite3_bind_int64(b->scan, 1, (sqlite3_int64)from);
	sqlite3_bind_int(b->scan, 2, (int)keys);
	while ((result = sqlite3_step(b->scan)) == SQLITE_ROW)
		;
	check(b, "scan", result);
	sqlite3_reset(b->scan);
}

static void base_settle(void *db)
{
	end_writes(db);
	does(db, "PRAGMA wal_checkpoint(TRUNCATE)");
}

static void base_close(void *db)
{
	struct base *b = db;

	end_writes(b);
	sqlite3_finalize(b->put);
	sqlite3_finalize(b->get);
	sqlite3_finalize(b->scan);
	sqlite3_close(b->db);
	free(b);
}

const struct ycsb_engine ycsb_sqlite = {
	"sqlite", base_open, base_put, base_get, base_scan, base_settle, base_close,
};
