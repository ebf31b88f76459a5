// SPDX-License-Identifier: GPL-2.0
/*
 * At activation: which copies of the metadata to believe, and making them
 * equal.
 *
 *   - The newest superblock decides. If it is ALONE, the other copy is stale.
 *   - A superblock that is not ALONE was written when both copies had all its
 *     pages (tr_super_write). So a copy with the same generation, or the one
 *     before, is at most behind by that superblock and some journal blocks,
 *     and gets them from here.
 *   - Of two journals that start at the same tail the longer one is right: a
 *     record was acknowledged only when it was on all copies in use, and the
 *     copy that was dropped has the shorter chain. But where they part
 *     (scan_copies), the one that goes on with a new activation is right: that
 *     one did not have the other's rest, so nobody was told of it since.
 *   - Who activates with one copy makes the superblock say ALONE before the
 *     first record (tr_checkpoint_alone): then there is no other journal.
 *   - What the devices' labels call stale (label.c) is not believed, even if it
 *     is the only copy that can be read.
 *   - The lazy mirror serves only who reads, and only after a clean stop that no
 *     label says was not the last.
 */
#include <linux/slab.h>

#include "meta.h"

/* --- choosing copies ----------------------------------------------------- */

static bool is_alone(const struct tr_super *super)
{
	return super->flags & TERRACE_SUPER_ALONE;
}

/* Of one generation the one that was written without the other is newer: the
 * other got no further than its superblock.
 */
static bool is_newer(const struct tr_super *a, const struct tr_super *b)
{
	if (a->generation != b->generation)
		return a->generation > b->generation;
	return is_alone(a) && !is_alone(b);
}

/* Reads the superblocks; the copy with the newest, or -errno. */
static int newest_copy(struct terrace *tr)
{
	struct tr_recovery *rec = tr->recovery;
	int best = -ENODATA, err;
	u32 c;

	for (c = 0; c < TR_COPIES; c++) {
		if (!tr->meta[c].bdev) {
			tr->meta[c].failed = true;
			continue;
		}
		err = tr_super_read(tr, c, &rec->found[c]);
		if (err == -ENOMEM)
			return err;	/* says nothing of the copy, and the other may be stale */
		if (!err && (rec->found[c].flags & TERRACE_SUPER_LAZY))
			err = -EUCLEAN;
		if (!err && rec->found[c].generation <= tr->labels.stale_until[c]) {
			DMWARN("%s: metadata copy %u is stale (generation %llu, the labels say that the volume went on without it): not used",
			       tr->name, c, rec->found[c].generation);
			err = -ESTALE;
		}
		if (err) {
			tr->meta[c].failed = true;
			if (best < 0 && best != -ESTALE)
				best = err;
			continue;
		}
		if (best < 0 || is_newer(&rec->found[c], &rec->found[best]))
			best = c;
	}
	return best;
}

/* Does the copy beside @best belong to it? */
static int judge_other(struct terrace *tr, u32 best, const char **error)
{
	struct tr_recovery *rec = tr->recovery;
	const struct tr_super *a = &rec->found[best], *b = &rec->found[!best];

	if (!tr_meta_live(tr, !best))
		return 0;
	if (memcmp(a->volume_uuid, b->volume_uuid, TERRACE_UUID_BYTES)) {
		*error = "The two metadata copies belong to different volumes";
		return -EUCLEAN;
	}
	if (a->generation == b->generation && memcmp(a, b, sizeof(*a)) &&
	    is_alone(a) == is_alone(b)) {
		*error = "Both metadata copies were used without the other: deactivate one of them";
		return -EUCLEAN;
	}
	if (!is_alone(a) && b->generation + 1 >= a->generation) {
		rec->behind[!best] = b->generation < a->generation;
		return 0;
	}
	tr->meta[!best].failed = true;
	DMWARN("%s: metadata copy %u is stale (generation %llu, current %llu): not used",
	       tr->name, !best, b->generation, a->generation);
	return 0;
}

static int has_older_bitmap(struct terrace *tr, const struct tr_super *super, u32 place, void *block)
{
	u64 *bits = kmalloc_array(TERRACE_MBIT_WORDS, sizeof(*bits), GFP_KERNEL);
	int err = bits ? 0 : -ENOMEM;

	err = err ?: tr_meta_read(tr, TR_COPY_LAZY, super->bitmap_start[place], block, 1);
	err = err ?: tr_mbit_decode(block, bits, 0, super->generation, super->volume_uuid);
	kfree(bits);
	return err;
}

/*
 * Is @super, of the lazy mirror, its last one? Modules took the mark of a clean stop off the newer
 * superblock alone, once. Should that one be damaged, the older says CLEAN, of long ago. A bitmap
 * is written before its superblock, and tells which was which. Zeros: it was made void.
 */
static int lazy_is_last(struct terrace *tr, const struct tr_super *super)
{
	u32 place = !(super->generation & 1);
	struct tr_super *other = kmalloc(sizeof(*other), GFP_KERNEL);
	void *block = (void *)__get_free_page(GFP_KERNEL);
	int err = other && block ? tr_meta_read(tr, TR_COPY_LAZY, place, block, 1) : -ENOMEM;

	if (!err && memchr_inv(block, 0, TERRACE_BLOCK_BYTES))
		err = tr_super_decode(other, block);
	if (err && err != -ENOMEM)
		err = has_older_bitmap(tr, super, place, block);
	free_page((unsigned long)block);
	kfree(other);
	return err;
}

/* Only the lazy mirror is left. */
static int open_lazy(struct terrace *tr, const char **error)
{
	struct tr_recovery *rec = tr->recovery;
	int err = -ENODATA;

	if (tr->lazy.bdev)
		err = tr_super_read(tr, TR_COPY_LAZY, &rec->found[0]);
	if (err || !(rec->found[0].flags & TERRACE_SUPER_LAZY)) {
		*error = "No usable superblock on any metadata copy";
		return err ?: -EUCLEAN;
	}
	if (tr_writable(tr)) {
		*error = "Only the lazy metadata mirror is left: the volume can be opened read-only";
		return -EROFS;
	}
	err = lazy_is_last(tr, &rec->found[0]);
	if (err == -ENOMEM)
		return err;
	if (err || !(rec->found[0].flags & TERRACE_SUPER_CLEAN) ||
	    rec->found[0].generation <= tr->labels.stale_until[TR_COPY_LAZY]) {
		*error = "Only the lazy metadata mirror is left, and it is behind: salvage the volume";
		return -ESTALE;
	}
	DMWARN("%s: reading the lazy metadata mirror on tier %u", tr->name, tr->lazy.tier);
	tr->meta[0] = tr->lazy;
	tr->meta[0].failed = false;
	tr->lazy.bdev = NULL;
	return 0;
}

int tr_copies_choose(struct terrace *tr, const char **error)
{
	struct tr_recovery *rec = tr->recovery;
	int best = newest_copy(tr), err;

	if (best == -ENOMEM || best == -EPROTONOSUPPORT) {
		*error = best == -ENOMEM ? "Out of memory reading the superblock" :
			 "Volume has a newer format than this module";
		return best;
	}
	if (best == -ESTALE) {
		*error = "Only a stale metadata copy can be read: the volume went on without it";
		return best;
	}
	if (best < 0) {
		err = open_lazy(tr, error);
		if (err == -ENOMEM)
			*error = "Out of memory reading the superblock";
		if (err)
			return err;
		best = 0;
	}
	if (memcmp(tr->super.volume_uuid, rec->found[best].volume_uuid, TERRACE_UUID_BYTES)) {
		*error = "Superblock belongs to another volume than the label";
		return -EUCLEAN;
	}
	tr->super = rec->found[best];
	if (tr->super.nr_tiers != tr->nr_tiers) {
		*error = "Superblock has another number of tiers than the table";
		return -EUCLEAN;
	}
	if (tr->super.compat_ro & ~TERRACE_COMPAT_RO_KNOWN && tr_writable(tr)) {
		DMWARN("%s: unknown features 0x%llx: read-only", tr->name, tr->super.compat_ro);
		tr->mode = TR_MODE_READ_ONLY;
	}
	return judge_other(tr, best, error);
}

void tr_copies_part(struct terrace *tr)
{
	u32 c;

	for (c = 0; c < TR_COPIES; c++)
		if (!tr_meta_live(tr, c) && (tr->meta[c].bdev || !c || tr->tier_missing))
			set_bit(c, &tr->labels.to_note);
	tr_labels_note(tr);
}

/* --- making the copies equal --------------------------------------------- */

static int write_one(struct terrace *tr, u32 c, u64 at, void *block)
{
	struct tr_meta_io io;

	tr_meta_io_start(&io);
	tr_meta_submit(tr, &io, c, REQ_OP_WRITE | REQ_FUA, at, block, 1);
	tr_meta_wait(&io);
	return blk_status_to_errno(io.copy[c].status);
}

/*
 * What stands behind the end on a copy that did not find that end by itself is
 * spoilt: it could continue what the copy is given.
 *
 *   - Records 1 to 100 are on A and B. Block 5 is discarded, record 101; the power
 *     fails when it is on A only, so nobody was told. At the next start A cannot be
 *     read: B says where the journal ends, block 5 is where it was. It is written in
 *     place and flushed, which takes no record. The power fails again. With A's 101
 *     the third start would believe A, and block 5 be nowhere.
 *   - The same when A lacks 100, has 101 behind the hole, and gets 100 from B.
 *
 * Before anything is acknowledged that builds on that end; one block is enough,
 * those behind it continue only this one.
 */
static int spoil_rest(struct terrace *tr, u32 c, void *block)
{
	struct tr_recovery *rec = tr->recovery;

	if (!rec->unread[c] && rec->have[c] == rec->scan.nr_blocks)
		return 0;
	if (rec->scan.nr_blocks == tr->super.journal_blocks)
		return 0;		/* behind the end is the tail */
	memset(block, 0, TERRACE_BLOCK_BYTES);
	return write_one(tr, c, tr_ring_block(tr, rec->scan.end.block_seq), block);
}

static int catch_up(struct terrace *tr, u32 c)
{
	struct tr_recovery *rec = tr->recovery;
	void *block = (void *)__get_free_page(GFP_KERNEL);
	int err;

	if (!block)
		return -ENOMEM;
	err = tr_scan_copy(tr, &rec->scan, rec->have[c], c) ?: spoil_rest(tr, c, block);
	if (!err && rec->behind[c]) {
		tr_super_encode(block, &tr->super);
		err = write_one(tr, c, tr->super.generation & 1, block);
	}
	free_page((unsigned long)block);
	return err;
}

/*
 * Every copy gets what the longest has. What was read may come from a drive's
 * volatile cache (written by an activation that ended without power loss);
 * what will be acknowledged builds on it, so it is flushed first.
 */
int tr_copies_equalize(struct terrace *tr)
{
	struct tr_meta_io io;
	u32 c;
	int err;

	for (c = 0; c < TR_COPIES; c++) {
		if (!tr_meta_live(tr, c))
			continue;
		err = catch_up(tr, c);
		if (err && (err == -ENOMEM || tr_meta_nr_live(tr) == 1))
			return err;
		if (err)
			tr_meta_drop(tr, c, "bringing the metadata up to date", err);
	}
	tr_meta_io_start(&io);
	tr_meta_flush(tr, &io);
	return tr_meta_written(tr, &io, "flush of the metadata");
}
