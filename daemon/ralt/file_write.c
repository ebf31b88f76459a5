// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writing a run in one pass: pages through two buffers, so that filling one
 * overlaps with writing the other; filters through a third, to their own place.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ralt/bytes.h"
#include "ralt/file_run.h"
#include "ralt/page.h"

static int allocate(struct run_writer *w)
{
	uint32_t per_page = page_capacity(w->footer.page_bytes);

	for (int i = 0; i < 2; i++) {
		w->buffer[i] = malloc(RUN_CHUNK_BYTES);
		if (!w->buffer[i])
			return -ENOMEM;
	}
	w->hot_blocks = malloc(per_page * sizeof(*w->hot_blocks));
	w->words = malloc((size_t)bloom_words(per_page, w->bloom_bits) * 8);
	w->bloom_buffer = malloc(RUN_CHUNK_BYTES);
	return w->hot_blocks && w->words && w->bloom_buffer ? 0 : -ENOMEM;
}

static int write_header(struct run_writer *w)
{
	uint8_t raw[RALT_RUN_HEADER];

	run_footer_encode(&w->footer, raw);
	return file_write(w->io, w->fd, raw, sizeof(raw), 0);
}

int run_writer_begin(struct run_writer *w, struct file_io *io, int dir,
		     const struct ralt_judge *judge, const struct run_footer *start,
		     uint32_t bloom_bits, uint64_t max_records)
{
	uint32_t per_page = page_capacity(start->page_bytes);
	char name[RUN_NAME_BYTES];
	int err;

	memset(w, 0, sizeof(*w));
	w->io = io;
	w->dir = dir;
	w->judge = judge;
	w->footer = *start;
	w->bloom_bits = bloom_bits;
	w->max_pages = (uint32_t)(max_records / per_page + 1);
	w->footer.bloom_probes = bloom_probes(bloom_bits);
	w->footer.bloom_at = RALT_RUN_HEADER + (uint64_t)w->max_pages * start->page_bytes;
	w->footer.bloom_checksum = start->id;
	run_name(start->id, name);
	w->fd = file_open(io, dir, name, O_RDWR | O_CREAT | O_TRUNC);
	if (w->fd < 0)
		return w->fd;
	err = allocate(w);
	return err ? err : write_header(w);
}

static uint8_t *current_page(const struct run_writer *w)
{
	return w->buffer[w->current] + (size_t)w->filled * w->footer.page_bytes;
}

static int flush_pages(struct run_writer *w)
{
	uint64_t first = w->footer.pages - w->filled, at = RALT_RUN_HEADER + first * w->footer.page_bytes;
	uint32_t other = !w->current;
	int err;

	if (!w->filled)
		return 0;
	err = file_start(w->io, &w->request[w->current], true, w->fd, w->buffer[w->current],
			 (size_t)w->filled * w->footer.page_bytes, at);
	if (err)
		return err;
	w->current = other;
	w->filled = 0;
	err = file_wait(w->io, &w->request[other]);
	/* On its way to the disk now, or the step that ends a merge would wait for all of it. */
	sync_file_range(w->fd, (off_t)w->pushed, (off_t)(at - w->pushed), SYNC_FILE_RANGE_WRITE);
	w->pushed = at;
	return err;
}

static int flush_bloom(struct run_writer *w)
{
	int err;

	if (!w->bloom_filled)
		return 0;
	w->footer.bloom_checksum = ralt_checksum(w->footer.bloom_checksum, w->bloom_buffer,
						 w->bloom_filled);
	err = file_write(w->io, w->fd, w->bloom_buffer, w->bloom_filled,
			 w->footer.bloom_at + w->bloom_written);
	w->bloom_written += w->bloom_filled;
	w->bloom_filled = 0;
	return err;
}

static int add_bloom(struct run_writer *w)
{
	uint32_t count = bloom_words(w->hot_in_page, w->bloom_bits);

	memset(w->words, 0, (size_t)count * 8);
	for (uint32_t i = 0; i < w->hot_in_page; i++)
		bloom_add(w->words, count, w->footer.bloom_probes, w->hot_blocks[i]);
	for (uint32_t i = 0; i < count; i++) {
		int err = w->bloom_filled == RUN_CHUNK_BYTES ? flush_bloom(w) : 0;

		if (err)
			return err;
		put_le64(w->bloom_buffer + w->bloom_filled, w->words[i]);
		w->bloom_filled += 8;
	}
	w->footer.bloom_words += count;
	return 0;
}

static int add_index(struct run_writer *w, uint64_t first_block)
{
	struct run_index_entry e = {
		.first_block = first_block,
		.hot_before = (uint32_t)(w->footer.hot - w->hot_in_page),
		.bloom_end = (uint32_t)w->footer.bloom_words,
	};
	size_t used = (size_t)w->footer.pages * RALT_INDEX_ENTRY;

	if (used + RALT_INDEX_ENTRY > w->index_room) {
		size_t room = w->index_room + 65536;
		uint8_t *grown = realloc(w->index, room);

		if (!grown)
			return -ENOMEM;
		w->index = grown;
		w->index_room = room;
	}
	run_index_encode(&e, w->index + used);
	return 0;
}

static int end_page(struct run_writer *w)
{
	uint8_t *page = current_page(w);
	struct ralt_record first;
	int err;

	if (!w->in_page)
		return 0;
	if (w->footer.pages == w->max_pages)
		return -EOVERFLOW;
	ralt_record_decode(&first, page_record(page, 0));
	page_seal(page, w->footer.page_bytes, w->footer.id, w->footer.pages, w->in_page);
	err = add_bloom(w);
	if (!err)
		err = add_index(w, first.block);
	if (err)
		return err;
	w->footer.pages++;
	w->filled++;
	w->in_page = 0;
	w->hot_in_page = 0;
	if ((size_t)(w->filled + 1) * w->footer.page_bytes > RUN_CHUNK_BYTES)
		return flush_pages(w);
	return 0;
}

int run_writer_add(struct run_writer *w, const struct ralt_record *r)
{
	ralt_record_encode(r, page_record(current_page(w), w->in_page++));
	w->footer.records++;
	if (ralt_is_hot_record(w->judge, r)) {
		w->hot_blocks[w->hot_in_page++] = r->block;
		w->footer.hot++;
	}
	if (w->in_page == page_capacity(w->footer.page_bytes))
		return end_page(w);
	return 0;
}

static int write_tail(struct run_writer *w)
{
	size_t index_bytes = (size_t)w->footer.pages * RALT_INDEX_ENTRY;
	uint8_t raw[RALT_FOOTER_BYTES];
	int err = 0;

	w->footer.index_at = w->footer.bloom_at + w->footer.bloom_words * 8;
	w->footer.index_checksum = ralt_checksum(w->footer.id, w->index, index_bytes);
	if (index_bytes)
		err = file_write(w->io, w->fd, w->index, index_bytes, w->footer.index_at);
	run_footer_encode(&w->footer, raw);
	if (!err)
		err = file_write(w->io, w->fd, raw, sizeof(raw), w->footer.index_at + index_bytes);
	return err;
}

int run_writer_finish(struct run_writer *w)
{
	int err = end_page(w);

	if (!err)
		err = flush_pages(w);
	for (int i = 0; i < 2 && !err; i++)
		err = file_wait(w->io, &w->request[i]);
	if (!err)
		err = flush_bloom(w);
	if (!err)
		err = write_tail(w);
	if (!err)
		err = file_sync(w->io, w->fd);
	return err ? err : file_sync(w->io, w->dir);
}

void run_writer_end(struct run_writer *w, bool finished)
{
	char name[RUN_NAME_BYTES];

	for (int i = 0; i < 2; i++) {
		file_wait(w->io, &w->request[i]);
		free(w->buffer[i]);
	}
	free(w->hot_blocks);
	free(w->words);
	free(w->index);
	free(w->bloom_buffer);
	if (w->fd >= 0)
		close(w->fd);
	if (!finished) {
		run_name(w->footer.id, name);
		file_unlink(w->io, w->dir, name);
	}
	memset(w, 0, sizeof(*w));
	w->fd = -1;
}
