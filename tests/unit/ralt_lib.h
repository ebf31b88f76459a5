/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A store in a fresh directory, with reports counted, for the tests of RALT's files. */
#ifndef TESTS_RALT_LIB_H
#define TESTS_RALT_LIB_H

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "policy_lib.h"

#include "decide/prng.h"
#include "ralt/ralt.h"

struct bench {
	char dir[64];
	struct ralt_config config;
	struct ralt *r;
	int reports[RALT_DROPPED + 1];
};

static void bench_report(void *ctx, enum ralt_event event, const char *file, int err)
{
	struct bench *b = ctx;

	(void)file;
	(void)err;
	b->reports[event]++;
}

static inline void bench_open(struct bench *b)
{
	memset(b->reports, 0, sizeof(b->reports));
	assert_int_equal(ralt_open(&b->r, &b->config), 0);
}

static inline void bench_init(struct bench *b, uint64_t fast_blocks)
{
	memset(b, 0, sizeof(*b));
	/* Memory where there is some: thousands of fsyncs, and no power to lose. */
	strcpy(b->dir, access("/dev/shm", W_OK) ? "/tmp/ralt-test-XXXXXX" : "/dev/shm/ralt-test-XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	b->config = (struct ralt_config){
		.directory = b->dir, .volume = 77, .nonce = 0x1234, .fast_blocks = fast_blocks,
		.report = bench_report, .report_ctx = b,
	};
	tunable_defaults(&ralt_tunable_table, &b->config.tunables);
}

/* Calls @each with the path of every file but LOCK; returns their number. */
static inline int bench_files(const struct bench *b, void (*each)(const char *path))
{
	DIR *d = opendir(b->dir);
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		char path[512];

		if (e->d_name[0] == '.' || !strcmp(e->d_name, "LOCK"))
			continue;
		n++;
		snprintf(path, sizeof(path), "%s/%s", b->dir, e->d_name);
		if (each)
			each(path);
	}
	closedir(d);
	return n;
}

static inline void bench_unlink(const char *path)
{
	unlink(path);
}

static inline void bench_exit(struct bench *b)
{
	char path[512];

	if (b->r)
		assert_int_equal(ralt_close(b->r), 0);
	bench_files(b, bench_unlink);
	snprintf(path, sizeof(path), "%s/LOCK", b->dir);
	unlink(path);
	rmdir(b->dir);
}

static inline void touch(struct bench *b, uint64_t block)
{
	assert_int_equal(ralt_insert(b->r, block, ralt_generation(b->r)), 0);
}

/* Merges until nothing is due. */
static inline void finish_work(struct bench *b)
{
	int more;

	do {
		more = ralt_work(b->r, 100000);
	} while (more > 0);
	assert_int_equal(more, 0);
}

/* A fast tier of 2000 blocks, and little of everything. */
static inline void bench_small(struct bench *b)
{
	bench_init(b, 2000);
	b->config.tunables.buffer_records = 256;
	b->config.tunables.page_bytes = 4096;
	b->config.tunables.samples = 512;
}

/* 100 hot blocks among 4000, scattered; all filters, no sample to help (64 of thousands). */
static inline void load_hotspot(struct bench *b, struct prng *p, int accesses, uint64_t first)
{
	for (int i = 0; i < accesses; i++)
		touch(b, prng_below(p, 20) ? first + 13 * prng_below(p, 100) : prng_below(p, 100000));
}

#endif
