// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RocksDB as the distribution has it, through its C interface. Reads are direct, so
 * that the page cache does not answer them; writes are logged and not synced, its default. With
 * lower_dir it tiers by itself (db_paths): log and upper levels lie in dir, as long as they fit
 * in upper_bytes, all others there.
 */
#include <rocksdb/c.h>
#include <time.h>

#include "ycsb.h"

struct base {
	rocksdb_t *db;
	rocksdb_options_t *options;
	rocksdb_readoptions_t *read;
	rocksdb_writeoptions_t *write;
};

static void check(const char *what, char *error)
{
	if (error)
		ycsb_die(what, error);
}

static void key_of(char *text, uint64_t key)
{
	snprintf(text, 17, "%016lu", key);
}

static void two_paths(rocksdb_options_t *options, const struct ycsb_options *o)
{
	const rocksdb_dbpath_t *paths[] = {
		rocksdb_dbpath_create(o->dir, o->upper_bytes),
		rocksdb_dbpath_create(o->lower_dir, UINT64_MAX >> 1),
	};

	rocksdb_options_set_db_paths(options, paths, 2);
}

static void *base_open(const struct ycsb_options *o)
{
	rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
	struct base *b = calloc(1, sizeof(*b));
	char *error = NULL;

	if (!b)
		ycsb_die("memory", strerror(ENOMEM));
	rocksdb_block_based_options_set_block_cache(table, rocksdb_cache_create_lru(o->cache_bytes));
	rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom(10));
	b->options = rocksdb_options_create();
	rocksdb_options_set_create_if_missing(b->options, 1);
	rocksdb_options_set_block_based_table_factory(b->options, table);
	rocksdb_options_set_compression(b->options, rocksdb_no_compression);
	rocksdb_options_set_write_buffer_size(b->options, 2 << 20);
	rocksdb_options_set_target_file_size_base(b->options, 2 << 20);
	rocksdb_options_set_max_bytes_for_level_base(b->options, 8 << 20);
	/*
	 * db_paths has level 0, the log and the manifest on the fast drive, whatever there is room for: level 0 is
	 * to stay small, and no 4 MiB are taken for each manifest beforehand.
	 */
	rocksdb_options_set_level0_slowdown_writes_trigger(b->options, 5);
	rocksdb_options_set_level0_stop_writes_trigger(b->options, 6);
	rocksdb_options_set_manifest_preallocation_size(b->options, 64 << 10);
	rocksdb_options_set_use_direct_reads(b->options, 1);
	if (o->lower_dir)
		two_paths(b->options, o);
	b->read = rocksdb_readoptions_create();
	b->write = rocksdb_writeoptions_create();
	b->db = rocksdb_open(b->options, o->dir, &error);
	check("open", error);
	return b;
}

static void base_put(void *db, uint64_t key, const char *value)
{
	struct base *b = db;
	char *error = NULL, text[17];

	key_of(text, key);
	rocksdb_put(b->db, b->write, text, 16, value, VALUE_BYTES, &error);
	check("put", error);
}

static bool base_get(void *db, uint64_t key)
{
	struct base *b = db;
	char *error = NULL, *value, text[17];
	size_t length = 0;

	key_of(text, key);
	value = rocksdb_get(b->db, b->read, text, 16, &length, &error);
	check("get", error);
	free(value);
	return length == VALUE_BYTES;
}

static void base_scan(void *db, uint64_t from, unsigned int keys)
{
	struct base *b = db;
	rocksdb_iterator_t *at = rocksdb_create_iterator(b->db, b->read);
	char *error = NULL, text[17];

	key_of(text, from);
	for (rocksdb_iter_seek(at, text, 16); keys && rocksdb_iter_valid(at); keys--)
		rocksdb_iter_next(at);
	rocksdb_iter_get_error(at, &error);
	check("scan", error);
	rocksdb_iter_destroy(at);
}

static uint64_t property(struct base *b, const char *name)
{
	uint64_t value = 0;

	return rocksdb_property_int(b->db, name, &value) ? 0 : value;
}

static void base_settle(void *db)
{
	struct base *b = db;
	rocksdb_flushoptions_t *flush = rocksdb_flushoptions_create();
	char *error = NULL;

	rocksdb_flush(b->db, flush, &error);
	check("flush", error);
	rocksdb_flushoptions_destroy(flush);
	while (property(b, "rocksdb.compaction-pending") || property(b, "rocksdb.num-running-compactions") ||
	       property(b, "rocksdb.num-running-flushes"))
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
}

static void base_close(void *db)
{
	struct base *b = db;

	rocksdb_close(b->db);
	free(b);
}

const struct ycsb_engine ycsb_rocksdb = {
	"rocksdb", base_open, base_put, base_get, base_scan, base_settle, base_close,
};
