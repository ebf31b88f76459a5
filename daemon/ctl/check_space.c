// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which places are used, by the space pages and the journal, and which are
 * referenced by the map.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "names.h"

#define CHUNK_WORDS (TERRACE_CHUNK_BLOCKS / 64)

void check_space_init(struct check *c)
{
	for (u32 i = 0; i < c->vol.super->nr_tiers; i++) {
		struct check_tier *t = &c->tier[i];

		t->data_blocks = c->vol.super->tier[i].data_blocks;
		t->nr_chunks = tr_chunks(t->data_blocks);
		t->used = ctl_alloc(t->nr_chunks * sizeof(*t->used));
		t->referenced = ctl_alloc(t->nr_chunks * sizeof(*t->referenced));
		t->unknown = ctl_alloc(t->nr_chunks * sizeof(*t->unknown));
	}
}

void check_space_free(struct check *c)
{
	for (u32 i = 0; i < TERRACE_MAX_TIERS; i++) {
		struct check_tier *t = &c->tier[i];

		for (u64 k = 0; t->used && k < t->nr_chunks; k++) {
			free(t->used[k]);
			free(t->referenced[k]);
		}
		free(t->used);
		free(t->referenced);
		free(t->unknown);
	}
}

static u64 *chunk_bits(u64 **bits, u64 chunk)
{
	if (!bits[chunk])
		bits[chunk] = ctl_alloc(CHUNK_WORDS * sizeof(u64));
	return bits[chunk];
}

/* ---- pages, then journal --------------------------------------------------------- */

u32 check_space_page(struct check *c, u32 tier, u64 chunk, const struct tr_entry *entry)
{
	const struct tr_page_id id = {
		.magic = TERRACE_SPACE_MAGIC, .index = chunk, .tier = tier,
		.tree = TERRACE_TREE_SPACE,
	};
	struct check_tier *t = &c->tier[tier];
	void *page = trees_read_page(&c->trees, &id, entry);
	u32 used = entry->count;
	u64 *bits;

	if (!page) {
		t->unknown[chunk] = true;
		return entry->count;
	}
	bits = chunk_bits(t->used, chunk);
	if (tr_space_decode(page, bits, &used))
		problem(&c->findings, page_where(&c->trees.meta[0], &id, entry->block),
			"its bitmap has %u bits, its counter says otherwise", used);
	for (u64 i = 0; i < TERRACE_CHUNK_BLOCKS; i++) {
		if (!bit_test(bits, i) || chunk * TERRACE_CHUNK_BLOCKS + i < t->data_blocks)
			continue;
		problem(&c->findings, page_where(&c->trees.meta[0], &id, entry->block),
			"marks places behind the end of the tier as used, the first is %llu",
			chunk * TERRACE_CHUNK_BLOCKS + i);
		break;
	}
	free(page);
	return used;
}

struct replay {
	struct check *c;
	u64 seq;
};

static void set_space(u32 tier, u64 index, u32 n, bool used, void *ctx)
{
	struct replay *replay = ctx;
	struct check *c = replay->c;
	struct check_tier *t = &c->tier[tier];
	u64 *bits;

	if (tier >= c->vol.super->nr_tiers || index + n > t->data_blocks) {
		problem(&c->findings, where("%s: journal record %llu", c->vol.meta->dev->path,
					    replay->seq),
			"names places %llu-%llu of tier %u, which do not exist", index, index + n - 1,
			tier);
		return;
	}
	bits = chunk_bits(t->used, index / TERRACE_CHUNK_BLOCKS);
	for (u64 i = index % TERRACE_CHUNK_BLOCKS; n; i++, n--) {
		if (used)
			bit_set(bits, i);
		else
			bits[i / 64] &= ~(1ull << (i % 64));
	}
}

static void replay_record(void *ctx, const struct tr_record *record, u64 seq, u64 block, u32 i)
{
	struct replay *replay = ctx;

	(void)block;
	(void)i;
	replay->seq = seq;
	tr_record_space(record, set_space, replay);
}

/* Oldest first: the last record that names a place has the last word. */
void check_space_replay(struct check *c)
{
	struct replay replay = { .c = c };

	journal_each(&c->journal, replay_record, &replay);
}

/* ---- against the map ------------------------------------------------------------------ */

bool check_space_reference(struct check *c, u64 place)
{
	u64 index = tr_place_index(place);
	u64 *bits = chunk_bits(c->tier[tr_place_tier(place)].referenced, index / TERRACE_CHUNK_BLOCKS);

	if (bit_test(bits, index % TERRACE_CHUNK_BLOCKS))
		return false;
	bit_set(bits, index % TERRACE_CHUNK_BLOCKS);
	return true;
}

enum place_state { PLACE_RIGHT, PLACE_LEAKED, PLACE_UNMARKED };

static enum place_state judge_place(const u64 *used, const u64 *referenced, u64 i)
{
	bool u = used && bit_test(used, i), r = referenced && bit_test(referenced, i);

	if (u == r)
		return PLACE_RIGHT;
	return u ? PLACE_LEAKED : PLACE_UNMARKED;
}

static void end_run(struct check *c, u32 tier, enum place_state state, u64 from, u64 to)
{
	const char *path = volume_tier_name(&c->vol, tier);

	if (state == PLACE_LEAKED && !c->map_unknown)
		problem(&c->findings, where("%s: tier %u places %llu-%llu", path, tier, from, to - 1),
			"used in the space page of chunk %llu, but no block lives there (leaked)",
			from / TERRACE_CHUNK_BLOCKS);
	if (state == PLACE_UNMARKED)
		check_suspect(c, tr_place(tier, from), false)->run = to - from;
}

static void compare_chunk(struct check *c, u32 tier, u64 chunk)
{
	const u64 *used = c->tier[tier].used[chunk], *referenced = c->tier[tier].referenced[chunk];
	u64 first = chunk * TERRACE_CHUNK_BLOCKS, from = first;
	enum place_state state = PLACE_RIGHT;

	for (u64 i = 0; i < TERRACE_CHUNK_BLOCKS; i++) {
		enum place_state now = judge_place(used, referenced, i);

		c->tier[tier].used_blocks += used && bit_test(used, i);
		if (now == state)
			continue;
		end_run(c, tier, state, from, first + i);
		state = now;
		from = first + i;
	}
	end_run(c, tier, state, from, first + TERRACE_CHUNK_BLOCKS);
}

void check_space_compare(struct check *c)
{
	for (u32 i = 0; i < c->vol.super->nr_tiers; i++) {
		struct check_tier *t = &c->tier[i];

		for (u64 chunk = 0; chunk < t->nr_chunks; chunk++)
			if ((t->used[chunk] || t->referenced[chunk]) && !t->unknown[chunk])
				compare_chunk(c, i, chunk);
	}
	if (c->map_unknown)
		note(&c->findings, where("volume '%s'", c->vol.name),
		     "leaked places are not looked for, because parts of the map cannot be read");
}
