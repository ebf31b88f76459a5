// SPDX-License-Identifier: GPL-2.0
/*
 * The table line:
 *
 *   0 <sectors> terrace <meta_dev|-> <ntiers> {<dev|missing> <class> <kind>}…
 *               <nopts> <option>…
 *
 * Options: read_only, atomic=no:<tier> (overwrite out of place on that tier),
 * and the tunables of tune.c as name=value. Nothing is written here; every
 * refusal names the argument and what was found instead.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "terrace.h"

static const char * const class_names[] = {
	[TERRACE_CLASS_OPTANE] = "optane", [TERRACE_CLASS_NVME] = "nvme",
	[TERRACE_CLASS_QLC] = "qlc", [TERRACE_CLASS_HDD] = "hdd",
	[TERRACE_CLASS_CSD] = "csd", [TERRACE_CLASS_NET] = "net",
};

static const char * const kind_names[] = {
	[TERRACE_KIND_SLOTS] = "slots", [TERRACE_KIND_SHELVES] = "shelves",
	[TERRACE_KIND_HOME] = "home",
};

static u32 name_number(const char * const *names, u32 nr, const char *word)
{
	u32 k;

	for (k = 1; k < nr; k++)
		if (names[k] && !strcmp(names[k], word))
			return k;
	return 0;
}

const char *tr_class_name(u32 class)
{
	return class < ARRAY_SIZE(class_names) && class_names[class] ? class_names[class] : "?";
}

const char *tr_kind_name(u32 kind)
{
	return kind < ARRAY_SIZE(kind_names) && kind_names[kind] ? kind_names[kind] : "?";
}

/* --- devices and labels ------------------------------------------------------- */

static int fail(struct dm_target *ti, char *why, int err)
{
	ti->error = why;
	return err;
}

/* The newer of the two label copies. */
static int read_label(struct tr_arg_device *device, struct dm_target *ti)
{
	struct tr_label *copy;
	void *block;
	int err, best = -ENODATA, k;

	block = kmalloc(TERRACE_BLOCK_BYTES, GFP_KERNEL);
	copy = kmalloc(sizeof(*copy), GFP_KERNEL);
	if (!block || !copy) {
		best = fail(ti, "Out of memory", -ENOMEM);
		goto out;
	}
	for (k = 0; k < TERRACE_LABEL_COPIES; k++) {
		err = tr_rw(device->dev->bdev, k * TERRACE_BLOCK_SECTORS, block,
			    TERRACE_BLOCK_BYTES, REQ_OP_READ);
		if (!err)
			err = tr_label_decode(copy, block);
		if (!err && (best || copy->generation > device->label.generation)) {
			device->label = *copy;
			best = 0;
		} else if (best && err != -ENODATA) {
			best = err;
		}
	}
	if (best == -ENODATA)
		ti->error = "Device carries no Terrace label";
	else if (best == -EPROTONOSUPPORT)
		ti->error = "Device was formatted by a newer version";
	else if (best == -EIO)
		ti->error = "Cannot read the device's label";
	else if (best)
		ti->error = "Both copies of the device's label are damaged";
out:
	kfree(copy);
	kfree(block);
	return best;
}

static int open_device(struct tr_arg_device *device, struct dm_target *ti, const char *path)
{
	u64 blocks;
	int err;

	err = dm_get_device(ti, path, dm_table_get_mode(ti->table), &device->dev);
	if (err) {
		DMERR("cannot open %s (%d)", path, err);
		device->dev = NULL;
		return fail(ti, "Cannot open device", err);
	}
	err = read_label(device, ti);
	if (err) {
		DMERR("%s: %s (%d)", path, ti->error, err);
		return err;
	}
	blocks = bdev_nr_sectors(device->dev->bdev) / TERRACE_BLOCK_SECTORS;
	if (blocks < device->label.data_start + device->label.data_blocks ||
	    blocks < device->label.meta_start + device->label.meta_blocks) {
		DMERR("%s has %llu blocks, its label says %llu", path, blocks,
		      device->label.device_blocks);
		return fail(ti, "Device is smaller than its label says", -ENOSPC);
	}
	return 0;
}

/* The label against the table line and the other labels. */
static int check_tier(struct tr_args *args, struct dm_target *ti, u32 t)
{
	struct tr_arg_device *device = &args->tier[t];
	const struct tr_label *label = &device->label;

	if (memcmp(label->volume_uuid, args->uuid, TERRACE_UUID_BYTES)) {
		DMERR("tier %u (%s) belongs to another volume: %pU, not %pU", t,
		      device->dev->name, label->volume_uuid, args->uuid);
		return fail(ti, "Tier belongs to another volume", -EINVAL);
	}
	if (label->tier_index != t) {
		DMERR("%s is tier %u of the volume, given as tier %u", device->dev->name,
		      label->tier_index, t);
		return fail(ti, "Tiers are in the wrong order", -EINVAL);
	}
	if (label->class != device->class) {
		DMERR("%s was formatted as %s, given as %s", device->dev->name,
		      tr_class_name(label->class), tr_class_name(device->class));
		return fail(ti, "Tier was formatted as another class", -EINVAL);
	}
	if (label->kind != device->kind) {
		DMERR("%s was formatted as %s, given as %s", device->dev->name,
		      tr_kind_name(label->kind), tr_kind_name(device->kind));
		return fail(ti, "Tier was formatted as another kind", -EINVAL);
	}
	return 0;
}

static int parse_tier(struct tr_args *args, struct dm_target *ti, u32 t, struct dm_arg_set *as)
{
	struct tr_arg_device *device = &args->tier[t];
	const char *path = dm_shift_arg(as);
	const char *class = dm_shift_arg(as);
	const char *kind = dm_shift_arg(as);

	if (!path || !class || !kind)
		return fail(ti, "Too few arguments: each tier is <dev> <class> <kind>", -EINVAL);
	device->class = name_number(class_names, ARRAY_SIZE(class_names), class);
	if (!device->class)
		return fail(ti, "Class is not one of optane, nvme, qlc, hdd, csd, net", -EINVAL);
	device->kind = name_number(kind_names, ARRAY_SIZE(kind_names), kind);
	if (!device->kind)
		return fail(ti, "Kind is not one of slots, shelves, home", -EINVAL);
	if (!strcmp(path, "missing"))
		return 0;
	return open_device(device, ti, path);
}

static int parse_meta(struct tr_args *args, struct dm_target *ti, const char *path)
{
	int err;

	if (!strcmp(path, "-"))
		return 0;
	err = open_device(&args->meta, ti, path);
	if (err)
		return err;
	if (args->meta.label.tier_index != TERRACE_META_DEVICE)
		return fail(ti, "The first device is a tier, not a metadata device", -EINVAL);
	return 0;
}

/* --- options -------------------------------------------------------------------- */

static int parse_option(struct tr_args *args, struct dm_target *ti, const char *word)
{
	const char *wrong;
	u32 tier;
	char end;

	if (!strcmp(word, "read_only")) {
		args->read_only = true;
		return 0;
	}
	if (sscanf(word, "atomic=no:%u%c", &tier, &end) == 1) {
		if (tier >= args->nr_tiers)
			return fail(ti, "Option atomic=no:<tier> names no tier", -EINVAL);
		args->out_of_place[tier] = true;
		return 0;
	}
	wrong = tr_tunes_set(&args->tunes, word);
	if (wrong) {
		DMERR("option %s: %s", word, wrong);
		return fail(ti, (char *)wrong, -EINVAL);
	}
	return 0;
}

static int parse_options(struct tr_args *args, struct dm_target *ti, struct dm_arg_set *as)
{
	static const struct dm_arg limits[] = {
		{ 0, 64, "Number of options is not a number from 0 to 64, or they are fewer" },
	};
	unsigned int nr;
	int err;

	if (!as->argc)
		return 0;
	err = dm_read_arg_group(limits, as, &nr, &ti->error);
	while (!err && nr--)
		err = parse_option(args, ti, dm_shift_arg(as));
	if (!err && as->argc)
		err = fail(ti, "More arguments than the number of options says", -EINVAL);
	return err;
}

/* --- the whole line --------------------------------------------------------------- */

static int parse_tiers(struct tr_args *args, struct dm_target *ti, struct dm_arg_set *as)
{
	u32 t, present = 0;
	int err = 0;

	for (t = 0; t < args->nr_tiers && !err; t++)
		err = parse_tier(args, ti, t, as);
	for (t = 0; t < args->nr_tiers && !err; t++) {
		if (!args->tier[t].dev)
			continue;
		if (!present++) {
			memcpy(args->uuid, args->tier[t].label.volume_uuid, TERRACE_UUID_BYTES);
			strscpy(args->name, args->tier[t].label.name, sizeof(args->name));
		}
		err = check_tier(args, ti, t);
	}
	if (!err && !present)
		err = fail(ti, "Every tier is missing", -EINVAL);
	if (!err && args->meta.dev &&
	    memcmp(args->meta.label.volume_uuid, args->uuid, TERRACE_UUID_BYTES))
		err = fail(ti, "The metadata device belongs to another volume", -EINVAL);
	return err;
}

/* The label that says where the metadata are; a device that should be there. */
static const struct tr_arg_device *meta_holder(const struct tr_args *args, u32 flag)
{
	u32 t;

	if (args->meta.dev && args->meta.label.flags & flag)
		return &args->meta;
	for (t = 0; t < args->nr_tiers; t++)
		if (args->tier[t].dev && args->tier[t].label.flags & flag)
			return &args->tier[t];
	return NULL;
}

/* Its two copies; one that is newer replaces @best. 0: it has a good one. */
static int read_super(const struct tr_arg_device *holder, struct tr_super *best)
{
	struct tr_super *copy = kmalloc(sizeof(*copy), GFP_KERNEL);
	void *block = kmalloc(TERRACE_BLOCK_BYTES, GFP_KERNEL);
	int k, err, result = -ENOMEM;

	for (k = 0; copy && block && k < 2; k++) {
		err = tr_rw(holder->dev->bdev,
			    (holder->label.meta_start + k) * TERRACE_BLOCK_SECTORS, block,
			    TERRACE_BLOCK_BYTES, REQ_OP_READ);
		if (!err)
			err = tr_super_decode(copy, block);
		if (!err && copy->generation > best->generation)
			*best = *copy;
		if (result)
			result = err;
	}
	kfree(block);
	kfree(copy);
	return result;
}

static int check_super(struct tr_args *args, struct dm_target *ti)
{
	static const u32 roles[] = {
		TERRACE_LABEL_META, TERRACE_LABEL_META_SYNC, TERRACE_LABEL_META_LAZY,
	};
	const struct tr_arg_device *holder;
	struct tr_super *super = kzalloc(sizeof(*super), GFP_KERNEL);
	int err = -ENODATA, found;
	u32 k;

	if (!super)
		return fail(ti, "Out of memory", -ENOMEM);
	/* All of them: one that was left behind may say another size. */
	for (k = 0; k < ARRAY_SIZE(roles); k++) {
		holder = meta_holder(args, roles[k]);
		if (!holder)
			continue;
		found = read_super(holder, super);
		if (err)
			err = found;
	}
	if (err == -EPROTONOSUPPORT) {
		fail(ti, "Volume uses features that this version does not know", err);
	} else if (err) {
		fail(ti, "No readable superblock on any device", err);
	} else if (super->nr_tiers != args->nr_tiers) {
		DMERR("the volume has %u tiers, the table %u", super->nr_tiers, args->nr_tiers);
		err = fail(ti, "Number of tiers is not the volume's", -EINVAL);
	} else {
		args->virtual_blocks = super->virtual_blocks;
	}
	kfree(super);
	return err;
}

int tr_args_parse(struct tr_args *args, struct dm_target *ti, unsigned int argc, char **argv)
{
	static const struct dm_arg tiers[] = {
		{ 2, TERRACE_MAX_TIERS, "Number of tiers is not a number from 2 to 8" },
	};
	struct dm_arg_set as = { .argc = argc, .argv = argv };
	int err;

	if (argc < 2)
		return fail(ti, "Too few arguments: <meta_dev|-> <ntiers> {<dev> <class> <kind>}…",
			    -EINVAL);
	tr_tunes_init(&args->tunes);
	err = parse_meta(args, ti, dm_shift_arg(&as));
	if (!err)
		err = dm_read_arg(tiers, &as, &args->nr_tiers, &ti->error);
	if (!err)
		err = parse_tiers(args, ti, &as);
	if (!err)
		err = parse_options(args, ti, &as);
	if (!err)
		err = check_super(args, ti);
	if (!err && ti->begin)
		err = fail(ti, "A volume must be the whole device, from sector 0", -EINVAL);
	if (!err && ti->len & (TERRACE_BLOCK_SECTORS - 1))
		err = fail(ti, "Length is not a multiple of 8 sectors", -EINVAL);
	if (!err && ti->len / TERRACE_BLOCK_SECTORS > args->virtual_blocks) {
		DMERR("the volume has %llu sectors, the table %llu",
		      args->virtual_blocks * TERRACE_BLOCK_SECTORS, (u64)ti->len);
		err = fail(ti, "Length is beyond the volume's size", -EINVAL);
	}
	return err;
}

void tr_args_release(struct tr_args *args, struct dm_target *ti)
{
	u32 t;

	for (t = 0; t < TERRACE_MAX_TIERS; t++)
		if (args->tier[t].dev)
			dm_put_device(ti, args->tier[t].dev);
	if (args->meta.dev)
		dm_put_device(ti, args->meta.dev);
}

unsigned int tr_args_emit(const struct tr_args *args, const struct tr_tunes *tunes, char *result,
			  unsigned int maxlen)
{
	const struct tr_tunes now = *tunes;	/* those of a live volume may change meanwhile */
	u32 t, k, nr = args->read_only;
	unsigned int sz = 0;

	DMEMIT("%s %u", args->meta.dev ? args->meta.dev->name : "-", args->nr_tiers);
	for (t = 0; t < args->nr_tiers; t++) {
		DMEMIT(" %s %s %s", args->tier[t].dev ? args->tier[t].dev->name : "missing",
		       tr_class_name(args->tier[t].class), tr_kind_name(args->tier[t].kind));
		nr += args->out_of_place[t];
	}
	for (k = 0; k < TR_NR_TUNES; k++)
		nr += now.value[k] != tr_tune_info[k].initial;
	DMEMIT(" %u", nr);
	if (args->read_only)
		DMEMIT(" read_only");
	for (t = 0; t < args->nr_tiers; t++)
		if (args->out_of_place[t])
			DMEMIT(" atomic=no:%u", t);
	for (k = 0; k < TR_NR_TUNES; k++)
		if (now.value[k] != tr_tune_info[k].initial)
			DMEMIT(" %s=%u", tr_tune_info[k].name, now.value[k]);
	return sz;
}
