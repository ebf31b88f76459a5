// SPDX-License-Identifier: GPL-2.0
/*
 * Stretches: aligned pieces of packs' runs, for large reads. One that goes from cluster to
 * cluster would begin within the sector in which the one before it ended, which to a disk is a
 * turn, and would wait for each part before it asks for the next. Stretches do not overlap: who
 * reads in order makes the drive read in order, and who needs several asks for them all, and
 * for some more, before waiting for the first. Two readers that need one share it.
 *
 * A pack never changes and no id is given twice, so what a stretch holds is right for whoever
 * the map sends to that pack, and of no use to anybody else. A stretch does not count in an
 * epoch (one that is asked for late would disturb the sum that epoch.c waits for): who uses it
 * does, and as long as there is such a reader the run belongs to nobody else. What was asked for
 * ahead, of a pack that is dropped meanwhile, may be anything, and nobody comes for it.
 *
 * All this is only help. Where there is no memory, too many are in use, or the drive fails,
 * the reader goes on without (unpack.c), and fails only if that does.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "packing.h"
#include "sense.h"

#define MOST_STRETCHES	256u		/* of a volume, and a quarter of its memory */
#define MANY_STRETCHES	128u		/* from here on rather the oldest than one more */
#define MOST_IDLE	16u		/* buffers that are kept for the next */
#define MOST_PAGES	(TR_STRETCH_BYTES / PAGE_SIZE)

struct tr_stretch {
	struct hlist_node hash;		/* packing->lock: from here ... */
	struct list_head list;		/* of those in the table, the oldest first; or idle */
	u64 id;				/* of the pack */
	u32 number;			/* in its run */
	u32 users;			/* ... to here */
	u32 bytes;
	int err;
	struct completion done;
	struct terrace *tr;
	u8 tier;
	void *data;
	struct bio bio;
	struct bio_vec vec[MOST_PAGES];
};

static struct hlist_head *bucket_of(struct tr_packing *packing, u64 id, u32 number)
{
	return &packing->stretch_table[hash_64(id * 64 + number, TR_STRETCH_HASH_BITS)];
}

static struct tr_stretch *find__f(struct tr_packing *packing, u64 id, u32 number)
{
	struct tr_stretch *stretch;

	lockdep_assert_held(&packing->lock);
	hlist_for_each_entry(stretch, bucket_of(packing, id, number), hash)
		if (stretch->id == id && stretch->number == number)
			return stretch;
	return NULL;
}

/* --- memory ----------------------------------------------------------------------- */

static void stretch_free(struct terrace *tr, struct tr_stretch *stretch)
{
	atomic64_sub(sizeof(*stretch) + TR_STRETCH_BYTES, &tr->memory);
	kvfree(stretch->data);
	kfree(stretch);
}

static struct tr_stretch *stretch_new(struct terrace *tr)
{
	const gfp_t gfp = GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN;
	unsigned int noio = memalloc_noio_save();
	struct tr_stretch *stretch = kmalloc(sizeof(*stretch), gfp);

	if (stretch) {
		stretch->data = kvmalloc(TR_STRETCH_BYTES, gfp);
		if (!stretch->data) {
			kfree(stretch);
			stretch = NULL;
		}
	}
	memalloc_noio_restore(noio);
	if (stretch)
		atomic64_add(sizeof(*stretch) + TR_STRETCH_BYTES, &tr->memory);
	return stretch;
}

/* Nobody finds it any more. */
static void leave_table__f(struct tr_stretch *stretch)
{
	hlist_del_init(&stretch->hash);
	list_del_init(&stretch->list);
}

/* The oldest that is there and that nobody uses, out of the table; NULL: none. */
static struct tr_stretch *take_oldest__f(struct tr_packing *packing)
{
	struct tr_stretch *stretch;

	lockdep_assert_held(&packing->lock);
	list_for_each_entry(stretch, &packing->stretches, list)
		if (!stretch->users && completion_done(&stretch->done)) {
			leave_table__f(stretch);
			return stretch;
		}
	return NULL;
}

static struct tr_stretch *take_idle__f(struct tr_packing *packing)
{
	struct tr_stretch *stretch;

	stretch = list_first_entry_or_null(&packing->idle_stretches, struct tr_stretch, list);
	if (stretch) {
		list_del(&stretch->list);
		packing->nr_idle_stretches--;
	}
	return stretch;
}

/* One to read into: idle, new, or the oldest. NULL: there may be no more. */
static struct tr_stretch *stretch_take(struct terrace *tr)
{
	struct tr_packing *packing = tr->packing;
	u32 most = min_t(u64, MOST_STRETCHES, tr_memory_limit(tr) / 4 / TR_STRETCH_BYTES);
	bool room = atomic64_read(&tr->memory) + TR_STRETCH_BYTES < tr_memory_limit(tr);
	struct tr_stretch *stretch;

	spin_lock(&packing->lock);
	stretch = take_idle__f(packing);
	if (!stretch && packing->nr_stretches >= min(most, MANY_STRETCHES))
		stretch = take_oldest__f(packing);
	room = !stretch && room && packing->nr_stretches < most;
	packing->nr_stretches += room;
	spin_unlock(&packing->lock);
	if (!room)
		return stretch;
	stretch = stretch_new(tr);
	if (!stretch) {
		spin_lock(&packing->lock);
		packing->nr_stretches--;
		stretch = take_oldest__f(packing);
		spin_unlock(&packing->lock);
	}
	return stretch;
}

/* Kept for the next, if there are few. True: it is the caller's, who frees it. */
static bool give_back__f(struct tr_packing *packing, struct tr_stretch *stretch)
{
	lockdep_assert_held(&packing->lock);
	if (packing->nr_idle_stretches == MOST_IDLE) {
		packing->nr_stretches--;
		return true;
	}
	packing->nr_idle_stretches++;
	list_add(&stretch->list, &packing->idle_stretches);
	return false;
}

u64 tr_stretches_forget(struct terrace *tr)
{
	struct tr_packing *packing = tr->packing;
	struct tr_stretch *stretch;
	u64 freed = 0;

	do {
		spin_lock(&packing->lock);
		stretch = take_idle__f(packing) ?: take_oldest__f(packing);
		packing->nr_stretches -= !!stretch;
		spin_unlock(&packing->lock);
		if (stretch) {
			stretch_free(tr, stretch);
			freed += TR_STRETCH_BYTES;
		}
	} while (stretch);
	return freed;
}

u64 tr_stretches_bytes(const struct tr_packing *packing)
{
	return (u64)READ_ONCE(packing->nr_stretches) * TR_STRETCH_BYTES;
}

/* --- reading ------------------------------------------------------------------------ */

static void stretch_end_io(struct bio *bio)
{
	struct tr_stretch *stretch = container_of(bio, struct tr_stretch, bio);
	struct terrace *tr = stretch->tr;

	stretch->err = blk_status_to_errno(bio->bi_status);
	if (stretch->err)
		tr_bio_failed(bio);
	bio_uninit(bio);
	if (!stretch->err)
		this_cpu_inc(tr->stats->pack_reads);
	complete_all(&stretch->done);	/* last: it may be used for another then */
}

static void stretch_pages(struct bio *bio, void *data, u32 bytes)
{
	u32 done, n;

	for (done = 0; done < bytes; done += n) {
		void *at = data + done;

		n = min_t(u32, bytes - done, PAGE_SIZE - offset_in_page(at));
		if (bio_add_page(bio, is_vmalloc_addr(at) ? vmalloc_to_page(at) : virt_to_page(at), n,
				 offset_in_page(at)) != n)
			break;
	}
}

/* In the table, and not asked for yet: the caller alone does that. */
static void stretch_send(struct terrace *tr, struct tr_stretch *stretch,
			 const struct tr_pack_ref *ref)
{
	struct tr_tier *tier = &tr->tier[stretch->tier];

	bio_init(&stretch->bio, tier->bdev, stretch->vec, MOST_PAGES, REQ_OP_READ);
	stretch->bio.bi_iter.bi_sector = tier->data_sector +
		tr_place_index(ref->place) * TERRACE_BLOCK_SECTORS +
		stretch->number * (TR_STRETCH_BYTES / SECTOR_SIZE);
	stretch->bio.bi_end_io = stretch_end_io;
	stretch_pages(&stretch->bio, stretch->data, stretch->bytes);
	submit_bio_noacct(&stretch->bio);
}

static void stretch_begin__f(struct terrace *tr, struct tr_stretch *stretch,
			     const struct tr_pack_ref *ref, u32 number)
{
	struct tr_packing *packing = tr->packing;

	lockdep_assert_held(&packing->lock);
	stretch->tr = tr;
	stretch->id = ref->id;
	stretch->number = number;
	stretch->users = 0;
	stretch->tier = tr_place_tier(ref->place);
	stretch->bytes = min_t(u32, TR_STRETCH_BYTES,
			       ref->blocks * TERRACE_BLOCK_BYTES - number * TR_STRETCH_BYTES);
	stretch->err = 0;
	init_completion(&stretch->done);
	hlist_add_head(&stretch->hash, bucket_of(packing, ref->id, number));
	list_add_tail(&stretch->list, &packing->stretches);
}

/* Finds it or asks the drive for it. @hold: it is the caller's then, until put. */
static struct tr_stretch *stretch_get(struct terrace *tr, const struct tr_pack_ref *ref, u32 number,
				      bool hold)
{
	struct tr_packing *packing = tr->packing;
	struct tr_stretch *stretch, *fresh = NULL;
	bool surplus = false;

	spin_lock(&packing->lock);
	stretch = find__f(packing, ref->id, number);
	if (!stretch) {
		spin_unlock(&packing->lock);
		fresh = stretch_take(tr);
		if (!fresh)
			return NULL;
		spin_lock(&packing->lock);
		stretch = find__f(packing, ref->id, number);	/* somebody was quicker */
		if (stretch)
			surplus = give_back__f(packing, fresh);
		else
			stretch_begin__f(tr, fresh, ref, number);
	}
	if (stretch) {
		list_move_tail(&stretch->list, &packing->stretches);
		stretch->users += hold;
	} else {
		fresh->users += hold;
	}
	spin_unlock(&packing->lock);
	if (surplus)
		stretch_free(tr, fresh);
	if (!stretch)
		stretch_send(tr, fresh, ref);
	return stretch ?: fresh;
}

void tr_stretches_get(struct terrace *tr, const struct tr_pack_ref *ref, u32 from, u32 to, u32 ahead,
		      struct tr_stretches *held)
{
	u32 run = ref->blocks * TERRACE_BLOCK_BYTES, number;

	to = min(to, run);
	held->first = from / TR_STRETCH_BYTES;
	held->nr = 0;
	for (number = held->first; number * TR_STRETCH_BYTES < to && held->nr < TR_STRETCHES_HELD;
	     number++) {
		held->at[held->nr] = stretch_get(tr, ref, number, true);
		if (!held->at[held->nr])
			break;
		held->nr++;
	}
	to = min(to + ahead, run);
	while (ahead && number * TR_STRETCH_BYTES < to && stretch_get(tr, ref, number, false))
		number++;
}

void tr_stretches_wait(const struct tr_stretches *held)
{
	u32 k;

	for (k = 0; k < held->nr; k++)
		wait_for_completion_io(&held->at[k]->done);
}

const void *tr_stretches_data(const struct tr_stretches *held, u32 offset, u32 length, void *aside)
{
	u32 number = offset / TR_STRETCH_BYTES, last = (offset + length - 1) / TR_STRETCH_BYTES;
	u32 at = offset % TR_STRETCH_BYTES, done = 0, k;

	if (number < held->first || last >= held->first + held->nr)
		return NULL;
	for (k = number; k <= last; k++)
		if (held->at[k - held->first]->err)
			return NULL;
	if (number == last)
		return held->at[number - held->first]->data + at;
	for (k = number; k <= last; k++, at = 0) {
		u32 n = min_t(u32, length - done, TR_STRETCH_BYTES - at);

		memcpy(aside + done, held->at[k - held->first]->data + at, n);
		done += n;
	}
	return aside;
}

void tr_stretches_put(struct terrace *tr, struct tr_stretches *held, u32 passed)
{
	struct tr_packing *packing = tr->packing;
	struct tr_stretch *stretch;
	bool surplus;
	u32 k;

	for (k = 0; k < held->nr; k++) {
		stretch = held->at[k];
		spin_lock(&packing->lock);
		if (!hlist_unhashed(&stretch->hash) &&
		    (stretch->err || (stretch->number + 1) * TR_STRETCH_BYTES <= passed))
			leave_table__f(stretch);
		surplus = !--stretch->users && hlist_unhashed(&stretch->hash) &&
			  give_back__f(packing, stretch);
		spin_unlock(&packing->lock);
		if (surplus)
			stretch_free(tr, stretch);
	}
	held->nr = 0;
}

/* --- lives ---------------------------------------------------------------------------- */

void tr_stretches_init(struct tr_packing *packing)
{
	INIT_LIST_HEAD(&packing->stretches);
	INIT_LIST_HEAD(&packing->idle_stretches);
}

/* Nobody reads any more; what was asked for ahead may be on its way still. */
void tr_stretches_quiesce(struct terrace *tr)
{
	struct tr_packing *packing = tr->packing;
	struct tr_stretch *stretch;

	do {
		spin_lock(&packing->lock);
		stretch = list_first_entry_or_null(&packing->stretches, struct tr_stretch, list);
		if (stretch)
			list_del_init(&stretch->list);
		spin_unlock(&packing->lock);
		if (stretch) {
			wait_for_completion_io(&stretch->done);
			spin_lock(&packing->lock);
			hlist_del_init(&stretch->hash);
			packing->nr_stretches--;
			spin_unlock(&packing->lock);
			stretch_free(tr, stretch);
		}
	} while (stretch);
	tr_stretches_forget(tr);
}
