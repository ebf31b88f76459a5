/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The same mixes of operations for databases that live in a program: what one of them has to do,
 * and whose keys are drawn how. See main.c.
 */
#ifndef BENCH_YCSB_H
#define BENCH_YCSB_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VALUE_BYTES		1000
#define YCSB_PERSISTENT_LEAST	(100ULL << 20)

struct ycsb_options {
	const char *dir;
	const char *lower_dir;		/* RocksDB: where its lower levels go, or NULL */
	uint64_t upper_bytes;
	const char *persistent_dir;	/* RocksDB: where its persistent cache lies, or NULL */
	uint64_t persistent_bytes;
	uint64_t cache_bytes;
};

/* A database. Whatever fails ends the program, with the reason. */
struct ycsb_engine {
	const char *name;
	void *(*open)(const struct ycsb_options *o);
	void (*put)(void *db, uint64_t key, const char *value);
	bool (*get)(void *db, uint64_t key);
	void (*scan)(void *db, uint64_t from, unsigned int keys);
	void (*settle)(void *db);	/* what it does in the background has ended */
	void (*close)(void *db);
};

extern const struct ycsb_engine ycsb_rocksdb, ycsb_sqlite, ycsb_myrocks;

void ycsb_die(const char *what, const char *why) __attribute__((noreturn));

/* keys.c: which key next */
struct ycsb_keys;
struct ycsb_keys *ycsb_keys_create(uint64_t keys, uint64_t seed);
uint64_t ycsb_random(struct ycsb_keys *k, uint64_t below);
uint64_t ycsb_zipf(struct ycsb_keys *k);		/* scattered */
uint64_t ycsb_latest(struct ycsb_keys *k);		/* near the newest */
uint64_t ycsb_hotspot(struct ycsb_keys *k, bool clustered); /* 95 % to 5 % of the keys */
uint64_t ycsb_insert(struct ycsb_keys *k);		/* a new one */
uint64_t ycsb_loaded(const struct ycsb_keys *k, uint64_t nth); /* all keys in an order without pattern */

#ifdef __cplusplus
}
#endif

#endif
