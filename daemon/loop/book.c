// SPDX-License-Identifier: GPL-2.0-or-later
/* What is known of each region; see book.h. */
#include "loop/book.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MASK_TICKS	50	/* a cached mask is believed that long */
#define MASK_LOOKUPS	128	/* asked for in one tick */
#define CHUNK		256	/* summaries read at a time */

int book_init(struct book *b, uint64_t regions, bool aged)
{
	memset(b, 0, sizeof(*b));
	if (regions > UINT32_MAX)
		return -EFBIG;
	b->regions = regions;
	b->aged = aged;
	b->summary = calloc(regions, sizeof(*b->summary));
	b->used_tick = calloc(regions, sizeof(*b->used_tick));
	b->listed_at = calloc(regions, sizeof(*b->listed_at));
	b->left_loose = calloc(regions, sizeof(*b->left_loose));
	b->hot_below = calloc(regions, sizeof(*b->hot_below));
	b->fast = calloc(regions, sizeof(*b->fast));
	b->masks = calloc(BOOK_MASKS, sizeof(*b->masks));
	if (b->summary && b->used_tick && b->listed_at && b->left_loose && b->hot_below && b->fast && b->masks)
		return 0;
	book_exit(b);
	return -ENOMEM;
}

void book_exit(struct book *b)
{
	free(b->summary);
	free(b->used_tick);
	free(b->listed_at);
	free(b->left_loose);
	free(b->hot_below);
	free(b->fast);
	free(b->masks);
	memset(b, 0, sizeof(*b));
}

/*
 * Clean slots are counted with the packs that hold the same. Of a STALE region that is as it was counted last, or 0, while its page
 * tells what is fast now.
 */
static uint64_t mapped(const struct terrace_summary *s)
{
	uint64_t all = (uint64_t)s->dirty + s->loose + s->packed;

	return all > s->fast ? all : s->fast;
}

uint32_t book_mapped(const struct book *b, uint64_t region)
{
	const struct terrace_summary *s = &b->summary[region];
	uint64_t nr = mapped(s);

	if (s->flags & TERRACE_SUMMARY_STALE)
		return 1;
	return nr < REGION_BLOCKS ? (uint32_t)nr : REGION_BLOCKS;
}

static void set(struct book *b, uint64_t region, const struct terrace_summary *now)
{
	struct terrace_summary s = *now;
	uint32_t at = b->listed_at[region];

	b->mapped += mapped(&s) - mapped(&b->summary[region]);
	b->summary[region] = s;
	if (b->left_loose[region] > s.loose)
		b->left_loose[region] = s.loose;
	if (s.fast && !at) {
		b->fast[b->fast_count++] = (uint32_t)region;
		b->listed_at[region] = b->fast_count;
	} else if (!s.fast && at) {
		uint32_t last = b->fast[--b->fast_count];

		b->fast[at - 1] = last;
		b->listed_at[last] = at;
		b->listed_at[region] = 0;
	}
}

int book_tick(struct book *b, struct port *port)
{
	struct terrace_summary s[CHUNK];
	uint64_t left = port->summaries_per_tick;

	b->tick++;
	b->lookups = 0;
	b->looks = 0;
	if (left > b->regions)
		left = b->regions;
	while (left) {
		uint64_t most = b->regions - b->hand;
		uint32_t nr = (uint32_t)(left < CHUNK ? left : CHUNK);
		int got;

		if (nr > most)
			nr = (uint32_t)most;
		got = port->ops->summaries(port, b->hand, nr, s);
		if (got <= 0)
			return got;
		for (int i = 0; i < got; i++)
			set(b, b->hand + (uint64_t)i, &s[i]);
		left -= (uint64_t)got;
		b->hand += (uint64_t)got;
		if (b->hand >= b->regions) {
			b->hand = 0;
			b->complete = true;
			b->turns++;
		}
	}
	return 0;
}

int book_refresh(struct book *b, struct port *port, uint64_t region)
{
	struct terrace_summary s;
	int got;

	if (region >= b->regions)
		return -ERANGE;
	if (b->masks[region % BOOK_MASKS].region == region + 1)
		b->masks[region % BOOK_MASKS].region = 0;
	got = port->ops->summaries(port, region, 1, &s);
	if (got == 1)
		set(b, region, &s);
	return got < 0 ? got : 0;
}

void book_used(struct book *b, uint64_t block)
{
	if (block / REGION_BLOCKS < b->regions)
		b->used_tick[block / REGION_BLOCKS] = b->tick;
}

void book_view(const struct book *b, uint64_t region, struct region_view *view)
{
	const struct terrace_summary *s = &b->summary[region];
	uint32_t in_packs = (uint32_t)s->packed + s->garbage, dirty = book_dirty(s);

	*view = (struct region_view){
		.region = region,
		.dirty_blocks = dirty,
		.clean_blocks = s->fast > dirty ? s->fast - dirty : 0,
		.packed_blocks = (double)s->packed_blocks + s->loose,
		.garbage_blocks = in_packs ? (double)s->packed_blocks * s->garbage / in_packs : 0,
		.packs = s->packs,
		.age = b->aged ? s->age : b->tick - b->used_tick[region],
	};
}

static void copy(struct upmask *to, const __u64 *from)
{
	for (uint32_t w = 0; w < UPMASK_WORDS; w++)
		to->bits[w] = from[w];
}

static int exactly(struct port *port, uint64_t region, bool runs, struct terrace_region *r)
{
	int got = port->ops->regions(port, region, 1, runs, r);

	if (got < 0)
		return got;
	return got == 1 ? (int)r->status : -EIO;
}

int book_masks(struct port *port, uint64_t region, struct upmask *fast, struct upmask *slow)
{
	struct terrace_region r;
	int err = exactly(port, region, false, &r);

	if (err)
		return err;
	copy(fast, r.fast);
	/* In packs, loose on a shelf, or at home: all of it can come up. */
	copy(slow, r.packed);
	for (uint32_t w = 0; w < UPMASK_WORDS; w++)
		slow->bits[w] = (slow->bits[w] | r.present[w]) & ~fast->bits[w];
	return 0;
}

int book_loose(struct port *port, uint64_t region, struct upmask *loose, uint32_t *runs)
{
	struct terrace_region r;
	int err = exactly(port, region, true, &r);

	if (err)
		return err;
	*runs = (uint32_t)r.copies;
	copy(loose, r.present);
	for (uint32_t w = 0; w < UPMASK_WORDS; w++)
		loose->bits[w] &= ~r.fast[w];
	return 0;
}

static struct book_mask *mask_of(struct book *b, struct port *port, uint64_t region)
{
	struct book_mask *m = &b->masks[region % BOOK_MASKS];

	if (m->region == region + 1 && b->tick - m->tick < MASK_TICKS)
		return m;
	if (b->lookups >= MASK_LOOKUPS)
		return NULL;
	b->lookups++;
	m->region = 0;
	if (book_masks(port, region, &m->fast, &m->slow))
		return NULL;
	m->region = region + 1;
	m->tick = b->tick;
	return m;
}

enum port_where book_where(struct book *b, struct port *port, uint64_t block)
{
	uint64_t region = block / REGION_BLOCKS;
	const struct book_mask *m;

	if (region >= b->regions)
		return PORT_NOWHERE;
	m = mask_of(b, port, region);
	if (!m)
		return PORT_UNKNOWN;
	if (upmask_test(&m->fast, block % REGION_BLOCKS))
		return PORT_FAST;
	return upmask_test(&m->slow, block % REGION_BLOCKS) ? PORT_SLOW : PORT_NOWHERE;
}
