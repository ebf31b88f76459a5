// SPDX-License-Identifier: GPL-2.0-or-later
/* Index, prefix sums and blooms of one run; see run.h. */
#include "ralt/run.h"

#include <errno.h>
#include <string.h>

#include "ralt/bytes.h"

#define FOOTER_USED	120u

void run_footer_encode(const struct run_footer *f, uint8_t *to)
{
	memset(to, 0, RALT_FOOTER_BYTES);
	put_le64(to, RALT_RUN_MAGIC);
	put_le32(to + 8, RALT_RUN_VERSION);
	put_le32(to + 12, f->pages);
	put_le64(to + 16, f->store);
	put_le64(to + 24, f->id);
	put_le64(to + 32, f->records);
	put_le64(to + 40, f->hot);
	put_le64(to + 48, f->bloom_at);
	put_le64(to + 56, f->bloom_words);
	put_le64(to + 64, f->index_at);
	put_le32(to + 72, f->page_bytes);
	put_le32(to + 76, f->bloom_probes);
	put_le32(to + 80, f->applied);
	put_le64(to + 88, f->bloom_checksum);
	put_le64(to + 96, f->index_checksum);
	put_le64(to + FOOTER_USED, ralt_checksum(RALT_RUN_MAGIC, to, FOOTER_USED));
}

int run_footer_decode(struct run_footer *f, const uint8_t *from)
{
	if (get_le64(from) != RALT_RUN_MAGIC ||
	    get_le64(from + FOOTER_USED) != ralt_checksum(RALT_RUN_MAGIC, from, FOOTER_USED))
		return -EBADMSG;
	if (get_le32(from + 8) != RALT_RUN_VERSION)
		return -EPROTONOSUPPORT;
	*f = (struct run_footer){
		.pages = get_le32(from + 12),
		.store = get_le64(from + 16),
		.id = get_le64(from + 24),
		.records = get_le64(from + 32),
		.hot = get_le64(from + 40),
		.bloom_at = get_le64(from + 48),
		.bloom_words = get_le64(from + 56),
		.index_at = get_le64(from + 64),
		.page_bytes = get_le32(from + 72),
		.bloom_probes = get_le32(from + 76),
		.applied = get_le32(from + 80),
		.bloom_checksum = get_le64(from + 88),
		.index_checksum = get_le64(from + 96),
	};
	return 0;
}

void run_index_encode(const struct run_index_entry *e, uint8_t *to)
{
	put_le64(to, e->first_block);
	put_le32(to + 8, e->hot_before);
	put_le32(to + 12, e->bloom_end);
}

void run_index_decode(struct run_index_entry *e, const uint8_t *from)
{
	e->first_block = get_le64(from);
	e->hot_before = get_le32(from + 8);
	e->bloom_end = get_le32(from + 12);
}

uint32_t run_page_of(const struct run_index *r, uint64_t block)
{
	uint32_t lo = 0, hi = r->page_count;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (r->pages[mid].first_block <= block)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? lo - 1 : r->page_count;
}

bool run_maybe_hot(const struct run_index *r, uint64_t block)
{
	uint32_t page = run_page_of(r, block), start;

	if (page == r->page_count)
		return false;
	start = page ? r->pages[page - 1].bloom_end : 0;
	return bloom_test(r->bloom + start, r->pages[page].bloom_end - start, r->probes, block);
}

static uint64_t hot_before(const struct run_index *r, uint32_t page)
{
	return page < r->page_count ? r->pages[page].hot_before : r->hot;
}

/* Hot blocks below @block; a page's hot blocks are taken as spread evenly over its span. */
static double hot_below(const struct run_index *r, uint64_t block)
{
	uint32_t page = run_page_of(r, block);
	double inside, span;
	uint64_t from;

	if (page == r->page_count)
		return 0;
	from = r->pages[page].first_block;
	inside = (double)(hot_before(r, page + 1) - hot_before(r, page));
	if (page + 1 < r->page_count)
		span = (double)(r->pages[page + 1].first_block - from);
	else
		/* The last page's end is not known: give it the span of the one before. */
		span = page ? (double)(from - r->pages[page - 1].first_block) : 1;
	span = (double)(block - from) / (span > 0 ? span : 1);
	return (double)hot_before(r, page) + inside * (span < 1 ? span : 1);
}

double run_hot_estimate(const struct run_index *r, uint64_t first, uint64_t end)
{
	return first < end ? hot_below(r, end) - hot_below(r, first) : 0;
}
