// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RocksDB as the distribution has it, through its C++ interface: its C one has no persistent cache.
 * Reads are direct, so that the page cache does not answer them; writes are logged and not synced, its default.
 *
 * With lower_dir it tiers by itself (db_paths): log and upper levels lie in dir, as long as they fit in
 * upper_bytes, all others there. With persistent_dir its persistent cache of persistent_bytes lies there: blocks that
 * were read from dir, appended to files of 100 MiB. Of those the one that is being filled is read from memory, as
 * the library has it, and all are thrown away when the cache is opened.
 */
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/persistent_cache.h>
#include <rocksdb/table.h>

#include "ycsb.h"

namespace
{

struct base {
	std::unique_ptr<rocksdb::DB> db;
	std::string value;
};

base *of(void *db)
{
	return static_cast<base *>(db);
}

void check(const char *what, const rocksdb::Status &status)
{
	if (!status.ok())
		ycsb_die(what, status.ToString().c_str());
}

std::string key_of(uint64_t key)
{
	char text[17];

	snprintf(text, sizeof(text), "%016lu", key);
	return text;
}

rocksdb::BlockBasedTableOptions tables(const struct ycsb_options *o)
{
	rocksdb::BlockBasedTableOptions table;

	table.block_cache = rocksdb::NewLRUCache(o->cache_bytes);
	table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
	if (!o->persistent_dir)
		return table;
	/* a smaller one ends the program by an assertion of the library's */
	if (o->persistent_bytes < YCSB_PERSISTENT_LEAST)
		ycsb_die("persistent cache", "less than 100 MiB");
	check("persistent cache", rocksdb::NewPersistentCache(rocksdb::Env::Default(), o->persistent_dir, o->persistent_bytes, nullptr,
							      false, &table.persistent_cache));
	return table;
}

void *base_open(const struct ycsb_options *o)
{
	rocksdb::Options options;
	rocksdb::DB *db = nullptr;

	options.create_if_missing = true;
	options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(tables(o)));
	options.compression = rocksdb::kNoCompression;
	options.write_buffer_size = 2 << 20;
	options.target_file_size_base = 2 << 20;
	options.max_bytes_for_level_base = 8 << 20;
	/*
	 * db_paths has level 0, the log and the manifest on the fast drive, whatever there is room for: level 0 is
	 * to stay small, and no 4 MiB are taken for each manifest beforehand.
	 */
	options.level0_slowdown_writes_trigger = 5;
	options.level0_stop_writes_trigger = 6;
	options.manifest_preallocation_size = 64 << 10;
	options.use_direct_reads = true;
	if (o->lower_dir)
		options.db_paths = { { o->dir, o->upper_bytes }, { o->lower_dir, UINT64_MAX >> 1 } };
	check("open", rocksdb::DB::Open(options, o->dir, &db));
	return new base{ std::unique_ptr<rocksdb::DB>(db), {} };
}

void base_put(void *db, uint64_t key, const char *value)
{
	check("put", of(db)->db->Put({}, key_of(key), rocksdb::Slice(value, VALUE_BYTES)));
}

bool base_get(void *db, uint64_t key)
{
	rocksdb::Status status = of(db)->db->Get({}, key_of(key), &of(db)->value);

	if (status.IsNotFound())
		return false;
	check("get", status);
	return of(db)->value.size() == VALUE_BYTES;
}

void base_scan(void *db, uint64_t from, unsigned int keys)
{
	std::unique_ptr<rocksdb::Iterator> at(of(db)->db->NewIterator({}));

	for (at->Seek(key_of(from)); keys && at->Valid(); keys--)
		at->Next();
	check("scan", at->status());
}

uint64_t property(base *b, const char *name)
{
	uint64_t value = 0;

	return b->db->GetIntProperty(name, &value) ? value : 0;
}

void base_settle(void *db)
{
	base *b = of(db);

	check("flush", b->db->Flush({}));
	while (property(b, "rocksdb.compaction-pending") || property(b, "rocksdb.num-running-compactions") ||
	       property(b, "rocksdb.num-running-flushes"))
		std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

void base_close(void *db)
{
	check("close", of(db)->db->Close());
	delete of(db);
}

} // namespace

extern "C" const struct ycsb_engine ycsb_rocksdb = {
	"rocksdb", base_open, base_put, base_get, base_scan, base_settle, base_close,
};
