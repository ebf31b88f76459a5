// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The map from trees and journal, and how sure it is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <asm/byteorder.h>

#include "rebuild_map.h"
#include "rebuild_packs.h"

/* ---- pages that the trees lead to ----------------------------------------------------- */

static void mark_lost(struct map_reader *m, u64 from, u64 nr)
{
	for (u64 r = from; nr && r < m->rb->nr_regions; r++, nr--) {
		m->nr_lost += !bit_test(m->lost, r);
		bit_set(m->lost, r);
	}
}

static void mark_bad(struct map_reader *m, const struct tr_entry *entry)
{
	for (u64 b = entry->block; b < entry->block + entry->blocks; b++)
		if (b < m->rb->super->meta_blocks)
			bit_set(m->known_bad, b);
}

static void lost_below(struct trees *trees, u32 tree, u32 tier, u32 level, u64 index,
		       const struct tr_entry *entry)
{
	(void)tier;
	if (tree != TERRACE_TREE_MAP)
		return;
	mark_lost(trees->ctx, index, 1ull << (level * TERRACE_DIR_SHIFT));
	mark_bad(trees->ctx, entry);
}

static void fill_region(struct rebuild *rb, u64 number, const struct tr_leaf *leaf,
			const struct tr_packs *packs, const u64 *gone, enum rb_source source)
{
	struct rb_region *region = rb_region(rb, number);

	region->nr_packs = 0;
	for (u32 k = 0; k < packs->nr; k++)
		rb_pack_number(rb, region, &packs->pack[k]);
	for (u32 i = 0; i < TERRACE_REGION_BLOCKS; i++) {
		u32 k = tr_packs_find(packs, i);

		/* What a discard took reads as zeros; its place is found free. */
		region->at[i] = bit_test(gone, i) ? rb_make(RB_CERTAIN, source, TR_NO_PLACE) :
				rb_make_packed(RB_CERTAIN, source, tr_leaf_get(leaf, i),
					       k == TR_NO_PACK ? 0 : k + 1);
	}
}

bool rb_take_page(struct rebuild *rb, u64 number, const void *page, u32 blocks, u64 seq,
		  enum rb_source source)
{
	static u32 low[TERRACE_REGION_BLOCKS];
	static u8 high[TERRACE_REGION_BLOCKS];
	const struct terrace_page_disk *head = page;
	u64 data_blocks[TERRACE_MAX_TIERS];
	struct tr_packs *packs;
	struct tr_leaf leaf;
	bool good;
	u8 age;

	tr_leaf_init(&leaf);
	leaf.low = low;
	leaf.high = high;
	leaf.cap = TERRACE_REGION_BLOCKS;
	for (u32 i = 0; i < TERRACE_MAX_TIERS; i++)
		data_blocks[i] = rb->super->tier[i].data_blocks;
	packs = ctl_alloc(tr_packs_bytes(TERRACE_PACK_SLOTS));
	tr_packs_init(packs, TERRACE_PACK_SLOTS);
	good = !tr_map_decode(page, blocks * TERRACE_BLOCK_BYTES, &leaf, packs, &age, data_blocks,
			      rb->super->nr_tiers);
	if (good) {
		u64 gone[TR_LEAF_WORDS];

		tr_map_gone(page, blocks * TERRACE_BLOCK_BYTES, gone);
		fill_region(rb, number, &leaf, packs, gone, source);
		rb->region[number]->seq = seq;
		rb->region[number]->page_seq = __le64_to_cpu(head->seq);
	}
	free(packs);
	return good;
}

static void note_blocks(struct rebuild *rb, const struct tr_entry *entry)
{
	for (u64 b = entry->block; b < entry->block + entry->blocks; b++)
		bit_set(rb->avoid, b);
}

static u32 map_leaf(struct trees *trees, u32 tree, u32 tier, u64 number,
		    const struct tr_entry *entry)
{
	const struct tr_page_id id = {
		.magic = TERRACE_MAP_MAGIC, .index = number, .tree = TERRACE_TREE_MAP,
	};
	struct map_reader *m = trees->ctx;
	u64 tail = m->rb->super->tail_record_seq;
	void *page;

	(void)tier;
	note_seq(m->rb, entry->seq);
	note_blocks(m->rb, entry);
	if (tree != TERRACE_TREE_MAP || number >= m->rb->nr_regions)
		return entry->count;
	page = trees_read_page(trees, &id, entry);
	if (!page || !rb_take_page(m->rb, number, page, entry->blocks,
				entry->seq > tail ? entry->seq : tail, RB_MAP)) {
		mark_lost(m, number, 1);
		mark_bad(m, entry);
		bit_set(m->leaf_lost, number);
	}
	free(page);
	return entry->count;
}

static void map_directory(struct trees *trees, u32 tree, u32 tier, u32 level, u64 index,
			  const struct tr_entry *entry)
{
	struct map_reader *m = trees->ctx;

	(void)tree;
	(void)tier;
	(void)level;
	(void)index;
	note_seq(m->rb, entry->seq);
	note_blocks(m->rb, entry);
}

const struct metadata *rb_other_copy(const struct volume *vol)
{
	const struct metadata *other = vol->meta == &vol->primary ? &vol->mirror : &vol->primary;

	return other->dev ? other : NULL;
}

/* As activation judges it: judge_other() in kmod/copies.c. */
bool rb_in_step(const struct volume *vol, const struct metadata *other)
{
	return other && !other->lazy && !other->stale && other->super &&
	       !(vol->super->flags & TERRACE_SUPER_ALONE) &&
	       other->super->generation + 1 >= vol->super->generation;
}

static void walk(struct map_reader *m)
{
	struct rebuild *rb = m->rb;

	trees_init(&m->trees, rb->vol->meta, rb->findings);
	m->trees.other = rb_other_copy(rb->vol);
	m->trees.regions = rb->nr_regions;
	m->trees.leaf = map_leaf;
	m->trees.directory = map_directory;
	m->trees.lost = lost_below;
	m->trees.ctx = m;
	trees_walk_map(&m->trees);
	for (u32 t = 0; t < rb->super->nr_tiers; t++)
		trees_walk_space(&m->trees, t);	/* only which meta blocks they use */
	trees_free(&m->trees);
}

/* ---- how sure it is ---------------------------------------------------------------------------- */

/* Are all records in (seq, newest] in the journal? */
static bool covered(const struct map_reader *m, u64 seq)
{
	u64 newest = m->rb->newest_record;

	if (!m->journal_good)
		return false;
	if (seq >= newest)
		return true;
	return m->last >= newest && m->first && m->first <= seq + 1;
}

/* Of an outdated page. That a block is nowhere is no more certain than where others are,
 * and nobody is told of blocks that are nowhere.
 */
static u64 outdated(const struct rebuild *rb, u64 at)
{
	if (rb_state(at) != RB_CERTAIN)
		return at;
	if (!rb_somewhere(at) && rb->unmapped_certain)
		return rb_make(RB_LOST, RB_NONE, TR_NO_PLACE);
	return rb_change(at, RB_DOUBTFUL, RB_OLD_PAGE);
}

/* The bitmap of a superblock is written before it. */
static bool has_older_bitmap(const struct rebuild *rb, u32 k)
{
	const struct tr_super *super = rb->super;
	void *block = ctl_alloc_blocks(1);
	u64 bits[TERRACE_MBIT_WORDS];
	bool older = !metadata_read(rb->vol->meta, super->bitmap_start[k], 1, block) &&
		     !tr_mbit_decode(block, bits, 0, super->generation, super->volume_uuid);

	free(block);
	return older;
}

/*
 * Is the lazy mirror the volume's last state? Modules took the mark of a clean stop off the newer
 * superblock alone, once. Should that one be damaged, the older says CLEAN, of long ago.
 */
static bool lazy_is_last(const struct rebuild *rb)
{
	const struct metadata *meta = rb->vol->meta;

	if (!meta->lazy || meta->stale || !(rb->super->flags & TERRACE_SUPER_CLEAN))
		return false;
	for (u32 k = 0; k < 2; k++)
		if (meta->state[k] && meta->state[k] != -ENOENT && !has_older_bitmap(rb, k))
			return false;
	return true;
}

static void judge(struct map_reader *m)
{
	struct rebuild *rb = m->rb;
	u64 tail = rb->super->tail_record_seq;
	bool lazy = rb->vol->meta->lazy || rb->vol->meta->stale;
	bool lazy_good = lazy_is_last(rb);

	rb->end_known = m->journal_good && m->last >= rb->newest_record;
	rb->unmapped_certain = lazy ? lazy_good : covered(m, tail);
	if (!lazy && !covered(m, tail)) {
		rb->first_lost = m->last >= rb->newest_record ? tail + 1 : m->last + 1;
		rb->last_lost = m->last >= rb->newest_record && m->first ? m->first - 1 :
				rb->newest_record;
	}
	for (u64 r = 0; r < rb->nr_regions; r++) {
		struct rb_region *region = rb->region[r];
		bool sure;

		if (!region)
			continue;
		region->end_known = m->journal_good &&
				    (region->seq >= rb->newest_record || m->last >= rb->newest_record);
		sure = lazy ? lazy_good && !region->damaged : covered(m, region->seq);
		for (u32 i = 0; !sure && i < TERRACE_REGION_BLOCKS; i++)
			region->at[i] = outdated(rb, region->at[i]);
	}
}

/* A lazy mirror follows the primary: it cannot know more than that does. */
static bool follows(const struct rebuild *rb, const struct metadata *meta, u32 k)
{
	const struct tr_super *primary = rb->vol->primary.super;

	return meta->lazy && primary && meta->copy[k].generation <= primary->generation;
}

/* Whatever any superblock knows to be in its pages. */
static void note_supers(struct rebuild *rb)
{
	const struct metadata *meta[] = { &rb->vol->primary, &rb->vol->mirror };

	for (u32 i = 0; i < 2; i++)
		for (u32 k = 0; meta[i]->dev && k < 2; k++)
			if (!meta[i]->state[k] && !follows(rb, meta[i], k))
				note_seq(rb, meta[i]->copy[k].tail_record_seq);
}

bool rb_of_cut_repair(const struct rebuild *rb, const struct terrace_page_disk *head)
{
	u64 generation = __le64_to_cpu(head->generation);

	return generation > rb->super->generation && generation - rb->super->generation > RB_GENERATIONS_AHEAD / 2;
}

static bool is_page(const struct rebuild *rb, const struct terrace_page_disk *head)
{
	u32 magic = __le32_to_cpu(head->magic);

	return (magic == TERRACE_MAP_MAGIC || magic == TERRACE_DIR_MAGIC || magic == TERRACE_SPACE_MAGIC) &&
	       head->blocks == __cpu_to_le16(1) &&
	       !memcmp(head->volume_uuid, rb->super->volume_uuid, TERRACE_UUID_BYTES) &&
	       __le32_to_cpu(head->crc) == tr_block_crc(head, TERRACE_BLOCK_BYTES, offsetof(struct terrace_page_disk, crc));
}

/*
 * A superblock is written when all that its pages contain is in the journal. If one that is damaged was the newest the journal has
 * that, too, from this one's tail on, or has been written over since and does not end well. So where it does, pages with more are
 * those of a checkpoint that a crash cut off, before its records were durable. A journal with nothing in it proves nothing.
 */
static bool may_have_gone_on(const struct map_reader *m)
{
	const struct rebuild *rb = m->rb;

	return rb->vol->meta->lazy || !m->journal_good || rb->torn_end || m->last == rb->super->tail_record_seq;
}

/*
 * A damaged superblock may have been the newest: are there pages that know more than the journal reaches?
 * The one that says so is left where it is: a repair that is stopped, and begun again, has to find it.
 */
static void note_pages(struct rebuild *rb)
{
	struct terrace_page_disk *head = ctl_alloc_blocks(1);
	u64 newest = 0;

	for (u64 b = tr_first_page(rb->super); b < rb->super->meta_blocks; b++) {
		if (metadata_read(rb->vol->meta, b, 1, head) || !is_page(rb, head) || rb_of_cut_repair(rb, head))
			continue;
		if (__le64_to_cpu(head->seq) > rb->newest_record)
			newest = b;
		note_seq(rb, __le64_to_cpu(head->seq));
	}
	if (newest)
		bit_set(rb->avoid, newest);
	free(head);
}

u64 rb_newest_of_cut_repair(const struct rebuild *rb)
{
	const struct metadata *meta[] = { &rb->vol->primary, &rb->vol->mirror };
	struct terrace_page_disk *head = ctl_alloc_blocks(1);
	u64 newest = 0;

	for (u32 i = 0; i < 2; i++)
		for (u64 b = tr_first_page(rb->super); meta[i]->dev && b < rb->super->meta_blocks; b++)
			if (!metadata_read(meta[i], b, 1, head) && is_page(rb, head) && rb_of_cut_repair(rb, head) &&
			    __le64_to_cpu(head->seq) > newest)
				newest = __le64_to_cpu(head->seq);
	free(head);
	return newest;
}

void rb_read_map(struct rebuild *rb)
{
	struct map_reader m = { .rb = rb };

	rb->have_map = true;
	rb->unmapped_certain = true;
	m.lost = ctl_alloc((rb->nr_regions / 64 + 1) * sizeof(u64));
	m.leaf_lost = ctl_alloc((rb->nr_regions / 64 + 1) * sizeof(u64));
	m.known_bad = ctl_alloc((rb->super->meta_blocks / 64 + 1) * sizeof(u64));
	m.accounted = ctl_alloc((rb->super->meta_blocks / 64 + 1) * sizeof(u64));
	m.journal_good = true;
	m.last = rb->super->tail_record_seq;
	walk(&m);
	if (!rb->vol->meta->lazy)
		rb_read_journal(&m);
	note_supers(rb);
	if ((rb->vol->meta->state[0] || rb->vol->meta->state[1]) && may_have_gone_on(&m))
		note_pages(rb);
	if (m.nr_lost)
		rb_find_orphans(&m);
	judge(&m);
	rb_apply_journal(&m);
	journal_free(&m.journal);
	free(m.event);
	free(m.lost);
	free(m.leaf_lost);
	free(m.known_bad);
	free(m.accounted);
	free(m.bits);
}
