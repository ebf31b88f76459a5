/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pages of runs that were read last.  On a small volume they are all there are, and a scan for each region that is
 * about to move would read and check the same ones again.
 *
 * A run is never changed and its number never given again, so what is kept needs no invalidation.
 */
#ifndef RALT_PAGE_CACHE_H
#define RALT_PAGE_CACHE_H

#include <stdint.h>

#include "ralt/file_run.h"

#define PAGE_CACHE_PAGES	8u

struct page_cache {
	struct kept_page {
		uint64_t run;
		uint32_t page, records;
		uint64_t used;		/* 0: nothing is kept here */
	} kept[PAGE_CACHE_PAGES];
	uint8_t *memory;
	uint64_t uses;
};

/* -ENOMEM or 0. */
int page_cache_init(struct page_cache *c);
void page_cache_exit(struct page_cache *c);

/* As run_read_page(); *@at is the page, until the next call. */
int page_cache_get(struct page_cache *c, const struct ralt_run *run, struct file_io *io, uint32_t page, uint8_t **at);

#endif
