// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Finding volumes by the labels on block devices. A device that is seen
 * twice, by itself and through what stands on it (multipath), is taken once,
 * at the top.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "find.h"
#include "names.h"
#include "sysfs.h"

char *find_node(const char *name)
{
	char *mapped = sysfs_line("/sys/class/block/%s/dm/name", name);
	char *path = mapped ? ctl_text("/dev/mapper/%s", mapped) : ctl_text("/dev/%s", name);

	if (mapped && access(path, F_OK)) {
		free(path);
		path = ctl_text("/dev/%s", name);
	}
	free(mapped);
	for (char *c = path; *c; c++)	/* as the kernel writes cciss/c0d0 */
		if (*c == '!')
			*c = '/';
	if (!access(path, F_OK))
		return path;
	free(path);
	return NULL;
}

static bool read_label(const char *path, struct tr_label *label)
{
	void *block = ctl_alloc_blocks(1);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT | O_NONBLOCK);
	struct tr_label copy;
	bool good = false;

	if (fd < 0)
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	/* One by one: a sector that cannot be read must not take the other copy with it. */
	for (u32 i = 0; i < TERRACE_LABEL_COPIES && fd >= 0; i++) {
		if (pread(fd, block, TERRACE_BLOCK_BYTES, i * TERRACE_BLOCK_BYTES) != TERRACE_BLOCK_BYTES ||
		    tr_label_decode(&copy, block) || (good && copy.generation <= label->generation))
			continue;
		*label = copy;
		good = true;
	}
	if (fd >= 0)
		close(fd);
	free(block);
	return good;
}

/* ---- collecting ------------------------------------------------------------------- */

/* In one of two static buffers; "" if there is none. */
static const char *disk_named(dev_t dev)
{
	static char name[2][64];
	static unsigned int next;
	char link[64], target[512];
	ssize_t n;

	name[++next % 2][0] = 0;
	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(dev), minor(dev));
	n = readlink(link, target, sizeof(target) - 1);
	if (n > 0) {
		target[n] = 0;
		snprintf(name[next % 2], sizeof(name[0]), "%.63s", strrchr(target, '/') + 1);
	}
	return name[next % 2];
}

static const char *disk_name(const char *path)
{
	struct stat st;

	return disk_named(stat(path, &st) || !S_ISBLK(st.st_mode) ? 0 : st.st_rdev);
}

char *find_path(dev_t dev)
{
	const char *name = disk_named(dev);

	return *name ? find_node(name) : NULL;
}

/* Does @top stand on @below? */
static bool stands_on(const char *top, const char *below)
{
	char path[256];

	snprintf(path, sizeof(path), "/sys/class/block/%s/holders/%s", disk_name(below),
		 disk_name(top));
	return !access(path, F_OK);
}

static struct found_volume *volume_of(struct found *found, const struct tr_label *label)
{
	struct found_volume *v;

	for (u32 i = 0; i < found->nr; i++)
		if (!memcmp(found->volume[i].uuid, label->volume_uuid, TERRACE_UUID_BYTES))
			return &found->volume[i];
	found->volume = ctl_realloc(found->volume, (found->nr + 1) * sizeof(*v));
	v = &found->volume[found->nr++];
	memset(v, 0, sizeof(*v));
	memcpy(v->uuid, label->volume_uuid, TERRACE_UUID_BYTES);
	memcpy(v->name, label->name, TERRACE_NAME_BYTES);
	return v;
}

static void add_device(struct found *found, char *path, const struct tr_label *label)
{
	struct found_volume *v = volume_of(found, label);

	for (u32 i = 0; i < v->nr_devices; i++) {
		struct found_device *d = &v->device[i];

		if (d->label.tier_index != label->tier_index)
			continue;
		if (label->generation > d->label.generation) {	/* d has been replaced */
			free(d->path);
			d->path = path;
			d->label = *label;
		} else if (label->generation < d->label.generation) {
			free(path);
		} else if (stands_on(path, d->path)) {
			free(d->path);
			d->path = path;
		} else if (stands_on(d->path, path)) {
			free(path);
		} else {
			v->twice[0] = d->path;
			v->twice[1] = path;
		}
		return;
	}
	if (v->nr_devices == FOUND_MAX_DEVICES) {
		free(path);
		return;
	}
	v->device[v->nr_devices].path = path;
	v->device[v->nr_devices++].label = *label;
}

static void look_at(struct found *found, char *path)
{
	struct tr_label label;

	if (path && read_label(path, &label))
		add_device(found, path, &label);
	else
		free(path);
}

/* Sets *@ctx if @name, or what it stands on, is suspended. */
static void look_if_suspended(void *ctx, const char *name)
{
	bool *suspended = ctx;
	char *slaves;

	if (*suspended || sysfs_number(0, "/sys/class/block/%s/dm/suspended", name)) {
		*suspended = true;
		return;
	}
	slaves = ctl_text("/sys/class/block/%s/slaves", name);
	sysfs_each(slaves, look_if_suspended, ctx);
	free(slaves);
}

bool find_suspended(dev_t dev)
{
	bool suspended = false;

	look_if_suspended(&suspended, disk_named(dev));
	return suspended;
}

static void look_at_disk(void *ctx, const char *name)
{
	bool suspended = false;

	look_if_suspended(&suspended, name);
	if (!suspended && sysfs_number(0, "/sys/class/block/%s/size", name))
		look_at(ctx, find_node(name));
}

static int compare_devices(const void *a, const void *b)
{
	const struct found_device *x = a, *y = b;

	return (int)x->label.tier_index - (int)y->label.tier_index;
}

static int compare_volumes(const void *a, const void *b)
{
	const struct found_volume *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	return r ? r : memcmp(x->uuid, y->uuid, TERRACE_UUID_BYTES);
}

void find_volumes(struct found *found, char **paths, int nr_paths)
{
	memset(found, 0, sizeof(*found));
	for (int i = 0; i < nr_paths; i++)
		look_at(found, ctl_text("%s", paths[i]));
	if (!nr_paths)
		sysfs_each("/sys/class/block", look_at_disk, found);
	for (u32 i = 0; i < found->nr; i++)
		qsort(found->volume[i].device, found->volume[i].nr_devices,
		      sizeof(found->volume[i].device[0]), compare_devices);
	if (found->nr)
		qsort(found->volume, found->nr, sizeof(*found->volume), compare_volumes);
}

void find_free(struct found *found)
{
	for (u32 i = 0; i < found->nr; i++) {
		for (u32 k = 0; k < found->volume[i].nr_devices; k++)
			free(found->volume[i].device[k].path);
		free(found->volume[i].twice[1]);
	}
	free(found->volume);
}

/* A metadata device is the last, and counts, whatever a tier still says: repair --to
 * makes one and leaves the tiers' labels alone.
 */
const struct found_device *found_holder(const struct found_volume *v, u32 flag)
{
	for (u32 i = v->nr_devices; i-- > 0;)
		if (v->device[i].label.flags & flag)
			return &v->device[i];
	return NULL;
}

/* ---- active ones ---------------------------------------------------------------------- */

/* Does the table line name one of its devices (as major:minor)? */
static bool in_table(const struct found_volume *v, const char *table)
{
	for (u32 i = 0; i < v->nr_devices; i++) {
		char number[32];
		struct stat st;
		const char *at;

		if (stat(v->device[i].path, &st))
			continue;
		snprintf(number, sizeof(number), "%u:%u ", major(st.st_rdev), minor(st.st_rdev));
		at = strstr(table, number);
		if (at && (at == table || at[-1] == ' '))
			return true;
	}
	return false;
}

int find_active(const struct found *found, struct dm_volume **list, u32 *nr)
{
	static const u8 unknown[TERRACE_UUID_BYTES];
	int r = dm_volumes(list, nr);

	for (u32 i = 0; !r && i < *nr; i++) {
		struct dm_volume *active = *list + i;

		for (u32 k = 0; k < found->nr; k++)
			if (!memcmp(active->uuid, unknown, sizeof(unknown)) &&
			    in_table(&found->volume[k], active->table))
				memcpy(active->uuid, found->volume[k].uuid, TERRACE_UUID_BYTES);
	}
	return r;
}

/* ---- choosing one ----------------------------------------------------------------------- */

static bool has_device(const struct found_volume *v, const char *path)
{
	struct stat a, b;

	if (stat(path, &a) || !S_ISBLK(a.st_mode))
		return false;
	for (u32 i = 0; i < v->nr_devices; i++)
		if (!stat(v->device[i].path, &b) && a.st_rdev == b.st_rdev)
			return true;
	return false;
}

struct found_volume *find_named(struct found *found, const char *word)
{
	struct found_volume *match = NULL;
	uuid_t uuid;
	bool is_uuid = !uuid_parse(word, uuid);

	for (u32 i = 0; i < found->nr; i++) {
		struct found_volume *v = &found->volume[i];

		if (is_uuid ? memcmp(v->uuid, uuid, TERRACE_UUID_BYTES) :
			      strcmp(v->name, word) && !has_device(v, word))
			continue;
		if (match) {
			ctl_error("there are two volumes '%s': name one by its UUID, %s or %s", word,
				  uuid_text(match->uuid), uuid_text(v->uuid));
			return NULL;
		}
		match = v;
	}
	if (!match)
		ctl_error("no device carries the label of a volume '%s': terracectl list shows those there are",
			  word);
	return match;
}
