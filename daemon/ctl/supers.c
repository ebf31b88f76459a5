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
	if (r)
		ctl_error("%s: no superblock can be used: terracectl check says more", a->dev.path);
	return r;
}

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

int supers_read(const struct found_volume *v, struct tr_super *super)
{
	const struct found_device *primary = holder(v, 0);
	struct area_of a;
	int r = -ENODEV;

	if (!primary)
		ctl_error("volume '%s': the device that holds the metadata is missing", v->name);
	else
		r = open_area(&a, primary, DEVICE_SHARED);
	if (r)
		return r;
	*super = a.super;
	device_close(&a.dev);
	return 0;
}

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

static int write_tiers(const struct found_device *to, const struct tr_super *shape, bool primary)
{
	struct area_of a;
	int r = open_area(&a, to, DEVICE_WRITE);

	if (r)
		return r;
	if (primary && !(a.super.flags & TERRACE_SUPER_CLEAN)) {
		ctl_error("%s: the volume was not stopped cleanly: nothing changed", to->path);
		r = -EBUSY;
	} else if (a.super.nr_tiers < shape->nr_tiers) {
		r = write_super(&a, shape);
		if (r)
			ctl_error("%s: its superblock cannot be written: %s", to->path, strerror(-r));
	}
	device_close(&a.dev);
	return r;
}

int supers_write_tiers(const struct found_volume *v, const struct tr_super *super)
{
	int r = 0;

	for (u32 role = 0; role < 3 && !r; role++) {
		const struct found_device *to = holder(v, role);

		if (to)
			r = write_tiers(to, super, !role);
		else if (!role)
			r = -ENODEV;
	}
	return r;
}
