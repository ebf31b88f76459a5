// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The journal, oldest record first. The ring keeps blocks from before the tail
 * until they are overwritten: each proves the one before it by its CRC, so the
 * journal is read backwards, too.
 *
 * Where it ends is what activation would say. A block that does not continue
 * it may have been torn by a crash, or be damaged; whether, only what stands
 * behind it can tell: blocks of a later activation, or too many of them to
 * have been in flight. Then records are missing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <asm/byteorder.h>

#include "rebuild_map.h"
#include "rebuild_packs.h"

static void add_event(void *ctx, const struct tr_record *record, u64 seq, u64 block, u32 i)
{
	struct map_reader *m = ctx;
	bool repeats = record->type == TERRACE_RECORD_DISCARD && record->old;

	(void)block;
	(void)i;
	if (m->nr_events == m->room) {
		m->room = 2 * m->room + 1024;
		m->event = ctl_realloc(m->event, m->room * sizeof(*m->event));
	}
	m->event[m->nr_events++] = (struct event){
		.seq = repeats ? record->old : seq, .order = seq, .record = *record,
	};
	if (!m->first || seq < m->first)
		m->first = seq;
}

/* Blocks before the tail that the ring still has. */
static void read_backwards(struct map_reader *m)
{
	const struct tr_super *super = m->rb->super;
	struct terrace_journal_disk *block = ctl_alloc_blocks(1);
	u32 crc = super->tail_prev_crc;
	u64 next_record = super->tail_record_seq + 1;

	if (m->journal.nr_records)
		next_record = m->journal.first_record;
	for (u64 seq = super->tail_block_seq; seq-- && super->tail_block_seq - seq < super->journal_blocks;) {
		struct tr_record record;
		u32 nr;

		if (metadata_read(m->rb->vol->meta, super->journal_start + seq % super->journal_blocks, 1,
				  block) ||
		    __le32_to_cpu(block->magic) != TERRACE_JOURNAL_MAGIC ||
		    __le64_to_cpu(block->block_seq) != seq || __le32_to_cpu(block->crc) != crc ||
		    tr_block_crc(block, sizeof(*block), offsetof(struct terrace_journal_disk, crc)) != crc)
			break;
		nr = tr_jblock_nr(block);
		if (nr && tr_jblock_first_record(block) + nr != next_record)
			break;
		for (u32 i = 0; i < nr; i++) {
			tr_jblock_record(block, i, &record);
			add_event(m, &record, tr_jblock_first_record(block) + i, 0, 0);
		}
		if (nr)
			next_record = tr_jblock_first_record(block);
		crc = __le32_to_cpu(block->prev_crc);
	}
	free(block);
}

static bool whole_block(const struct rebuild *rb, const struct terrace_journal_disk *block)
{
	return __le32_to_cpu(block->magic) == TERRACE_JOURNAL_MAGIC &&
	       !memcmp(block->volume_uuid, rb->super->volume_uuid, TERRACE_UUID_BYTES) &&
	       __le32_to_cpu(block->crc) ==
	       tr_block_crc(block, sizeof(*block), offsetof(struct terrace_journal_disk, crc)) &&
	       tr_jblock_nr(block) <= TERRACE_RECORDS_PER_BLOCK;
}

/* Is there something behind the end that should not be? */
static void look_behind(struct map_reader *m)
{
	struct rebuild *rb = m->rb;
	struct terrace_journal_disk *block = ctl_alloc_blocks(1);
	u64 end = m->journal.end.block_seq, ring = rb->super->journal_blocks, found = 0;

	for (u64 at = 0; at < ring; at++) {
		u64 seq, newest;

		if (metadata_read(rb->vol->meta, rb->super->journal_start + at, 1, block) ||
		    !whole_block(rb, block))
			continue;
		seq = __le64_to_cpu(block->block_seq);
		if (seq <= end || seq % ring != at)
			continue;
		found = seq > found ? seq : found;
		newest = tr_jblock_first_record(block) + tr_jblock_nr(block) - 1;
		if (tr_jblock_proves_more(block, &m->journal.end, rb->super->volume_uuid))
			note_seq(rb, newest);
	}
	rb->torn_end = found || m->journal.torn;
	if (found && rb->newest_record > m->last)
		problem(rb->findings, where("%s: journal block %llu", rb->vol->meta->dev->path, end),
			"is damaged: later ones up to %llu are there", found);
	if (found > rb->newest_journal_block)
		rb->newest_journal_block = found;
	free(block);
}

/* Of the two mirrors' journals the one that activation takes. */
void rb_read_journal(struct map_reader *m)
{
	struct rebuild *rb = m->rb;
	const struct metadata *other = rb_other_copy(rb->vol);
	int r = journal_read(&m->journal, rb->vol->meta);

	/* Nothing shows that this ring goes with that superblock; but from one that says
	 * CLEAN the mark was taken before the first record that followed.
	 */
	if (m->rb->borrowed && !m->journal.nr_blocks && !r &&
	    !(m->rb->super->flags & TERRACE_SUPER_CLEAN))
		r = -ESTALE;

	if (rb_in_step(rb->vol, other)) {
		struct metadata copy = *other;
		struct journal j;
		int err;

		copy.super = rb->super;
		err = journal_read(&j, &copy);
		if ((r && !err) || (!err && journal_wins(&j, &m->journal))) {
			journal_free(&m->journal);
			m->journal = j;
			r = err;
		} else {
			journal_free(&j);
		}
	}
	m->journal_good = !r;
	if (r == -EUCLEAN || (r == -ESTALE && !rb->borrowed))
		problem(rb->findings, where("%s: journal block %llu", rb->vol->meta->dev->path,
					    m->journal.end.block_seq), "%s",
			r == -ESTALE ? "is overwritten by a later one" : "holds an impossible record");
	journal_each(&m->journal, add_event, m);
	m->last = m->journal.last_record;
	rb->newest_journal_block = m->journal.end.block_seq;
	if (m->journal.virtual_blocks > rb->virtual_blocks &&
	    m->journal.virtual_blocks <= rb->nr_regions * TERRACE_REGION_BLOCKS)
		rb->virtual_blocks = m->journal.virtual_blocks;
	note_seq(rb, m->last);
	look_behind(m);
	read_backwards(m);
}

static int compare_events(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return x->order == y->order ? 0 : x->order < y->order ? -1 : 1;
}

/* NULL: its page has the record, or there is no such region. */
static struct rb_region *region_of(struct rebuild *rb, const struct tr_record *record, u64 seq)
{
	struct rb_region *region;
	u64 number;

	if (!tr_record_region(record, &number))
		return NULL;
	if (number >= rb->nr_regions) {
		rb->beyond += record->nr;
		return NULL;
	}
	region = rb_region(rb, number);
	return seq <= region->seq ? NULL : region;
}

/* A pack of which a record gives only the id: a page that is lost had the rest. */
static u32 pack_number(struct rebuild *rb, struct rb_region *region, u64 id)
{
	const struct tr_pack unknown = {
		.id = id, .place = TR_NO_PLACE, .index_place = TR_NO_PLACE,
	};

	return rb_pack_number(rb, region, &unknown);
}

static void apply_run(struct rebuild *rb, struct rb_region *region, const struct tr_record *record,
		      u64 place, u64 id)
{
	u64 mask = record->type == TERRACE_RECORD_PACKED_MASK ? record->old : ~0ull;
	u32 number = id ? pack_number(rb, region, id) : 0;

	for (u32 i = 0; i < record->nr; i++)
		if (mask >> i % 64 & 1)
			region->at[record->block % TERRACE_REGION_BLOCKS + i] = id && !number ?
				rb_make(RB_LOST, RB_PACK_ROOM, TR_NO_PLACE) :
				rb_make_packed(region->end_known ? RB_CERTAIN : RB_DOUBTFUL,
					       RB_JOURNAL, tr_place_add(place, i), number);
}

static void apply_pack_add(struct rebuild *rb, struct rb_region *region,
			   const struct tr_record *record)
{
	const struct tr_pack ref = {
		.id = record->old, .place = record->new, .blocks = record->nr,
		.header_crc = record->aux, .index_place = TR_NO_PLACE,
	};

	rb_pack_number(rb, region, &ref);
}

static void apply_index(struct rebuild *rb, struct rb_region *region, const struct tr_record *record)
{
	u32 number = pack_number(rb, region, record->old);
	struct tr_pack *ref = number ? &region->pack[number - 1].ref : NULL;

	if (ref && record->type == TERRACE_RECORD_INDEX_ADD) {
		ref->index_place = record->new;
		ref->index_blocks = record->nr;
	} else if (ref) {
		rb_pack_forget_index(ref);
	}
}

/* A discard that was written again is behind the tail by its number, and no page has it
 * that is older than that. A page without it that is lost may have had newer blocks.
 */
static void apply_discard(struct map_reader *m, const struct tr_record *record, u64 seq)
{
	bool all_since = m->first && m->first <= seq + 1;
	struct rebuild *rb = m->rb;

	for (u64 r = record->block; r < record->block + record->new && r < rb->nr_regions; r++) {
		struct rb_region *region = rb->region[r];
		enum rb_state state;

		if (!region || seq <= region->page_seq)
			continue;
		state = !region->end_known ? RB_DOUBTFUL :
			region->damaged && !all_since ? RB_LOST : RB_CERTAIN;
		for (u32 i = 0; i < TERRACE_REGION_BLOCKS; i++)
			region->at[i] = rb_make(state, RB_JOURNAL, TR_NO_PLACE);
	}
}

/* A pack that is dropped has no live blocks: that was said before, block by block. */
static void apply_record(struct rebuild *rb, const struct tr_record *record, u64 seq)
{
	struct rb_region *region = region_of(rb, record, seq);

	if (!region)
		return;
	switch (record->type) {
	case TERRACE_RECORD_MAP:
		apply_run(rb, region, record, record->new, 0);
		break;
	case TERRACE_RECORD_UNMAP:
		apply_run(rb, region, record, TR_NO_PLACE, 0);
		break;
	case TERRACE_RECORD_CLEAN:
		apply_run(rb, region, record, record->new, record->old);
		break;
	case TERRACE_RECORD_PACKED:
	case TERRACE_RECORD_PACKED_MASK:
		apply_run(rb, region, record, TR_NO_PLACE, record->new);
		break;
	case TERRACE_RECORD_PACK_ADD:
		apply_pack_add(rb, region, record);
		break;
	case TERRACE_RECORD_INDEX_ADD:
	case TERRACE_RECORD_INDEX_DROP:
		apply_index(rb, region, record);
		break;
	default:
		break;
	}
}

/* Oldest first; a discard that was written again stands where it stood first. */
void rb_apply_journal(struct map_reader *m)
{
	if (m->nr_events)
		qsort(m->event, m->nr_events, sizeof(*m->event), compare_events);
	for (u64 i = 0; i < m->nr_events; i++) {
		const struct event *e = &m->event[i];

		if (e->record.type == TERRACE_RECORD_DISCARD)
			apply_discard(m, &e->record, e->seq);
		else if (e->record.type == TERRACE_RECORD_HOME_SET ||
			 e->record.type == TERRACE_RECORD_HOME_CLEAR)
			m->rb->alien = true;
		else
			apply_record(m->rb, &e->record, e->seq);
	}
}
