// SPDX-License-Identifier: GPL-2.0
/*
 * What a power cut leaves behind.
 *
 * The undo log is played back newest to oldest, which leads to the durable
 * state and moves the new data into the records; then oldest to newest those
 * writes, or those atomic units of torn writes, go on again that survive. The
 * choice depends on the seed, the number of the cut, the drive's name and the
 * number of the write, and on nothing else: the same run gives the same wreck.
 *
 * The power is off and the queue is empty meanwhile, so the drive's contents
 * and log belong to this file and it may sleep for memory.
 */
#include <linux/highmem.h>
#include <linux/jhash.h>

#include "drive.h"

#define GFP_PATIENT	(GFP_NOIO | __GFP_NOFAIL)

static u64 mix(u64 x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* The same seed, drive, cut and thing always give the same choice. */
static u64 choice(const struct drive *d, u64 thing)
{
	u32 name = jhash(d->name, strlen(d->name), 0);

	return mix(mix(mix(d->config.seed ^ ((u64)name << 32)) + d->power->cuts) +
		   thing);
}

static void swap_sectors(struct page *a, struct page *b, u8 mask)
{
	void *pa = page_address(a), *pb = page_address(b);
	unsigned int i, j;

	for (i = 0; i < BLOCK_SECTORS; i++) {
		u64 *x = pa + (i << SECTOR_SHIFT), *y = pb + (i << SECTOR_SHIFT);

		if (!(mask & (1U << i)))
			continue;
		for (j = 0; j < SECTOR_SIZE / sizeof(u64); j++)
			swap(x[j], y[j]);
	}
}

/* Exchange the sectors of @mask between the medium and the record. */
static int swap_undo(struct drive *d, struct drive_undo *u, u8 mask)
{
	struct page *page, *none;

	if (!mask)
		return 0;
	if (mask == ALL_SECTORS)
		return drive_media_swap(d, u->block, &u->page, GFP_PATIENT);
	if (!u->page)
		u->page = alloc_page(GFP_PATIENT | __GFP_ZERO);
	page = drive_media_page(d, u->block);
	if (!page) {
		page = alloc_page(GFP_PATIENT | __GFP_ZERO);
		none = page;
		if (drive_media_swap(d, u->block, &none, GFP_PATIENT)) {
			__free_page(page);
			return -ENOMEM;
		}
	}
	swap_sectors(page, u->page, mask);
	return 0;
}

enum fate { LOST, SURVIVED, TORN };

/**
 * struct verdict - how the unflushed writes fare at this cut
 * @count: number of them
 * @prefix: without reordering: so many survive, the next may be torn
 */
struct verdict {
	u64 count;
	u64 prefix;
};

static enum fate fate_of(const struct drive *d, const struct verdict *v,
			 const struct drive_write *w, u64 index)
{
	u64 percent = choice(d, w->id) % 100;

	if (d->config.reorder) {
		if (percent < d->config.tear)
			return TORN;
		return percent < d->config.tear + d->config.survive ?
		       SURVIVED : LOST;
	}
	if (index != v->prefix)
		return index < v->prefix ? SURVIVED : LOST;
	return percent < d->config.tear ? TORN : LOST;
}

/* Which sectors of a torn block reach the medium: whole atomic units only. */
static u8 torn_mask(const struct drive *d, const struct drive_write *w,
		    u64 block)
{
	u64 atom = max(d->config.atom >> SECTOR_SHIFT, 1ULL);
	unsigned int i;
	u8 mask = 0;

	for (i = 0; i < BLOCK_SECTORS; i++) {
		u64 unit = div64_u64(block * BLOCK_SECTORS + i, atom);

		if (choice(d, mix(w->id) ^ unit) & 1)
			mask |= 1U << i;
	}
	return mask;
}

static int redo(struct drive *d, struct drive_write *w, enum fate fate)
{
	struct drive_undo *u;
	unsigned int kept = 0, all = 0;
	int r;

	list_for_each_entry(u, &w->blocks, of_write) {
		u8 mask = u->mask;

		all += hweight8(mask);
		if (fate == LOST)
			continue;
		if (fate == TORN)
			mask &= torn_mask(d, w, u->block);
		kept += hweight8(mask);
		r = swap_undo(d, u, mask);
		if (r)
			return r;
	}
	if (!all)
		return 0;
	if (!kept)
		d->counters.lost++;
	else if (kept == all)
		d->counters.survived++;
	else
		d->counters.torn++;
	return 0;
}

static int undo_all(struct drive *d, struct verdict *v)
{
	struct drive_write *w;
	struct drive_undo *u;
	int r;

	list_for_each_entry_reverse(w, &d->log, log) {
		v->count++;
		list_for_each_entry(u, &w->blocks, of_write) {
			r = swap_undo(d, u, u->mask);
			if (r)
				return r;
		}
		cond_resched();
	}
	return 0;
}

static int redo_survivors(struct drive *d, struct verdict *v)
{
	struct drive_write *w;
	u64 index = 0;
	int r;

	v->prefix = choice(d, 0) % (v->count + 1);
	list_for_each_entry(w, &d->log, log) {
		r = redo(d, w, fate_of(d, v, w, index++));
		if (r)
			return r;
		cond_resched();
	}
	return 0;
}

/**
 * drive_cache_roll_back() - decide what the power cut left
 * @d: the drive; its power is off and its queue empty
 *
 * Return: 0 or -ENOMEM.
 */
int drive_cache_roll_back(struct drive *d)
{
	struct verdict v = { };
	int r;

	/* a command that was half way through the medium is out of it now */
	spin_lock(&d->media_lock);
	drive_cache_settle(d);
	spin_unlock(&d->media_lock);

	d->counters.lost = 0;
	d->counters.torn = 0;
	d->counters.survived = 0;
	r = undo_all(d, &v);
	if (!r)
		r = redo_survivors(d, &v);
	drive_record_cut(d);
	drive_cache_forget_all(d);
	return r;
}
