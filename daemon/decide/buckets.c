// SPDX-License-Identifier: GPL-2.0-or-later
/* Popular blocks counted per region; see buckets.h. */
#include "decide/buckets.h"

#include <errno.h>
#include <string.h>

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_DOUBLE, bucket_tunables, popular_coldness, 0.25, 0.0, 1.0,
		"coldness assumed for a popular block (1/4 = clock value 3)"),
};
TUNABLE_TABLE(bucket_tunable_table, "buckets", rows);

size_t buckets_bytes(uint64_t regions)
{
	return regions * sizeof(uint16_t);
}

int buckets_init(struct buckets *b, uint64_t regions, void *mem, size_t bytes)
{
	if (bytes < buckets_bytes(regions))
		return -ENOMEM;
	b->popular = mem;
	b->regions = regions;
	memset(mem, 0, buckets_bytes(regions));
	return 0;
}

void buckets_watch(void *ctx, uint64_t block, int from, int to)
{
	struct buckets *b = ctx;
	uint64_t region = block / REGION_BLOCKS;

	if (region >= b->regions)
		return;
	if (from <= 0 && to > 0)
		b->popular[region]++;
	else if (from > 0 && to <= 0)
		b->popular[region]--;
}

uint32_t buckets_popular(const struct buckets *b, uint64_t region)
{
	return region < b->regions ? b->popular[region] : 0;
}

void approximate_view(struct region_view *r, const struct bucket_tunables *t,
		      uint32_t popular)
{
	uint32_t fast = region_fast_blocks(r);

	if (popular > fast)
		popular = fast;
	r->pinned_blocks = popular;
	r->hot_blocks = popular;
	r->coldness = (fast - popular) + popular * t->popular_coldness;
}
