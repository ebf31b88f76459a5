// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Devices of a table line. See tabled.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "params.h"
#include "tabled.h"

/* 0: "missing", or a table without such a device */
static dev_t number_of(const char *params, u32 tier)
{
	char *word = params_device(params, tier);
	unsigned int a, b;
	dev_t dev = word && sscanf(word, "%u:%u", &a, &b) == 2 ? makedev(a, b) : 0;

	free(word);
	return dev;
}

/* Tier, or metadata device, number @i of the table. */
static u32 tier_at(const char *params, u32 i)
{
	return i < params_nr_tiers(params) ? i : TERRACE_META_DEVICE;
}

static void add_path(char **paths, int *nr, dev_t dev)
{
	char *path = dev && !find_suspended(dev) ? find_path(dev) : NULL;

	if (path)
		paths[(*nr)++] = path;
}

void tabled_find(struct found *found, const char *params, dev_t more)
{
	char *paths[FOUND_MAX_DEVICES + 1];
	int nr = 0;

	memset(found, 0, sizeof(*found));
	for (u32 i = 0; i <= params_nr_tiers(params); i++)
		add_path(paths, &nr, number_of(params, tier_at(params, i)));
	add_path(paths, &nr, more);
	if (nr)		/* none would mean all there are */
		find_volumes(found, paths, nr);
	while (nr)
		free(paths[--nr]);
}

struct found_volume *tabled_volume(struct found *found, const u8 *uuid)
{
	for (u32 i = 0; i < found->nr; i++)
		if (!memcmp(found->volume[i].uuid, uuid, TERRACE_UUID_BYTES))
			return &found->volume[i];
	return NULL;
}

static bool carries_label(const struct found_volume *v, u32 tier, dev_t dev)
{
	struct stat st;

	for (u32 i = 0; v && i < v->nr_devices; i++)
		if (v->device[i].label.tier_index == tier && !stat(v->device[i].path, &st) &&
		    st.st_rdev == dev)
			return true;
	return false;
}

static void say_lacking(const char *name, u32 tier, dev_t dev)
{
	char *path = find_path(dev), *what = tier == TERRACE_META_DEVICE ? ctl_text("metadata device") :
					     ctl_text("tier %u", tier);

	ctl_error("volume '%s': the label of its %s (%s) cannot be read: once stopped, the volume could not be started again; nothing changed",
		  name, what, path ? path : "gone");
	free(what);
	free(path);
}

/* Devices of the table that carry no label of @v, each with a message if there is a @name. */
static u32 count_lacking(const struct found_volume *v, const char *params, const char *name)
{
	u32 nr = 0;

	for (u32 i = 0; i <= params_nr_tiers(params); i++) {
		u32 tier = tier_at(params, i);
		dev_t dev = number_of(params, tier);

		if (!dev || carries_label(v, tier, dev))
			continue;
		if (name)
			say_lacking(name, tier, dev);
		nr++;
	}
	return nr;
}

bool tabled_has_all(const struct found_volume *v, const char *params)
{
	return !count_lacking(v, params, NULL);
}

int tabled_check(const char *params, const u8 *uuid, const char *name)
{
	struct found found;
	u32 nr;

	tabled_find(&found, params, 0);
	nr = count_lacking(tabled_volume(&found, uuid), params, name);
	find_free(&found);
	return nr ? -EIO : 0;
}
