// SPDX-License-Identifier: GPL-2.0
/*
 * Reading packed blocks: index, sectors, CRC, decompression up to the block
 * that is wanted, copy. In a worker, so that no submitter decompresses and all
 * CPUs do.
 *
 * Each reader has a work area: what was read of the run, the cluster as far
 * as it was decoded, a decompressor. There are two for each CPU, the first
 * made with the volume, so reads go on when there is no memory; who finds none
 * waits for one.
 */
#include <linux/bitmap.h>
#include <linux/highmem.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "io.h"
#include "packing.h"
#include "sense.h"

#define STORED_BYTES	(256u << 10)	/* of a run, read at once */
#define CLUSTER_BYTES	(TERRACE_BLOCK_BYTES << TERRACE_PACK_MAX_SHIFT)

/* --- work areas ------------------------------------------------------------------ */

static void unpacker_free(struct tr_unpacker *unpacker)
{
	if (!unpacker)
		return;
	tr_codec_destroy(unpacker->codec);
	kvfree(unpacker->stored);
	kvfree(unpacker->cluster);
	kfree(unpacker);
}

static struct tr_unpacker *unpacker_new(void)
{
	unsigned int noio = memalloc_noio_save();
	struct tr_unpacker *unpacker = kzalloc(sizeof(*unpacker), GFP_KERNEL);

	if (unpacker) {
		unpacker->codec = tr_codec_create(false);
		unpacker->stored = kvmalloc(STORED_BYTES, GFP_KERNEL);
		unpacker->cluster = kvmalloc(CLUSTER_BYTES, GFP_KERNEL);
		if (!unpacker->codec || !unpacker->stored || !unpacker->cluster) {
			unpacker_free(unpacker);
			unpacker = NULL;
		}
	}
	memalloc_noio_restore(noio);
	return unpacker;
}

static struct tr_unpacker *take_idle(struct tr_packing *packing)
{
	struct tr_unpacker *unpacker;

	spin_lock(&packing->lock);
	unpacker = list_first_entry_or_null(&packing->idle, struct tr_unpacker, list);
	if (unpacker)
		list_del(&unpacker->list);
	spin_unlock(&packing->lock);
	return unpacker;
}

/* One more, while there may be. NULL: no. */
static struct tr_unpacker *take_new(struct tr_packing *packing)
{
	struct tr_unpacker *unpacker = NULL;
	bool may;

	spin_lock(&packing->lock);
	may = packing->nr_unpackers < packing->max_unpackers;
	packing->nr_unpackers += may;
	spin_unlock(&packing->lock);
	if (may) {
		unpacker = unpacker_new();
		if (!unpacker) {
			spin_lock(&packing->lock);
			packing->nr_unpackers--;
			spin_unlock(&packing->lock);
		}
	}
	return unpacker;
}

struct tr_unpacker *tr_unpacker_get(struct terrace *tr)
{
	struct tr_packing *packing = tr->packing;
	struct tr_unpacker *unpacker = take_idle(packing);

	if (!unpacker)
		unpacker = take_new(packing);
	if (!unpacker)
		wait_event(packing->wait, (unpacker = take_idle(packing)));
	unpacker->from = 0;
	unpacker->to = 0;
	unpacker->read_bytes = 0;
	unpacker->decode_ns = 0;
	return unpacker;
}

void tr_unpacker_put(struct terrace *tr, struct tr_unpacker *unpacker)
{
	struct tr_packing *packing = tr->packing;

	spin_lock(&packing->lock);
	list_add(&unpacker->list, &packing->idle);
	spin_unlock(&packing->lock);
	wake_up(&packing->wait);
}

void tr_unpackers_forget(struct terrace *tr)
{
	struct tr_packing *packing = tr->packing;
	struct tr_unpacker *unpacker, *next;
	LIST_HEAD(idle);

	spin_lock(&packing->lock);
	unpacker = list_first_entry_or_null(&packing->idle, struct tr_unpacker, list);
	if (unpacker) {
		list_splice_init(&packing->idle, &idle);
		list_move(&unpacker->list, &packing->idle);	/* one for when there is no memory */
		list_for_each_entry(unpacker, &idle, list)
			packing->nr_unpackers--;
	}
	spin_unlock(&packing->lock);
	list_for_each_entry_safe(unpacker, next, &idle, list)
		unpacker_free(unpacker);
}

u64 tr_unpacker_read_bytes(const struct tr_unpacker *unpacker)
{
	return unpacker->read_bytes;
}

u64 tr_unpacker_decode_ns(const struct tr_unpacker *unpacker)
{
	return unpacker->decode_ns;
}

/* --- clusters ----------------------------------------------------------------------- */

enum use {				/* of the promotion cache */
	FROM_DRIVE,			/* none: what the drive has is asked for */
	USE_CACHE,
	KEEP_IN_CACHE,
};

struct unpack {
	struct terrace *tr;
	const struct tr_pack_ref *ref;
	struct tr_unpacker *unpacker;
	const void *index;
	const struct tr_codec_ops *ops;
	enum use use;
	u64 todo[TR_LEAF_WORDS];
	u64 near[TR_LEAF_WORDS];	/* those and others, read along where they lie behind */
	bool ahead;			/* there are others */
	bool alone;			/* after an error: one block, and no byte that it does not need */
	bool whole;			/* clusters, whatever is wanted of them (tunable early_termination) */
	const struct tr_stretches *held;	/* NULL: no large read */
	const void *stored;		/* of the cluster at hand */
};

static bool todo(const struct unpack *u, u32 i)
{
	return u->todo[i / 64] >> (i % 64) & 1;
}

/* The next one from @i on; TERRACE_REGION_BLOCKS: there is none. */
static u32 next_todo(const struct unpack *u, u32 i)
{
	return find_next_bit((const unsigned long *)u->todo, TERRACE_REGION_BLOCKS, i);
}

static u32 next_near(const struct unpack *u, u32 i)
{
	return find_next_bit((const unsigned long *)u->near, TERRACE_REGION_BLOCKS, i);
}

/* How far to read beyond @where: what follows closely and is wanted as well, or will be. */
static u32 span_end(const struct unpack *u, const struct tr_pack_where *where, u32 from)
{
	u32 end = where->offset + where->length, i;
	struct tr_pack_where next;

	if (u->alone)
		return end;
	for (i = next_near(u, from + 1); i < TERRACE_REGION_BLOCKS && i < from + 64;
	     i = next_near(u, i + 1)) {
		if (!tr_pack_find(u->index, i, &next) || next.offset < where->offset)
			continue;
		if (u->whole && !next.raw)
			tr_pack_cluster(u->index, next.cluster, &next);
		if (next.offset > end + TERRACE_BLOCK_BYTES ||
		    next.offset + next.length > where->offset + STORED_BYTES - 2 * TERRACE_BLOCK_BYTES)
			break;
		end = max(end, next.offset + next.length);
	}
	return end;
}

/* Bytes [@from, @to) of the run, and what the drive's sectors add. */
static int read_run(struct unpack *u, u32 from, u32 to)
{
	struct tr_tier *tier = &u->tr->tier[tr_place_tier(u->ref->place)];
	sector_t start = tier->data_sector + tr_place_index(u->ref->place) * TERRACE_BLOCK_SECTORS;
	u64 began = ktime_get_ns();
	u32 sector;
	int err;

	if (tier->missing)
		return -EIO;
	sector = bdev_logical_block_size(tier->bdev);
	from = round_down(from, sector);
	to = min_t(u32, round_up(to, sector), u->ref->blocks * TERRACE_BLOCK_BYTES);
	u->unpacker->to = 0;
	err = tr_rw(tier->bdev, start + from / SECTOR_SIZE, u->unpacker->stored, to - from,
		    REQ_OP_READ);
	if (err)
		return err;
	this_cpu_inc(u->tr->stats->pack_reads);
	tr_promotion_spent(u->tr, false, ktime_get_ns() - began);
	u->unpacker->read_bytes += to - from;
	u->unpacker->from = from;
	u->unpacker->to = to;
	return 0;
}

static int fetch(struct unpack *u, const struct tr_pack_where *where, u32 i, const void **stored)
{
	struct tr_unpacker *unpacker = u->unpacker;
	int err = 0;

	if (u->held) {
		*stored = tr_stretches_data(u->held, where->offset, where->length, unpacker->stored);
		if (*stored == unpacker->stored)
			unpacker->to = 0;	/* no run is there any more */
		if (*stored)
			return 0;
	}
	if (where->offset < unpacker->from || where->offset + where->length > unpacker->to)
		err = read_run(u, where->offset, span_end(u, where, i));
	if (err && u->ahead) {
		/* It may be what nobody has asked for that cannot be read. */
		u->ahead = false;
		memcpy(u->near, u->todo, sizeof(u->near));
		err = read_run(u, where->offset, span_end(u, where, i));
	}
	*stored = unpacker->stored + (where->offset - unpacker->from);
	return err;
}

/*
 * The block of the cluster that is wanted and needs most of it. Of a raw one each segment stands
 * for itself, and in the cache as well: nothing is decoded that could end early.
 */
static u32 deepest(const struct unpack *u, u32 i, bool raw, const u16 *block, u32 nr)
{
	if (u->whole && !u->alone && !raw)
		return block[nr - 1];
	while (!u->alone && nr--)
		if (todo(u, block[nr]))
			return block[nr];
	return i;
}

/* --- the promotion cache ---------------------------------------------------------- */

/* What the map says now of block @i, which was in @ref. */
static struct tr_pack_ref pack_now(struct terrace *tr, const struct tr_pack_ref *ref, u32 i)
{
	struct tr_pack_ref now = *ref;	/* not in memory: it has not changed since */
	struct tr_region *region;
	unsigned int seq;

	rcu_read_lock();
	region = tr_region_find(tr, ref->region);
	while (region && region != &tr->empty) {
		seq = read_seqcount_begin(&region->seq);
		tr_region_find_pack(region, i, 1, &now);
		if (!read_seqcount_retry(&region->seq, seq))
			break;
	}
	rcu_read_unlock();
	return now;
}

static bool still_live(struct terrace *tr, const struct tr_pack_ref *ref, u32 i)
{
	return pack_now(tr, ref, i).id == ref->id;
}

/* Keeps it, then looks: who changed the map before that could not find it. */
void tr_unpack_keep(struct terrace *tr, const struct tr_pack_ref *ref, const u16 *block, u32 nr,
		    bool plain, const void *data, u32 bytes)
{
	u32 k;

	if (!tr_promotion_keep(tr, ref->id, block, nr, plain, data, bytes))
		return;
	for (k = 0; k < nr; k++)
		if (!still_live(tr, ref, block[k]))
			tr_promotion_forget(tr, ref->id, block[k], 1);
}

/* Blocks that are there decoded need neither index nor cluster. */
static void give_plain(struct unpack *u, tr_unpacked_fn fn, void *context)
{
	struct tr_cached *entry;
	bool hot;
	u32 i;

	if (u->use == FROM_DRIVE || !tr_promotion_bytes(u->tr, true))
		return;
	for (i = next_todo(u, 0); i < TERRACE_REGION_BLOCKS; i = next_todo(u, i + 1)) {
		entry = tr_promotion_find(u->tr, u->ref->id, i, true, 0, &hot);
		if (!entry)
			continue;
		this_cpu_inc(u->tr->stats->cache_hits);
		fn(context, i, tr_cached_data(entry));
		u->todo[i / 64] &= ~(1ull << (i % 64));
		tr_cached_put(u->tr, entry);
	}
}

/* A cluster's bytes, from the cache (*@entry) or the drive, and what they decode to. */
static int fetch_decoded(struct unpack *u, const struct tr_pack_where *where, u32 i, u32 wanted,
			 struct tr_cached **entry, bool *hot)
{
	const void *stored = NULL;
	u64 began;
	int err = 0;

	*entry = u->use == FROM_DRIVE ? NULL :
		 tr_promotion_find(u->tr, u->ref->id, wanted, false, where->length, hot);
	if (*entry) {
		this_cpu_inc(u->tr->stats->cache_hits);
		stored = tr_cached_data(*entry);
	} else {
		err = fetch(u, where, i, &stored);
	}
	if (err)
		return err;
	u->stored = stored;
	began = ktime_get_ns();
	err = tr_pack_decode(u->index, where, stored, u->unpacker->cluster, u->ops,
			     u->unpacker->codec);
	began = ktime_get_ns() - began;
	u->unpacker->decode_ns += began;
	if (!err)
		tr_promotion_spent(u->tr, true, began);
	return err;
}

/* Block @i and whatever else is wanted of its cluster. */
static int unpack_cluster(struct unpack *u, u32 i, tr_unpacked_fn fn, void *context)
{
	u16 block[1 << TERRACE_PACK_MAX_SHIFT];
	struct tr_pack_where where;
	struct tr_cached *entry;
	u32 nr, from, to, k, wanted;
	bool hot = false;
	int err;

	if (!tr_pack_find(u->index, i, &where))
		return -EBADMSG;		/* live in a pack that does not have it */
	nr = tr_pack_members(u->index, where.cluster, block);
	wanted = deepest(u, i, where.raw, block, nr);
	if (wanted != i)
		tr_pack_find(u->index, wanted, &where);
	err = fetch_decoded(u, &where, i, wanted, &entry, &hot);
	if (err && entry) {
		/* Memory went bad under it: the drive has it still. */
		tr_promotion_forget(u->tr, u->ref->id, wanted, 1);
		tr_cached_put(u->tr, entry);
		err = fetch_decoded(u, &where, i, wanted, &entry, &hot);
	}
	if (err) {
		if (entry)
			tr_cached_put(u->tr, entry);
		return err;
	}
	tr_pack_filled(&where, &from, &to);
	for (k = from; k < to; k++) {
		if (!todo(u, block[k]))
			continue;
		fn(context, block[k], u->unpacker->cluster + k * TERRACE_BLOCK_BYTES);
		u->todo[block[k] / 64] &= ~(1ull << (block[k] % 64));
		if (hot && u->use == KEEP_IN_CACHE)
			tr_unpack_keep(u->tr, u->ref, &block[k], 1, true,
				       u->unpacker->cluster + k * TERRACE_BLOCK_BYTES,
				       TERRACE_BLOCK_BYTES);
	}
	/* Of a raw cluster one block was read, of others their beginning. */
	if (!entry && u->use == KEEP_IN_CACHE)
		tr_unpack_keep(u->tr, u->ref, where.raw ? &block[from] : block, to - from, false,
			       u->stored, where.length);
	if (entry)
		tr_cached_put(u->tr, entry);
	return 0;
}

/* What was read along goes into the cache as it is: whoever takes it from there checks it. */
static void keep_ahead(struct unpack *u, u32 i, u32 end)
{
	const struct tr_unpacker *unpacker = u->unpacker;
	u16 block[1 << TERRACE_PACK_MAX_SHIFT];
	struct tr_pack_where where;
	u32 nr, from, to, k;

	for (i = next_near(u, i); i < end; i = next_near(u, i + 1)) {
		if (!tr_pack_find(u->index, i, &where))
			continue;
		nr = tr_pack_members(u->index, where.cluster, block);
		if (!where.raw)
			tr_pack_find(u->index, block[nr - 1], &where);	/* all of it */
		if (where.offset < unpacker->from || where.offset + where.length > unpacker->to)
			continue;
		tr_pack_filled(&where, &from, &to);
		tr_unpack_keep(u->tr, u->ref, where.raw ? &block[from] : block, to - from, false,
			       unpacker->stored + (where.offset - unpacker->from), where.length);
		for (k = 0; k < nr && !where.raw; k++)
			u->near[block[k] / 64] &= ~(1ull << (block[k] % 64));
		this_cpu_add(u->tr->stats->ahead, to - from);
	}
}

/* A pack gets one copy in its life. Who read it counts for the tier of the pack alone, so it may
 * have been given back, and written by others, under the read.
 */
static bool has_copy(struct terrace *tr, const struct tr_pack_ref *ref, u32 i)
{
	struct tr_pack_ref now = pack_now(tr, ref, i);

	return now.id == ref->id && now.index_place == ref->index_place &&
	       now.index_place != TR_NO_PLACE;
}

/* Once, and not of a pack, or a copy, that was dropped meanwhile: what lay there is another's now. */
static void tell_of_copy(struct terrace *tr, const struct tr_pack_ref *ref, struct tr_index *index, u32 i)
{
	if (!READ_ONCE(index->copy_bad) || !has_copy(tr, ref, i))
		return;
	WRITE_ONCE(index->copy_bad, false);
	DMWARN_LIMIT("%s: index of pack %llu of region %llu: its copy at tier %u block %llu is damaged or cannot be read, used is that at tier %u block %llu",
		     tr->name, ref->id, ref->region, tr_place_tier(ref->index_place),
		     tr_place_index(ref->index_place), tr_place_tier(ref->place),
		     tr_place_index(ref->place));
}

/* @ahead: so many blocks behind the last one may be read along. @held: what was read already. */
static int unpack(struct terrace *tr, const struct tr_pack_ref *ref, const u64 *mask, u32 ahead,
		  enum use use, const struct tr_stretches *held, struct tr_unpacker *unpacker,
		  tr_unpacked_fn fn, void *context, u32 *bad)
{
	struct unpack u = {
		.tr = tr, .ref = ref, .unpacker = unpacker, .use = use, .held = held,
		.whole = !tr_tune(tr, TR_TUNE_EARLY_TERMINATION),
	};
	u32 last = find_last_bit((const unsigned long *)mask, TERRACE_REGION_BLOCKS);
	struct tr_index *index;
	struct tr_pack_where where = {};
	struct tr_pack_head head;
	u32 i;
	int err = 0;

	memcpy(u.todo, mask, sizeof(u.todo));
	give_plain(&u, fn, context);
	*bad = find_first_bit((const unsigned long *)u.todo, TERRACE_REGION_BLOCKS);
	if (*bad == TERRACE_REGION_BLOCKS)
		return 0;
	index = tr_index_get(tr, ref);
	if (IS_ERR(index) && !still_live(tr, ref, *bad))
		return -ESTALE;
	if (IS_ERR(index)) {
		tr_event(tr, TERRACE_EVENT_BAD_PACK, tr_place_tier(ref->place), ref->region, ref->id);
		err = PTR_ERR(index);
		/* Another pack's header there: a write that was lost, or went astray. The pack lives. */
		return err == -ESTALE ? -EBADMSG : err;
	}
	tell_of_copy(tr, ref, index, *bad);
	u.index = index->data;
	tr_pack_head(u.index, &head);
	u.ops = tr_codec_ops(head.codec);
	unpacker->to = 0;
	ahead = min(ahead, TERRACE_REGION_BLOCKS - 1 - last);
	u.ahead = ahead;
	memcpy(u.near, u.todo, sizeof(u.near));
	bitmap_set((unsigned long *)u.near, last + 1, ahead);
	while (!err && (i = next_todo(&u, 0)) < TERRACE_REGION_BLOCKS) {
		err = unpack_cluster(&u, *bad = i, fn, context);
		if (err && (u.whole || next_todo(&u, i + 1) < TERRACE_REGION_BLOCKS)) {
			/* What lies behind it, or is deeper in its cluster, may be what is bad. */
			u.alone = true;
			err = unpack_cluster(&u, i, fn, context);
			u.alone = false;
		}
		tr_give_way();
	}
	if (!err && u.ahead)
		keep_ahead(&u, last + 1, last + 1 + ahead);
	/* Dropped meanwhile, its run belongs to somebody else: no damage. */
	if (err && !still_live(tr, ref, *bad)) {
		err = -ESTALE;
	} else if (err) {
		tr_pack_find(u.index, *bad, &where);
		tr_event(tr, TERRACE_EVENT_BAD_PACK, tr_place_tier(ref->place), ref->region, ref->id);
		DMERR_LIMIT("%s: block %llu in pack %llu at tier %u block %llu cannot be read (%d)",
			    tr->name, (ref->region << TERRACE_REGION_SHIFT) + *bad, ref->id,
			    tr_place_tier(ref->place),
			    tr_place_index(ref->place) + where.offset / TERRACE_BLOCK_BYTES, err);
	}
	tr_index_put(tr, index);
	return err;
}

int tr_unpack(struct terrace *tr, const struct tr_pack_ref *ref, const u64 *mask,
	      struct tr_unpacker *unpacker, tr_unpacked_fn fn, void *context, u32 *bad)
{
	/* An order's blocks will not be read from here again. */
	return unpack(tr, ref, mask, 0, USE_CACHE, NULL, unpacker, fn, context, bad);
}

int tr_unpack_drive(struct terrace *tr, const struct tr_pack_ref *ref, const u64 *mask,
		    struct tr_unpacker *unpacker, tr_unpacked_fn fn, void *context, u32 *bad)
{
	return unpack(tr, ref, mask, 0, FROM_DRIVE, NULL, unpacker, fn, context, bad);
}

/* --- for a bio ------------------------------------------------------------------------ */

struct to_bio {
	struct bio *bio;
	u32 first;			/* block at the bio's beginning */
};

static void copy_to_bio(void *context, u32 i, const void *data)
{
	struct to_bio *to = context;
	struct bvec_iter iter = to->bio->bi_iter;
	u32 done = 0;

	bio_advance_iter(to->bio, &iter, (i - to->first) * TERRACE_BLOCK_BYTES);
	while (done < TERRACE_BLOCK_BYTES) {
		struct bio_vec bv = bio_iter_iovec(to->bio, iter);
		u32 n = min_t(u32, bv.bv_len, TERRACE_BLOCK_BYTES - done);

		memcpy_to_page(bv.bv_page, bv.bv_offset, data + done, n);
		bio_advance_iter_single(to->bio, &iter, n);
		done += n;
	}
}

void tr_unpack_copy(struct bio *bio, const void *data)
{
	struct to_bio to = { .bio = bio };

	copy_to_bio(&to, 0, data);
}

static int unpack_bio(struct terrace *tr, struct bio *bio, const struct tr_pack_ref *ref, u32 i,
		      u32 n, u32 ahead, enum use use, const struct tr_stretches *held)
{
	struct tr_unpacker *unpacker = tr_unpacker_get(tr);
	struct to_bio to = { .bio = bio, .first = i };
	u64 mask[TR_LEAF_WORDS] = {};
	u32 bad;
	int err;

	bitmap_set((unsigned long *)mask, i, n);
	err = unpack(tr, ref, mask, ahead, use, held, unpacker, copy_to_bio, &to, &bad);
	tr_unpacker_put(tr, unpacker);
	return err ? -EIO : 0;
}

int tr_unpack_bio(struct terrace *tr, struct bio *bio, const struct tr_pack_ref *ref, u32 i, u32 n,
		  u32 ahead)
{
	return unpack_bio(tr, bio, ref, i, n, ahead, KEEP_IN_CACHE, NULL);
}

/* Bytes of the run that blocks @i .. @i + @n - 1 take, but for what memory has of them at either
 * end. False: it has all.
 */
static bool span_of(struct terrace *tr, const struct tr_pack_ref *ref, const void *index, u32 i, u32 n,
		    u32 *from, u32 *to)
{
	struct tr_pack_where where;

	for (; n && tr_promotion_peek(tr, ref->id, i); n--)
		i++;
	while (n && tr_promotion_peek(tr, ref->id, i + n - 1))
		n--;
	if (!n || !tr_pack_find(index, i, &where))
		return false;
	*from = where.offset;
	if (!tr_pack_find(index, i + n - 1, &where))
		return false;
	if (!where.raw)
		tr_pack_cluster(index, where.cluster, &where);
	*to = where.offset + where.length;
	return *from < *to;
}

/* What of the run the bio will need behind @to, if its blocks from @i on are read from there, and
 * @ahead blocks. Between them others may lie elsewhere.
 */
static u32 bytes_ahead(const struct bio *bio, const void *index, u32 i, u32 n, u32 to, u32 ahead)
{
	u32 last = min_t(u32, i + bio->bi_iter.bi_size / TERRACE_BLOCK_BYTES, TERRACE_REGION_BLOCKS);
	struct tr_pack_where where;

	while (--last >= i + n)
		if (tr_pack_find(index, last, &where))
			return max(where.offset + where.length, to) - to + ahead * TERRACE_BLOCK_BYTES;
	return ahead * TERRACE_BLOCK_BYTES;
}

/* What who has read up to @to needs nothing in front of: behind the last block there is nothing. */
static u32 passed(const void *index, u32 to)
{
	struct tr_pack_head head;

	tr_pack_head(index, &head);
	return to < tr_pack_header_blocks(head.bytes) * TERRACE_BLOCK_BYTES + head.payload_bytes ? to :
		U32_MAX;
}

/* No work area is held while the drive reads: there are few. */
int tr_unpack_bulk(struct terrace *tr, struct bio *bio, const struct tr_pack_ref *ref, u32 i, u32 n,
		   u32 ahead)
{
	struct tr_index *index = tr_index_get(tr, ref);
	struct tr_stretches held = {};
	u64 began = ktime_get_ns();
	u32 from, to, end = 0;
	int err;

	/* One that cannot be read is reported further on. */
	if (!IS_ERR(index) && span_of(tr, ref, index->data, i, n, &from, &to)) {
		tr_stretches_get(tr, ref, from, to,
				 bytes_ahead(bio, index->data, i, n, to, ahead), &held);
		end = passed(index->data, to);
	}
	if (!IS_ERR(index))
		tr_index_put(tr, index);
	tr_stretches_wait(&held);
	if (held.nr)
		tr_promotion_spent(tr, false, div_u64(ktime_get_ns() - began, n));
	/* A stream would drive all else out of the cache, and come back to none of it. */
	err = unpack_bio(tr, bio, ref, i, n, 0, ahead ? USE_CACHE : KEEP_IN_CACHE, &held);
	tr_stretches_put(tr, &held, end);
	return err;
}

bool tr_cached_bio(struct terrace *tr, struct bio *bio, const struct tr_pack_ref *ref, u32 i)
{
	struct to_bio to = { .bio = bio, .first = i };
	struct tr_cached *entry;
	bool hot;

	entry = tr_promotion_find(tr, ref->id, i, true, 0, &hot);
	if (!entry)
		return false;
	copy_to_bio(&to, i, tr_cached_data(entry));
	tr_cached_put(tr, entry);
	this_cpu_inc(tr->stats->cache_hits);
	return true;
}

/* --- set-up ------------------------------------------------------------------------------ */

int tr_packing_init(struct terrace *tr)
{
	struct tr_packing *packing = kzalloc(sizeof(*packing), GFP_KERNEL);
	struct tr_unpacker *first = unpacker_new();

	if (!packing || !first) {
		kfree(packing);
		unpacker_free(first);
		return -ENOMEM;
	}
	spin_lock_init(&packing->lock);
	xa_init(&packing->indexes);
	INIT_LIST_HEAD(&packing->lru);
	INIT_LIST_HEAD(&packing->idle);
	tr_stretches_init(packing);
	init_waitqueue_head(&packing->wait);
	packing->tr = tr;
	packing->max_unpackers = clamp(2 * num_online_cpus(), 2u, 64u);
	packing->nr_unpackers = 1;
	list_add(&first->list, &packing->idle);
	tr->packing = packing;
	tr_indexes_init(packing);
	return tr_promotion_init(tr);
}

void tr_packing_exit(struct terrace *tr)
{
	struct tr_unpacker *unpacker, *next;

	if (!tr->packing)
		return;
	tr_promotion_exit(tr);
	tr_shrinker_end(tr->packing->shrinker);
	tr_stretches_quiesce(tr);
	tr_indexes_evict(tr, U64_MAX);
	xa_destroy(&tr->packing->indexes);
	list_for_each_entry_safe(unpacker, next, &tr->packing->idle, list)
		unpacker_free(unpacker);
	kfree(tr->packing);
	tr->packing = NULL;
}
