// SPDX-License-Identifier: GPL-2.0
/*
 * Activation: which metadata copies to believe (copies.c), how far the journal
 * goes (scan.c), replaying it (replay.c), and starting a new activation behind
 * its end. Costs the journal and the directories of the space trees, not the
 * map. The deltas that the replay leaves are handed out from here.
 *
 * A superblock that is damaged leaves the one before it. It will do if the
 * ring still holds the journal from its tail; pages that were replaced since
 * and reused are then found out one by one, by their entry's sequence.
 */
#include <linux/ktime.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "core/deal.h"
#include "meta.h"

/* --- the journal --------------------------------------------------------- */

static const char *scan_error(int err)
{
	switch (err) {
	case -ESTALE:
		return "The newest superblock is damaged and the journal of the one before is overwritten";
	case -EUCLEAN:
		return "Journal block with an impossible record";
	case -ENOMEM:
		return "Out of memory reading the journal";
	default:
		return "Journal cannot be read";
	}
}

static const struct terrace_journal_disk *scanned(const struct tr_scan *scan, u64 i)
{
	return tr_scan_block(scan, i);
}

/* How many blocks two journals that start at the same tail have in common. A
 * block's CRC stands for all before it as well.
 */
static u64 common_blocks(const struct tr_scan *a, const struct tr_scan *b)
{
	u64 n = 0, most = min(a->nr_blocks, b->nr_blocks);

	while (n < most && scanned(a, n)->crc == scanned(b, n)->crc)
		n++;
	return n;
}

/* Is @a the one to believe, which has the first @common blocks in common with @b? */
static bool scan_wins(const struct tr_scan *a, const struct tr_scan *b, u64 common)
{
	return tr_jblock_wins(common < a->nr_blocks ? scanned(a, common) : NULL,
			      a->nr_blocks - common,
			      common < b->nr_blocks ? scanned(b, common) : NULL,
			      b->nr_blocks - common);
}

/* Scans every copy in use and keeps the chain to believe. */
static int scan_copies(struct terrace *tr, const char **error)
{
	struct tr_recovery *rec = tr->recovery;
	struct tr_scan scan;
	int err, result = -EIO, kept = -1;
	u64 common;
	u32 c;

	for (c = 0; c < TR_COPIES; c++) {
		/* A lazy mirror is complete as it is. */
		if (!tr_meta_live(tr, c))
			continue;
		err = tr_scan(tr, c, &scan);
		rec->have[c] = scan.nr_blocks;
		if (err == -ENOMEM) {		/* says nothing of the copy */
			tr_scan_free(&scan);
			result = err;
			break;
		}
		if (err) {
			DMWARN("%s: journal on metadata copy %u: %s (%d)", tr->name, c,
			       scan_error(err), err);
			if (result)
				result = err;
			tr_scan_free(&scan);
			rec->have[c] = 0;
			rec->unread[c] = true;
			continue;
		}
		if (kept >= 0) {
			common = common_blocks(&scan, &rec->scan);
			if (common < min(scan.nr_blocks, rec->scan.nr_blocks))
				DMWARN("%s: the journals of the metadata copies part after %llu blocks",
				       tr->name, common);
			/* What it has beyond is written over. */
			if (!scan_wins(&scan, &rec->scan, common)) {
				rec->have[c] = common;
				tr_scan_free(&scan);
				continue;
			}
			rec->have[kept] = common;
		}
		swap(scan, rec->scan);
		if (kept >= 0)
			tr_scan_free(&scan);
		kept = c;
		result = 0;
	}
	if (result)
		*error = scan_error(result);
	return result;
}

/*
 * A page contains only records that were durable in the journal, and the entry of a root
 * is as new as any page below.
 *
 * Crash scenario: records 1 to 900 are in the journal, those up to 800 in pages; the tail
 * is at 500. The power fails, and the block with record 600 gets a flipped bit. For the
 * scan the journal ends there. Older records would be laid over newer pages, and numbers
 * 600 and up given out again: later they would count as contained in those pages.
 */
static bool pages_ahead(const struct terrace *tr)
{
	u64 end = tr->recovery->scan.end.record_seq;
	bool ahead = tr->super.map_root.seq >= end;
	u32 t;

	for (t = 0; t < tr->super.nr_tiers; t++)
		ahead |= tr->super.tier[t].space_root.seq >= end;
	return ahead;
}

/* What a copy that is used has behind the end; also where the superblock says CLEAN, which
 * a suspend leaves, and what comes after the resume does not take away.
 */
static int look_behind(struct terrace *tr, u64 *more)
{
	const struct tr_scan *scan = &tr->recovery->scan;
	int err = 0;
	u32 c;

	*more = 0;
	for (c = 0; c < TR_COPIES && !err && !*more; c++)
		if (tr_meta_live(tr, c) && !tr->recovery->unread[c])
			err = tr_scan_behind(tr, c, scan, more);
	return err;
}

static int scan_journal(struct terrace *tr, const char **error)
{
	const struct tr_journal_link *end = &tr->recovery->scan.end;
	int err = scan_copies(tr, error);
	u64 more;

	if (err)
		return err;
	*error = "Journal is damaged, records are missing: salvage the volume";
	if (pages_ahead(tr)) {
		DMERR("%s: journal ends at block %llu, before record %llu, pages contain newer ones",
		      tr->name, end->block_seq, end->record_seq);
		return -EUCLEAN;
	}
	err = look_behind(tr, &more);
	if (err)
		*error = scan_error(err);
	if (!more)
		return err;
	DMERR("%s: journal ends at block %llu, before record %llu, but block %llu was written later",
	      tr->name, end->block_seq, end->record_seq, more);
	return -EUCLEAN;
}

/* The size may have changed since the superblock. */
static void find_size(struct terrace *tr)
{
	struct tr_scan *scan = &tr->recovery->scan;
	struct tr_record record;
	u64 b;
	u32 i;

	tr->virtual_blocks = tr->super.virtual_blocks;
	for (b = 0; b < scan->nr_blocks; b++) {
		const void *block = tr_scan_block(scan, b);
		u32 nr = tr_jblock_nr(block);

		for (i = 0; i < nr; i++) {
			if (tr_scan_type(block, i) != TERRACE_RECORD_RESIZE)
				continue;
			/* Sizes only grow; the superblock may be ahead. */
			tr_jblock_record(block, i, &record);
			tr->virtual_blocks = max(tr->virtual_blocks, record.new);
		}
	}
	tr->nr_regions = DIV_ROUND_UP_ULL(tr->virtual_blocks, TERRACE_REGION_BLOCKS);
}

int tr_super_open(struct terrace *tr, const char **error)
{
	ktime_t start;
	int err;

	if (tr->read_only)
		tr->mode = TR_MODE_READ_ONLY;
	*error = "Out of memory opening the metadata";
	err = tr_meta_init(tr);
	if (err)
		return err;
	tr_checkpoint_init(tr);
	tr_lazy_init(tr);
	tr->recovery = kzalloc(sizeof(*tr->recovery), GFP_KERNEL);
	if (!tr->recovery)
		return -ENOMEM;
	err = tr_copies_choose(tr, error);
	start = ktime_get();
	if (!err && !(tr->super.flags & TERRACE_SUPER_LAZY))
		err = scan_journal(tr, error);
	else if (!err)
		tr_super_link(&tr->super, &tr->recovery->scan.end);
	if (err)
		return err;
	find_size(tr);
	tr->recovery->read_us = ktime_us_delta(ktime_get(), start);
	return 0;
}

/* --- space --------------------------------------------------------------- */

static void count_dir(struct tr_tier *tier, const struct tr_dir *dir)
{
	struct tr_entry entry;
	u64 i;

	for (i = dir->index; i < dir->index + TERRACE_DIR_ENTRIES && i < tier->nr_chunks; i++) {
		tr_entry_decode(&entry, &dir->disk->entry[i - dir->index]);
		tier->chunks[i].used = min_t(u32, entry.count, TERRACE_CHUNK_BLOCKS);
	}
}

/* How much each chunk holds stands in the directory above it. */
static int count_tier(struct terrace *tr, struct tr_tier *tier)
{
	struct tr_tree *tree = tr_tree_of(tr, TERRACE_TREE_SPACE, tier->number);
	struct tr_dir *dir;
	int err = 0;
	u64 i;

	mutex_lock(&tr->pages_mutex);
	if (!tree->depth)
		tier->chunks[0].used = min_t(u32, tree->root.count, TERRACE_CHUNK_BLOCKS);
	for (i = 0; i < tier->nr_chunks && tree->root.block && tree->depth;
	     i += TERRACE_DIR_ENTRIES) {
		if (i == tr_dir_index(i, 2))	/* one per 8 GiB: thousands of a large disk */
			tr_dirs_ahead__f(tr, tree, i);
		dir = tr_dir_get__f(tr, tree, 1, i, false);
		if (IS_ERR(dir)) {
			err = PTR_ERR(dir);
			break;
		}
		if (dir)
			count_dir(tier, dir);
	}
	mutex_unlock(&tr->pages_mutex);
	return err;
}

static void sum_tier(struct tr_tier *tier)
{
	u64 used = 0;
	u32 c, left;

	tier->free_shelves = 0;
	for (c = 0; c < tier->nr_chunks; c++) {
		used += tier->chunks[c].used;
		left = min_t(u64, TERRACE_CHUNK_BLOCKS,
			     tier->data_blocks - ((u64)c << TERRACE_CHUNK_SHIFT));
		if (tier->kind == TERRACE_KIND_SHELVES && !tier->chunks[c].used &&
		    left == TERRACE_CHUNK_BLOCKS)
			tier->free_shelves++;
	}
	tier->free_blocks = tier->data_blocks - min(used, tier->data_blocks);
}

/* --- opening ------------------------------------------------------------- */

static int open_pages(struct terrace *tr, const char **error)
{
	u32 t;
	int err;

	*error = "Out of memory for the meta bitmap";
	err = tr_metaspace_init(tr) ?: tr_trees_init(tr);
	if (err)
		return err;
	*error = "Meta bitmap cannot be read: the volume can be opened read-only";
	err = tr_metaspace_load(tr);
	if (err && tr_writable(tr))
		return err;
	*error = "Directory of the space pages is damaged: the volume can be opened read-only";
	for (t = 0; t < tr->nr_tiers && !err; t++)
		err = count_tier(tr, &tr->tier[t]);
	if (err == -EIO)
		*error = "Directory of the space pages cannot be read";
	return tr_writable(tr) ? err : 0;	/* who only reads needs no room */
}

static void start_activation(struct terrace *tr)
{
	struct tr_journal *j = &tr->journal;
	u32 t;

	j->link = tr->recovery->scan.end;
	j->durable = j->link;
	j->tail_block = tr->super.tail_block_seq;
	j->next_record = j->link.record_seq;
	j->first_record = j->next_record;
	j->durable_record = j->link.record_seq - 1;
	j->applied_record = j->durable_record;
	do {
		j->nonce = get_random_u64();
	} while (!j->nonce || j->nonce == j->link.nonce);
	tr->super.activations++;
	for (t = 0; t < tr->nr_tiers; t++) {
		sum_tier(&tr->tier[t]);
		/* What an earlier activation wrote may never have been flushed. */
		tr->tier[t].unflushed = tr_writable(tr) && !tr->tier[t].missing;
	}
}

int tr_open(struct terrace *tr, const char **error)
{
	u64 set_up = tr->nr_regions;
	ktime_t start = ktime_get();
	struct tr_recovery *rec;
	int err = 0;

	if (!tr->pages)
		err = tr_super_open(tr, error);
	if (err)
		return err;
	rec = tr->recovery;
	if (tr->nr_regions > set_up) {
		*error = "Volume was enlarged, the superblock does not say so yet";
		return -EUCLEAN;
	}
	*error = "Out of memory for the journal";
	err = tr_journal_init(tr);
	if (!err)
		err = open_pages(tr, error);
	if (!err)
		err = tr_replay(tr, error);
	if (!err && tr_writable(tr)) {
		*error = "Metadata copies cannot be brought up to date";
		err = tr_copies_equalize(tr);
	}
	if (err)
		return err;
	*error = "Out of memory for the lazy metadata mirror";
	err = tr_lazy_open(tr);
	if (err)
		return err;
	start_activation(tr);
	DMINFO("%s: replayed %llu records in %llu blocks, %lld regions, %lld ms (read %lld, deal %lld, apply %lld us)%s",
	       tr->name, rec->nr_records, rec->scan.nr_blocks,
	       (s64)atomic64_read(&rec->nr_deltas),
	       ktime_ms_delta(ktime_get(), start) + rec->read_us / 1000, rec->read_us,
	       rec->deal_us, rec->apply_us, tr_writable(tr) ? "" : ", read-only");
	tr_scan_free(&rec->scan);
	WRITE_ONCE(tr->pages->ready, true);
	if (tr_writable(tr))
		tr_labels_agree(tr);
	if (tr_writable(tr) && tr_meta_nr_live(tr) < 2 &&
	    !(tr->super.flags & TERRACE_SUPER_ALONE)) {
		tr_copies_part(tr);
		*error = "Superblock that says that the other metadata copy is stale cannot be written";
		err = tr_checkpoint_alone(tr);
		if (err)
			return err;
	}
	if (tr->nr_discards > TR_OPEN_RANGES)
		tr_checkpoint_kick(tr);
	*error = NULL;
	return 0;
}

/* --- deltas, later ------------------------------------------------------- */

struct tr_delta *tr_recover_find_delta(struct terrace *tr, u64 region)
{
	struct tr_recovery *rec = tr->recovery;

	if (!rec || !atomic64_read(&rec->nr_deltas))
		return NULL;
	return xa_load(&rec->regions[tr_deal_shard(region)], region);
}

/* The region is dirty now, so a checkpoint finds it there instead of here. */
void tr_recover_drop_delta(struct terrace *tr, u64 region, struct tr_delta *delta)
{
	struct tr_recovery *rec = tr->recovery;

	if (!delta)
		return;
	xa_erase(&rec->regions[tr_deal_shard(region)], region);
	atomic64_dec(&rec->nr_deltas);
	tr_recover_free_delta(tr, delta);
}

int tr_recover_load_chunks(struct terrace *tr)
{
	struct tr_chunk *chunk;
	unsigned long number;
	void *delta;
	u32 t;

	for (t = 0; t < tr->nr_tiers; t++) {
		xa_for_each(&tr->tier[t].deltas, number, delta) {
			chunk = tr_chunk_get(tr, &tr->tier[t], number);
			if (IS_ERR(chunk))
				return PTR_ERR(chunk);
			tr_chunk_put(chunk);
		}
	}
	return 0;
}

/* --- closing ------------------------------------------------------------- */

static void free_recovery(struct terrace *tr)
{
	struct tr_recovery *rec = tr->recovery;
	struct tr_delta *delta;
	unsigned long number;
	u32 k;

	if (!rec)
		return;
	for (k = 0; rec->regions && k < TR_DEAL_SHARDS; k++) {
		xa_for_each(&rec->regions[k], number, delta)
			tr_recover_free_delta(tr, delta);
		xa_destroy(&rec->regions[k]);
	}
	kfree(rec->regions);
	tr_scan_free(&rec->scan);
	kfree(rec);
	tr->recovery = NULL;
}

void tr_stop(struct terrace *tr)
{
	if (!tr->pages)
		return;
	WRITE_ONCE(tr->pages->ready, false);
	tr_checkpoint_exit(tr);
	tr_commit_exit(tr);
	tr_checkpoint_exit(tr);		/* what the last commit may have begun */
	tr_lazy_exit(tr);
	flush_work(&tr->event_work);
}

void tr_close(struct terrace *tr)
{
	if (!tr->pages)
		return;
	tr_journal_exit(tr);
	free_recovery(tr);
	tr_trees_exit(tr);
	tr_metaspace_exit(tr);
	tr_meta_exit(tr);
}
