// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The file `wear` in the state directory: what each tier has saved up of its endurance, one line "TIER BYTES DRIVE COUNTED"
 * each, "TIER -" without a limit.  BYTES is charged ahead for what may be written until the file is written next
 * (decide/endurance.h); DRIVE is the drive's own count of what was written to it (-1: it tells none), COUNTED what BYTES
 * has been charged since.  Replaced as a whole.  Damaged: nothing is saved up, the safe side.  None there, or no
 * limit when it was written: a full bank, as on the first day.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
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
	char line[256], sign[2];

	while (fgets(line, sizeof(line), f)) {
		double bytes, drive = -1, counted = 0;
		unsigned int tier;
		int words = sscanf(line, "%u %lf %lf %lf", &tier, &bytes, &drive, &counted);

		/* Of an older daemon: two words. */
		if ((words != 2 && words != 4 && sscanf(line, "%u %1[-]\n", &tier, sign) != 2) || tier >= e->state.nr_tiers)
			return -EINVAL;
		seen[tier] = true;
		if (words < 2)
			continue;
		if (bytes != bytes || drive != drive || counted != counted)
			return -EINVAL;
		endurance_restore(&e->endurance[tier], &e->c.endurance[tier], bytes, drive, counted);
	}
	for (uint32_t tier = 0; tier < e->state.nr_tiers; tier++)
		if (!seen[tier])
			return -EINVAL;
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
			endurance_restore(&e->endurance[t], &e->c.endurance[t], 0, -1, 0);
	return err;
}

static int write_out(const struct engine *e, const double *left, FILE *f)
{
	for (uint32_t t = 0; t < e->state.nr_tiers; t++)
		if (e->c.endurance[t].drive_writes_per_day > 0)
			fprintf(f, "%u %.0f %.0f %.0f\n", t, left[t], e->endurance[t].drive_written,
				e->endurance[t].counted + e->endurance[t].saved - left[t]);
		else
			fprintf(f, "%u -\n", t);
	if (fflush(f) || fsync(fileno(f)))
		return -errno;
	return 0;
}

static int replace(const struct engine *e, const double *left)
{
	char path[4096], part[4096];
	FILE *f;
	int err;

	path_of(e, "wear", path, sizeof(path));
	path_of(e, "wear.new", part, sizeof(part));
	f = fopen(part, "we");
	if (!f)
		return -errno;
	err = write_out(e, left, f);
	if (fclose(f) && !err)
		err = -errno;
	if (!err && rename(part, path))
		err = -errno;
	if (err)
		unlink(part);
	return err;
}

int keep_save(struct engine *e, bool ends)
{
	double left[TERRACE_MAX_RESULT_TIERS];
	int err;

	for (uint32_t t = 0; t < e->state.nr_tiers; t++) {
		const struct endurance *w = &e->endurance[t];

		/* In whole bytes, and never more than there is. */
		left[t] = floor(ends ? w->saved - w->reserved : endurance_ahead(w, &e->c.endurance[t]));
	}
	err = replace(e, left);
	for (uint32_t t = 0; t < e->state.nr_tiers && !err; t++)
		endurance_written_down(&e->endurance[t], left[t]);
	return err;
}

bool keep_is_due(const struct engine *e)
{
	for (uint32_t t = 0; t < e->state.nr_tiers; t++)
		if (!endurance_is_kept(&e->endurance[t], &e->c.endurance[t]))
			return true;
	return false;
}
