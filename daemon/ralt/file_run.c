// SPDX-License-Identifier: GPL-2.0-or-later
/* Opening and reading runs; see file_run.h. */
#include "ralt/file_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ralt/bytes.h"
#include "ralt/page.h"

void run_name(uint64_t id, char name[RUN_NAME_BYTES])
{
	snprintf(name, RUN_NAME_BYTES, "run-%016llx.ralt", (unsigned long long)id);
}

/* A file that ends early is as damaged as one with a wrong checksum. */
static int damaged(int err)
{
	return err == -ENODATA ? -EBADMSG : err;
}

static int read_footer(struct ralt_run *run, struct file_io *io, uint64_t store)
{
	const struct run_footer *f = &run->footer;
	uint8_t raw[RALT_FOOTER_BYTES];
	struct stat st;
	int err;

	if (fstat(run->fd, &st))
		return -errno;
	if (st.st_size < (off_t)(RALT_RUN_HEADER + RALT_FOOTER_BYTES))
		return -EBADMSG;
	err = file_read(io, run->fd, raw, sizeof(raw), (uint64_t)st.st_size - sizeof(raw));
	if (!err)
		err = run_footer_decode(&run->footer, raw);
	if (err)
		return damaged(err);
	if (f->store != store || f->id != run->id || f->page_bytes < 4096 ||
	    f->page_bytes > 65536 ||
	    f->index_at + (uint64_t)f->pages * RALT_INDEX_ENTRY + sizeof(raw) !=
		    (uint64_t)st.st_size ||
	    f->bloom_at + f->bloom_words * 8 > f->index_at)
		return -EBADMSG;
	return 0;
}

/* In pieces: one read of everything would need the index twice in memory. */
static int read_index(struct ralt_run *run, struct file_io *io)
{
	const struct run_footer *f = &run->footer;
	size_t bytes = (size_t)f->pages * RALT_INDEX_ENTRY;
	uint8_t *raw = malloc(bytes + 1);
	int err = -ENOMEM;

	run->index.pages = malloc((size_t)f->pages * sizeof(*run->index.pages) + 1);
	if (raw && run->index.pages)
		err = bytes ? file_read(io, run->fd, raw, bytes, f->index_at) : 0;
	if (!err && ralt_checksum(f->id, raw, bytes) != f->index_checksum)
		err = -EBADMSG;
	for (uint32_t i = 0; !err && i < f->pages; i++) {
		run_index_decode(&run->index.pages[i], raw + (size_t)i * RALT_INDEX_ENTRY);
		if (run->index.pages[i].bloom_end > f->bloom_words)
			err = -EBADMSG;
	}
	free(raw);
	return damaged(err);
}

static int read_bloom(struct ralt_run *run, struct file_io *io)
{
	const struct run_footer *f = &run->footer;
	uint64_t bytes = f->bloom_words * 8, sum = f->id;
	int err = 0;

	run->index.bloom = malloc(bytes + 8);
	if (!run->index.bloom)
		return -ENOMEM;
	for (uint64_t at = 0; at < bytes && !err; at += RUN_CHUNK_BYTES) {
		size_t n = bytes - at < RUN_CHUNK_BYTES ? bytes - at : RUN_CHUNK_BYTES;
		uint8_t *to = (uint8_t *)run->index.bloom + at;

		err = file_read(io, run->fd, to, n, f->bloom_at + at);
		sum = ralt_checksum(sum, to, n);
		for (size_t i = 0; i < n; i += 8) {
			uint64_t word = get_le64(to + i);

			memcpy(to + i, &word, 8);
		}
	}
	if (!err && sum != f->bloom_checksum)
		err = -EBADMSG;
	return damaged(err);
}

int run_open(struct ralt_run *run, struct file_io *io, int dir, uint64_t store, uint64_t id,
	     uint32_t level)
{
	char name[RUN_NAME_BYTES];
	int err;

	*run = (struct ralt_run){ .id = id, .level = level };
	run_name(id, name);
	run->fd = file_open(io, dir, name, O_RDONLY);
	if (run->fd < 0)
		return run->fd == -ENOENT ? -EBADMSG : run->fd;
	err = read_footer(run, io, store);
	if (!err)
		err = read_index(run, io);
	if (!err)
		err = read_bloom(run, io);
	if (err) {
		run_close(run);
		return err;
	}
	run->index.page_count = run->footer.pages;
	run->index.probes = run->footer.bloom_probes;
	run->index.hot = run->footer.hot;
	return 0;
}

void run_close(struct ralt_run *run)
{
	if (run->fd >= 0)
		close(run->fd);
	free(run->index.pages);
	free(run->index.bloom);
	run->fd = -1;
	run->index = (struct run_index){ 0 };
}

static uint64_t page_offset(const struct ralt_run *run, uint32_t page)
{
	return RALT_RUN_HEADER + (uint64_t)page * run->footer.page_bytes;
}

int run_read_page(const struct ralt_run *run, struct file_io *io, uint32_t page, uint8_t *to)
{
	int err = file_read(io, run->fd, to, run->footer.page_bytes, page_offset(run, page));

	if (err)
		return damaged(err);
	return page_open(to, run->footer.page_bytes, run->footer.id, page);
}

/* Chunk n lives in buffer n % 2. */
static int ask_ahead(struct run_reader *r)
{
	uint32_t page = r->next_page, left = r->run->footer.pages - page;
	uint32_t n = left < r->chunk_pages ? left : r->chunk_pages;
	uint32_t which = page / r->chunk_pages % 2;

	if (!n)
		return 0;
	r->next_page += n;
	return file_start(r->io, &r->request[which], false, r->run->fd, r->buffer[which],
			  (size_t)n * r->run->footer.page_bytes, page_offset(r->run, page));
}

int run_reader_begin(struct run_reader *r, const struct ralt_run *run, struct file_io *io)
{
	int err;

	memset(r, 0, sizeof(*r));
	r->run = run;
	r->io = io;
	r->chunk_pages = RUN_CHUNK_BYTES / run->footer.page_bytes;
	for (int i = 0; i < 2; i++) {
		r->buffer[i] = malloc(RUN_CHUNK_BYTES);
		if (!r->buffer[i])
			return -ENOMEM;
	}
	err = ask_ahead(r);
	return err ? err : ask_ahead(r);
}

void run_reader_end(struct run_reader *r)
{
	for (int i = 0; i < 2; i++) {
		file_wait(r->io, &r->request[i]);
		free(r->buffer[i]);
		r->buffer[i] = NULL;
	}
}

static int enter_page(struct run_reader *r)
{
	uint32_t in_chunk = r->page % r->chunk_pages, which = r->page / r->chunk_pages % 2;
	int got;

	if (!in_chunk) {
		int err = file_wait(r->io, &r->request[which]);

		if (err)
			return damaged(err);
	}
	r->at = r->buffer[which] + (size_t)in_chunk * r->run->footer.page_bytes;
	got = page_open(r->at, r->run->footer.page_bytes, r->run->footer.id, r->page);
	if (got < 0)
		return got;
	r->records = (uint32_t)got;
	r->record = 0;
	return 0;
}

/* The chunk just finished frees its buffer for the one after the next. */
static int leave_page(struct run_reader *r)
{
	r->at = NULL;
	r->page++;
	if (r->page % r->chunk_pages || r->page >= r->run->footer.pages)
		return 0;
	return ask_ahead(r);
}

int run_reader_next(void *ctx, struct ralt_record *record)
{
	struct run_reader *r = ctx;
	int err = 0;

	while (!r->at || r->record == r->records) {
		if (r->at)
			err = leave_page(r);
		if (!err && r->page >= r->run->footer.pages)
			return 0;
		if (!err)
			err = enter_page(r);
		if (err)
			return err;
	}
	ralt_record_decode(record, page_record(r->at, r->record++));
	record->generation = r->run->footer.applied;
	return 1;
}
