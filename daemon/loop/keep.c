// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The file `wear` in the state directory: what each tier has saved up of its endurance, one line
 * "TIER BYTES" each, "TIER -" without a limit.  Replaced as a whole.  Damaged: nothing is saved up, the safe
 * side.  None there, or no limit when it was written: a full bank, as on the first day.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop/engine.h"

static void path_of(const struct engine *e, const char *name, char *path, size_t bytes)
{
	snprintf(path, bytes, "%s/%s", e->c.directory, name);
}

static int parse(struct engine *e, FILE *f)
{
	bool seen[TERRACE_MAX_RESULT_TIERS] = { false };
	char word[64], *end;
	unsigned int tier;

	while (fscanf(f, "%u %63s", &tier, word) == 2) {
		double bytes = strtod(word, &end);

		if (tier >= e->state.nr_tiers)
			return -EINVAL;
		seen[tier] = true;
		if (!strcmp(word, "-"))
			continue;
		if (end == word || *end || bytes != bytes)
			return -EINVAL;
		e->endurance[tier].saved = bytes;
	}
	for (tier = 0; tier < e->state.nr_tiers; tier++)
		if (!seen[tier])
			return -EINVAL;
	/* Within today's bounds. */
	for (tier = 0; tier < e->state.nr_tiers; tier++)
		endurance_step(&e->endurance[tier], &e->c.endurance[tier], 0, 0);
	return 0;
}

int keep_load(struct engine *e)
{
	char path[4096];
	FILE *f;
	int err;

	path_of(e, "wear", path, sizeof(path));
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? 0 : -errno;
	err = parse(e, f);
	fclose(f);
	if (err)
		for (uint32_t t = 0; t < e->state.nr_tiers; t++)
			e->endurance[t].saved = 0;
	return err;
}

static int write_out(const struct engine *e, FILE *f)
{
	for (uint32_t t = 0; t < e->state.nr_tiers; t++)
		if (e->c.endurance[t].drive_writes_per_day > 0)
			fprintf(f, "%u %.0f\n", t, e->endurance[t].saved);
		else
			fprintf(f, "%u -\n", t);
	if (fflush(f) || fsync(fileno(f)))
		return -errno;
	return 0;
}

int keep_save(const struct engine *e)
{
	char path[4096], part[4096];
	FILE *f;
	int err;

	path_of(e, "wear", path, sizeof(path));
	path_of(e, "wear.new", part, sizeof(part));
	f = fopen(part, "we");
	if (!f)
		return -errno;
	err = write_out(e, f);
	if (fclose(f) && !err)
		err = -errno;
	if (!err && rename(part, path))
		err = -errno;
	if (err)
		unlink(part);
	return err;
}
