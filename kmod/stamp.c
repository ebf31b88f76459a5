// SPDX-License-Identifier: GPL-2.0
/*
 * Stamps: every activation for writing has a number, and the labels say which was
 * each device's last. So a device that is put back as it once was (an image of
 * yesterday, the other leg of a mirror that was split) is known: its label has
 * everything right, and what it holds are old values, and other blocks' data in
 * slots that were handed out again.
 *
 * Before anything is written in activation n, in two passes:
 *
 *   1  each device's own label says stamp = n, durably, all of them;
 *   2  then each label says, of every device that got it, stamps[device] = n.
 *
 * A device is old if its stamp is lower than what any label's stamps says of it.
 *
 *   - Cut between two labels of pass 1: some say stamp n, no stamps does. Nobody is old,
 *     and nothing was written. The next activation is n + 1, for the highest number
 *     that is found anywhere counts.
 *   - Cut in pass 2: some stamps say n, of devices whose stamp is n. Nobody is old.
 *   - Cut between the two copies of a label (label.c): one of them is whole.
 *   - A device that is away in activation n: no stamps says n of it, nothing is
 *     written to it. It is not old when it comes back.
 *   - A device that cannot be written in pass 1 is left out likewise.
 *   - One label that has been through pass 2 is enough: nothing is written before
 *     all have. The copy of a device that was taken before pass 1 has a stamp below n.
 *   - Copies of all devices put back together agree with each other.
 *
 * Not known is a copy taken and put back within one activation, and one from before the
 * first that had stamps. A label without a stamp is a new device's, or was written by
 * a version that does not know of them, as 0: it is taken.
 */
#include "meta.h"

struct stamped {
	struct block_device *bdev;
	u32 tier;
	bool done;
};

static u32 all_devices(struct terrace *tr, struct stamped *device)
{
	u32 nr = 0, t, c;

	for (t = 0; t < tr->nr_tiers; t++)
		if (tr->tier[t].bdev)
			device[nr++] = (struct stamped){ tr->tier[t].bdev, t };
	for (c = 0; c < TR_COPIES; c++)
		if (tr->meta[c].bdev && tr->meta[c].tier == TERRACE_META_DEVICE)
			device[nr++] = (struct stamped){ tr->meta[c].bdev, TERRACE_META_DEVICE };
	return nr;
}

static void set_stamp(struct tr_label *label, const void *arg)
{
	const u64 *stamp = arg;

	label->stamp = *stamp;
}

static void set_stamps(struct tr_label *label, const void *arg)
{
	const struct tr_stamps *stamps = arg;
	u32 i;

	for (i = 0; i < TR_STAMPS; i++)
		label->stamps[i] = max(label->stamps[i], stamps->last[i]);
}

void tr_labels_stamp(struct terrace *tr)
{
	struct stamped device[TERRACE_MAX_TIERS + TR_COPIES];
	u32 nr = all_devices(tr, device), k;
	struct tr_stamps stamps = {};
	struct tr_label label;
	u64 number;

	/* What the table's labels said may be older than another table's activation. */
	for (k = 0; k < nr; k++)
		if (!tr_label_read(tr, device[k].bdev, &label))
			tr_stamps_add(&stamps, &label);
	number = stamps.most + 1;
	for (k = 0; k < nr; k++) {
		device[k].done = !tr_label_change(tr, device[k].bdev, device[k].tier, set_stamp, &number);
		label.tier_index = device[k].tier;
		if (device[k].done)
			stamps.last[tr_stamp_slot(&label)] = number;
		else
			DMWARN("%s: label of tier %u cannot be written: an old copy of it would not be known as one",
			       tr->name, device[k].tier);
	}
	for (k = 0; k < nr; k++)
		if (device[k].done)
			tr_label_change(tr, device[k].bdev, device[k].tier, set_stamps, &stamps);
}
