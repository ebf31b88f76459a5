// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tiers of an active volume. See tiers.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "sysfs.h"
#include "tiers.h"

static u64 number(const struct dm_volume *v, u32 t, const char *word)
{
	return sysfs_number(0, VOLUME_FOLDER "/tier%u/%s", v->minor, t, word);
}

static u32 word_number(const struct dm_volume *v, u32 t, const char *what,
		       u32 (*parse)(const char *word, size_t bytes))
{
	char *line = sysfs_line(VOLUME_FOLDER "/tier%u/%s", v->minor, t, what);
	u32 found = line ? parse(line, strlen(line)) : 0;

	free(line);
	return found;
}

static void read_tier(const struct dm_volume *v, u32 t, struct ctl_tier *tier)
{
	char *missing = sysfs_line(VOLUME_FOLDER "/tier%u/missing", v->minor, t);

	*tier = (struct ctl_tier){
		.class = word_number(v, t, "class", class_number),
		.kind = word_number(v, t, "kind", kind_number),
		.used_blocks = number(v, t, "used_blocks"), .blocks = number(v, t, "blocks"),
		.reads = number(v, t, "reads"), .writes = number(v, t, "writes"),
		.free_shelves = number(v, t, "free_shelves"),
		.avoided = sysfs_number(0, VOLUME_FOLDER "/tune/avoid_tiers", v->minor) >> t & 1,
		.missing = missing && !strcmp(missing, "yes"),
	};
	/* Older modules do not tell: as it is by default. */
	tier->reserve_blocks = sysfs_number(tier->kind == TERRACE_KIND_SLOTS ? tier->blocks / 50 : 0,
					    VOLUME_FOLDER "/tier%u/reserve_blocks", v->minor, t);
	free(missing);
}

u32 tiers_read(const struct dm_volume *v, struct ctl_tier *tier)
{
	u32 nr = (u32)sysfs_number(0, VOLUME_FOLDER "/tiers", v->minor);

	if (nr > TERRACE_MAX_TIERS)
		nr = TERRACE_MAX_TIERS;
	for (u32 t = 0; t < nr; t++)
		read_tier(v, t, &tier[t]);
	return nr;
}

int tiers_find(const struct dm_volume *v, const char *word, struct ctl_tier *tier)
{
	u32 nr = tiers_read(v, tier), class = class_number(word, strlen(word)), matches = 0;
	int found = -EINVAL;

	for (u32 t = 0; t < nr; t++) {
		char digit[2] = { (char)('0' + t), 0 };

		if (strcmp(word, digit) && (!class || tier[t].class != class))
			continue;
		found = (int)t;
		matches++;
	}
	if (matches == 1)
		return found;
	ctl_error("'%s' names %s of volume '%s'", word, matches ? "more than one tier" : "no tier", v->name);
	fputs("There are:", stderr);
	for (u32 t = 0; t < nr; t++)
		fprintf(stderr, " %u (%s, %s)", t, class_name(tier[t].class), kind_name(tier[t].kind));
	fputc('\n', stderr);
	return -EINVAL;
}
