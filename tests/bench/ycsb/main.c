// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ycsb: YCSB's mixes on RocksDB and SQLite, as their own libraries have them, and on MyRocks, whose socket is in DIR
 *
 *	ycsb rocksdb|sqlite|myrocks DIR load KEYS
 *	ycsb rocksdb|sqlite|myrocks DIR MIX KEYS OPS SEED
 *
 * MIX, of reads, writes, and which keys:
 *
 *	C	all reads; Zipf 0.99, scattered		B	95 reads, 5 updates
 *	A	half updates				F	half of them read, then written
 *	D	95 reads of the newest, 5 inserts	E	95 scans of 1 to 100 records, 5 inserts
 *	hot	reads, 95 % of 5 % of the keys, scattered	near	… which lie together
 *	even	reads of any key
 *
 * Records of 16 and 1,000 bytes, half of which compress. Prints one line of name=value: operations a
 * second, the 99th and 99.9th percentile in microseconds, and reads that found nothing, which
 * must be none. From the environment: CACHE_MB of the database's own (8), and for RocksDB LOWER, the folder
 * of its lower levels (db_paths), beside UPPER_MB in DIR, or PERSISTENT, the folder of its persistent cache of PERSISTENT_MB.
 * WARM_OPS operations of the same mix come first, by the seed WARM_SEED, and count for nothing, for what a
 * process forgets when it ends; then the command WARMED runs.
 *
 * db_bench draws all but mixgraph's keys uniformly, and has no db_paths.
 */
#include <time.h>

#include "ycsb.h"

static const struct mix {
	const char *name;
	unsigned int writes;	/* of 100 */
	char keys;		/* z: Zipf, l: latest, h: hotspot, n: one that lies together, e: even */
	bool inserts, scans, reads_first;
} mixes[] = {
	{ .name = "C", .keys = 'z' },
	{ .name = "B", .keys = 'z', .writes = 5 },
	{ .name = "A", .keys = 'z', .writes = 50 },
	{ .name = "F", .keys = 'z', .writes = 50, .reads_first = true },
	{ .name = "D", .keys = 'l', .writes = 5, .inserts = true },
	{ .name = "E", .keys = 'z', .writes = 5, .inserts = true, .scans = true },
	{ .name = "hot", .keys = 'h' },
	{ .name = "near", .keys = 'n' },
	{ .name = "even", .keys = 'e' },
};

struct run {
	const struct ycsb_engine *engine;
	void *db;
	struct ycsb_keys *keys;
	uint64_t absent;
	char value[VALUE_BYTES];
};

void ycsb_die(const char *what, const char *why)
{
	fprintf(stderr, "ycsb: %s: %s\n", what, why);
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static void put(struct run *r, uint64_t key)
{
	for (unsigned int k = 0; k < VALUE_BYTES / 2; k += 4) {
		uint32_t bits = (uint32_t)ycsb_random(r->keys, 1ULL << 32);

		memcpy(r->value + k, &bits, 4);
	}
	r->engine->put(r->db, key, r->value);
}

static void get(struct run *r, uint64_t key)
{
	r->absent += !r->engine->get(r->db, key);
}

static uint64_t key_of(struct run *r, const struct mix *m)
{
	switch (m->keys) {
	case 'l':
		return ycsb_latest(r->keys);
	case 'h':
	case 'n':
		return ycsb_hotspot(r->keys, m->keys == 'n');
	case 'e':
		return ycsb_loaded(r->keys, ycsb_random(r->keys, 1ULL << 32));
	default:
		return ycsb_zipf(r->keys);
	}
}

static void operation(struct run *r, const struct mix *m)
{
	bool write = ycsb_random(r->keys, 100) < m->writes;
	uint64_t key = write && m->inserts ? ycsb_insert(r->keys) : key_of(r, m);

	if (!write && m->scans) {
		r->engine->scan(r->db, key, 1 + (unsigned int)ycsb_random(r->keys, 100));
		return;
	}
	if (!write || m->reads_first)
		get(r, key);
	if (write)
		put(r, key);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void mixed(struct run *r, const struct mix *m, uint64_t ops)
{
	uint64_t *took = calloc(ops, sizeof(*took)), began = now(), all;

	if (!took || !ops)
		ycsb_die("operations", "none, or no memory");
	for (uint64_t k = 0; k < ops; k++) {
		uint64_t from = now();

		operation(r, m);
		took[k] = now() - from;
	}
	all = now() - began;
	qsort(took, ops, sizeof(*took), by_size);
	printf("rate=%lu p99=%lu p999=%lu absent=%lu\n", ops * 1000000000 / all, took[(ops - 1) * 99 / 100] / 1000,
	       took[(ops - 1) * 999 / 1000] / 1000, r->absent);
	free(took);
}

static void warm_up(struct run *r, const struct mix *m, uint64_t keys)
{
	struct ycsb_keys *measured = r->keys;
	const char *then = getenv("WARMED");

	r->keys = ycsb_keys_create(keys, number_from("WARM_SEED", 0));
	for (uint64_t k = number_from("WARM_OPS", 0); k; k--)
		operation(r, m);
	if (then && system(then))
		ycsb_die("WARMED", then);
	r->keys = measured;
}

static void load(struct run *r, uint64_t keys)
{
	uint64_t began = now(), wrote;

	for (uint64_t k = 0; k < keys; k++)
		put(r, ycsb_loaded(r->keys, k));
	wrote = now() - began;
	r->engine->settle(r->db);
	printf("rate=%lu settled=%lu\n", keys * 1000000000 / wrote, (now() - began) / 1000000);
}

static const struct mix *mix_of(const char *name)
{
	for (size_t k = 0; k < sizeof(mixes) / sizeof(mixes[0]); k++)
		if (!strcmp(mixes[k].name, name))
			return &mixes[k];
	return NULL;
}

static const struct ycsb_engine *engine_of(const char *name)
{
	static const struct ycsb_engine *engines[] = { &ycsb_rocksdb, &ycsb_sqlite, &ycsb_myrocks };

	for (size_t k = 0; k < sizeof(engines) / sizeof(engines[0]); k++)
		if (!strcmp(engines[k]->name, name))
			return engines[k];
	return NULL;
}

int main(int argc, char **argv)
{
	struct ycsb_options o = { .lower_dir = getenv("LOWER"), .upper_bytes = number_from("UPPER_MB", 0) << 20,
				  .persistent_dir = getenv("PERSISTENT"), .persistent_bytes = number_from("PERSISTENT_MB", 0) << 20,
				  .cache_bytes = number_from("CACHE_MB", 8) << 20 };
	const struct mix *m = argc == 7 ? mix_of(argv[3]) : NULL;
	bool loads = argc == 5 && !strcmp(argv[3], "load");
	struct run r = { .engine = argc > 1 ? engine_of(argv[1]) : NULL };
	uint64_t keys;

	if ((!m && !loads) || !r.engine) {
		fprintf(stderr, "usage: ycsb rocksdb|sqlite|myrocks DIR load KEYS | A|B|C|D|E|F|hot|near|even KEYS OPS SEED\n");
		return 2;
	}
	o.dir = argv[2];
	keys = strtoull(argv[4], NULL, 0);
	if (loads)
		setenv("YCSB_LOADING", "1", 1);
	r.keys = ycsb_keys_create(keys, m ? strtoull(argv[6], NULL, 0) : 7);
	r.db = r.engine->open(&o);
	if (loads)
		load(&r, keys);
	if (m && getenv("WARM_OPS"))
		warm_up(&r, m, keys);
	if (m)
		mixed(&r, m, strtoull(argv[5], NULL, 0));
	r.engine->close(r.db);
	if (r.absent)
		ycsb_die("reads", "some keys were not there");
	return 0;
}
