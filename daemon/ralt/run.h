/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A run in memory: what is known of a sorted file without reading it, and the
 * answers it gives from that alone.
 *
 * Per page the index keeps the first block, the hot blocks before the page (the
 * prefix sum) and where its bloom filter ends: 16 bytes a page, so 100 M records
 * in pages of 1023 take 1.6 MB.
 *
 * File, all integers little-endian:
 * *	0		the footer's twin without counts, so that a stray file says what it is
 *	4096		pages
 *	bloom_at	words of all filters, in page order
 *	index_at	16 bytes a page: first block 8, hot before 4, bloom end 4
 *	last 4096	footer (struct run_footer)
 * The filters' place is set from the greatest size the run can have, so pages and
 * filters are written in one pass; the gap between them is a hole.
 */
#ifndef RALT_RUN_H
#define RALT_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ralt/bloom.h"

#define RALT_RUN_MAGIC		0x3152544c41525254ull	/* "TRRALTR1" */
#define RALT_RUN_VERSION	2u	/* 1: filters with other probes */
#define RALT_RUN_HEADER		4096u
#define RALT_FOOTER_BYTES	4096u
#define RALT_INDEX_ENTRY	16u

struct run_footer {
	uint64_t store;		/* nonce of the store it belongs to */
	uint64_t id;
	uint64_t records;
	uint64_t hot;
	uint64_t bloom_at;
	uint64_t bloom_words;
	uint64_t index_at;
	uint32_t pages;
	uint32_t page_bytes;
	uint32_t bloom_probes;
	uint32_t applied;	/* forgotten ranges up to this generation are not in it: that of all its records */
	uint64_t bloom_checksum;
	uint64_t index_checksum;
};

void run_footer_encode(const struct run_footer *f, uint8_t *to);
/* -EBADMSG: not a footer or damaged; -EPROTONOSUPPORT: a version this code does not know. */
int run_footer_decode(struct run_footer *f, const uint8_t *from);

struct run_index_entry {
	uint64_t first_block;
	uint32_t hot_before;
	uint32_t bloom_end;
};

void run_index_encode(const struct run_index_entry *e, uint8_t *to);
void run_index_decode(struct run_index_entry *e, const uint8_t *from);

struct run_index {
	struct run_index_entry *pages;
	uint64_t *bloom;
	uint32_t page_count;
	uint32_t probes;
	uint64_t hot;
};

/* The page that holds @block if any does; page_count when it is before them all. */
uint32_t run_page_of(const struct run_index *r, uint64_t block);

bool run_maybe_hot(const struct run_index *r, uint64_t block);

/*
 * Hot blocks of [first, end) by prefix sums alone: whole pages exactly, the two at
 * the ends in proportion to the blocks they span.
 */
double run_hot_estimate(const struct run_index *r, uint64_t first, uint64_t end);

#endif
