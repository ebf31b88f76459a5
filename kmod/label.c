// SPDX-License-Identifier: GPL-2.0
/*
 * Labels while the volume works. Two things change them: a tier that grows
 * (resize.c), and a metadata copy that falls behind.
 *
 * Crash scenario: the mirror's drive fails a write, the volume goes on with
 * the primary alone. Weeks later the primary's drive is away, or its superblock
 * cannot be read, when the volume is activated. The mirror looks whole, and
 * what it says is weeks old: old values, and other blocks' data in slots that
 * were handed out again. Only a third party can tell. So before anything is
 * acknowledged that the mirror lacks, all devices that are there take note of
 * it in their labels; who activates believes a copy up to the noted generation
 * in no case.
 *
 *   - crash before the first label is durable: nothing was acknowledged that
 *     the copy lacks, it may be believed;
 *   - crash between two labels: one is enough, the highest counts;
 *   - a label's copies are written one after the other, each durable before
 *     the next: one of them is whole at any time.
 */
#include <linux/slab.h>

#include "meta.h"

int tr_labels_init(struct terrace *tr)
{
	mutex_init(&tr->labels.mutex);
	mutex_init(&tr->labels.note_mutex);
	tr->labels.copy = kcalloc(TERRACE_LABEL_COPIES, sizeof(*tr->labels.copy), GFP_KERNEL);
	tr->labels.block = (void *)__get_free_page(GFP_KERNEL);
	return tr->labels.copy && tr->labels.block ? 0 : -ENOMEM;
}

void tr_labels_exit(struct terrace *tr)
{
	kfree(tr->labels.copy);
	free_page((unsigned long)tr->labels.block);
}

/* Reads both copies: which is in use? -errno: none is good. */
static int read_copies(struct tr_labels *labels, struct block_device *bdev)
{
	int use = -ENODATA, err, k;

	for (k = 0; k < TERRACE_LABEL_COPIES; k++) {
		err = tr_rw(bdev, k * TERRACE_BLOCK_SECTORS, labels->block, TERRACE_BLOCK_BYTES,
			    REQ_OP_READ);
		if (!err)
			err = tr_label_decode(&labels->copy[k], labels->block);
		if (err)
			use = use < 0 ? err : use;
		else if (use < 0 || labels->copy[k].generation > labels->copy[use].generation)
			use = k;
	}
	return use;
}

/* The copy in use is written last: until then the other one may be torn. */
static int write_copies(struct tr_labels *labels, struct block_device *bdev, int use)
{
	int err = 0, k;

	labels->copy[use].generation++;
	tr_label_encode(labels->block, &labels->copy[use]);
	for (k = 1; k <= TERRACE_LABEL_COPIES && !err; k++)
		err = tr_rw(bdev, (use + k) % TERRACE_LABEL_COPIES * TERRACE_BLOCK_SECTORS,
			    labels->block, TERRACE_BLOCK_BYTES, REQ_OP_WRITE | REQ_FUA | REQ_SYNC);
	return err;
}

int tr_label_change(struct terrace *tr, struct block_device *bdev, u32 tier,
		    void (*change)(struct tr_label *label, const void *arg), const void *arg)
{
	struct tr_labels *labels = &tr->labels;
	int use, err;

	mutex_lock(&labels->mutex);
	use = read_copies(labels, bdev);
	err = min(use, 0);
	if (!err && (labels->copy[use].tier_index != tier ||
		     memcmp(labels->copy[use].volume_uuid, tr->super.volume_uuid,
			    TERRACE_UUID_BYTES)))
		err = -EUCLEAN;
	if (!err) {
		change(&labels->copy[use], arg);
		err = write_copies(labels, bdev, use);
	}
	mutex_unlock(&labels->mutex);
	return err;
}

/* --- metadata copies that fell behind -------------------------------------- */

static void set_stale(struct tr_label *label, const void *arg)
{
	const u64 *until = arg;
	u32 c;

	for (c = 0; c < TR_STALE_NOTES; c++)
		label->stale_until[c] = max(label->stale_until[c], until[c]);
}

static int note_on(struct terrace *tr, struct block_device *bdev, u32 tier, const u64 *until)
{
	return bdev ? tr_label_change(tr, bdev, tier, set_stale, until) : -ENXIO;
}

static void note_stale(struct terrace *tr, u32 c)
{
	struct block_device *gone = tr->meta[c].bdev;
	struct tr_meta_dev *other = &tr->meta[!c];
	u64 until[TR_STALE_NOTES] = {};
	bool noted = false;
	u32 t;

	/* A checkpoint under way may have given it the next superblock. */
	until[c] = READ_ONCE(tr->super.generation) + 1;
	for (t = 0; t < tr->nr_tiers; t++)
		if (tr->tier[t].bdev != gone && !note_on(tr, tr->tier[t].bdev, t, until))
			noted |= tr->tier[t].bdev != other->bdev;
	if (other->tier == TERRACE_META_DEVICE)
		note_on(tr, other->bdev, other->tier, until);
	/* Its own drive failed, and may hang: the last to be asked. */
	if (!noted && note_on(tr, gone, tr->meta[c].tier, until))
		DMWARN("%s: no third drive could take note that metadata copy %u is out of date: do not activate the volume with that one alone",
		       tr->name, c);
}

/*
 * Crash scenario: a clean stop leaves the lazy mirror CLEAN. The next boot finds its drive
 * away; what is written then only the primary has. The primary dies, the drive returns:
 * the mirror says that nothing followed it, and old values would be called certain.
 * Nothing newer than the last durable superblock was ever copied to it.
 */
static void note_lazy(struct terrace *tr)
{
	u64 until[TR_STALE_NOTES] = { [TR_COPY_LAZY] = READ_ONCE(tr->super.generation) };
	u32 t, c;

	for (t = 0; t < tr->nr_tiers; t++)
		if (tr->tier[t].bdev && tr->tier[t].bdev != tr->lazy.bdev &&
		    note_on(tr, tr->tier[t].bdev, t, until))
			DMWARN("%s: tier %u could not take note that the lazy metadata mirror is out of date",
			       tr->name, t);
	for (c = 0; c < TR_COPIES; c++)
		if (tr->meta[c].bdev && tr->meta[c].tier == TERRACE_META_DEVICE)
			note_on(tr, tr->meta[c].bdev, tr->meta[c].tier, until);
}

/*
 * Crash scenario: terracectl repair --to put the metadata on a new device, and the
 * volume is used with it; its label has the note. One day that device comes last, or not at
 * all, and a tier still has the old metadata, which look whole.
 */
void tr_labels_agree(struct terrace *tr)
{
	u32 t;

	for (t = 0; t < tr->nr_tiers; t++)
		if (tr->labels.behind & BIT(t) &&
		    note_on(tr, tr->tier[t].bdev, t, tr->labels.stale_until))
			DMWARN("%s: tier %u could not take note of which metadata are out of date",
			       tr->name, t);
}

void tr_labels_note(struct terrace *tr)
{
	u32 c;

	if (likely(!READ_ONCE(tr->labels.to_note)))
		return;
	mutex_lock(&tr->labels.note_mutex);
	for (c = 0; c < TR_STALE_NOTES; c++) {
		if (!test_bit(c, &tr->labels.to_note))
			continue;
		if (c == TR_COPY_LAZY)
			note_lazy(tr);
		else
			note_stale(tr, c);
		clear_bit(c, &tr->labels.to_note);
	}
	mutex_unlock(&tr->labels.note_mutex);
}
