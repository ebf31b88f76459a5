// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pages that the trees do not lead to any more, because a directory is
 * damaged, or they are themselves:
 *
 *   - Pages are not overwritten in place, and the meta bitmap says what the
 *     checkpoint consists of. A whole page of the region in a block that the
 *     bitmap has as used, and the only such page, is the current one.
 *   - If all blocks that the bitmap has as used hold such pages, but for those
 *     that are known to be damaged, then a region without one has no blocks.
 *   - Any other page is of an older checkpoint. It is as good as current if
 *     the journal still has every record since.
 */
#include <stdlib.h>
#include <string.h>
#include <asm/byteorder.h>

#include "rebuild_map.h"

struct orphan {
	u64 region, seq, block;
	u32 blocks;
	bool current;		/* the meta bitmap has it */
	u8 *page;
};

/* The bitmap of the checkpoint, NULL if it is damaged. */
static u64 *read_mbits(const struct rebuild *rb, const struct metadata *meta)
{
	const struct tr_super *super = rb->super;
	u64 *bits = ctl_alloc(super->bitmap_blocks * TERRACE_MBIT_WORDS * sizeof(u64));
	void *block = ctl_alloc_blocks(1);
	int r = 0;

	for (u64 i = 0; i < super->bitmap_blocks && !r; i++) {
		r = metadata_read(meta, super->bitmap_start[super->generation & 1] + i, 1, block);
		if (!r)
			r = tr_mbit_decode(block, bits + i * TERRACE_MBIT_WORDS,
					   i * TERRACE_MBIT_BITS, super->generation,
					   super->volume_uuid);
	}
	free(block);
	if (!r)
		return bits;
	free(bits);
	return NULL;
}

static bool wanted_page(const struct map_reader *m, const struct terrace_page_disk *head)
{
	u64 number = __le64_to_cpu(head->index);

	return __le32_to_cpu(head->magic) == TERRACE_MAP_MAGIC && number < m->rb->nr_regions &&
	       bit_test(m->lost, number);
}

/* The better one of two pages of a region stays. Two that both seem current
 * contradict each other: then neither is.
 */
static void offer(struct orphan **best, struct orphan *o)
{
	struct orphan *have = *best;

	if (have && have->current && o->current && have->seq != o->seq) {
		have->current = false;
		o->current = false;
	}
	if (have && (have->current > o->current ||
		     (have->current == o->current && have->seq >= o->seq))) {
		free(o->page);
		return;
	}
	if (have)
		free(have->page);
	else
		*best = ctl_alloc(sizeof(**best));
	**best = *o;
}

static void look_at(struct map_reader *m, const struct metadata *meta, const u64 *bits, u64 block,
		    const void *first, struct orphan **best)
{
	const struct terrace_page_disk *head = first;
	struct orphan o = {
		.region = __le64_to_cpu(head->index), .seq = __le64_to_cpu(head->seq),
		.block = block, .blocks = __le16_to_cpu(head->blocks),
	};
	const struct tr_page_id id = {
		.magic = TERRACE_MAP_MAGIC, .index = o.region, .tree = TERRACE_TREE_MAP,
	};

	if (!wanted_page(m, head) || !o.blocks || o.blocks > TERRACE_MAP_MAX_BLOCKS || rb_of_cut_repair(m->rb, head))
		return;
	o.page = ctl_alloc_blocks(o.blocks);
	if (metadata_read(meta, block, o.blocks, o.page) ||
	    tr_page_check(o.page, o.blocks * TERRACE_BLOCK_BYTES, &id, NULL,
			  m->rb->super->volume_uuid)) {
		free(o.page);
		return;
	}
	o.current = bits && bit_test(bits, block) &&
		    __le64_to_cpu(head->generation) <= m->rb->super->generation;
	offer(&best[o.region], &o);
}

/* Any page of ours that is whole: its blocks are accounted for. */
static void account(struct map_reader *m, const struct metadata *meta, u64 block, const void *first)
{
	const struct terrace_page_disk *head = first;
	const struct tr_page_id id = {
		.magic = __le32_to_cpu(head->magic), .index = __le64_to_cpu(head->index),
		.level = head->level, .tier = head->tier, .tree = head->tree,
	};
	u32 nr = __le16_to_cpu(head->blocks);
	u8 *page;

	if (!nr || nr > TERRACE_MAP_MAX_BLOCKS || nr > m->rb->super->meta_blocks - block)
		return;
	page = ctl_alloc_blocks(nr);
	if (!metadata_read(meta, block, nr, page) &&
	    !tr_page_check(page, nr * TERRACE_BLOCK_BYTES, &id, NULL, m->rb->super->volume_uuid))
		for (u64 b = block; b < block + nr; b++)
			bit_set(m->accounted, b);
	free(page);
}

/* A block of a mirror that is not in step may still hold what was there a while ago. */
static void scan_area(struct map_reader *m, const struct metadata *meta, struct orphan **best)
{
	void *block = ctl_alloc_blocks(1);
	bool step = meta == m->rb->vol->meta || rb_in_step(m->rb->vol, meta);

	for (u64 b = tr_first_page(m->rb->super); b < m->rb->super->meta_blocks; b++) {
		if (metadata_read(meta, b, 1, block))
			continue;
		if (step)
			account(m, meta, b, block);
		look_at(m, meta, step ? m->bits : NULL, b, block, best);
	}
	free(block);
}

/* What the checkpoint consists of stays, also what nothing leads to: a repair that is begun again has to find it. */
static void avoid_checkpoint(struct map_reader *m)
{
	for (u64 b = 0; m->bits && b < m->rb->super->meta_blocks; b++)
		if (bit_test(m->bits, b))
			bit_set(m->rb->avoid, b);
}

static bool all_accounted(const struct map_reader *m)
{
	for (u64 b = tr_first_page(m->rb->super); m->bits && b < m->rb->super->meta_blocks; b++)
		if (bit_test(m->bits, b) && !bit_test(m->accounted, b) && !bit_test(m->known_bad, b))
			return false;
	return m->bits;
}

static void take_orphan(struct map_reader *m, u64 number, struct orphan *o)
{
	struct rebuild *rb = m->rb;
	u64 tail = rb->super->tail_record_seq, seq = o->seq;

	if (o->current && seq < tail)
		seq = tail;
	if (rb_take_page(rb, number, o->page, o->blocks, seq, o->current ? RB_MAP : RB_OLD_PAGE))
		rb->region[number]->damaged = !o->current;
	for (u32 i = 0; i < o->blocks; i++)
		bit_set(rb->avoid, o->block + i);
	note_seq(rb, o->seq);
	free(o->page);
	free(o);
}

static void drop_orphan(struct orphan *o)
{
	if (o)
		free(o->page);
	free(o);
}

static void nothing_known(struct rebuild *rb, u64 number)
{
	struct rb_region *region = rb_region(rb, number);

	region->damaged = true;
	region->seq = 0;
	for (u32 i = 0; i < TERRACE_REGION_BLOCKS; i++)
		region->at[i] = rb_make(RB_LOST, RB_NONE, TR_NO_PLACE);
}

void rb_find_orphans(struct map_reader *m)
{
	struct rebuild *rb = m->rb;
	const struct metadata *other = rb_other_copy(rb->vol);
	struct orphan **best = ctl_alloc(rb->nr_regions * sizeof(struct orphan *));
	bool complete;

	m->bits = read_mbits(rb, rb->vol->meta);
	if (!m->bits && rb_in_step(rb->vol, other))
		m->bits = read_mbits(rb, other);
	scan_area(m, rb->vol->meta, best);
	if (other)
		scan_area(m, other, best);
	complete = all_accounted(m);
	avoid_checkpoint(m);
	for (u64 r = 0; r < rb->nr_regions; r++) {
		if (!bit_test(m->lost, r))
			continue;
		if (complete && !bit_test(m->leaf_lost, r) && (!best[r] || !best[r]->current)) {
			drop_orphan(best[r]);
			continue;
		}
		if (best[r])
			take_orphan(m, r, best[r]);
		if (!rb->region[r])
			nothing_known(rb, r);
	}
	free(best);
}
