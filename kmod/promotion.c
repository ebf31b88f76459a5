// SPDX-License-Identifier: GPL-2.0
/*
 * The promotion cache: what was just read from below stays in memory for a
 * while, so that the next read, or the order that promotes it, finds it there.
 *
 * Three kinds. *Stored*: a cluster of a pack as it was read, compressed, as far
 * as it was read; found by each of its blocks. *Plain*: a decoded block
 * of a cluster that is hot (core/bypass.h). *Loose*: a loose block of a disk (loose.c).
 * What is as the drive has it, and what is plain, is each least recently used first
 * when room is needed; the limit is hard: cache_mb, and half of memory_mb.
 *
 * What is of a pack is found by pack id and block. A pack never changes and an id is
 * never given twice, so what is found is right whenever the map says that the
 * block is live in that pack; nobody looks otherwise. What was overwritten,
 * discarded or moved is only useless. It leaves at once all the same.
 *
 * Loose blocks are found by place. On shelves nothing is overwritten, and what is kept
 * leaves before its place is free for another block.
 * Documentation/decisions/0006-promotion-cache.md has the races of both.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "core/bypass.h"
#include "packing.h"
#include "sense.h"

#define CLUSTER_BLOCKS	(1 << TERRACE_PACK_MAX_SHIFT)
#define PLAIN_BIT	TERRACE_REGION_BLOCKS

enum kind { STORED, PLAIN, LOOSE, NR_KINDS };

struct tr_cached {
	struct list_head lru;
	refcount_t users;		/* the table's, until the last block has left */
	u64 id;				/* of the pack; LOOSE: the place */
	u32 bytes, footprint;
	struct tr_heat heat;
	u8 kind;
	u8 nr, left;			/* blocks; those that still lead here */
	u16 block[CLUSTER_BLOCKS];
	void *data;			/* of its own: 4 KiB are then no more than that */
};

struct tr_promotion {
	struct terrace *tr;
	spinlock_t lock;		/* irq; nests in region->lock; all of these */
	struct xarray table;
	struct xarray loose;		/* by place */
	struct list_head lru[2];	/* as the drive has it, plain */
	u64 bytes[NR_KINDS];
	struct tr_bypass bypass;
	struct tr_bypass_epoch epoch;
#ifdef TR_SHRINKER_OWN
	struct shrinker own;
#endif
	struct shrinker *shrinker;
};

static unsigned long key(u64 id, u32 block, bool plain)
{
	return id << (TERRACE_REGION_SHIFT + 1) | (plain ? PLAIN_BIT : 0) | block;
}

static unsigned long key_of(const struct tr_cached *entry, u32 block)
{
	return entry->kind == LOOSE ? entry->id : key(entry->id, block, entry->kind == PLAIN);
}

static struct xarray *table_of(struct tr_promotion *cache, enum kind kind)
{
	return kind == LOOSE ? &cache->loose : &cache->table;
}

static struct list_head *lru_of(struct tr_promotion *cache, enum kind kind)
{
	return &cache->lru[kind == PLAIN];
}

static u64 limit(const struct terrace *tr)
{
	return min_t(u64, (u64)tr_tune(tr, TR_TUNE_CACHE_MB) << 20, tr_memory_limit(tr) / 2);
}

static u64 size(const struct tr_promotion *cache)
{
	return READ_ONCE(cache->bytes[STORED]) + READ_ONCE(cache->bytes[PLAIN]) +
	       READ_ONCE(cache->bytes[LOOSE]);
}

/* --- entries ---------------------------------------------------------------------- */

/*
 * Compressed data have slabs in steps of 512 bytes: kmalloc's double, so that a block that
 * compresses to 2,100 bytes would take 4,096. And they have a constructor: the kernel clears
 * what kmalloc gives, and all of this is written at once.
 */
#define STEP		512
#define STEPS		7

static struct kmem_cache *slabs[STEPS];
static const char *const slab_names[STEPS] = {
	"terrace_cached_512", "terrace_cached_1024", "terrace_cached_1536", "terrace_cached_2048",
	"terrace_cached_2560", "terrace_cached_3072", "terrace_cached_3584",
};

static void data_made(void *object)
{
}

/* The allocator keeps a pointer behind what has a constructor. NULL: kmalloc's. */
static struct kmem_cache *slab_of(u32 bytes)
{
	u32 step = (bytes + sizeof(void *) - 1) / STEP;

	return step < STEPS ? slabs[step] : NULL;
}

static void *data_new(u32 bytes, gfp_t gfp)
{
	struct kmem_cache *slab = slab_of(bytes);

	return slab ? kmem_cache_alloc(slab, gfp) : kmalloc(bytes, gfp);
}

static void data_free(void *data, u32 bytes)
{
	struct kmem_cache *slab = slab_of(bytes);

	if (slab)
		kmem_cache_free(slab, data);
	else
		kfree(data);
}

void tr_cached_put(struct terrace *tr, struct tr_cached *entry)
{
	if (!refcount_dec_and_test(&entry->users))
		return;
	atomic64_sub(entry->footprint, &tr->memory);
	data_free(entry->data, entry->bytes);
	kfree(entry);		/* any context: the last one may be the end of an I/O */
}

const void *tr_cached_data(const struct tr_cached *entry)
{
	return entry->data;
}

/* Block @block of it no longer leads here. Is it gone now? Then put it. */
static bool leave__f(struct tr_promotion *cache, struct tr_cached *entry, u32 block)
{
	lockdep_assert_held(&cache->lock);
	xa_erase(table_of(cache, entry->kind), key_of(entry, block));
	if (--entry->left)
		return false;
	list_del(&entry->lru);
	cache->bytes[entry->kind] -= entry->footprint;
	if (entry->kind == STORED)
		tr_bypass_remove(&cache->bypass, &entry->heat);
	return true;
}

static void leave_all__f(struct tr_promotion *cache, struct tr_cached *entry)
{
	u32 k;

	for (k = 0; k < entry->nr; k++)
		if (xa_load(table_of(cache, entry->kind), key_of(entry, entry->block[k])) == entry &&
		    leave__f(cache, entry, entry->block[k]))
			break;
}

/* Entries that lead to blocks @i .. @i + @n - 1; what has gone is in @gone. */
static void forget__f(struct tr_promotion *cache, u64 id, u32 i, u32 n, bool plain,
		      struct list_head *gone)
{
	unsigned long at = key(id, i, plain), last = key(id, i + n - 1, plain);
	struct tr_cached *entry;

	while (at <= last && (entry = xa_find(&cache->table, &at, last, XA_PRESENT))) {
		if (leave__f(cache, entry, at & (TERRACE_REGION_BLOCKS - 1)))
			list_add(&entry->lru, gone);
		at++;
	}
}

void tr_promotion_forget(struct terrace *tr, u64 id, u32 i, u32 n)
{
	struct tr_promotion *cache = tr->packing->promotion;
	struct tr_cached *entry, *next;
	unsigned long flags;
	LIST_HEAD(gone);

	/* The map has changed before we look; partner: tr_promotion_keep(). */
	smp_mb();
	if (!size(cache))
		return;
	spin_lock_irqsave(&cache->lock, flags);
	forget__f(cache, id, i, n, false, &gone);
	forget__f(cache, id, i, n, true, &gone);
	spin_unlock_irqrestore(&cache->lock, flags);
	list_for_each_entry_safe(entry, next, &gone, lru)
		tr_cached_put(tr, entry);
}

/* --- room ------------------------------------------------------------------------- */

/* The oldest of the sub-tier that has more than its share; NULL: all is empty. */
static struct tr_cached *take_oldest(struct tr_promotion *cache)
{
	struct tr_cached *entry;
	unsigned long flags;
	u32 from;

	spin_lock_irqsave(&cache->lock, flags);
	/* Decoded blocks have at most half: they are there twice. */
	from = cache->bytes[PLAIN] > cache->bytes[STORED] + cache->bytes[LOOSE];
	entry = list_first_entry_or_null(&cache->lru[from], struct tr_cached, lru);
	if (!entry)
		entry = list_first_entry_or_null(&cache->lru[!from], struct tr_cached, lru);
	if (entry)
		leave_all__f(cache, entry);
	spin_unlock_irqrestore(&cache->lock, flags);
	return entry;
}

u64 tr_promotion_evict(struct terrace *tr, u64 bytes)
{
	struct tr_promotion *cache = tr->packing->promotion;
	struct tr_cached *entry;
	u64 freed = 0;

	while (freed < bytes && (entry = take_oldest(cache))) {
		freed += entry->footprint;
		tr_cached_put(tr, entry);
	}
	return freed;
}

void tr_promotion_fit(struct terrace *tr)
{
	u64 kept = size(tr->packing->promotion), most = limit(tr);

	if (kept > most)
		tr_promotion_evict(tr, kept - most);
}

/* An epoch is over: tune, and say how full it is. */
static void turn(struct tr_promotion *cache)
{
	struct terrace *tr = cache->tr;
	u64 bytes, most = limit(tr);
	unsigned long flags;
	bool over;

	spin_lock_irqsave(&cache->lock, flags);
	bytes = size(cache);
	over = tr_bypass_turn(&cache->bypass);
	if (over) {
		cache->epoch.stored_bytes = cache->bytes[STORED];
		cache->epoch.plain_bytes = cache->bytes[PLAIN];
		tr_bypass_tune(&cache->bypass, &cache->epoch);
		cache->epoch.plain_hits = 0;
		cache->epoch.stored_hits = 0;
		cache->epoch.full = false;
	}
	spin_unlock_irqrestore(&cache->lock, flags);
	if (over && most && bytes >= most - most / 8)
		tr_event(tr, TERRACE_EVENT_CACHE, TR_NO_TIER, TR_NO_REGION,
			 div64_u64(bytes * 1000, most));
}

/* --- finding ------------------------------------------------------------------------- */

struct tr_cached *tr_promotion_find(struct terrace *tr, u64 id, u32 block, bool plain, u32 bytes,
				    bool *hot)
{
	struct tr_promotion *cache = tr->packing->promotion;
	struct tr_cached *entry;
	unsigned long flags;

	if (!READ_ONCE(cache->bytes[plain ? PLAIN : STORED]))
		return NULL;
	spin_lock_irqsave(&cache->lock, flags);
	entry = xa_load(&cache->table, key(id, block, plain));
	if (entry && entry->bytes < bytes)
		entry = NULL;		/* read less far */
	if (entry) {
		refcount_inc(&entry->users);
		list_move_tail(&entry->lru, lru_of(cache, plain ? PLAIN : STORED));
		if (plain)
			cache->epoch.plain_hits++;
		else
			cache->epoch.stored_hits++;
		if (!plain && tr_bypass_hit(&cache->bypass, &entry->heat))
			*hot = true;
	}
	spin_unlock_irqrestore(&cache->lock, flags);
	return entry;
}

bool tr_promotion_peek(struct terrace *tr, u64 id, u32 block)
{
	struct tr_promotion *cache = tr->packing->promotion;

	return (READ_ONCE(cache->bytes[STORED]) && xa_load(&cache->table, key(id, block, false))) ||
	       (READ_ONCE(cache->bytes[PLAIN]) && xa_load(&cache->table, key(id, block, true)));
}

void tr_promotion_spent(struct terrace *tr, bool decoded, u64 ns)
{
	struct tr_bypass_epoch *epoch = &tr->packing->promotion->epoch;
	u64 *mean = decoded ? &epoch->decode_ns : &epoch->read_ns;

	/* A mean of the last dozens; who loses a race loses a sample. */
	WRITE_ONCE(*mean, (READ_ONCE(*mean) * 31 + ns) / 32);
}

/* --- keeping -------------------------------------------------------------------------- */

static struct tr_cached *cached_new(enum kind kind, u64 id, u32 bytes, u32 nr, gfp_t gfp)
{
	struct tr_cached *entry = kmalloc(sizeof(*entry), gfp);

	if (!entry)
		return NULL;
	entry->data = data_new(bytes, gfp);
	if (!entry->data) {
		kfree(entry);
		return NULL;
	}
	refcount_set(&entry->users, 1);
	entry->id = id;
	entry->bytes = bytes;
	entry->footprint = ksize(entry) + ksize(entry->data);
	entry->kind = kind;
	entry->nr = nr;
	return entry;
}

/* Every block leads to it, or none does. */
static bool put_in__f(struct tr_promotion *cache, struct tr_cached *entry)
{
	u32 k;

	for (k = 0; k < entry->nr; k++)
		if (xa_insert(table_of(cache, entry->kind), key_of(entry, entry->block[k]), entry,
			      GFP_NOWAIT | __GFP_NOWARN))
			break;
	entry->left = k;
	if (k == entry->nr)
		return true;
	while (k--)
		xa_erase(table_of(cache, entry->kind), key_of(entry, entry->block[k]));
	return false;
}

/* What has some of the cluster's blocks, but was read less far: it goes. */
static struct tr_cached *take_shorter__f(struct tr_promotion *cache, const struct tr_cached *entry)
{
	struct tr_cached *old;
	u32 k;

	for (k = 0; k < entry->nr; k++) {
		old = xa_load(table_of(cache, entry->kind), key_of(entry, entry->block[k]));
		if (!old)
			continue;
		if (old->bytes >= entry->bytes)
			return NULL;
		leave_all__f(cache, old);
		return old;
	}
	return NULL;
}

static bool may_keep(const struct terrace *tr, u32 bytes)
{
	u64 most = limit(tr);

	return sizeof(struct tr_cached) + bytes <= most / 8 && size(tr->packing->promotion) <= most;
}

/* It is in, or it is put. Any context. */
static bool enter(struct tr_promotion *cache, struct tr_cached *entry)
{
	struct terrace *tr = cache->tr;
	struct tr_cached *old;
	u64 most = limit(tr);
	unsigned long flags;
	bool kept;

	if (size(cache) + entry->footprint > most) {
		WRITE_ONCE(cache->epoch.full, true);
		tr_promotion_evict(tr, size(cache) + entry->footprint - most);
	}
	spin_lock_irqsave(&cache->lock, flags);
	old = take_shorter__f(cache, entry);
	kept = size(cache) + entry->footprint <= most && put_in__f(cache, entry);
	if (kept) {
		list_add_tail(&entry->lru, lru_of(cache, entry->kind));
		cache->bytes[entry->kind] += entry->footprint;
		if (entry->kind == STORED)
			tr_bypass_add(&cache->bypass, &entry->heat);
	}
	spin_unlock_irqrestore(&cache->lock, flags);
	if (old)
		tr_cached_put(tr, old);
	if (!kept)
		tr_cached_put(tr, entry);
	tr_memory_check(tr);
	return kept;
}

bool tr_promotion_keep(struct terrace *tr, u64 id, const u16 *block, u32 nr, bool plain,
		       const void *data, u32 bytes)
{
	struct tr_promotion *cache = tr->packing->promotion;
	/* cold.c keeps from its softirq as well */
	const gfp_t gfp = (in_task() ? GFP_NOIO | __GFP_NORETRY : GFP_NOWAIT) | __GFP_NOWARN;
	struct tr_cached *entry;
	bool kept;

	if (in_task())
		tr_promotion_fit(tr);
	if (!may_keep(tr, bytes))
		return false;
	turn(cache);
	entry = cached_new(plain ? PLAIN : STORED, id, bytes, nr, gfp);
	if (!entry)
		return false;
	memcpy(entry->block, block, nr * sizeof(*block));
	memcpy(entry->data, data, bytes);
	atomic64_add(entry->footprint, &tr->memory);
	kept = enter(cache, entry);
	/* The caller looks at the map next; partner: tr_promotion_forget(). */
	smp_mb();
	return kept;
}

u64 tr_promotion_bytes(struct terrace *tr, bool plain)
{
	return READ_ONCE(tr->packing->promotion->bytes[plain ? PLAIN : STORED]);
}

/* --- loose blocks ----------------------------------------------------------------------- */

struct tr_cached *tr_promotion_loose_new(struct terrace *tr, u64 place)
{
	struct tr_cached *entry;

	if (!may_keep(tr, TERRACE_BLOCK_BYTES) ||
	    atomic64_read(&tr->memory) + TERRACE_BLOCK_BYTES > tr_memory_limit(tr))
		return NULL;
	entry = cached_new(LOOSE, place, TERRACE_BLOCK_BYTES, 1, GFP_NOWAIT | __GFP_NOWARN | __GFP_NOMEMALLOC);
	if (!entry)
		return NULL;
	entry->block[0] = 0;
	atomic64_add(entry->footprint, &tr->memory);
	return entry;
}

void *tr_promotion_loose_room(struct tr_cached *entry)
{
	return entry->data;
}

void tr_promotion_loose_keep(struct terrace *tr, struct tr_cached *entry)
{
	/* The limit may be lower than when it was read: what is too much is not for an interrupt to evict. */
	if (!may_keep(tr, TERRACE_BLOCK_BYTES)) {
		tr_cached_put(tr, entry);
		return;
	}
	turn(tr->packing->promotion);
	enter(tr->packing->promotion, entry);
	/* The reader leaves the epoch next; partner: tr_epoch_wait(), before tr_promotion_loose_forget(). */
	smp_mb();
}

struct tr_cached *tr_promotion_loose_find(struct terrace *tr, u64 place)
{
	struct tr_promotion *cache = tr->packing->promotion;
	struct tr_cached *entry;
	unsigned long flags;

	if (!READ_ONCE(cache->bytes[LOOSE]))
		return NULL;
	spin_lock_irqsave(&cache->lock, flags);
	entry = xa_load(&cache->loose, place);
	if (entry) {
		refcount_inc(&entry->users);
		list_move_tail(&entry->lru, lru_of(cache, LOOSE));
	}
	spin_unlock_irqrestore(&cache->lock, flags);
	return entry;
}

void tr_promotion_loose_forget(struct terrace *tr, u64 place, u32 n)
{
	struct tr_promotion *cache = tr->packing->promotion;
	struct tr_cached *entry;
	unsigned long flags;

	for (; n && READ_ONCE(cache->bytes[LOOSE]); n--, place = tr_place_add(place, 1)) {
		spin_lock_irqsave(&cache->lock, flags);
		entry = xa_load(&cache->loose, place);
		if (entry)
			leave__f(cache, entry, 0);
		spin_unlock_irqrestore(&cache->lock, flags);
		if (entry)
			tr_cached_put(tr, entry);
	}
}

u64 tr_promotion_loose_bytes(struct terrace *tr)
{
	return READ_ONCE(tr->packing->promotion->bytes[LOOSE]);
}

/* --- shrinker ------------------------------------------------------------------------- */

static unsigned long shrink_count(struct shrinker *shrinker, struct shrink_control *ask)
{
	struct tr_promotion *cache = tr_shrinker_data(shrinker, struct tr_promotion);

	return size(cache) >> PAGE_SHIFT ?: SHRINK_EMPTY;
}

static unsigned long shrink_scan(struct shrinker *shrinker, struct shrink_control *ask)
{
	struct tr_promotion *cache = tr_shrinker_data(shrinker, struct tr_promotion);
	u64 freed = tr_promotion_evict(cache->tr, (u64)ask->nr_to_scan << PAGE_SHIFT);

	return freed >> PAGE_SHIFT ?: SHRINK_STOP;
}

/* --- lives ---------------------------------------------------------------------------- */

int tr_promotion_init(struct terrace *tr)
{
	struct tr_promotion *cache = kzalloc(sizeof(*cache), GFP_KERNEL);

	if (!cache)
		return -ENOMEM;
	cache->tr = tr;
	spin_lock_init(&cache->lock);
	xa_init_flags(&cache->table, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&cache->loose, XA_FLAGS_LOCK_IRQ);
	INIT_LIST_HEAD(&cache->lru[0]);
	INIT_LIST_HEAD(&cache->lru[1]);
	tr_bypass_init(&cache->bypass);
	tr->packing->promotion = cache;
	cache->shrinker = tr_shrinker_start(cache, shrink_count, shrink_scan, tr->name);
	/* Without one the limits hold all the same. */
	return 0;
}

void tr_promotion_exit(struct terrace *tr)
{
	struct tr_promotion *cache = tr->packing->promotion;

	if (!cache)
		return;
	tr_shrinker_end(cache->shrinker);
	tr_promotion_evict(tr, U64_MAX);
	xa_destroy(&cache->table);
	xa_destroy(&cache->loose);
	kfree(cache);
	tr->packing->promotion = NULL;
}

int tr_promotion_slabs_init(void)
{
	u32 k;

	for (k = 0; k < STEPS; k++) {
		slabs[k] = kmem_cache_create(slab_names[k], (k + 1) * STEP - sizeof(void *), 0, 0,
					     data_made);
		if (!slabs[k])
			break;
	}
	if (k == STEPS)
		return 0;
	tr_promotion_slabs_exit();
	return -ENOMEM;
}

void tr_promotion_slabs_exit(void)
{
	u32 k;

	for (k = 0; k < STEPS; k++) {
		kmem_cache_destroy(slabs[k]);
		slabs[k] = NULL;
	}
}
