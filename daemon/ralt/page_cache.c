// SPDX-License-Identifier: GPL-2.0-or-later
/* See page_cache.h. */
#include "ralt/page_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES	65536u	/* of a page, see read_footer() */

int page_cache_init(struct page_cache *c)
{
	memset(c, 0, sizeof(*c));
	c->memory = malloc((size_t)PAGE_CACHE_PAGES * MOST_BYTES);
	return c->memory ? 0 : -ENOMEM;
}

void page_cache_exit(struct page_cache *c)
{
	free(c->memory);
	c->memory = NULL;
}

int page_cache_get(struct page_cache *c, const struct ralt_run *run, struct file_io *io, uint32_t page, uint8_t **at)
{
	struct kept_page *k = c->kept, *oldest = c->kept;
	int got;

	for (; k < c->kept + PAGE_CACHE_PAGES; k++) {
		if (k->used && k->run == run->id && k->page == page)
			break;
		if (k->used < oldest->used)
			oldest = k;
	}
	if (k == c->kept + PAGE_CACHE_PAGES) {
		k = oldest;
		k->used = 0;
		got = run_read_page(run, io, page, c->memory + (size_t)(k - c->kept) * MOST_BYTES);
		if (got < 0)
			return got;
		*k = (struct kept_page){ .run = run->id, .page = page, .records = (uint32_t)got };
	}
	k->used = ++c->uses;
	*at = c->memory + (size_t)(k - c->kept) * MOST_BYTES;
	return (int)k->records;
}
