// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The manifest on disk.
 *
 *	write MANIFEST.new, fsync it, rename it over MANIFEST, fsync the directory
 *
 * A crash before the rename leaves the old manifest and a leftover MANIFEST.new; after
 * it, the new one.  Runs named by a manifest were synced before; runs it no longer names are
 * unlinked only after this returned, and by the next open if a crash comes between.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ralt/file_store.h"

#define MANIFEST_MAX_BYTES	(64u << 20)

static void fill(const struct ralt *r, struct manifest *m,
		 const struct manifest_run *runs, uint32_t count)
{
	*m = (struct manifest){
		.store = r->store,
		.volume = r->config.volume,
		.accesses = r->accesses,
		.next_run = r->next_run,
		.hot_limit = r->tune.hot_limit,
		.tuned_period = r->tune.tuned_period,
		.fast_blocks = r->config.fast_blocks,
		.tick_accesses = r->sizes.tick_accesses,
		.hot = r->judge.hot,
		.generation = r->generation,
		.runs = count,
	};
	for (uint32_t i = 0; i < count; i++)
		m->run[i] = runs[i];
}

static int write_whole(struct ralt *r, const char *name, const uint8_t *data, size_t bytes)
{
	int fd = file_open(&r->io, r->dir, name, O_WRONLY | O_CREAT | O_TRUNC);
	int err;

	if (fd < 0)
		return fd;
	err = file_write(&r->io, fd, data, bytes, 0);
	if (!err)
		err = file_sync(&r->io, fd);
	close(fd);
	return err;
}

int store_commit_with(struct ralt *r, const struct manifest_run *runs, uint32_t count)
{
	size_t bytes = manifest_bytes(count, r->forget.count);
	uint8_t *raw = malloc(bytes);
	struct manifest m;
	int err;

	if (!raw)
		return -ENOMEM;
	fill(r, &m, runs, count);
	manifest_encode(&m, &r->forget, raw);
	err = write_whole(r, "MANIFEST.new", raw, bytes);
	free(raw);
	if (!err)
		err = file_rename(&r->io, r->dir, "MANIFEST.new", "MANIFEST");
	return err ? err : file_sync(&r->io, r->dir);
}

int store_commit(struct ralt *r)
{
	struct manifest_run runs[RALT_RUNS_MAX];

	for (uint32_t i = 0; i < r->run_count; i++)
		runs[i] = (struct manifest_run){ r->runs[i].id, r->runs[i].level };
	return store_commit_with(r, runs, r->run_count);
}

/* A smaller forget_ranges than the file was written with must not cost the heat. */
static int decode(struct ralt *r, struct manifest *m, const uint8_t *raw, size_t bytes)
{
	int err = manifest_decode(m, &r->forget, raw, bytes);
	struct forget_range *grown;

	if (err != -ENOSPC)
		return err;
	r->forget.limit = bytes / 24 + 16;
	grown = realloc(r->forget.ranges, r->forget.limit * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	r->forget.ranges = grown;
	return manifest_decode(m, &r->forget, raw, bytes);
}

int store_read_manifest(struct ralt *r, struct manifest *m)
{
	int fd = file_open(&r->io, r->dir, "MANIFEST", O_RDONLY);
	uint8_t *raw = NULL;
	struct stat st;
	int err;

	if (fd < 0)
		return fd;
	err = fstat(fd, &st) ? -errno : 0;
	if (!err && (st.st_size <= 0 || st.st_size > (off_t)MANIFEST_MAX_BYTES))
		err = -EBADMSG;
	if (!err) {
		raw = malloc((size_t)st.st_size);
		err = raw ? file_read(&r->io, fd, raw, (size_t)st.st_size, 0) : -ENOMEM;
	}
	if (!err)
		err = decode(r, m, raw, (size_t)st.st_size);
	free(raw);
	close(fd);
	return err;
}

void store_drop_run(struct ralt *r, uint32_t at, int err)
{
	char name[RUN_NAME_BYTES];

	run_name(r->runs[at].id, name);
	run_close(&r->runs[at]);
	r->run_count--;
	for (uint32_t i = at; i < r->run_count; i++)
		r->runs[i] = r->runs[i + 1];
	/* Out of the manifest first: a manifest never names a run that is not there. */
	store_commit(r);
	store_set_aside(r, name, err);
}
