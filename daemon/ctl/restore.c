// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl restore: writes back what dump --all has printed, byte by byte.
 * All of the dump is read and judged before the first write (restore_judge.c). Then, each step
 * durable before the next:
 *   1. marks in the places of the labels (restore_mark.h): nothing takes the devices for a volume
 *   2. metadata areas: zeros, then what the dump has
 *   3. labels in the marks' places
 *
 * Crash scenario: two drives of one size, named in another order than that of the tiers. Killed
 * when the labels were gone, the same call would give them the places by its order: each other's,
 * the metadata of one amid the data of the other. So which tier a device is stands on it at any time:
 *   - within 1 and 3 one of blocks 0 and 1 is written at a time, the other one has a label or a
 *     mark. It may be torn; where only one of the two was good the other one goes first;
 *   - before 1 is over no metadata were touched, and devices without a mark yet are found by
 *     their labels;
 *   - devices that had neither get their marks by the order. Of those that are left the same
 *     call makes the same of it, for the places that are left are in the same order, too;
 *   - before 3 is over a device is missing, or a copy of its label is: of whole metadata by then.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "names.h"
#include "probe.h"
#include "restore.h"
#include "restore_mark.h"
#include "shape.h"

static const char help_text[] =
"usage: terracectl restore [--force] [--dry-run] FILE DEVICE...\n"
"\n"
"Writes the metadata that terracectl dump --all (text or --json) has put into\n"
"FILE (-: standard input) back to the devices of the volume, exactly. What the\n"
"metadata areas hold now is lost; data areas are not touched. The devices are\n"
"found by their labels, in any order; only those that have none (new or wiped\n"
"ones) take the places that are left as they are named, from fast to slow, a\n"
"metadata device last. Stopped midway, the same call once more finishes it: the\n"
"devices have marks by then that say which is which.\n"
"\n"
"Refuses, and then nothing has been changed: devices in use, devices that hold\n"
"anything but the same tier of the same volume, two that say they are the same\n"
"tier, devices that are too small, dumps that are cut off, of a newer format, or\n"
"changed to what cannot be.\n"
"\n"
"  --force     overwrite what the devices hold (never devices in use)\n"
"  --dry-run   judge everything, write nothing\n"
"  --help      this text\n"
"\n"
"Exit status: 0 done, 1 refused or failed, 2 wrong usage.\n"
"\n"
"Examples:\n"
"  terracectl dump --all /dev/nvme0n1 /dev/sda > metadata.txt\n"
"  terracectl restore metadata.txt /dev/nvme0n1 /dev/sda\n";

/* ---- devices --------------------------------------------------------------------------- */

/* The copy that counts. */
static bool read_label(const struct device *dev, struct tr_label *label)
{
	void *block = ctl_alloc_blocks(1);
	struct tr_label copy;
	bool good = false;

	for (u32 i = 0; i < TERRACE_LABEL_COPIES; i++) {
		if (device_read(dev, i, 1, block) || tr_label_decode(&copy, block) ||
		    (good && copy.generation <= label->generation))
			continue;
		*label = copy;
		good = true;
	}
	free(block);
	return good;
}

/*
 * A mark is newer than a label beside it. But one of another volume, beside a label, is of a
 * restore that was stopped before it wrote metadata: the label still holds.
 */
static bool is_same_tier(const struct device *dev, const struct tr_label *want)
{
	struct restore_mark mark;
	struct tr_label label;

	if (restore_mark_read(dev, &mark) && !memcmp(mark.volume_uuid, want->volume_uuid, TERRACE_UUID_BYTES))
		return !memcmp(mark.tier_uuid, want->tier_uuid, TERRACE_UUID_BYTES);
	return read_label(dev, &label) && !memcmp(label.tier_uuid, want->tier_uuid, TERRACE_UUID_BYTES);
}

static bool meets(const struct tr_label *want, u64 start, u64 blocks)
{
	return want->meta_start < start + blocks && start < want->meta_start + want->meta_blocks;
}

/* Data are not touched, whatever a label of the dump says that they are. */
static bool writes_over_data(const struct device *dev, const struct tr_label *want)
{
	void *block = ctl_alloc_blocks(1);
	struct restore_mark mark;
	struct tr_label label;
	bool over = false;

	for (u32 i = 0; i < TERRACE_LABEL_COPIES; i++)
		over |= !device_read(dev, i, 1, block) && !tr_label_decode(&label, block) &&
			meets(want, label.data_start, label.data_blocks);
	if (restore_mark_read(dev, &mark))
		for (u32 i = 0; i < TERRACE_LABEL_COPIES; i++)
			over |= meets(want, mark.data_start[i], mark.data_blocks[i]);
	free(block);
	return over;
}

/* Of two the one that is named first would win, and the other get a place that is not its own. */
static int assign_own(struct restore *rs, u32 k)
{
	rs->at[k] = -1;
	for (u32 i = 0; i < rs->nr_devices; i++) {
		if (!is_same_tier(&rs->dev[i], &rs->label[k]))
			continue;
		if (rs->at[k] >= 0) {
			ctl_error("%s and %s are both tier %u of the dump's volume: one is a copy, or was replaced; nothing changed",
				  rs->dev[rs->at[k]].path, rs->dev[i].path, rs->label[k].tier_index);
			return -EEXIST;
		}
		rs->at[k] = i;
		rs->own[k] = true;
	}
	return 0;
}

/* By mark or label, then the rest in order. */
static int assign(struct restore *rs)
{
	bool taken[RESTORE_MAX_DEVICES] = { false };

	for (u32 k = 0; k < rs->nr_devices; k++) {
		int r = assign_own(rs, k);

		if (r)
			return r;
		if (rs->own[k])
			taken[rs->at[k]] = true;
	}
	for (u32 k = 0, i = 0; k < rs->nr_devices; k++) {
		while (rs->at[k] < 0 && i < rs->nr_devices && taken[i])
			i++;
		if (rs->at[k] < 0)
			rs->at[k] = i++;
	}
	return 0;
}

static int judge_device(const struct restore *rs, u32 k)
{
	const struct device *dev = &rs->dev[rs->at[k]];
	struct restore_mark mark;
	char *found = NULL;
	int r = 0;

	if (dev->blocks < rs->label[k].device_blocks) {
		ctl_error("%s is too small: it has %s, the %s of the dump had %s; nothing changed",
			  dev->path, size_text(dev->blocks), class_name(rs->label[k].class),
			  size_text(rs->label[k].device_blocks));
		return -ENOSPC;
	}
	if (rs->own[k] && !rs->force && writes_over_data(dev, &rs->label[k])) {
		ctl_error("%s: the dump has metadata where its label says that data are; nothing changed; --force overwrites them", dev->path);
		return -EEXIST;
	}
	if (rs->own[k] && restore_mark_read(dev, &mark))
		fprintf(stderr, "note: %s holds what is left of a restore that was stopped: it is begun again\n",
			dev->path);
	if (rs->own[k] || rs->force)
		return 0;
	r = probe_contents(dev, &found);
	if (r || found) {
		ctl_error("%s %s: nothing changed; --force overwrites it", dev->path,
			  r ? "cannot be read" : found);
		r = -EEXIST;
	}
	free(found);
	return r;
}

/* Two names of one device: its second exclusive open would only say "busy". */
static bool same_path(const char *path, const char *other)
{
	struct stat a, b;

	if (stat(path, &a) || stat(other, &b))
		return false;
	return S_ISBLK(a.st_mode) ? a.st_rdev == b.st_rdev && S_ISBLK(b.st_mode) :
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int open_devices(struct restore *rs, char **paths)
{
	enum device_mode mode = rs->dry_run ? DEVICE_READ : DEVICE_WRITE;
	int r = 0;

	for (u32 i = 0; i < rs->nr_devices && !r; i++) {
		for (u32 k = 0; k < i && !r; k++) {
			if (!same_path(paths[i], paths[k]))
				continue;
			ctl_error("%s and %s are the same device", paths[k], paths[i]);
			r = -EINVAL;
		}
		if (!r)
			r = device_open(&rs->dev[i], paths[i], mode);
	}
	if (r)
		return r;
	r = assign(rs);
	for (u32 k = 0; k < rs->nr_devices && !r; k++)
		r = judge_device(rs, k);
	return r;
}

/* ---- writing ---------------------------------------------------------------------------- */

static int write_item(const struct restore *rs, struct json_object *o, const void *data, u32 nr)
{
	u64 block;
	int r = 0;
	u32 k;

	for (u32 mirror = 0; mirror < 2 && !r; mirror++)
		if (restore_target(rs, o, mirror, &k, &block))
			r = device_write(&rs->dev[rs->at[k]], block, nr, data);
	return r;
}

static int flush_all(const struct restore *rs)
{
	int r = 0;

	for (u32 k = 0; k < rs->nr_devices && !r; k++)
		r = device_flush(&rs->dev[k]);
	return r;
}

static int write_items(const struct restore *rs)
{
	void *data = ctl_alloc_blocks(SHAPE_MAX_BLOCKS);
	struct shape_fault why;
	int r = 0;
	u32 nr;

	for (size_t i = 0; i < json_object_array_length(rs->items) && !r; i++) {
		struct json_object *o = json_object_array_get_idx(rs->items, i);

		if (restore_is_label(o))
			continue;
		r = shape_parse(o, restore_text(o, "item"), data, &nr, &why);
		if (!r)
			r = write_item(rs, o, data, nr);
	}
	free(data);
	return r ? r : flush_all(rs);
}

/* Those of copies that are @newest of their device, or the others. */
static int write_labels(const struct restore *rs, bool newest, bool has[][TERRACE_LABEL_COPIES])
{
	void *data = ctl_alloc_blocks(SHAPE_MAX_BLOCKS);
	struct shape_fault why;
	struct tr_label label;
	int r = 0;
	u32 nr;

	for (size_t i = 0; i < json_object_array_length(rs->items) && !r; i++) {
		struct json_object *o = json_object_array_get_idx(rs->items, i);
		u32 k = 0;

		if (!restore_is_label(o))
			continue;
		r = shape_parse(o, restore_text(o, "item"), data, &nr, &why);
		if (r)
			break;
		tr_label_decode(&label, data);
		while (rs->label[k].tier_index != label.tier_index)
			k++;
		if ((label.generation == rs->label[k].generation) != newest)
			continue;
		has[k][restore_meta_block(o)] = true;
		r = device_write(&rs->dev[rs->at[k]], restore_meta_block(o), 1, data);
		if (!r)
			r = device_flush(&rs->dev[rs->at[k]]);
	}
	free(data);
	return r;
}

/* A device with an older copy alone would be one that has forgotten something. */
static int write_all_labels(const struct restore *rs)
{
	bool has[RESTORE_MAX_DEVICES][TERRACE_LABEL_COPIES] = { { false } };
	int r = write_labels(rs, true, has);

	if (!r)
		r = write_labels(rs, false, has);
	/* A copy that the dump lacks, for it was bad. */
	for (u32 k = 0; k < rs->nr_devices; k++)
		for (u32 i = 0; i < TERRACE_LABEL_COPIES && !r; i++)
			if (!has[k][i])
				r = device_zero(&rs->dev[rs->at[k]], i, 1);
	return r ? r : flush_all(rs);
}

static int write_all(const struct restore *rs)
{
	int r = 0;

	for (u32 k = 0; k < rs->nr_devices && !r; k++)
		r = restore_mark_write(&rs->dev[rs->at[k]], &rs->label[k]);
	for (u32 k = 0; k < rs->nr_devices && !r; k++)
		if (rs->label[k].meta_blocks)
			r = device_zero(&rs->dev[rs->at[k]], rs->label[k].meta_start,
					rs->label[k].meta_blocks);
	if (!r)
		r = write_items(rs);
	if (!r)
		r = write_all_labels(rs);
	if (r)
		ctl_error("cannot write: %s; the devices hold no whole volume now: restore again", strerror(-r));
	return r;
}

/* ---- the command ------------------------------------------------------------------------- */

static int restore_volume(struct restore *rs, const struct ctl_command *cmd, const char *file,
			  char **paths, int nr)
{
	rs->file = file;
	rs->items = restore_read(file);
	if (!rs->items || restore_judge(rs))
		return CTL_PROBLEM;
	if ((u32)nr != rs->nr_devices)
		return ctl_usage(cmd, "the dump is of %u devices, %d given", rs->nr_devices, nr);
	if (open_devices(rs, paths) || (!rs->dry_run && write_all(rs)))
		return CTL_PROBLEM;
	printf("volume '%s' (%s): %zu structures %s\n", rs->label[0].name,
	       uuid_text(rs->label[0].volume_uuid), json_object_array_length(rs->items),
	       rs->dry_run ? "would be restored" : "restored");
	return CTL_OK;
}

static int restore_run(const struct ctl_command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "force", no_argument, NULL, 'f' },
		{ "dry-run", no_argument, NULL, 'n' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct restore *rs = ctl_alloc(sizeof(*rs));
	bool help = false;
	int opt, r = CTL_OK;

	for (u32 i = 0; i < RESTORE_MAX_DEVICES; i++)
		rs->dev[i].fd = -1;
	while (!r && !help && (opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		help |= opt == 'h';
		rs->force |= opt == 'f';
		rs->dry_run |= opt == 'n';
		r = opt == '?' ? ctl_usage(cmd, "wrong option") : CTL_OK;
	}
	if (help)
		r = ctl_help(cmd);
	else if (!r && argc - optind < 2)
		r = ctl_usage(cmd, "FILE and the devices of the volume are needed");
	else if (!r)
		r = restore_volume(rs, cmd, argv[optind], argv + optind + 1, argc - optind - 1);
	for (u32 i = 0; i < RESTORE_MAX_DEVICES; i++)
		device_close(&rs->dev[i]);
	json_object_put(rs->items);
	free(rs);
	return r;
}

const struct ctl_command ctl_restore_command = {
	.name = "restore",
	.summary = "write back what dump --all has printed",
	.help = help_text,
	.run = restore_run,
};
