// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The quick half of a check: the journal's chain, the directories, and the
 * meta bitmap against what the directories name.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

/* ---- journal ------------------------------------------------------------------ */

static const char *journal_where(const struct check *c, u64 i)
{
	const struct tr_super *super = c->vol.super;

	return where("%s: journal block %llu (meta block %llu)", c->vol.meta->dev->path,
		     super->tail_block_seq + i, journal_meta_block(super, i));
}

static void check_journal_end(struct check *c)
{
	const struct journal *j = &c->journal;

	if (j->error == -EUCLEAN)
		problem(&c->findings, journal_where(c, j->nr_blocks),
			"is intact and continues the journal, but holds an impossible record");
	else if (j->error == -ESTALE)
		problem(&c->findings, journal_where(c, j->nr_blocks),
			"is overwritten by a later one: the superblock is older than the journal's tail");
	else if (j->error)
		problem(&c->findings, journal_where(c, j->nr_blocks), "cannot be read: %s",
			strerror(-j->error));
	else if (j->torn)
		note(&c->findings, journal_where(c, j->nr_blocks),
		     "torn by a crash, or damaged; the journal ends before it");
}

/* A torn superblock is explained by a crash, unless there was none. A lazy mirror's is written after the
 * last one of a clean stop, and before the first record that follows.
 */
static void check_torn(struct check *c, const struct metadata *meta)
{
	const char *place;

	if (!meta->dev || meta->torn < 0)
		return;
	place = where("%s: superblock copy %d (meta block %d)", meta->dev->path, meta->torn,
		      meta->torn);
	if (c->clean && !meta->lazy)
		problem(&c->findings, place, "%s", decode_strerror(meta->state[meta->torn]));
	else
		note(&c->findings, place, "torn by a crash, or damaged; the other copy serves");
}

/*
 * Records are numbered on from superblock to superblock: a newer one with fewer is not of what is there.
 * A copy that the volume does without may be as it likes.
 */
static void check_supers_go_on(struct check *c)
{
	const struct metadata *meta = c->vol.meta;
	const struct tr_super *older;

	if (meta->state[0] || meta->state[1])
		return;
	older = &meta->copy[meta->super == &meta->copy[0]];
	if (older->tail_record_seq > meta->super->tail_record_seq)
		problem(&c->findings, where("%s: superblock copy %d", meta->dev->path, (int)(meta->super - meta->copy)),
			"is the newer one, but its pages hold records up to %llu, those of the older up to %llu",
			meta->super->tail_record_seq, older->tail_record_seq);
}

/* The pages hold all records up to the superblock's tail_record_seq. */
static void check_journal_start(struct check *c)
{
	const struct journal *j = &c->journal;
	u64 tail = c->vol.super->tail_record_seq;

	if (j->nr_records && j->first_record != tail + 1)
		problem(&c->findings, journal_where(c, 0),
			"starts with record %llu, but the pages hold those up to %llu",
			j->first_record, tail);
}

/* The other synchronous copy, with the superblock that counts. */
static bool second_copy(const struct check *c, struct metadata *other)
{
	*other = c->vol.meta == &c->vol.primary ? c->vol.mirror : c->vol.primary;
	if (!other->dev || !other->super || other->lazy || c->vol.meta->lazy || other->stale)
		return false;
	other->super = c->vol.super;
	return true;
}

/*
 * Of the two chains of primary and synchronous mirror that counts which activation
 * takes: the last blocks may have reached only one of them. More than can be in flight
 * is damage, which only the other copy can tell from a crash.
 */
static void take_journal_to_believe(struct check *c)
{
	struct metadata other;
	struct journal j;

	if (!second_copy(c, &other))
		return;
	journal_read(&j, &other);
	if (j.nr_blocks > c->journal.nr_blocks + TR_JOURNAL_IN_FLIGHT)
		problem(&c->findings, journal_where(c, c->journal.nr_blocks),
			"is damaged: %s has it and %llu more", other.dev->path,
			j.nr_blocks - c->journal.nr_blocks - 1);
	if (journal_wins(&j, &c->journal)) {
		journal_free(&c->journal);
		c->journal = j;
	} else {
		journal_free(&j);
	}
}

static void check_behind(struct check *c, const struct metadata *meta)
{
	u64 more = journal_more(&c->journal, meta);

	if (more)
		problem(&c->findings, where("%s: journal block %llu", meta->dev->path,
					    c->journal.end.block_seq),
			"is damaged: block %llu was written when it was durable", more);
}

static void check_what_is_behind(struct check *c)
{
	struct metadata other;

	if (c->journal.error || c->vol.meta->lazy)
		return;
	check_behind(c, c->vol.meta);
	if (second_copy(c, &other))
		check_behind(c, &other);
}

void check_journal(struct check *c)
{
	journal_read(&c->journal, c->vol.meta);
	check_journal_end(c);
	take_journal_to_believe(c);
	check_what_is_behind(c);
	check_journal_start(c);
	c->clean = c->vol.super->flags & TERRACE_SUPER_CLEAN && !c->journal.nr_blocks &&
		   !c->journal.torn;
	check_supers_go_on(c);
	check_torn(c, &c->vol.primary);
	check_torn(c, &c->vol.mirror);
	c->virtual_blocks = c->journal.virtual_blocks;
}

/* ---- directories ----------------------------------------------------------------- */

static u32 leaf(struct trees *trees, u32 tree, u32 tier, u64 number, const struct tr_entry *entry)
{
	struct check *c = trees->ctx;

	if (!c->full)
		return entry->count;
	if (tree == TERRACE_TREE_MAP)
		return check_map_page(c, number, entry);
	return check_space_page(c, tier, number, entry);
}

void check_trees(struct check *c)
{
	u64 most = c->virtual_blocks > c->vol.super->virtual_blocks ? c->virtual_blocks :
								  c->vol.super->virtual_blocks;

	trees_init(&c->trees, c->vol.meta, &c->findings);
	c->trees.regions = (most + TERRACE_REGION_BLOCKS - 1) / TERRACE_REGION_BLOCKS;
	c->trees.newest_record = c->journal.last_record;
	c->trees.leaf = leaf;
	c->trees.ctx = c;
	for (u32 i = 0; i < c->vol.super->nr_tiers; i++)
		trees_walk_space(&c->trees, i);
	if (c->full)
		check_space_replay(c);
	trees_walk_map(&c->trees);
}

/* ---- meta bitmap ------------------------------------------------------------------- */

enum bit_state { BIT_RIGHT, BIT_LEAKED, BIT_MISSING, BIT_BEYOND };

static enum bit_state judge_bit(const struct trees *trees, u64 block, bool used)
{
	if (block >= trees->super->meta_blocks)
		return used ? BIT_BEYOND : BIT_RIGHT;
	if (used == (block < tr_first_page(trees->super) || bit_test(trees->claimed, block)))
		return BIT_RIGHT;
	return used ? BIT_LEAKED : BIT_MISSING;
}

static void print_bits(struct check *c, const struct trees *trees, enum bit_state state, u64 from,
		       u64 to)
{
	static const char *const text[] = {
		[BIT_LEAKED] = "used in the meta bitmap, but no page lives there (leaked)",
		[BIT_MISSING] = "in use, but free in the meta bitmap",
		[BIT_BEYOND] = "used in the meta bitmap, but beyond the end of the metadata area",
	};

	if (state == BIT_RIGHT || (state == BIT_LEAKED && trees->broken))
		return;
	problem(&c->findings, where("%s: meta blocks %llu-%llu", trees->meta->dev->path, from, to - 1),
		"%s", text[state]);
}

/* One line for each run of bits that are wrong in the same way. */
static void compare_bits(struct check *c, const struct trees *trees, const u64 *bits, u64 first)
{
	enum bit_state state = BIT_RIGHT;
	u64 from = first;

	for (u64 i = 0; i < TERRACE_MBIT_BITS; i++) {
		enum bit_state now = judge_bit(trees, first + i, bit_test(bits, i));

		if (now == state)
			continue;
		print_bits(c, trees, state, from, first + i);
		state = now;
		from = first + i;
	}
	print_bits(c, trees, state, from, first + TERRACE_MBIT_BITS);
}

/* A clean stop copies its last generation over the lazy mirror's only one, if they stand
 * at the same place. The power went in between; the next activation copies it anew.
 */
static bool was_being_copied(const struct check *c, const struct metadata *meta)
{
	const struct tr_super *last = c->vol.primary.super;

	return meta->lazy && last && last->flags & TERRACE_SUPER_CLEAN &&
	       last->generation > meta->super->generation &&
	       !((last->generation ^ meta->super->generation) & 1);
}

void check_meta_bitmap(struct check *c, const struct trees *trees)
{
	const struct tr_super *super = trees->super;
	u32 parity = super->generation & 1;
	void *block = ctl_alloc_blocks(1);
	u64 bits[TERRACE_MBIT_WORDS];

	for (u64 i = 0; i < super->bitmap_blocks; i++) {
		u64 at = super->bitmap_start[parity] + i;
		int r = metadata_read(trees->meta, at, 1, block);

		if (!r)
			r = tr_mbit_decode(block, bits, i * TERRACE_MBIT_BITS, super->generation,
					   super->volume_uuid);
		if ((r == -ESTALE || r == -EBADMSG) && was_being_copied(c, trees->meta))
			note(&c->findings, where("%s: block %llu of meta bitmap %u (meta block %llu)",
						 trees->meta->dev->path, i, parity, at),
			     "of a copy that a crash cut off; the next activation copies it anew");
		else if (r)
			problem(&c->findings, where("%s: block %llu of meta bitmap %u (meta block %llu)",
						    trees->meta->dev->path, i, parity, at),
				"%s", decode_strerror(r));
		else
			compare_bits(c, trees, bits, i * TERRACE_MBIT_BITS);
	}
	free(block);
}
