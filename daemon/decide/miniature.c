// SPDX-License-Identifier: GPL-2.0-or-later
/* A volume of a few thousand blocks and what the policy makes of it; see miniature.h. */
#include "decide/miniature.h"

#include <errno.h>
#include <string.h>

/* No tunables: the form of the model.  It tells people what other settings would hit, and moves nothing. */
#define REGION_LEAST	16u	/* blocks: with fewer a region would be as hot or cold as its one block */
#define REGION_MOST	64u	/* with more each choice would look at too many */
#define ATTEMPTS	4u	/* choices for each access */
#define VAIN_SHARE	64u	/* of the fast tier: so many accesses after all was hot it is looked at again */
#define SALT		0x6d696e69ull	/* other blocks than the ghost cache's and repay's samples */

enum { BELOW, CLEAN, DIRTY };

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_U32, miniature_tunables, samples, 8192, 64, 1 << 20,
		"blocks of the miniatures that tell what other settings would hit, at most; their noise falls with the root"),
	TUNABLE(TUNABLE_U32, miniature_tunables, counted, 262144, 64, 1 << 26,
		"blocks whose uses are counted, at most, a byte each: how large a share of the volume's hot ones the miniatures have; below `samples`: none"),
	TUNABLE(TUNABLE_DOUBLE, miniature_tunables, most_share, 0.004, 1e-9, 1.0,
		"of a volume's blocks: smaller ones have no miniatures, which would take too much of a CPU there"),
};
TUNABLE_TABLE(miniature_tunable_table, "miniature", rows);

/* ---- which blocks ---------------------------------------------------------------------- */

static uint32_t shift_to(uint64_t blocks, uint32_t most)
{
	uint32_t shift = 0;

	while (blocks >> shift > most)
		shift++;
	return shift;
}

uint32_t miniature_shift(const struct miniature_tunables *t, uint64_t blocks)
{
	return shift_to(blocks, t->samples);
}

uint32_t miniature_counted_shift(const struct miniature_tunables *t, uint64_t blocks)
{
	return shift_to(blocks, t->counted);
}

bool miniature_worthwhile(const struct miniature_tunables *t, uint32_t shift)
{
	return 1.0 / (double)(1ull << shift) <= t->most_share;
}

uint64_t miniature_block(uint64_t n, uint32_t shift)
{
	return n << shift | (mix64(n ^ SALT) & ((1ull << shift) - 1));
}

int64_t miniature_number(uint64_t block, uint32_t shift)
{
	uint64_t n = block >> shift;

	return miniature_block(n, shift) == block ? (int64_t)n : -1;
}

/* ---- memory ------------------------------------------------------------------------------ */

static uint32_t region_blocks(uint32_t shift)
{
	uint32_t n = shift < 10 ? REGION_BLOCKS >> shift : 1;

	return n < REGION_LEAST ? REGION_LEAST : n > REGION_MOST ? REGION_MOST : n;
}

static uint32_t region_count(uint32_t blocks, uint32_t shift)
{
	return (blocks + region_blocks(shift) - 1) / region_blocks(shift);
}

size_t miniature_bytes(uint32_t blocks, uint32_t shift)
{
	return region_count(blocks, shift) * (sizeof(struct miniature_region) + sizeof(uint32_t)) + blocks;
}

int miniature_init(struct miniature *m, uint32_t blocks, uint32_t fast_blocks, uint32_t shift, void *mem, size_t bytes)
{
	if (!blocks || !fast_blocks)
		return -EINVAL;
	if (!mem || bytes < miniature_bytes(blocks, shift))
		return -ENOMEM;
	memset(mem, 0, miniature_bytes(blocks, shift));
	*m = (struct miniature){
		.blocks = blocks, .fast_blocks = fast_blocks, .shift = shift,
		.region_blocks = region_blocks(shift), .regions = region_count(blocks, shift),
	};
	m->region = mem;
	m->with_fast = (uint32_t *)(m->region + m->regions);
	m->place = (uint8_t *)(m->with_fast + m->regions);
	return 0;
}

/* ---- where blocks lie -------------------------------------------------------------------- */

static void list(struct miniature *m, uint32_t region)
{
	struct miniature_region *r = &m->region[region];
	uint32_t last;

	if (r->fast && !r->listed) {
		m->with_fast[m->nr_with_fast++] = region;
		r->listed = m->nr_with_fast;
	} else if (!r->fast && r->listed) {
		last = m->with_fast[--m->nr_with_fast];
		m->with_fast[r->listed - 1] = last;
		m->region[last].listed = r->listed;
		r->listed = 0;
	}
}

static void place(struct miniature *m, uint32_t block, uint8_t to)
{
	uint32_t region = block / m->region_blocks;
	struct miniature_region *r = &m->region[region];
	uint8_t from = m->place[block];

	r->fast += (to != BELOW) - (from != BELOW);
	r->dirty += (to == DIRTY) - (from == DIRTY);
	m->fast_used += (to != BELOW) - (from != BELOW);
	m->place[block] = to;
	list(m, region);
}

/* ---- room -------------------------------------------------------------------------------- */

struct looker {
	struct miniature *m;
	const struct miniature_rules *rules;
	const struct heat *heat;
};

static uint32_t end_of(const struct miniature *m, uint32_t region)
{
	uint32_t end = (region + 1) * m->region_blocks;

	return end < m->blocks ? end : m->blocks;
}

static void add_heat(const struct looker *l, struct region_view *view)
{
	uint32_t first = (uint32_t)view->region * l->m->region_blocks, hot = 0;
	double cold = 0;

	for (uint32_t b = first; b < end_of(l->m, (uint32_t)view->region); b++) {
		if (l->m->place[b] == BELOW)
			continue;
		hot += heat_hot(l->heat, b, 0);
		if (l->rules->rule == CHOOSE_PRECISE)
			cold += coldness(heat_level(l->heat, b, 0));
	}
	approximate_view(view, l->rules->buckets, hot);
	if (l->rules->rule == CHOOSE_PRECISE)
		view->coldness = cold;
}

/* A region's other blocks lie below, in one pack, half as large as they were. */
static bool view_region(void *ctx, uint64_t index, struct region_view *view)
{
	const struct looker *l = ctx;
	uint32_t region = l->m->with_fast[index];
	const struct miniature_region *r = &l->m->region[region];

	*view = (struct region_view){
		.region = region, .dirty_blocks = r->dirty, .clean_blocks = r->fast - r->dirty,
		.packed_blocks = (l->m->region_blocks - r->dirty) / 2.0, .packs = 1, .age = l->m->accesses - r->used,
	};
	if (l->rules->rule == CHOOSE_RANDOM || l->rules->rule == CHOOSE_OLDEST)
		view->coldness = r->fast;
	else
		add_heat(l, view);
	return true;
}

/* What is hot stays. */
static void demote_region(const struct looker *l, uint32_t region)
{
	struct miniature *m = l->m;
	uint32_t first = region * m->region_blocks;
	struct upmask_input in = { 0 };
	struct upmask_result up;

	for (uint32_t b = first; b < end_of(m, region); b++) {
		if (m->place[b] != BELOW)
			upmask_set(&in.fast, b - first);
		if (m->place[b] != BELOW && heat_hot(l->heat, b, 0))
			upmask_set(&in.hot, b - first);
	}
	upmask_build(&up, &in, 0);
	for (uint32_t b = first; b < end_of(m, region); b++)
		if (m->place[b] != BELOW && !upmask_test(&up.up, b - first))
			place(m, b, BELOW);
	m->region[region].used = m->accesses;
}

static void make_room(struct looker *l, struct prng *prng)
{
	struct miniature *m = l->m;

	for (uint32_t i = 0; i < ATTEMPTS; i++) {
		struct watermark_verdict v = watermark_step(&m->watermark, l->rules->watermark, m->fast_used, m->fast_blocks);
		struct choice c;

		if (!v.demote_blocks || m->accesses < m->again)
			return;
		if (choose_region(&c, l->rules->rule, l->rules->choose, l->rules->msc, m->nr_with_fast, view_region, l, prng)) {
			m->again = m->accesses + m->fast_blocks / VAIN_SHARE;
			return;
		}
		demote_region(l, (uint32_t)c.view.region);
	}
}

/* ---- accesses ---------------------------------------------------------------------------- */

static bool has_room(const struct miniature *m, const struct miniature_rules *r)
{
	return m->fast_used < r->watermark->high * m->fast_blocks;
}

/*
 * upmask_neighbours() asks this of 64 adjacent blocks, of which two or none are in a sample: here a region's stand for them,
 * which is right where clusters are as large.
 */
static void raise_neighbours(const struct looker *l, uint32_t region)
{
	struct miniature *m = l->m;
	uint32_t first = region * m->region_blocks, end = end_of(m, region), hot = 0;

	if (l->rules->flush->neighbours > 1)
		return;
	for (uint32_t b = first; b < end; b++)
		hot += heat_hot(l->heat, b, 0);
	if (hot < l->rules->flush->neighbours * (end - first))
		return;
	for (uint32_t b = first; b < end && has_room(m, l->rules); b++)
		if (m->place[b] == BELOW)
			place(m, b, CLEAN);
}

void miniature_read(struct miniature *m, const struct miniature_rules *r, const struct heat *heat, uint32_t block,
		    struct prng *prng)
{
	struct looker l = { m, r, heat };

	m->accesses++;
	if (m->place[block] != BELOW)
		return;
	m->misses++;
	if (m->up == MINIATURE_NOTHING || (m->up == MINIATURE_HOT && !heat_hot(heat, block, 0)))
		return;
	if (has_room(m, r)) {
		place(m, block, CLEAN);
		raise_neighbours(&l, block / m->region_blocks);
	}
	make_room(&l, prng);
}

void miniature_write(struct miniature *m, const struct miniature_rules *r, const struct heat *heat, uint32_t block,
		     struct prng *prng)
{
	struct looker l = { m, r, heat };

	m->accesses++;
	if (m->place[block] != BELOW || m->fast_used < m->fast_blocks)
		place(m, block, DIRTY);
	m->region[block / m->region_blocks].used = m->accesses;
	make_room(&l, prng);
}

void miniature_resize(struct miniature *m, const struct miniature_rules *r, const struct heat *heat, uint32_t fast_blocks,
		      struct prng *prng)
{
	struct looker l = { m, r, heat };
	uint32_t used;

	m->fast_blocks = fast_blocks;
	m->again = 0;
	do {
		used = m->fast_used;
		make_room(&l, prng);
	} while (m->fast_used < used);
}

void miniature_forget(struct miniature *m, uint32_t block)
{
	place(m, block, BELOW);
}

double miniature_hit_rate(const struct miniature *m, double reads)
{
	double missed = reads > 0 ? m->misses * (double)(1ull << m->shift) / reads : 1;

	return missed < 1 ? 1 - missed : 0;
}

void miniature_age(struct miniature *m)
{
	m->misses /= 2;
}
