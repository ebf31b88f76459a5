// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writing a new volume. All or nothing, by order:
 *   1. old labels and whatever else stood at both ends of the devices goes, and
 *      each gets the mark of a volume that is being made (unfinished.h)
 *   2. metadata: empty journal, meta bitmaps, superblocks
 *   3. flush
 *   4. labels, in the marks' places; a device becomes part of a volume only here
 * Stopped before 4 the devices hold no volume; stopped within 4 some lack
 * their label and the volume is refused as incomplete. The same call once more
 * knows it by the marks, and begins again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "unfinished.h"

#define WIPE_BLOCKS 256u	/* where signatures of other systems stand, at both ends */

static int failed(const struct format *f, u32 nr, const char *what, int r)
{
	ctl_error("%s: cannot write %s: %s; the devices hold no volume now", f->path[nr], what,
		  strerror(-r));
	return r;
}

static int wipe(const struct device *dev)
{
	u64 nr = dev->blocks < WIPE_BLOCKS ? dev->blocks : WIPE_BLOCKS;
	int r = device_zero(dev, 0, nr);

	if (!r)
		r = device_zero(dev, dev->blocks - nr, nr);
	return r ? r : device_flush(dev);
}

/* Bits in front of the pages area are used, nothing else is. */
static int write_mbits(const struct device *dev, u64 meta_start, const struct tr_super *super,
		       u32 parity, u64 generation)
{
	u64 bits[TERRACE_MBIT_WORDS], used = tr_first_page(super);
	void *block = ctl_alloc_blocks(1);
	int r = 0;

	for (u64 i = 0; i < super->bitmap_blocks && !r; i++) {
		u64 first = i * TERRACE_MBIT_BITS;

		memset(bits, 0, sizeof(bits));
		for (u64 bit = 0; bit < TERRACE_MBIT_BITS && first + bit < used; bit++)
			bits[bit / 64] |= 1ull << (bit % 64);
		tr_mbit_encode(block, bits, first, generation, super->volume_uuid);
		r = device_write(dev, meta_start + super->bitmap_start[parity] + i, 1, block);
	}
	free(block);
	return r;
}

/* The whole ring is zeroed: no block of an earlier volume may be taken for
 * the first one of this. Superblocks: generation 1 and 2, alike otherwise.
 */
static int write_metadata(const struct format *f, u32 nr)
{
	const struct device *dev = &f->dev[nr];
	struct tr_super super = f->plan.super;
	u64 start = f->plan.label[nr].meta_start;
	void *block = ctl_alloc_blocks(1);
	int r = device_zero(dev, start, super.meta_blocks < tr_first_page(&super) + 1 ?
			    super.meta_blocks : tr_first_page(&super) + 1);

	if (nr == f->plan.mirror && f->plan.mirror_lazy)
		super.flags |= TERRACE_SUPER_LAZY;
	for (u64 generation = 1; generation <= 2 && !r; generation++) {
		u32 parity = generation & 1;

		r = write_mbits(dev, start, &super, parity, generation);
		super.generation = generation;
		tr_super_encode(block, &super);
		if (!r)
			r = device_write(dev, start + parity, 1, block);
	}
	free(block);
	return r ? r : device_flush(dev);
}

static int write_label(const struct device *dev, const struct tr_label *label)
{
	void *block = ctl_alloc_blocks(1);
	int r = 0;

	tr_label_encode(block, label);
	/* the one in the mark's place last */
	for (u32 copy = TERRACE_LABEL_COPIES; copy-- && !r;)
		r = device_write(dev, copy, 1, block);
	free(block);
	return r ? r : device_flush(dev);
}

int format_write_tier(const struct format *f, u32 nr)
{
	const struct tr_label *label = &f->plan.label[nr];
	int r = wipe(&f->dev[nr]);

	if (!r && label->kind == TERRACE_KIND_HOME)
		device_discard(&f->dev[nr], label->data_start, label->data_blocks);
	return r ? r : write_label(&f->dev[nr], label);
}

int format_write(const struct format *f)
{
	const struct tr_plan *plan = &f->plan;
	u32 i;
	int r;

	for (i = 0; i < plan->nr_devices; i++) {
		r = wipe(&f->dev[i]);
		if (!r)
			r = unfinished_mark(&f->dev[i], plan->label, plan->nr_devices);
		if (r)
			return failed(f, i, "over old labels", r);
	}
	for (i = 0; i < plan->nr_devices; i++) {
		if (i != plan->primary && i != plan->mirror)
			continue;
		r = write_metadata(f, i);
		if (r)
			return failed(f, i, "metadata", r);
	}
	for (i = 0; i < f->args.nr_tiers; i++)	/* empty homes are trimmed */
		if (plan->label[i].kind == TERRACE_KIND_HOME)
			device_discard(&f->dev[i], plan->label[i].data_start,
				       plan->label[i].data_blocks);
	for (i = 0; i < plan->nr_devices; i++) {
		r = write_label(&f->dev[i], &plan->label[i]);
		if (r)
			return failed(f, i, "label", r);
	}
	return 0;
}
