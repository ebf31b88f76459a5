// SPDX-License-Identifier: GPL-2.0
/*
 * Memory for progress. A write to the volume may be what memory comes from
 * (swap, dirty pages), so it must get on while the page allocator gives
 * nothing. Bios come from bio sets, journal blocks and the checkpoint's images
 * from memory taken at the start. What is left, of two kinds, is here.
 *
 * Scratch: the image of a page that is read, the index of a pack that a read
 * needs. Who holds one waits for metadata I/O, a drive and pages_mutex only, a
 * page's holder for an index as well, and gives it back; so waiting for one ends.
 *
 * The map: arrays of regions, lists of packs, bitmaps of chunks, directories.
 * They stay until they are evicted, dirty ones until a checkpoint has written
 * them. Who waits for one of those therefore must hold nothing that a
 * checkpoint, a commit or the eviction needs: no mutex, no pinned region. So
 * tr_reserve_wait() stands before a bio's worker begins to load or to enlarge a
 * region, in front of discards and of each batch of moves. Everybody else never
 * waits for them: tr_map_alloc() asks the allocator, then the pool (whose
 * elements come back as they are evicted), and at last the system's emergency
 * reserve. How much of that can be taken is bounded: the loads that were let in
 * when there still was something in the pool, one for each load mutex, the
 * regions of the batches of moves, and the chunks that one checkpoint and its
 * commits need. Elements are all of the largest size, or a freed one might be
 * too small for the next.
 *
 * Whenever the pools run low the worker of volume.c (evict_fn) fills them: from
 * the allocator, else by evicting half of the map and writing what is dirty.
 */
#include <linux/slab.h>

#include "packs.h"
#include "terrace.h"

#define MAP_BYTES	8192u	/* the largest array: 1024 places of 5 bytes, and its head */
#define MAP_ELEMENTS	32
#define REGIONS		64
#define LOAD_NEEDS	6	/* array, packs, directories above; and an array when it grows */
#define PAGE_BYTES	(TERRACE_MAP_MAX_BLOCKS * TERRACE_BLOCK_BYTES)
#define PAGES		4
#define INDEXES		2

#define GFP_EASY	(GFP_NOWAIT | __GFP_NOWARN | __GFP_NOMEMALLOC)
#define GFP_FILL	(GFP_NOIO | __GFP_NORETRY | __GFP_NOWARN | __GFP_NOMEMALLOC)

/* --- the map ----------------------------------------------------------------- */

static void *alloc(struct kmem_cache *cache, u32 bytes, gfp_t gfp)
{
	return cache ? kmem_cache_alloc(cache, gfp) : kmalloc(bytes, gfp);
}

void *tr_map_alloc(struct terrace *tr, struct kmem_cache *cache, u32 bytes, mempool_t **pool)
{
	void *memory = alloc(cache, bytes, GFP_EASY);

	*pool = NULL;
	if (likely(memory))
		return memory;
	if (bytes <= MAP_BYTES)
		memory = mempool_alloc(&tr->reserve.map, GFP_NOWAIT | __GFP_NOWARN);
	if (memory)
		*pool = &tr->reserve.map;
	else
		memory = alloc(cache, bytes, TR_GFP_MUST);
	tr_memory_check(tr);
	return memory;
}

u32 tr_map_bytes(const void *memory, const mempool_t *pool)
{
	return pool ? MAP_BYTES : ksize(memory);
}

void tr_map_free(void *memory, mempool_t *pool)
{
	if (pool)
		mempool_free(memory, pool);
	else
		kfree(memory);
}

struct tr_region *tr_reserve_region(struct terrace *tr)
{
	struct tr_region *region = mempool_alloc(&tr->region_pool, GFP_NOWAIT | __GFP_NOWARN);

	return region ?: tr_region_memory(TR_GFP_MUST);
}

/* --- scratch -------------------------------------------------------------------- */

void *tr_page_get(struct terrace *tr)
{
	return mempool_alloc(&tr->reserve.page, GFP_NOIO);
}

void tr_page_put(struct terrace *tr, void *page)
{
	mempool_free(page, &tr->reserve.page);
}

/* --- running low ------------------------------------------------------------------ */

static bool below(const mempool_t *pool, int nr)
{
	return READ_ONCE(pool->curr_nr) < nr;
}

bool tr_reserve_low(struct terrace *tr)
{
	return below(&tr->reserve.map, MAP_ELEMENTS / 2) || below(&tr->region_pool, REGIONS / 2);
}

/* An element more than the pool lacks, should somebody else have filled it, is freed. */
static void fill(mempool_t *pool)
{
	void *memory;

	while (below(pool, pool->min_nr)) {
		memory = pool->alloc(GFP_FILL, pool->pool_data);
		if (!memory)
			break;
		mempool_free(memory, pool);
	}
}

bool tr_reserve_fill(struct terrace *tr)
{
	fill(&tr->region_pool);
	fill(&tr->reserve.map);
	wake_up_all(&tr->reserve.wait);
	return !tr_reserve_low(tr);
}

static bool may_load(struct terrace *tr)
{
	return !below(&tr->reserve.map, LOAD_NEEDS) && !below(&tr->region_pool, LOAD_NEEDS);
}

void tr_reserve_wait(struct terrace *tr)
{
	/* Asked again and again: what was in use, or dirty, may have become free. */
	while (unlikely(!may_load(tr))) {
		queue_work(tr->room_wq, &tr->evict_work);
		wait_event_timeout(tr->reserve.wait, may_load(tr), HZ / 20);
		if (!tr_writable(tr))
			break;		/* what is dirty stays so: slowly, but go on */
	}
}

/* --- set-up ---------------------------------------------------------------------- */

int tr_reserve_init(struct terrace *tr)
{
	int err;

	static_assert(TERRACE_REGION_BLOCKS * 5 + 64 <= MAP_BYTES);
	static_assert(TERRACE_PACK_HEADER_BLOCKS <= TERRACE_MAP_MAX_BLOCKS);
	static_assert(sizeof(struct tr_index) +
		      TERRACE_PACK_HEADER_BLOCKS * TERRACE_BLOCK_BYTES <= PAGE_BYTES);
	init_waitqueue_head(&tr->reserve.wait);
	err = mempool_init_kmalloc_pool(&tr->reserve.map, MAP_ELEMENTS, MAP_BYTES);
	if (!err)
		err = mempool_init_kmalloc_pool(&tr->reserve.page, PAGES, PAGE_BYTES);
	if (!err)
		err = mempool_init_kmalloc_pool(&tr->reserve.index, INDEXES, PAGE_BYTES);
	if (!err)
		err = tr_region_pool_init(&tr->region_pool, REGIONS);
	return err;
}

void tr_reserve_exit(struct terrace *tr)
{
	mempool_exit(&tr->region_pool);
	mempool_exit(&tr->reserve.shelf);
	mempool_exit(&tr->reserve.index);
	mempool_exit(&tr->reserve.page);
	mempool_exit(&tr->reserve.map);
}
