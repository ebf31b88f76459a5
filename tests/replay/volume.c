// SPDX-License-Identifier: GPL-2.0-or-later
/* The simulated volume; see volume.h. */
#include "volume.h"

#include <stdlib.h>
#include <string.h>

bool volume_init(struct volume *v, uint64_t blocks, uint64_t fast, double ratio)
{
	memset(v, 0, sizeof(*v));
	v->regions = blocks / REGION_BLOCKS;
	v->blocks = v->regions * REGION_BLOCKS;
	v->fast_total = fast;
	v->ratio = ratio;
	v->place = calloc(v->blocks, 1);
	v->region = calloc(v->regions, sizeof(*v->region));
	v->fast_regions = calloc(v->regions, sizeof(*v->fast_regions));
	if (!v->place || !v->region || !v->fast_regions)
		return false;
	for (uint64_t i = 0; i < v->regions; i++) {
		v->region[i].packed = REGION_BLOCKS * ratio;
		v->region[i].packs = 1;
	}
	return true;
}

void volume_exit(struct volume *v)
{
	free(v->place);
	free(v->region);
	free(v->fast_regions);
}

static void list(struct volume *v, uint64_t region)
{
	struct volume_region *r = &v->region[region];
	bool fast = r->dirty + r->clean > 0;

	if (fast && !r->listed_at) {
		v->fast_regions[v->fast_region_count++] = (uint32_t)region;
		r->listed_at = v->fast_region_count;
	} else if (!fast && r->listed_at) {
		uint32_t last = v->fast_regions[--v->fast_region_count];

		v->fast_regions[r->listed_at - 1] = last;
		v->region[last].listed_at = r->listed_at;
		r->listed_at = 0;
	}
}

static void set_place(struct volume *v, uint64_t block, enum place to)
{
	struct volume_region *r = &v->region[block / REGION_BLOCKS];
	enum place from = v->place[block];

	r->dirty -= from == PLACE_DIRTY;
	r->clean -= from == PLACE_CLEAN;
	r->dirty += to == PLACE_DIRTY;
	r->clean += to == PLACE_CLEAN;
	v->fast_used -= from != PLACE_PACKED;
	v->fast_used += to != PLACE_PACKED;
	v->place[block] = (uint8_t)to;
	list(v, block / REGION_BLOCKS);
}

bool volume_read(struct volume *v, uint64_t block)
{
	bool fast = v->place[block] != PLACE_PACKED;

	v->operations++;
	v->reads++;
	v->fast_hits += fast;
	if (!fast)
		v->slow_read += v->ratio;
	return fast;
}

bool volume_write(struct volume *v, uint64_t block)
{
	struct volume_region *r = &v->region[block / REGION_BLOCKS];

	v->operations++;
	r->changed = v->operations;
	if (v->place[block] == PLACE_DIRTY)
		return true;
	if (v->place[block] == PLACE_PACKED && v->fast_used >= v->fast_total) {
		/* Overflow: appended loose, the old copy becomes garbage. */
		v->overflowed++;
		v->slow_written += 1;
		r->packed += v->ratio;
		r->garbage += v->ratio;
		return false;
	}
	r->garbage += v->ratio;
	set_place(v, block, PLACE_DIRTY);
	return true;
}

bool volume_raise(struct volume *v, uint64_t block)
{
	if (v->place[block] != PLACE_PACKED)
		return true;
	if (v->fast_used >= v->fast_total)
		return false;
	set_place(v, block, PLACE_CLEAN);
	v->promoted++;
	return true;
}

void volume_view(const struct volume *v, uint64_t region, struct region_view *view)
{
	const struct volume_region *r = &v->region[region];

	*view = (struct region_view){
		.region = region,
		.dirty_blocks = r->dirty,
		.clean_blocks = r->clean,
		.packed_blocks = r->packed,
		.garbage_blocks = r->garbage,
		.packs = r->packs,
		.age = v->operations - r->changed,
	};
}

void volume_masks(const struct volume *v, uint64_t region, struct upmask_input *in)
{
	memset(in, 0, sizeof(*in));
	for (uint32_t i = 0; i < REGION_BLOCKS; i++) {
		if (v->place[region * REGION_BLOCKS + i] == PLACE_PACKED)
			upmask_set(&in->packed, i);
		else
			upmask_set(&in->fast, i);
	}
}

static double demote_outside(struct volume *v, uint64_t region, const struct upmask *up)
{
	double written = 0;

	for (uint32_t i = 0; i < REGION_BLOCKS; i++) {
		uint64_t block = region * REGION_BLOCKS + i;

		if (upmask_test(up, i) || v->place[block] == PLACE_PACKED)
			continue;
		if (v->place[block] == PLACE_DIRTY) {
			written += v->ratio;
			v->demoted++;
		} else {
			v->dropped++;
		}
		set_place(v, block, PLACE_PACKED);
	}
	return written;
}

void volume_move(struct volume *v, uint64_t region, const struct upmask *up, enum move_mode mode)
{
	struct volume_region *r = &v->region[region];
	double written = demote_outside(v, region, up);

	r->changed = v->operations;
	if (mode == MOVE_RAISE) {
		/* What is not in the promotion cache any more has to be read again. */
		v->slow_read += r->packed;
		for (uint32_t i = 0; i < REGION_BLOCKS; i++)
			if (upmask_test(up, i))
				volume_raise(v, region * REGION_BLOCKS + i);
	} else if (mode == MOVE_MERGE && written > 0) {
		for (uint32_t i = 0; i < REGION_BLOCKS; i++)
			if (upmask_test(up, i))
				volume_raise(v, region * REGION_BLOCKS + i);
		v->slow_read += r->packed;
		r->packed += written - r->garbage;
		v->slow_written += r->packed;
		r->garbage = 0;
		r->packs = 1;
	} else if (written > 0) {
		r->packed += written;
		v->slow_written += written;
		r->packs++;
	}
}
