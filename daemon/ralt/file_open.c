// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Opening a store: lock, manifest, runs, leftovers.
 *
 * Whatever is damaged is renamed to NAME.bad (replacing an older one, so that damage
 * cannot fill the disk) and reported; the store goes on with the rest.  Heat
 * is an opinion: losing it makes a volume slower for a while, never wrong.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "ralt/file_store.h"

#define FILTER_BITS	16	/* of the filter of the buffer, for each record */

void store_report(const struct ralt *r, enum ralt_event event, const char *file, int err)
{
	if (r->config.report)
		r->config.report(r->config.report_ctx, event, file, err);
}

void store_set_aside(struct ralt *r, const char *name, int err)
{
	char bad[RUN_NAME_BYTES + 8];

	snprintf(bad, sizeof(bad), "%s.bad", name);
	if (file_rename(&r->io, r->dir, name, bad))
		file_unlink(&r->io, r->dir, name);
	store_report(r, RALT_SET_ASIDE, name, err);
}

static bool is_listed(const struct ralt *r, const char *name)
{
	char known[RUN_NAME_BYTES];

	for (uint32_t i = 0; i < r->run_count; i++) {
		run_name(r->runs[i].id, known);
		if (!strcmp(known, name))
			return true;
	}
	return false;
}

static bool is_run_name(const char *name)
{
	size_t length = strlen(name);

	return !strncmp(name, "run-", 4) && length > 5 && !strcmp(name + length - 5, ".ralt");
}

/* Runs that no manifest names: cut off before their commit, or replaced just before a crash. */
static void for_each_leftover(struct ralt *r, bool set_aside, int err)
{
	int fd = openat(r->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir))) {
		if (!is_run_name(entry->d_name) || is_listed(r, entry->d_name))
			continue;
		if (set_aside)
			store_set_aside(r, entry->d_name, err);
		else
			file_unlink(&r->io, r->dir, entry->d_name);
	}
	closedir(dir);
}

static void start_cold(struct ralt *r)
{
	r->store = r->config.nonce;
	r->accesses = 0;
	r->next_run = 1;
	r->generation = 0;
	r->forget.count = 0;
	r->judge.hot = (struct ralt_threshold){ .set = false };
	tune_init(&r->tune, &r->sizes);
	r->sample_complete = true;
	store_report(r, RALT_COLD, NULL, 0);
}

static void take_over(struct ralt *r, const struct manifest *m)
{
	r->store = m->store;
	r->accesses = m->accesses;
	r->next_run = m->next_run;
	r->generation = m->generation;
	r->judge.hot = m->hot;
	tune_init(&r->tune, &r->sizes);
	r->tune.hot_limit = m->hot_limit;
	r->tune.tuned_period = m->tuned_period;
}

static int open_runs(struct ralt *r, const struct manifest *m)
{
	bool lost = false;

	for (uint32_t i = 0; i < m->runs; i++) {
		char name[RUN_NAME_BYTES];
		int err = run_open(&r->runs[r->run_count], &r->io, r->dir, r->store,
				   m->run[i].id, m->run[i].level);

		if (err == -ENOMEM)
			return err;
		if (!err) {
			r->run_count++;
			continue;
		}
		run_name(m->run[i].id, name);
		store_set_aside(r, name, err);
		lost = true;
	}
	return lost ? store_commit(r) : 0;
}

/* Ticks of another length would bend time: what has passed is so many ticks still.  They are shares of the fast tier. */
static void adapt_to_size(struct ralt *r, const struct manifest *m)
{
	uint64_t tick = r->sizes.tick_accesses, then = m->tick_accesses;

	if (then && then != tick)
		r->accesses = m->accesses / then * tick + (uint64_t)((double)(m->accesses % then) * (double)tick / (double)then);
	if (m->fast_blocks == r->config.fast_blocks || !m->fast_blocks)
		return;
	if (!then)
		r->accesses = (uint64_t)((double)m->accesses * (double)r->config.fast_blocks /
					 (double)m->fast_blocks);
	r->tune.hot_limit = tune_limit(&r->sizes, 0);
}

static int recover(struct ralt *r)
{
	struct manifest m;
	int err = store_read_manifest(r, &m);

	if (err == -ENOMEM)
		return err;
	if (!err && m.volume != r->config.volume) {
		store_report(r, RALT_OTHER_VOLUME, "MANIFEST", -EXDEV);
		err = -EXDEV;
	}
	if (err) {
		bool nothing = err == -ENOENT;

		for_each_leftover(r, !nothing, err);
		if (!nothing)
			store_set_aside(r, "MANIFEST", err);
		start_cold(r);
		return store_commit(r);
	}
	take_over(r, &m);
	adapt_to_size(r, &m);
	err = open_runs(r, &m);
	if (err)
		return err;
	for_each_leftover(r, false, 0);
	if (!r->run_count)
		store_report(r, RALT_COLD, NULL, 0);
	r->sample_complete = !r->run_count;
	return 0;
}

static int lock_directory(struct ralt *r)
{
	r->dir = open(r->config.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->dir < 0)
		return -errno;
	r->lock = openat(r->dir, "LOCK", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (r->lock < 0)
		return -errno;
	if (flock(r->lock, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return 0;
}

/* Heat in the buffer is not seen by the filters: on a small fast tier it must turn over sooner. */
static uint32_t buffer_limit(const struct ralt *r)
{
	uint64_t share = r->config.fast_blocks / 32;
	uint32_t most = r->config.tunables.buffer_records;

	if (share < 4096)
		share = 4096;
	return share < most ? (uint32_t)share : most;
}

static int allocate(struct ralt *r)
{
	const struct ralt_tunables *t = &r->config.tunables;

	r->buffer_limit = buffer_limit(r);
	r->buffer = malloc((size_t)r->buffer_limit * sizeof(*r->buffer));
	for (r->filter_bits = 64; r->filter_bits < (uint64_t)r->buffer_limit * FILTER_BITS;)
		r->filter_bits *= 2;
	r->in_buffer = calloc(r->filter_bits-- / 64, sizeof(*r->in_buffer));
	r->sample_memory = malloc(sample_bytes(t->samples));
	r->scratch = malloc(t->samples * sizeof(*r->scratch));
	forget_init(&r->forget, malloc(t->forget_ranges * sizeof(*r->forget.ranges)),
		    t->forget_ranges);
	if (!r->buffer || !r->in_buffer || !r->sample_memory || !r->scratch || !r->forget.ranges || page_cache_init(&r->pages))
		return -ENOMEM;
	sample_init(&r->sample, t->samples, 0, r->sample_memory);
	return 0;
}

static void destroy(struct ralt *r, bool ring)
{
	if (ring)
		job_abort(r);
	for (uint32_t i = 0; i < r->run_count; i++)
		run_close(&r->runs[i]);
	if (ring)
		file_io_exit(&r->io);
	if (r->lock >= 0)
		close(r->lock);
	if (r->dir >= 0)
		close(r->dir);
	free(r->buffer);
	free(r->in_buffer);
	free(r->sample_memory);
	free(r->scratch);
	free(r->forget.ranges);
	page_cache_exit(&r->pages);
	free(r);
}

static int start(struct ralt *r)
{
	int err = recover(r);

	if (err)
		return err;
	store_set_time(r);
	return r->sample_complete ? 0 : job_begin_census(r);
}

int ralt_open(struct ralt **out, const struct ralt_config *config)
{
	struct ralt *r;
	bool ring = false;
	int err = ralt_tunables_check(&config->tunables, NULL);

	if (err || !config->fast_blocks)
		return err ? err : -EINVAL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->config = *config;
	r->dir = r->lock = -1;
	ralt_sizes_of(&r->sizes, &config->tunables, config->fast_blocks);
	ralt_decay_init(&r->decay, config->tunables.alpha);
	ralt_judge_init(&r->judge, &config->tunables, &r->sizes, &r->decay);
	r->judge.passed_on = config->passed_on;
	err = lock_directory(r);
	if (!err)
		err = allocate(r);
	if (!err) {
		err = file_io_init(&r->io);
		ring = !err;
	}
	if (!err)
		err = start(r);
	if (err) {
		destroy(r, ring);
		return err;
	}
	*out = r;
	return 0;
}

int ralt_close(struct ralt *r)
{
	int err;

	job_abort(r);
	err = store_flush(r);
	destroy(r, true);
	return err;
}
