// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From devices to a volume: labels first, then superblocks, then how they fit.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "restore_mark.h"
#include "volume.h"

const char *decode_strerror(int err)
{
	switch (err) {
	case -ENODATA:
		return "nothing of ours there (magic missing)";
	case -ENOENT:
		return "zeros";
	case -EBADMSG:
		return "damaged (CRC mismatch)";
	case -EPROTONOSUPPORT:
		return "of a newer version than this program knows";
	case -EUCLEAN:
		return "intact, but with impossible numbers";
	case -ESTALE:
		return "an older or another one than expected";
	default:
		return strerror(-err);
	}
}

/* ---- labels ------------------------------------------------------------------ */

/* Returns the copy to use, or -1; *state[] says what each is like. */
static int choose_label(const struct tr_label *copy, const int *state)
{
	if (state[0] && state[1])
		return -1;
	if (state[0] || state[1])
		return state[0] ? 1 : 0;
	return copy[1].generation > copy[0].generation;
}

/* As bytes on disk: a struct may differ in its padding alone. */
bool volume_same_label(const struct tr_label *a, const struct tr_label *b)
{
	u64 block[2][TERRACE_BLOCK_BYTES / sizeof(u64)];

	tr_label_encode(block[0], a);
	tr_label_encode(block[1], b);
	return !memcmp(block[0], block[1], sizeof(block[0]));
}

static int read_label(struct volume *vol, u32 nr, struct findings *findings)
{
	const struct device *dev = &vol->dev[nr];
	void *block = ctl_alloc_blocks(1);
	struct tr_label copy[TERRACE_LABEL_COPIES] = { 0 };	/* padding too: compared below */
	int state[TERRACE_LABEL_COPIES], use, r = 0;
	struct restore_mark mark;

	/* One by one: a sector that cannot be read must not take the other copy with it. */
	for (u32 i = 0; i < TERRACE_LABEL_COPIES; i++) {
		state[i] = device_read(dev, i, 1, block);
		r = state[i] ? state[i] : r;
		if (!state[i])
			state[i] = tr_label_decode(&copy[i], block);
	}
	free(block);
	use = choose_label(copy, state);
	if (use < 0 && r) {
		problem(findings, dev->path, "cannot read the label: %s",
			r == -ENXIO ? "it is too small to hold one" : strerror(-r));
		return r;
	}
	if (use < 0 && state[0] == -ENODATA && state[1] == -ENODATA) {
		if (restore_mark_read(dev, &mark))
			problem(findings, dev->path, "has no label: a restore was stopped: terracectl restore, with the same dump, finishes it");
		else
			problem(findings, dev->path, "is not part of a Terrace volume: it has no label");
		return -ENODATA;
	}
	memcpy(vol->label_bad[nr], state, sizeof(state));
	if (use < 0)
		return -EUCLEAN;
	if (!state[0] && !state[1] && copy[0].generation != copy[1].generation)
		note(findings, where("%s: label", dev->path),
		     "the copies have generations %llu and %llu: a change was cut off, the newer counts",
		     copy[0].generation, copy[1].generation);
	else if (!state[0] && !state[1] && !volume_same_label(&copy[0], &copy[1]))
		problem(findings, where("%s: label", dev->path),
			"the copies differ, both are of generation %llu", copy[0].generation);
	vol->label[nr] = copy[use];
	return 0;
}

/* Its label is the first that terracectl add writes, and the superblock the last. */
static bool is_to_come(const struct volume *vol, u32 nr)
{
	u32 tier = vol->label[nr].tier_index;

	return vol->super && tier < TERRACE_MAX_TIERS && tier >= vol->super->nr_tiers;
}

/* Copies of labels that are bad; a tier that is to come may have one only, and a drive that has just replaced another. */
static void report_labels(struct volume *vol, struct findings *findings)
{
	for (u32 nr = 0; nr < vol->nr_devices; nr++)
		for (u32 i = 0; i < TERRACE_LABEL_COPIES; i++) {
			const char *at = where("%s: label copy %u (block %u)", vol->dev[nr].path, i, i);

			if (!vol->label_bad[nr][i])
				continue;
			if (is_to_come(vol, nr) || (vol->relabelled[nr] && vol->label_bad[nr][i] == -ENODATA)) {
				note(findings, at, "%s", decode_strerror(vol->label_bad[nr][i]));
				continue;
			}
			problem(findings, at, "%s", decode_strerror(vol->label_bad[nr][i]));
			vol->bad_copies += !vol->label_bad[nr][!i];
		}
}

/* Where the label says things are must be on the device. */
static void check_label(const struct volume *vol, u32 nr, struct findings *findings)
{
	const struct tr_label *label = &vol->label[nr];
	const struct device *dev = &vol->dev[nr];

	if (label->device_blocks > dev->blocks)
		problem(findings, dev->path,
			"has %llu blocks, its label says %llu: it has shrunk, or the label was copied from another device",
			dev->blocks, label->device_blocks);
}

/*
 * The last device is of the same tier as @other. When a tier's drive is replaced the new one gets its label before
 * the old one loses it, and the power may fail between the two: the newer counts, the older is left out.
 */
static void leave_out_older(struct volume *vol, u32 other, struct findings *findings)
{
	u32 last = vol->nr_devices - 1;
	bool newer = vol->label[last].generation > vol->label[other].generation;
	const char *old = vol->dev[newer ? other : last].path;

	note(findings, old, "has been replaced by %s, whose label is newer: it is left out", vol->dev[newer ? last : other].path);
	device_close(&vol->dev[newer ? other : last]);
	if (newer) {
		vol->dev[other] = vol->dev[last];
		vol->label[other] = vol->label[last];
		memcpy(vol->label_bad[other], vol->label_bad[last], sizeof(vol->label_bad[other]));
	}
	vol->relabelled[other] = true;
	vol->nr_devices--;
}

static int place_device(struct volume *vol, u32 nr, struct findings *findings)
{
	const struct tr_label *label = &vol->label[nr];
	int *at;

	if (nr && memcmp(label->volume_uuid, vol->uuid, TERRACE_UUID_BYTES)) {
		problem(findings, vol->dev[nr].path,
			"belongs to another volume: '%s' (%s), but %s to '%s' (%s)", label->name,
			uuid_text(label->volume_uuid), vol->dev[0].path, vol->name,
			uuid_text(vol->uuid));
		return -EXDEV;
	}
	if (label->tier_index == TERRACE_META_DEVICE) {
		at = &vol->meta_device;
	} else if (label->tier_index < TERRACE_MAX_TIERS) {
		at = &vol->tier[label->tier_index];
	} else {
		problem(findings, vol->dev[nr].path, "its label says tier %u, which cannot be",
			label->tier_index);
		return -EUCLEAN;
	}
	if (*at >= 0 && vol->label[*at].generation != label->generation) {
		leave_out_older(vol, *at, findings);
		return 0;
	}
	if (*at >= 0) {
		problem(findings, vol->dev[nr].path, "is the same tier as %s: %s", vol->dev[*at].path,
			device_same(&vol->dev[nr], &vol->dev[*at]) ? "it is named twice" :
			"one of them is a copy");
		return -EEXIST;
	}
	*at = nr;
	return 0;
}

/* ---- superblocks ---------------------------------------------------------------- */

static void find_metadata(struct volume *vol, struct metadata *meta, u32 flag, const char *name)
{
	for (u32 i = 0; i < vol->nr_devices; i++) {
		const struct tr_label *label = &vol->label[i];

		/* A metadata device counts, whatever a tier still says: repair
		 * --to makes one and leaves the tiers' labels alone.
		 */
		if (!(label->flags & flag) ||
		    (meta->dev && label->tier_index != TERRACE_META_DEVICE))
			continue;
		meta->dev = &vol->dev[i];
		meta->name = name;
		meta->lazy = flag == TERRACE_LABEL_META_LAZY;
		meta->atomic = label->flags & TERRACE_LABEL_ATOMIC;
		meta->start = label->meta_start;
		meta->blocks = label->meta_blocks;
	}
}

int metadata_read(const struct metadata *meta, u64 block, u64 nr, void *buf)
{
	if (block > meta->blocks || nr > meta->blocks - block)
		return -ENXIO;
	return device_read(meta->dev, meta->start + block, nr, buf);
}

static bool is_zero(const u8 *block)
{
	return !block[0] && !memcmp(block, block + 1, (size_t)TERRACE_BLOCK_BYTES - 1);
}

static int read_super(const struct volume *vol, struct metadata *meta, u32 i)
{
	void *block = ctl_alloc_blocks(1);
	struct tr_super *copy = &meta->copy[i];
	int r = metadata_read(meta, i, 1, block);

	if (!r)
		r = tr_super_decode(copy, block);
	if (r == -ENODATA && meta->lazy && is_zero(block))
		r = -ENOENT;	/* activation made it void */
	if (!r && memcmp(copy->volume_uuid, vol->uuid, TERRACE_UUID_BYTES))
		r = -ESTALE;
	if (!r && (meta->start > meta->dev->blocks ||
		   meta->blocks > meta->dev->blocks - meta->start))
		r = -ENXIO;	/* the label is not of this device */
	if (!r && ((copy->generation & 1) != i || copy->meta_blocks != meta->blocks ||
		   !(copy->flags & TERRACE_SUPER_LAZY) != !meta->lazy))
		r = -EUCLEAN;
	free(block);
	return r;
}

/* A crash may tear the copy that was being written, unless the drive writes
 * 4 KiB whole. Whether there was one the caller can tell from the journal.
 */
static void read_supers(const struct volume *vol, struct metadata *meta,
			struct findings *findings)
{
	/* A copy that the volume went on without may be as it likes. */
	u32 given_up = meta->lazy ? TERRACE_SUPER_LAZY_LOST : TERRACE_SUPER_ALONE;
	bool excused = meta == &vol->mirror && vol->primary.super &&
		       vol->primary.super->flags & given_up;

	for (u32 i = 0; i < 2; i++)
		meta->state[i] = read_super(vol, meta, i);
	meta->super = tr_super_newest(meta->state[0] ? NULL : &meta->copy[0],
				      meta->state[1] ? NULL : &meta->copy[1]);
	for (u32 i = 0; i < 2; i++) {
		if (!meta->state[i])
			continue;
		if (excused)
			note(findings, where("%s: superblock copy %u (meta block %u)",
					     meta->dev->path, i, i),
			     "%s; the volume went on without this mirror",
			     decode_strerror(meta->state[i]));
		else if (meta->state[i] == -ENOENT && vol->primary.super)
			note(findings, where("%s: superblock copy %u (meta block %u)", meta->dev->path, i, i),
			     "zeros: the lazy mirror was out of step, and is copied anew as a whole");
		else if (meta->state[i] == -EBADMSG && meta->super && !meta->atomic)
			meta->torn = i;
		else
			problem(findings, where("%s: superblock copy %u (meta block %u)",
						meta->dev->path, i, i),
				"%s", decode_strerror(meta->state[i]));
	}
}

/* ---- how they fit ------------------------------------------------------------------ */

bool volume_has_stranger(const struct volume *vol, u32 tier)
{
	return vol->super && tier < vol->super->nr_tiers && vol->tier[tier] >= 0 &&
	       memcmp(vol->label[vol->tier[tier]].tier_uuid, vol->super->tier[tier].uuid, TERRACE_UUID_BYTES);
}

/* A label is written before the superblock that counts on its room. */
bool volume_has_misfit(const struct volume *vol, u32 tier)
{
	const struct tr_super_tier *want;
	const struct tr_label *label;

	if (!vol->super || tier >= vol->super->nr_tiers || vol->tier[tier] < 0)
		return false;
	want = &vol->super->tier[tier];
	label = &vol->label[vol->tier[tier]];
	return label->class != want->class || label->kind != want->kind ||
	       label->data_blocks < want->data_blocks;
}

static void check_tier(const struct volume *vol, u32 nr, struct findings *findings)
{
	const struct tr_super_tier *tier = &vol->super->tier[nr];
	const struct tr_label *label;
	const char *path;

	if (vol->tier[nr] < 0) {
		problem(findings, where("tier %u", nr),
			"is missing (%s, kind %s, %s, label uuid %s)", class_name(tier->class),
			kind_name(tier->kind), size_text(tier->data_blocks), uuid_text(tier->uuid));
		return;
	}
	label = &vol->label[vol->tier[nr]];
	path = vol->dev[vol->tier[nr]].path;
	if (volume_has_stranger(vol, nr))
		problem(findings, path, "is not the device that tier %u is made of: uuid %s, expected %s",
			nr, uuid_text(label->tier_uuid), uuid_text(tier->uuid));
	if (label->class != tier->class || label->kind != tier->kind)
		problem(findings, path, "label says %s %s, superblock says %s %s",
			class_name(label->class), kind_name(label->kind), class_name(tier->class),
			kind_name(tier->kind));
	if (label->data_blocks < tier->data_blocks ||
	    label->data_start + tier->data_blocks > vol->dev[vol->tier[nr]].blocks)
		problem(findings, path, "has room for %llu data blocks, the superblock needs %llu",
			label->data_blocks, tier->data_blocks);
}

static void check_tiers(const struct volume *vol, struct findings *findings)
{
	u32 i;

	for (i = 0; i < vol->super->nr_tiers; i++)
		check_tier(vol, i, findings);
	for (; i < TERRACE_MAX_TIERS; i++)
		if (vol->tier[i] >= 0)
			note(findings, vol->dev[vol->tier[i]].path,
			     "says it is tier %u, the volume has %u tiers: terracectl add was cut off, or takes it up again",
			     i, vol->super->nr_tiers);
}

/* Do the devices know that the volume went on without it? */
static bool told_stale(const struct volume *vol, const struct metadata *meta, u32 copy)
{
	if (!meta->super)
		return false;
	for (u32 i = 0; i < vol->nr_devices; i++)
		if (meta->super->generation <= vol->label[i].stale_until[copy])
			return true;
	return false;
}

/* Of primary and synchronous mirror the newer one, as activation does. One
 * that was written ALONE says that the other is stale, and labels may.
 */
static void choose_metadata(struct volume *vol)
{
	struct metadata *p = &vol->primary, *m = &vol->mirror;
	bool both = p->super && m->super && !m->lazy;
	bool newer = both && m->super->generation > p->super->generation;
	bool older = both && m->super->generation < p->super->generation;

	p->stale = told_stale(vol, p, 0) || (newer && m->super->flags & TERRACE_SUPER_ALONE);
	m->stale = told_stale(vol, m, m->lazy ? 2 : 1) || (older && p->super->flags & TERRACE_SUPER_ALONE);
	vol->meta = !p->super || (newer && !m->stale) || (both && p->stale && !m->stale) ? m : p;
	vol->super = vol->meta->super;
}

static int open_metadata(struct volume *vol, struct findings *findings)
{
	find_metadata(vol, &vol->primary, TERRACE_LABEL_META, "primary");
	find_metadata(vol, &vol->mirror, TERRACE_LABEL_META_SYNC, "synchronous mirror");
	find_metadata(vol, &vol->mirror, TERRACE_LABEL_META_LAZY, "lazy mirror");
	if (vol->primary.dev)
		read_supers(vol, &vol->primary, findings);
	if (vol->mirror.dev)
		read_supers(vol, &vol->mirror, findings);
	if (!vol->primary.dev)
		problem(findings, where("volume '%s'", vol->name),
			"the device that holds the metadata is missing%s",
			vol->mirror.super ? "; using the mirror" : "");
	else if (!vol->primary.super)
		problem(findings, vol->primary.dev->path, "no superblock can be used%s",
			vol->mirror.super ? "; using the mirror" : "");
	choose_metadata(vol);
	if (vol->super && vol->meta->stale)
		problem(findings, vol->meta->dev->path,
			"its metadata is stale (checkpoint %llu): the volume went on without it, with a copy that is not here",
			vol->super->generation);
	return vol->super ? 0 : -EUCLEAN;
}

/* ---- open, close ---------------------------------------------------------------------- */

static int open_device(struct volume *vol, const char *path, enum device_mode mode,
		       struct findings *findings)
{
	u32 nr = vol->nr_devices;
	int r = device_open(&vol->dev[nr], path, mode);

	if (r) {
		problem(findings, path, "cannot be opened");
		return r;
	}
	vol->nr_devices++;
	r = read_label(vol, nr, findings);
	if (r)
		return r;
	if (!nr) {
		memcpy(vol->uuid, vol->label[0].volume_uuid, TERRACE_UUID_BYTES);
		vol->name = vol->label[0].name;
	}
	check_label(vol, nr, findings);
	return place_device(vol, nr, findings);
}

static int open_devices(struct volume *vol, char **paths, int nr, enum device_mode mode,
			struct findings *findings)
{
	int bad = 0;

	for (int i = 0; i < nr; i++) {
		int r = open_device(vol, paths[i], mode, findings);

		bad = bad ? bad : r;
		if (r && vol->nr_devices <= 1)
			return r;	/* nothing to compare the others with */
	}
	return bad;
}

int volume_open(struct volume *vol, char **paths, int nr, enum device_mode mode,
		struct findings *findings)
{
	int bad;

	memset(vol, 0, sizeof(*vol));
	vol->meta_device = -1;
	vol->primary.torn = -1;
	vol->mirror.torn = -1;
	for (u32 i = 0; i < TERRACE_MAX_TIERS; i++)
		vol->tier[i] = -1;
	bad = open_devices(vol, paths, nr, mode, findings);
	if (!bad)
		bad = open_metadata(vol, findings);
	report_labels(vol, findings);
	if (!bad)
		check_tiers(vol, findings);
	return bad;
}

void volume_close(struct volume *vol)
{
	for (u32 i = 0; i < vol->nr_devices; i++)
		device_close(&vol->dev[i]);
	vol->nr_devices = 0;
}

int volume_read_tier(const struct volume *vol, u32 tier, u64 index, u64 nr, void *buf)
{
	int dev = vol->tier[tier];

	if (dev < 0)
		return -ENODEV;
	if (index > vol->label[dev].data_blocks || nr > vol->label[dev].data_blocks - index)
		return -ENXIO;
	return device_read(&vol->dev[dev], vol->label[dev].data_start + index, nr, buf);
}

const char *volume_tier_name(const struct volume *vol, u32 tier)
{
	if (tier < TERRACE_MAX_TIERS && vol->tier[tier] >= 0)
		return vol->dev[vol->tier[tier]].path;
	return where("tier %u", tier);
}
