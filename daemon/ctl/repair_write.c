// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * New metadata, on a new device or in place. The journal is empty afterwards:
 * nothing that still stands in the ring can continue it, as block numbers go
 * on beyond all that were seen and the nonce is new. Record numbers go on
 * well beyond as well, because some may have been lost.
 *
 * In place it may be stopped at any of its writes, also in the middle of one, and
 * the volume may be activated next, or be repaired again, with other options:
 *   - while pages and the meta bitmap are written, the superblock is the old one. All
 *     that it was read from is left alone (rebuild->avoid): the checkpoint, pages
 *     of older ones, the one page that proves that a superblock was lost. What
 *     was written has a generation that no checkpoint comes to, which shows that it
 *     contains nothing (rb_of_cut_repair()), however long the volume goes on. When the
 *     volume has been repaired after all it shows that no longer; but then the journal
 *     begins with records behind those that the page says it contains.
 *   - the new superblock goes over the copy that was not used. Torn, it is a bad copy
 *     more, as in the line above. Durable on one device, it is the newest of all: the other
 *     is not to be used without it any more (note_second()).
 *   - the other copy, the labels and the headers of packs only repeat what is good
 *     elsewhere.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <uuid/uuid.h>

#include "names.h"
#include "probe.h"
#include "rebuild_packs.h"
#include "repair.h"
#include "unfinished.h"

#define RECORDS_AHEAD	(1ull << 20)
/* Without any superblock nothing tells how far the volume had come. One that can be read
 * again later (a cable, a controller) must not be newer than what was made without it.
 */
#define MADE_UP_GENERATION (1ull << 48)
#define WIPE_BLOCKS	256u

/* ---- a superblock from labels --------------------------------------------------------- */

static void super_areas(struct tr_super *super, u64 meta_blocks)
{
	u64 journal = meta_blocks / 8;

	super->meta_blocks = meta_blocks;
	super->journal_start = TR_JOURNAL_START;
	super->journal_blocks = journal < TR_JOURNAL_MIN ? TR_JOURNAL_MIN :
				journal > TR_JOURNAL_MAX ? TR_JOURNAL_MAX : journal;
	super->bitmap_blocks = (meta_blocks + TERRACE_MBIT_BITS - 1) / TERRACE_MBIT_BITS;
	super->bitmap_start[0] = super->journal_start + super->journal_blocks;
	super->bitmap_start[1] = super->bitmap_start[0] + super->bitmap_blocks;
}

static void super_tier(struct tr_super_tier *tier, const struct tr_label *label)
{
	memcpy(tier->uuid, label->tier_uuid, TERRACE_UUID_BYTES);
	tier->class = label->class;
	tier->kind = label->kind;
	tier->data_blocks = label->data_blocks;
	tier->reserve_blocks = tr_reserve(label->kind, label->data_blocks, TR_RESERVE_PERMILLE);
}

/*
 * A tier that is gone, of which nothing is known: nothing is on it any more, so all that
 * it must be is one that a superblock may have. It is missing from then on.
 */
static void super_lost_tier(struct tr_super_tier *tier, u32 class)
{
	uuid_generate(tier->uuid);
	tier->class = class;
	tier->kind = TERRACE_KIND_SLOTS;
	tier->data_blocks = TERRACE_CHUNK_BLOCKS;
}

/* Up to the last one that is there. */
static u32 count_tiers(const struct volume *vol)
{
	u32 nr = TERRACE_MAX_TIERS;

	while (nr && vol->tier[nr - 1] < 0)
		nr--;
	return nr && nr < TR_MIN_TIERS ? TR_MIN_TIERS : nr;
}

static u32 first_lost(const struct volume *vol, u32 nr)
{
	u32 t = 0;

	while (t < nr && vol->tier[t] >= 0)
		t++;
	return t;
}

/* Twice what the pages need, and an eighth of it all for the journal (super_areas). */
static u64 meta_blocks_needed(const struct tr_super *super)
{
	u64 blocks = TR_JOURNAL_START + TR_JOURNAL_MIN + 2 * tr_pages_needed(super);

	return blocks + blocks / 4;
}

static void super_tiers(struct tr_super *super, const struct volume *vol)
{
	u32 class = TERRACE_CLASS_NET;	/* from slow to fast: a lost one is as fast as the next */

	for (u32 i = super->nr_tiers; i-- > 0;) {
		if (vol->tier[i] >= 0)
			super_tier(&super->tier[i], &vol->label[vol->tier[i]]);
		else
			super_lost_tier(&super->tier[i], class);
		class = super->tier[i].class;
	}
}

int repair_make_super(struct repair *rp)
{
	struct tr_super *super = &rp->super;
	u64 meta_blocks = 0;
	u32 nr = count_tiers(&rp->vol), lost = first_lost(&rp->vol, nr);

	if (!nr) {
		ctl_error("no superblock is left, and none of the tiers");
		return -ENODATA;
	}
	if (lost < nr && !rp->size_blocks) {
		ctl_error("tier %u is missing, and no superblock is left to say how large the volume was: --size SIZE, rather too much than too little",
			  lost);
		return -ENODATA;
	}
	memset(super, 0, sizeof(*super));
	memcpy(super->volume_uuid, rp->vol.uuid, TERRACE_UUID_BYTES);
	super->nr_tiers = nr;
	super->region_shift = TERRACE_REGION_SHIFT;
	super->chunk_shift = TERRACE_CHUNK_SHIFT;
	super_tiers(super, &rp->vol);
	super->virtual_blocks = rp->size_blocks;
	if (!super->virtual_blocks)
		super->virtual_blocks = tr_room(super) / TERRACE_REGION_BLOCKS * TERRACE_REGION_BLOCKS;
	else if (super->virtual_blocks > tr_room(super))
		super->overcommit_blocks = super->virtual_blocks - tr_room(super);
	super->map_depth = tr_dir_depth((super->virtual_blocks + TERRACE_REGION_BLOCKS - 1) /
					TERRACE_REGION_BLOCKS);
	super->next_id = 1ull << 32;
	for (u32 i = 0; i < rp->vol.nr_devices; i++)
		if (rp->vol.label[i].meta_blocks > meta_blocks)
			meta_blocks = rp->vol.label[i].meta_blocks;
	super_areas(super, meta_blocks ? meta_blocks : meta_blocks_needed(super));
	rp->made_up = true;
	printf("note: no superblock is left: the volume is taken to have %s\n",
	       size_text(super->virtual_blocks));
	return 0;
}

/* ---- the new superblock ------------------------------------------------------------------- */

static u64 newest_generation(const struct repair *rp)
{
	const struct metadata *meta[] = { &rp->vol.primary, &rp->vol.mirror };
	u64 newest = rp->made_up ? MADE_UP_GENERATION : 2;

	for (u32 i = 0; i < 2; i++)
		for (u32 k = 0; meta[i]->dev && k < 2; k++)
			if (!meta[i]->state[k] && meta[i]->copy[k].generation > newest)
				newest = meta[i]->copy[k].generation;
	return newest;
}

static u32 label_flags(const struct volume *vol)
{
	u32 flags = 0;

	for (u32 i = 0; i < vol->nr_devices; i++)
		flags |= vol->label[i].flags;
	return flags;
}

static int fill_super(const struct repair *rp, struct area *area)
{
	const struct rebuild *rb = &rp->rb;
	struct tr_super *super = &area->super;
	u64 newest = rb->newest_claim > rb->newest_record ? rb->newest_claim : rb->newest_record;
	u64 cut = rp->in_place ? rb_newest_of_cut_repair(rb) : 0;
	u64 generation = newest_generation(rp) + RB_GENERATIONS_AHEAD;

	*super = rp->super;
	/* In place the good superblock is written over last. */
	super->generation = generation + ((generation ^ rp->super.generation) & 1 ? 0 : 1);
	/* A lazy mirror is not written, and may be on a drive that was left out: nothing it has is in step. */
	super->flags = TERRACE_SUPER_CLEAN | TERRACE_SUPER_LAZY_LOST;
	if (label_flags(&rp->vol) & TERRACE_LABEL_META_SYNC && area->nr_devices < 2)
		super->flags |= TERRACE_SUPER_ALONE;
	super->virtual_blocks = rb->virtual_blocks;
	super->tail_record_seq = (cut > newest ? cut : newest) + RECORDS_AHEAD;
	super->tail_block_seq = rb->newest_journal_block + 2 * super->journal_blocks;
	if (super->next_id <= rb->newest_pack)
		super->next_id = rb->newest_pack + 1;
	super->next_id += RECORDS_AHEAD;
	super->activations++;
	memset(&super->map_root, 0, sizeof(super->map_root));
	for (u32 t = 0; t < super->nr_tiers; t++)
		memset(&super->tier[t].space_root, 0, sizeof(super->tier[t].space_root));
	if (getrandom(&super->tail_nonce, sizeof(super->tail_nonce), 0) < 0 ||
	    getrandom(&super->tail_prev_crc, sizeof(super->tail_prev_crc), 0) < 0) {
		ctl_error("no random numbers: %s", strerror(errno));
		return -EIO;
	}
	return 0;
}

static bool keep(void *ctx, u64 at)
{
	return repair_keeps(ctx, at);
}

/* ---- in place -------------------------------------------------------------------------------- */

/* One that says something else and is as old as the one that counts is wrong as well. */
static bool label_good(const struct repair *rp, u32 dev, u32 copy_nr, void *block)
{
	const struct tr_label *used = &rp->vol.label[dev];
	struct tr_label copy = { 0 };

	return !device_read(&rp->vol.dev[dev], copy_nr, 1, block) && !tr_label_decode(&copy, block) &&
	       (copy.generation != used->generation || volume_same_label(&copy, used));
}

static int write_label(const struct repair *rp, u32 dev, u32 copy_nr)
{
	void *block = ctl_alloc_blocks(1);
	int r;

	tr_label_encode(block, &rp->vol.label[dev]);
	r = device_write(&rp->vol.dev[dev], copy_nr, 1, block);
	free(block);
	return r ? r : device_flush(&rp->vol.dev[dev]);
}

/* A copy of a label that is damaged, or cannot be read, gets what the good one says. */
static int mend_labels(const struct repair *rp)
{
	void *block = ctl_alloc_blocks(1);
	int r = 0;

	for (u32 i = 0; i < rp->vol.nr_devices && !r; i++)
		for (u32 k = 0; k < TERRACE_LABEL_COPIES && !r; k++)
			if (!label_good(rp, i, k, block))
				r = write_label(rp, i, k);
	free(block);
	return r;
}

/* Torn, one copy is bad: where one was bad before, that one goes first. */
static int write_labels(const struct repair *rp, u32 dev)
{
	u32 first = rp->vol.label_bad[dev][1] ? 1 : 0;
	int r = write_label(rp, dev, first);

	return r ? r : write_label(rp, dev, !first);
}

static bool usable(const struct metadata *meta)
{
	return meta->dev && !meta->lazy && meta->super && !meta->stale;
}

/* Of two that can be used the newer one: what is read is there. */
static bool primary_first(const struct repair *rp)
{
	const struct metadata *primary = &rp->vol.primary, *mirror = &rp->vol.mirror;

	if (usable(primary) && usable(mirror))
		return primary->super->generation >= mirror->super->generation;
	return usable(primary) || !usable(mirror);
}

/*
 * Crash scenario: between the superblocks of two copies, the second has the old one. The first goes away, the volume
 * goes on with the second, the first comes back: it is the newest by far, and all since then would be gone. So
 * the labels say first that the second is out of date, as they do when a copy fails in use. Only the second may be one that cannot be
 * used, of which nothing need be said; what is good goes first.
 */
static int note_second(void *ctx)
{
	struct repair *rp = ctx;
	u32 c = primary_first(rp);
	const struct metadata *second = c ? &rp->vol.mirror : &rp->vol.primary;
	u64 until = 0;
	int r = 0;

	if (!usable(second))
		return 0;
	for (u32 k = 0; k < 2; k++)
		if (!second->state[k] && second->copy[k].generation > until)
			until = second->copy[k].generation;
	for (u32 i = 0; i < rp->vol.nr_devices && !r; i++) {
		struct tr_label *label = &rp->vol.label[i];

		if (label->stale_until[c] >= until)
			continue;
		label->stale_until[c] = until;
		label->generation++;
		r = write_labels(rp, i);
	}
	return r;
}

static void add_copy(struct area *area, const struct metadata *meta)
{
	if (!meta->dev || meta->lazy)
		return;
	area->dev[area->nr_devices] = meta->dev;
	area->start[area->nr_devices++] = meta->start;
}

static int write_in_place(struct repair *rp, struct area *area)
{
	int r;

	add_copy(area, primary_first(rp) ? &rp->vol.primary : &rp->vol.mirror);
	add_copy(area, primary_first(rp) ? &rp->vol.mirror : &rp->vol.primary);
	area->ready = note_second;
	r = fill_super(rp, area);
	if (!r)
		r = area_write(area);
	if (!r)
		r = mend_labels(rp);
	if (!r)
		r = rb_mend_packs(&rp->rb);
	if (r == -ENOSPC)
		ctl_error("the metadata area has no room for a second copy beside what is there: nothing changed; repair --to a new device");
	else if (r)
		ctl_error("cannot write: %s", strerror(-r));
	return r;
}

/* ---- a new device -------------------------------------------------------------------------------- */

static void new_label(const struct repair *rp, const struct device *dev, struct tr_label *label)
{
	memset(label, 0, sizeof(*label));
	label->version = TERRACE_FORMAT_VERSION;
	memcpy(label->volume_uuid, rp->vol.uuid, TERRACE_UUID_BYTES);
	uuid_generate(label->tier_uuid);
	label->generation = 1;
	label->tier_index = TERRACE_META_DEVICE;
	label->class = TERRACE_CLASS_META;
	label->kind = TERRACE_KIND_NONE;
	label->flags = TERRACE_LABEL_META;
	label->atomic_bytes = dev->atomic_bytes;
	if (dev->atomic_bytes >= TERRACE_BLOCK_BYTES)
		label->flags |= TERRACE_LABEL_ATOMIC;
	label->align_blocks = dev->align_blocks;
	label->device_blocks = dev->blocks;
	label->meta_start = TR_META_START;
	if (label->meta_start % dev->align_blocks)
		label->meta_start = dev->align_blocks;
	label->meta_blocks = rp->super.meta_blocks;
	memcpy(label->name, rp->vol.name, TERRACE_NAME_BYTES);
}

static int refuse_device(const struct repair *rp, const struct device *dev, u64 need)
{
	char *found = NULL;
	int r;

	if (dev->blocks < need) {
		ctl_error("%s is too small: it has %s, the metadata need %s", rp->to,
			  size_text(dev->blocks), size_text(need));
		return -ENOSPC;
	}
	if (unfinished_device(dev, NULL, 0)) {
		fprintf(stderr, "note: %s holds what is left of a repair that was stopped: it is begun again\n",
			rp->to);
		return 0;
	}
	r = probe_contents(dev, &found);
	if (r)
		ctl_error("%s: cannot read: %s", rp->to, strerror(-r));
	if (!r && found && !rp->force) {
		ctl_error("%s %s: nothing changed; --force overwrites it", rp->to, found);
		r = -EEXIST;
	}
	free(found);
	return r;
}

/* The label last: only then is it a device of the volume. Stopped before that, the
 * mark says that nothing of worth is there, and the same call begins again.
 */
static int write_device(const struct device *dev, const struct tr_label *label, struct area *area)
{
	void *block = ctl_alloc_blocks(1);
	u64 wipe = dev->blocks < WIPE_BLOCKS ? dev->blocks : WIPE_BLOCKS;
	int r = device_zero(dev, 0, wipe);

	if (!r)
		r = device_zero(dev, dev->blocks - wipe, wipe);
	if (!r)
		r = unfinished_mark(dev, label, 1);
	if (!r)
		r = device_zero(dev, label->meta_start, tr_first_page(&area->super));
	if (!r)
		r = device_flush(dev);
	area->dev[0] = dev;
	area->start[0] = label->meta_start;
	if (!r)
		r = area_write(area);
	area->dev[0] = NULL;	/* is closed next */
	tr_label_encode(block, label);
	for (u32 k = TERRACE_LABEL_COPIES; k-- && !r;)	/* the mark's place last */
		r = device_write(dev, k, 1, block);
	free(block);
	return r ? r : device_flush(dev);
}

/* Opened exclusively already: a second time would only say "in use". */
static bool is_own(const struct repair *rp)
{
	struct stat st;

	if (stat(rp->to, &st))
		return false;
	for (u32 i = 0; i < rp->vol.nr_devices; i++) {
		const struct device *dev = &rp->vol.dev[i];

		if (dev->is_block ? S_ISBLK(st.st_mode) && st.st_rdev == dev->rdev :
		    st.st_dev == dev->dev && st.st_ino == dev->ino)
			return true;
	}
	return false;
}

static int write_to(struct repair *rp, struct area *area)
{
	struct tr_label label;
	struct device dev;
	int r;

	if (is_own(rp)) {
		ctl_error("%s is a device of the volume: --in-place writes there", rp->to);
		return -EINVAL;
	}
	r = device_open(&dev, rp->to, DEVICE_WRITE);
	if (r)
		return r;
	new_label(rp, &dev, &label);
	r = refuse_device(rp, &dev, label.meta_start + label.meta_blocks);
	if (r) {
		device_close(&dev);
		return r;
	}
	/* Nothing there is a source. */
	memset(rp->rb.avoid, 0, (rp->super.meta_blocks / 64 + 1) * sizeof(u64));
	area->nr_devices = 1;
	r = fill_super(rp, area);
	/* What it takes the place of is out of date with the first activation (kmod/label.c). */
	for (u32 c = 0; c < 2; c++)
		label.stale_until[c] = area->super.generation - 1;
	if (r) {
		ctl_error("%s: nothing was written: %s", rp->to, strerror(-r));
	} else {
		r = write_device(&dev, &label, area);
		if (r)
			ctl_error("%s: cannot write: %s; it holds no metadata now", rp->to,
				  strerror(-r));
	}
	device_close(&dev);
	return r;
}

int repair_write(struct repair *rp, u64 *kept)
{
	struct area area = { .rb = &rp->rb, .keep = keep, .ctx = rp };
	int r;

	r = rp->to ? write_to(rp, &area) : write_in_place(rp, &area);
	*kept = area.mapped;
	return r;
}
