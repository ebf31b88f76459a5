// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of regions: the objects, and the arrays of their leaves, from slabs of
 * their own.
 *
 * An array of a full region, 4 KiB and its head, would take 8 KiB from kmalloc, and
 * half of what the map takes would be waste that no limit knows of. So arrays come
 * in sizes that fill slabs without a rest, each at most a third larger than the one
 * before, which is where growing regions stop: from 24 places on a place takes less than
 * 6 bytes, the head and what is not in use yet included. What is counted is what the
 * allocator gives.
 */
#include <linux/slab.h>

#include "region.h"

/* With pages of 4 KiB, up to 512 bytes in one, otherwise in eight. The last is a full
 * region's with high bytes.
 */
static const u16 class_bytes[] = {
	64, 96, 128, 160, 192, 224, 272, 336, 408, 512,
	680, 880, 1168, 1488, 1816, 2336, 2976, 3640, 4680, 5456,
};
static_assert(sizeof(struct tr_array) + TERRACE_REGION_BLOCKS * 4 <= 4680);
static_assert(sizeof(struct tr_array) + TERRACE_REGION_BLOCKS * 5 <= 5456);

static struct kmem_cache *class_cache[ARRAY_SIZE(class_bytes)];
static char class_name[ARRAY_SIZE(class_bytes)][24];
static struct kmem_cache *region_cache;
static atomic_t nr_freed;	/* arrays, since the slabs were last looked through */
#define MANY_FREED	256

static u32 class_room(u32 class, bool high)
{
	u32 places = class_bytes[class] - sizeof(struct tr_array);

	return min_t(u32, places / (high ? 5 : 4), TERRACE_REGION_BLOCKS);
}

struct tr_array *tr_array_alloc(struct terrace *tr, u32 nr, bool high)
{
	struct tr_array *array;
	mempool_t *pool;
	u32 class = 0;

	while (class < ARRAY_SIZE(class_bytes) - 1 && class_room(class, high) < nr)
		class++;
	array = tr_map_alloc(tr, class_cache[class], class_bytes[class], &pool);
	array->cap = class_room(class, high);
	array->class = class;
	array->pooled = pool;
	array->packs = NULL;
	atomic64_add(tr_map_bytes(array, pool), &tr->memory);
	return array;
}

static void free_rcu(struct rcu_head *rcu)
{
	struct tr_array *array = container_of(rcu, struct tr_array, rcu);

	kmem_cache_free(class_cache[array->class], array);
}

static void free_pooled_rcu(struct rcu_head *rcu)
{
	struct tr_array *array = container_of(rcu, struct tr_array, rcu);

	mempool_free(array, array->pool);
}

/* Its packs are somebody else's by now, or freed. Not kfree_rcu(): what that has in
 * hand no rcu_barrier() of 6.1 awaits, and the caches go with the module.
 */
void tr_array_free(struct terrace *tr, struct tr_array *array)
{
	if (!array)
		return;
	atomic_inc(&nr_freed);
	if (!array->pooled) {
		atomic64_sub(tr_map_bytes(array, NULL), &tr->memory);
		call_rcu(&array->rcu, free_rcu);
		return;
	}
	array->pool = &tr->reserve.map;
	atomic64_sub(tr_map_bytes(array, array->pool), &tr->memory);
	call_rcu(&array->rcu, free_pooled_rcu);
}

/* The allocator keeps some empty slabs of each cache, and takes any that has room. Now the
 * empty ones go, and the fullest are filled first.
 */
void tr_arrays_shrink(void)
{
	u32 k;

	atomic_set(&nr_freed, 0);
	for (k = 0; k < ARRAY_SIZE(class_bytes); k++)
		kmem_cache_shrink(class_cache[k]);
	kmem_cache_shrink(region_cache);
}

void tr_arrays_trim(void)
{
	if (atomic_read(&nr_freed) >= MANY_FREED)
		tr_arrays_shrink();
}

int tr_region_pool_init(mempool_t *pool, int nr)
{
	return mempool_init_slab_pool(pool, nr, region_cache);
}

struct tr_region *tr_region_memory(gfp_t gfp)
{
	return kmem_cache_alloc(region_cache, gfp);
}

/* Never one with another's objects of that size: the first byte may be copied to user
 * space, nothing does, and a cache of which that is so is not merged.
 */
static struct kmem_cache *cache_create(const char *name, u32 bytes, slab_flags_t flags)
{
	return kmem_cache_create_usercopy(name, bytes, 0, flags, 0, 1, NULL);
}

void tr_arrays_exit(void)
{
	u32 k;

	for (k = 0; k < ARRAY_SIZE(class_bytes); k++)
		kmem_cache_destroy(class_cache[k]);
	kmem_cache_destroy(region_cache);
}

int tr_arrays_init(void)
{
	u32 k;

	region_cache = cache_create("terrace_region", sizeof(struct tr_region), SLAB_HWCACHE_ALIGN);
	for (k = 0; region_cache && k < ARRAY_SIZE(class_bytes); k++) {
		snprintf(class_name[k], sizeof(class_name[k]), "terrace_array_%u", class_bytes[k]);
		class_cache[k] = cache_create(class_name[k], class_bytes[k], 0);
		if (!class_cache[k])
			break;
	}
	if (class_cache[ARRAY_SIZE(class_bytes) - 1])
		return 0;
	tr_arrays_exit();
	return -ENOMEM;
}
