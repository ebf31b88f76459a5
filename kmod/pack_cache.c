// SPDX-License-Identifier: GPL-2.0
/*
 * Indexes of packs in memory: what makes a cold read one read. An index is
 * the pack's header, read from its copy on the fastest tier or, if there is
 * none or it is damaged, from the shelf; it proves itself by id, place and
 * CRC. When the map's memory limit is reached, or others need memory, the oldest leaves that
 * was not used since eviction last came by: so a reader writes nothing that is shared but
 * the index's own counter.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/xarray.h>

#include "packing.h"

static void index_free(struct terrace *tr, struct tr_index *index)
{
	atomic64_sub(sizeof(*index) + index->bytes, &tr->memory);
	if (index->pooled)
		mempool_free(index, &tr->reserve.index);	/* nobody looks it up */
	else
		kvfree_rcu(index, rcu);
}

void tr_index_put(struct terrace *tr, struct tr_index *index)
{
	if (index && refcount_dec_and_test(&index->users))
		index_free(tr, index);
}

struct tr_index *tr_index_find(struct terrace *tr, u64 id)
{
	struct tr_index *index;

	rcu_read_lock();
	index = xa_load(&tr->packing->indexes, id);
	if (index && !refcount_inc_not_zero(&index->users))
		index = NULL;		/* just evicted */
	rcu_read_unlock();
	if (index && !READ_ONCE(index->used))
		WRITE_ONCE(index->used, true);
	return index;
}

/* Takes @index out of the cache; its users keep it. */
static void forget__f(struct tr_packing *packing, struct tr_index *index)
{
	lockdep_assert_held(&packing->lock);
	xa_erase(&packing->indexes, index->id);
	list_del(&index->lru);
	packing->bytes -= index->bytes;
}

/*
 * Two blocks at most, in a worker. @must: a read waits for memory rather than
 * fail, for that of another reader, which waits for nothing but its drive; such
 * an index is never put into the cache, or the pool would stay empty.
 */
static struct tr_index *index_new(struct terrace *tr, u64 id, const void *data, u32 bytes,
				  bool must)
{
	struct tr_index *index = kvmalloc(sizeof(*index) + bytes, TR_GFP_MAY);
	bool pooled = !index && must;

	if (pooled)
		index = mempool_alloc(&tr->reserve.index, GFP_NOIO);
	if (!index)
		return NULL;
	index->pooled = pooled;
	refcount_set(&index->users, 1);
	index->used = false;
	index->copy_bad = false;
	index->id = id;
	index->bytes = bytes;
	memcpy(index->data, data, bytes);
	atomic64_add(sizeof(*index) + bytes, &tr->memory);
	return index;
}

/* The cache has a reference of its own. Not there after all: no harm. */
static void insert(struct terrace *tr, struct tr_index *index)
{
	struct tr_packing *packing = tr->packing;
	int err;

	if (index->pooled || xa_reserve(&packing->indexes, index->id, TR_GFP_MAY))
		return;
	spin_lock(&packing->lock);
	err = xa_load(&packing->indexes, index->id) ? -EEXIST :
	      xa_err(xa_store(&packing->indexes, index->id, index, GFP_NOWAIT));
	if (!err) {
		refcount_inc(&index->users);
		list_add_tail(&index->lru, &packing->lru);
		packing->bytes += index->bytes;
	}
	spin_unlock(&packing->lock);
	tr_memory_check(tr);
}

void tr_index_store(struct terrace *tr, u64 id, const void *data, u32 bytes)
{
	struct tr_index *index = index_new(tr, id, data, bytes, false);

	if (index)
		insert(tr, index);
	tr_index_put(tr, index);
}

/* Reads and proves the header at @place of which @blocks may be read. */
static int read_header(struct terrace *tr, const struct tr_pack_ref *ref, u64 place, u32 blocks,
		       void *buf, struct tr_pack_head *head)
{
	struct tr_tier *tier = &tr->tier[tr_place_tier(place)];
	struct tr_pack_id id = {
		.volume_uuid = tr->super.volume_uuid, .id = ref->id, .place = ref->place,
		.region = ref->region, .blocks = ref->blocks, .header_crc = &ref->header_crc,
	};
	u32 bytes = blocks * TERRACE_BLOCK_BYTES;
	int err;

	if (tier->missing)
		return -EIO;
	err = tr_rw(tier->bdev, tier->data_sector + tr_place_index(place) * TERRACE_BLOCK_SECTORS,
		    buf, bytes, REQ_OP_READ);
	return err ?: tr_pack_parse(buf, bytes, &id, head);
}

struct tr_index *tr_index_get(struct terrace *tr, const struct tr_pack_ref *ref)
{
	struct tr_index *index = tr_index_find(tr, ref->id);
	struct tr_pack_head head;
	int err = -ENOENT;
	bool copy_bad;
	void *buf;

	if (index)
		return index;
	buf = tr_page_get(tr);
	if (ref->index_place != TR_NO_PLACE) {
		this_cpu_inc(tr->stats->index_lookups);
		err = read_header(tr, ref, ref->index_place, ref->index_blocks, buf, &head);
	}
	copy_bad = err && ref->index_place != TR_NO_PLACE;
	if (err) {
		u32 blocks = min_t(u32, ref->blocks, TERRACE_PACK_HEADER_BLOCKS);

		this_cpu_inc(tr->stats->index_reads);
		err = read_header(tr, ref, ref->place, blocks, buf, &head);
	}
	if (err) {
		DMERR_LIMIT("%s: index of pack %llu of region %llu at tier %u block %llu cannot be read (%d)",
			    tr->name, ref->id, ref->region, tr_place_tier(ref->place),
			    tr_place_index(ref->place), err);
	} else {
		index = index_new(tr, ref->id, buf, head.bytes, true);
		index->copy_bad = copy_bad;
		insert(tr, index);
		tr_summary_touch_later(tr, ref->region);	/* how much of it is garbage can be told */
	}
	tr_page_put(tr, buf);
	return err ? ERR_PTR(err) : index;
}

int tr_index_verify(struct terrace *tr, const struct tr_pack_ref *ref, bool copy)
{
	u64 place = copy ? ref->index_place : ref->place;
	u32 blocks = copy ? ref->index_blocks : min_t(u32, ref->blocks, TERRACE_PACK_HEADER_BLOCKS);
	void *buf = tr_page_get(tr);
	struct tr_pack_head head;
	int err = read_header(tr, ref, place, blocks, buf, &head);

	tr_page_put(tr, buf);
	return err;
}

bool tr_index_peek(struct terrace *tr, u64 id, u32 *nr_blocks, u8 *codec)
{
	struct tr_packing *packing = tr->packing;
	struct tr_index *index;
	struct tr_pack_head head;

	spin_lock(&packing->lock);
	index = xa_load(&packing->indexes, id);
	if (index)
		tr_pack_head(index->data, &head);
	spin_unlock(&packing->lock);
	if (index) {
		*nr_blocks = head.nr_blocks;
		*codec = head.codec;
	}
	return index;
}

/* The oldest, taken out of the cache; NULL: there is none. *@spared: it was used, and as
 * @may_spare says stays once more.
 */
static struct tr_index *take_oldest(struct tr_packing *packing, bool may_spare, bool *spared)
{
	struct tr_index *index;

	spin_lock(&packing->lock);
	index = list_first_entry_or_null(&packing->lru, struct tr_index, lru);
	*spared = index && may_spare && READ_ONCE(index->used);
	if (*spared) {
		WRITE_ONCE(index->used, false);
		list_move_tail(&index->lru, &packing->lru);
	} else if (index) {
		forget__f(packing, index);
	}
	spin_unlock(&packing->lock);
	return index;
}

u64 tr_indexes_evict(struct terrace *tr, u64 bytes)
{
	/* Each once, at most: readers may be quicker than we are. */
	u64 spare = READ_ONCE(tr->packing->bytes) / sizeof(struct terrace_pack_disk);
	struct tr_index *index;
	u64 freed = 0;
	bool spared;

	while (freed < bytes && (index = take_oldest(tr->packing, spare, &spared))) {
		if (spared) {
			spare--;
			continue;
		}
		freed += index->bytes;
		tr_index_put(tr, index);
	}
	return freed;
}

/* --- shrinker ---------------------------------------------------------------- */

static unsigned long shrink_count(struct shrinker *shrinker, struct shrink_control *ask)
{
	struct tr_packing *packing = tr_shrinker_data(shrinker, struct tr_packing);

	return (READ_ONCE(packing->bytes) + tr_stretches_bytes(packing)) >> PAGE_SHIFT ?: SHRINK_EMPTY;
}

static unsigned long shrink_scan(struct shrinker *shrinker, struct shrink_control *ask)
{
	struct tr_packing *packing = tr_shrinker_data(shrinker, struct tr_packing);
	u64 freed = tr_stretches_forget(packing->tr), wanted = (u64)ask->nr_to_scan << PAGE_SHIFT;

	if (freed < wanted)
		freed += tr_indexes_evict(packing->tr, wanted - freed);

	return freed >> PAGE_SHIFT ?: SHRINK_STOP;
}

/* Without a shrinker the memory limit holds all the same. */
void tr_indexes_init(struct tr_packing *packing)
{
	packing->shrinker = tr_shrinker_start(packing, shrink_count, shrink_scan, packing->tr->name);
}
