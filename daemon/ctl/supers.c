// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reading and replacing superblocks. See supers.h.
 *
 * A superblock goes with the meta bitmap of its generation's parity, which is
 * therefore written first, with the bits of the other one. The superblock is
 * one block: after a crash there is the old shape or the new.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "supers.h"

#define ROLES	3	/* of metadata copies: see holder() */

struct area_of {
	struct device dev;
	u64 start;
	struct tr_super super;	/* the newer copy */
};

static int read_newest(struct area_of *a)
{
	void *block = ctl_alloc_blocks(1);
	struct tr_super copy;
	int r = -EUCLEAN;

	memset(&a->super, 0, sizeof(a->super));
	for (u32 k = 0; k < 2; k++) {
		if (device_read(&a->dev, a->start + k, 1, block) || tr_super_decode(&copy, block))
			continue;
		r = 0;
		if (copy.generation > a->super.generation)
			a->super = copy;
	}
	free(block);
	return r;
}

/* -EUCLEAN, without a message: no superblock can be used. */
static int open_area(struct area_of *a, const struct found_device *holder, enum device_mode mode)
{
	int r = device_open(&a->dev, holder->path, mode);

	if (r)
		return r;
	a->start = holder->label.meta_start;
	r = read_newest(a);
	if (r)
		device_close(&a->dev);
	return r;
}

/* Primary, synchronous and lazy mirror, in this order. */
static const struct found_device *holder(const struct found_volume *v, u32 role)
{
	static const u32 flag[] = {
		TERRACE_LABEL_META, TERRACE_LABEL_META_SYNC, TERRACE_LABEL_META_LAZY,
	};

	return found_holder(v, flag[role]);
}

static int read_copy(const struct found_volume *v, u32 role, struct tr_super *super)
{
	const struct found_device *from = holder(v, role);
	struct area_of a;
	int r = from ? open_area(&a, from, DEVICE_SHARED) : -ENODEV;

	if (r)
		return r;
	*super = a.super;
	device_close(&a.dev);
	return 0;
}

static int unusable(const struct found_volume *v, u32 role)
{
	const struct found_device *from = holder(v, role);

	if (from)
		ctl_error("%s: no superblock can be used: terracectl check says more", from->path);
	else
		ctl_error("volume '%s': the device that holds the metadata is missing", v->name);
	return -EUCLEAN;
}

/* ---- which copies count ------------------------------------------------------------- */

/* Do the devices know that the volume went on without it? */
static bool told_stale(const struct found_volume *v, u32 role, const struct tr_super *super)
{
	for (u32 i = 0; i < v->nr_devices; i++)
		if (super->generation <= v->device[i].label.stale_until[role])
			return true;
	return false;
}

static bool is_newer(const struct tr_super *a, const struct tr_super *b)
{
	if (a->generation != b->generation)
		return a->generation > b->generation;
	return a->flags & TERRACE_SUPER_ALONE && !(b->flags & TERRACE_SUPER_ALONE);
}

/* The role of the copy that activation goes by (kmod/copies.c). -errno after a message. */
static int choose(const struct found_volume *v, struct tr_super *super)
{
	struct tr_super mirror;
	bool first = !read_copy(v, 0, super) && !told_stale(v, 0, super);

	if (!read_copy(v, 1, &mirror) && !told_stale(v, 1, &mirror) &&
	    (!first || is_newer(&mirror, super))) {
		*super = mirror;
		return 1;
	}
	return first ? 0 : unusable(v, 0);
}

int supers_read(const struct found_volume *v, struct tr_super *super)
{
	int lead = choose(v, super);

	return lead < 0 ? lead : 0;
}

/*
 * Is the copy to have what the leading one has? 1, 0 or -errno. One that the volume went
 * on without is left alone: perhaps nothing there can be used, and a superblock of a
 * higher generation would lift it beyond what the labels call stale.
 */
static int follows(const struct found_volume *v, u32 role, const struct tr_super *lead)
{
	struct tr_super super;

	if (!holder(v, role) ||
	    lead->flags & (role < 2 ? TERRACE_SUPER_ALONE : TERRACE_SUPER_LAZY_LOST))
		return 0;
	if (read_copy(v, role, &super))
		return unusable(v, role);
	return role == 2 || !told_stale(v, role, &super);
}

/* ---- writing --------------------------------------------------------------------------- */

/* The meta bitmap of the generation after this one, with the same bits. */
static int copy_bits(const struct area_of *a)
{
	const struct tr_super *super = &a->super;
	u32 from = super->generation & 1;
	void *block = ctl_alloc_blocks(1);
	u64 bits[TERRACE_MBIT_WORDS];
	int r = 0;

	for (u64 i = 0; i < super->bitmap_blocks && !r; i++) {
		u64 first = i * TERRACE_MBIT_BITS;

		r = device_read(&a->dev, a->start + super->bitmap_start[from] + i, 1, block);
		if (!r)
			r = tr_mbit_decode(block, bits, first, super->generation, super->volume_uuid);
		if (r)
			break;
		tr_mbit_encode(block, bits, first, super->generation + 1, super->volume_uuid);
		r = device_write(&a->dev, a->start + super->bitmap_start[!from] + i, 1, block);
	}
	free(block);
	return r ? r : device_flush(&a->dev);
}

static int write_super(struct area_of *a, const struct tr_super *shape)
{
	u32 nr = shape->nr_tiers;
	void *block;
	int r = copy_bits(a);

	if (r)
		return r;
	a->super.generation++;
	memcpy(&a->super.tier[a->super.nr_tiers], &shape->tier[a->super.nr_tiers],
	       (nr - a->super.nr_tiers) * sizeof(shape->tier[0]));
	a->super.nr_tiers = nr;
	block = ctl_alloc_blocks(1);
	tr_super_encode(block, &a->super);
	r = device_write(&a->dev, a->start + (a->super.generation & 1), 1, block);
	free(block);
	return r ? r : device_flush(&a->dev);
}

static int write_tiers(const struct found_device *to, const struct tr_super *shape)
{
	struct area_of a;
	int r = open_area(&a, to, DEVICE_WRITE);

	if (r)
		return r;
	if (a.super.nr_tiers < shape->nr_tiers) {
		r = write_super(&a, shape);
		if (r)
			ctl_error("%s: its superblock cannot be written: %s", to->path, strerror(-r));
	}
	device_close(&a.dev);
	return r;
}

/* All is judged before anything is written: a volume with one superblock of the new shape
 * does not start with the old table any more.
 */
int supers_write_tiers(const struct found_volume *v, const struct tr_super *shape)
{
	struct tr_super super;
	int lead = choose(v, &super), r = lead < 0 ? lead : 0;
	bool write[ROLES] = { false };

	if (!r && !(super.flags & TERRACE_SUPER_CLEAN)) {
		ctl_error("%s: the volume was not stopped cleanly: nothing changed",
			  holder(v, lead)->path);
		r = -EBUSY;
	}
	for (int role = 0; role < ROLES && !r; role++) {
		int yes = role == lead ? 1 : follows(v, role, &super);

		r = yes < 0 ? yes : 0;
		write[role] = yes > 0;
	}
	if (r)
		return r;
	r = write_tiers(holder(v, lead), shape);
	for (int role = 0; role < ROLES && !r; role++)
		if (write[role] && role != lead)
			r = write_tiers(holder(v, role), shape);
	return r;
}
