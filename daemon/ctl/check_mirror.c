// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The mirror of the metadata. A synchronous one holds what the primary holds,
 * but for the very last writes before a crash. A lazy one is an older
 * checkpoint that must be consistent in itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

/* Blocks [from, from + nr) of both areas alike? One line per run. */
static void compare_blocks(struct check *c, u64 block, void *a, void *b, u64 *from, bool *differs)
{
	const struct metadata *p = &c->vol.primary, *m = &c->vol.mirror;
	int r = metadata_read(p, block, 1, a);
	bool now;

	if (!r)
		r = metadata_read(m, block, 1, b);
	now = r || memcmp(a, b, TERRACE_BLOCK_BYTES);
	if (now && !*differs)
		*from = block;
	*differs = now;
}

static void print_difference(struct check *c, u64 from, u64 to)
{
	problem(&c->findings, where("%s: meta blocks %llu-%llu", c->vol.mirror.dev->path, from, to - 1),
		"the mirror differs from the primary on %s", c->vol.primary.dev->path);
}

/* Everything that the checkpoint in use consists of. */
static void compare_checkpoint(struct check *c)
{
	const struct tr_super *super = c->vol.super;
	void *a = ctl_alloc_blocks(1), *b = ctl_alloc_blocks(1);
	u32 parity = super->generation & 1;
	bool differs = false;
	u64 from = 0;

	for (u64 i = super->bitmap_start[parity]; i < super->meta_blocks; i++) {
		bool was = differs;
		bool bitmap = i < super->bitmap_start[parity] + super->bitmap_blocks;

		if (bitmap || (i >= tr_first_page(super) && bit_test(c->trees.claimed, i)))
			compare_blocks(c, i, a, b, &from, &differs);
		else
			differs = false;
		if (was && !differs)
			print_difference(c, from, i);
	}
	if (differs)
		print_difference(c, from, super->meta_blocks);
	free(a);
	free(b);
}

/* The longer journal is the one that was taken. */
static void compare_journals(struct check *c)
{
	struct journal p, m;
	struct metadata primary = c->vol.primary, mirror = c->vol.mirror;
	u64 shorter;

	primary.super = c->vol.super;
	mirror.super = c->vol.super;
	journal_read(&p, &primary);
	journal_read(&m, &mirror);
	shorter = p.nr_blocks < m.nr_blocks ? p.nr_blocks : m.nr_blocks;
	if (memcmp(p.blocks, m.blocks, shorter * TERRACE_BLOCK_BYTES))
		problem(&c->findings, mirror.dev->path, "the journal of the mirror is another one than the primary's");
	else if (p.nr_blocks != m.nr_blocks)
		note(&c->findings, mirror.dev->path,
		     "the journal has %llu blocks here, %llu on %s: the last commit reached only one",
		     m.nr_blocks, p.nr_blocks, primary.dev->path);
	journal_free(&p);
	journal_free(&m);
}

/* Activation refuses them: each went on without the other. As bytes on disk: a struct may
 * differ in its padding alone.
 */
static void compare_supers(struct check *c, const struct tr_super *p, const struct tr_super *m)
{
	u8 *a = ctl_alloc_blocks(1), *b = ctl_alloc_blocks(1);

	tr_super_encode(a, p);
	tr_super_encode(b, m);
	if (memcmp(a, b, TERRACE_BLOCK_BYTES))
		problem(&c->findings, c->vol.mirror.dev->path,
			"its superblock of checkpoint %llu is another one than that on %s",
			m->generation, c->vol.primary.dev->path);
	free(a);
	free(b);
}

static void check_sync(struct check *c)
{
	const struct tr_super *p = c->vol.primary.super, *m = c->vol.mirror.super;
	u64 apart = p->generation > m->generation ? p->generation - m->generation :
						    m->generation - p->generation;

	if (c->vol.primary.stale || c->vol.mirror.stale) {
		note(&c->findings, (c->vol.mirror.stale ? c->vol.mirror : c->vol.primary).dev->path,
		     "its metadata is stale (checkpoint %llu of %llu): the volume went on without it",
		     c->vol.mirror.stale ? m->generation : p->generation,
		     c->vol.super->generation);
		return;
	}
	/* One apart is what a power cut between the two superblocks leaves, also
	 * between those of a clean stop: the next activation brings it up to date.
	 */
	if (apart > 1)
		problem(&c->findings, c->vol.mirror.dev->path,
			"the mirror is at checkpoint %llu, the primary at %llu", m->generation,
			p->generation);
	else if (apart)
		note(&c->findings, c->vol.mirror.dev->path,
		     "the mirror is at checkpoint %llu, the primary at %llu: stopped in between",
		     m->generation, p->generation);
	else if (!((p->flags ^ m->flags) & TERRACE_SUPER_ALONE))
		compare_supers(c, p, m);
	compare_journals(c);
	if (c->full)
		compare_checkpoint(c);
}

static u32 read_leaf(struct trees *trees, u32 tree, u32 tier, u64 number,
		     const struct tr_entry *entry)
{
	const struct tr_page_id id = {
		.magic = tree == TERRACE_TREE_MAP ? TERRACE_MAP_MAGIC : TERRACE_SPACE_MAGIC,
		.index = number, .tree = tree, .tier = tree == TERRACE_TREE_SPACE ? tier : 0,
	};

	free(trees_read_page(trees, &id, entry));
	return entry->count;
}

/* Either may be the one that is left one day, and by its records blocks are outdated. */
static bool lazy_ahead(struct check *c)
{
	const struct tr_super *p = c->vol.primary.super;
	const struct metadata *m = &c->vol.mirror;
	bool ahead = false;

	for (u32 k = 0; k < 2; k++) {
		if (m->state[k] || m->copy[k].tail_record_seq <= p->tail_record_seq)
			continue;
		problem(&c->findings, where("%s: superblock copy %u (meta block %u)", m->dev->path, k, k),
			"the lazy mirror has records up to %llu in its pages, the primary up to %llu",
			m->copy[k].tail_record_seq, p->tail_record_seq);
		ahead = true;
	}
	return ahead;
}

static void check_lazy(struct check *c)
{
	const struct tr_super *p = c->vol.primary.super, *m = c->vol.mirror.super;
	struct trees trees;

	if (p->flags & TERRACE_SUPER_LAZY_LOST) {
		note(&c->findings, c->vol.mirror.dev->path,
		     "the lazy mirror was given up and is not in step: it will be copied anew");
		return;
	}
	if (m->generation > p->generation) {
		problem(&c->findings, c->vol.mirror.dev->path,
			"the lazy mirror is at checkpoint %llu, ahead of the primary at %llu",
			m->generation, p->generation);
		return;
	}
	if (lazy_ahead(c))
		return;
	if (c->vol.mirror.torn >= 0)
		return;		/* pages of the older copy may be reused */
	trees_init(&trees, &c->vol.mirror, &c->findings);
	trees.leaf = c->full ? read_leaf : NULL;
	for (u32 i = 0; i < m->nr_tiers; i++)
		trees_walk_space(&trees, i);
	trees_walk_map(&trees);
	check_meta_bitmap(c, &trees);
	trees_free(&trees);
}

void check_mirror(struct check *c)
{
	const int *state = c->vol.mirror.state;

	if (!c->vol.mirror.dev)
		return;
	if (c->vol.primary.super && state[0] == -ENOENT && state[1] == -ENOENT)
		return;		/* noted already */
	if (!c->vol.mirror.super && c->vol.primary.super &&
	    c->vol.primary.super->flags & (TERRACE_SUPER_LAZY_LOST | TERRACE_SUPER_ALONE))
		return;		/* noted already */
	if (!c->vol.mirror.super) {
		problem(&c->findings, c->vol.mirror.dev->path, "the mirror has no superblock that can be used");
		return;
	}
	if (!c->vol.primary.super)
		return;
	if (c->vol.mirror.lazy)
		check_lazy(c);
	else
		check_sync(c);
}
