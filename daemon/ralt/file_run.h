/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs on disk: opening one, reading it in order or by page, writing a new one.
 *
 * A run is written once, synced, and named in the manifest only then; nothing
 * ever changes it.  Damage is found by checksums: of footer, index and filters when it
 * is opened, of each page when it is read.
 */
#ifndef RALT_FILE_RUN_H
#define RALT_FILE_RUN_H

#include <stdint.h>

#include "ralt/file_io.h"
#include "ralt/record.h"
#include "ralt/run.h"

#define RUN_NAME_BYTES	40u
#define RUN_CHUNK_BYTES	131072u

struct ralt_run {
	uint64_t id;
	uint32_t level;
	int fd;
	struct run_footer footer;
	struct run_index index;
};

void run_name(uint64_t id, char name[RUN_NAME_BYTES]);

/* Opens and checks; memory for index and filters is allocated and freed by run_close(). */
int run_open(struct ralt_run *run, struct file_io *io, int dir, uint64_t store, uint64_t id,
	     uint32_t level);
void run_close(struct ralt_run *run);

/* Reads and checks one page; its number of records or -EBADMSG. */
int run_read_page(const struct ralt_run *run, struct file_io *io, uint32_t page, uint8_t *to);

/* Reads a run in order, one chunk ahead. */
struct run_reader {
	const struct ralt_run *run;
	struct file_io *io;
	uint8_t *buffer[2];
	struct file_request request[2];
	uint32_t chunk_pages;
	uint32_t next_page;	/* not yet asked for */
	uint32_t page;		/* being decoded */
	uint32_t record;
	uint32_t records;
	uint8_t *at;		/* the page being decoded, or NULL */
};

int run_reader_begin(struct run_reader *r, const struct ralt_run *run, struct file_io *io);
void run_reader_end(struct run_reader *r);

/* A merge_source's next; @ctx is the reader. */
int run_reader_next(void *ctx, struct ralt_record *record);

/* Writes a run in order. */
struct run_writer {
	struct file_io *io;
	int dir;
	int fd;
	struct run_footer footer;
	const struct ralt_judge *judge;
	uint32_t bloom_bits;
	uint32_t max_pages;
	uint8_t *buffer[2];
	struct file_request request[2];
	uint32_t current;	/* buffer being filled */
	uint32_t filled;	/* pages in it */
	uint32_t in_page;	/* records in the page being filled */
	uint64_t *hot_blocks;	/* of that page */
	uint32_t hot_in_page;
	uint64_t *words;	/* filter of one page */
	uint8_t *index;		/* encoded, grows */
	size_t index_room;
	uint8_t *bloom_buffer;
	size_t bloom_filled;
	uint64_t bloom_written;
	uint64_t pushed;	/* bytes of pages that are on their way to the disk */
};

/* @max_records: at least as many as will be added. */
int run_writer_begin(struct run_writer *w, struct file_io *io, int dir,
		     const struct ralt_judge *judge, const struct run_footer *start,
		     uint32_t bloom_bits, uint64_t max_records);
int run_writer_add(struct run_writer *w, const struct ralt_record *r);

/* Everything on stable storage, name included.  The run may be opened afterwards. */
int run_writer_finish(struct run_writer *w);

/* After finish or instead of it; a run not finished is removed. */
void run_writer_end(struct run_writer *w, bool finished);

#endif
