// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Counters and their differences. See sample.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "sample.h"
#include "sysfs.h"

#define REGION_BLOCKS	(TERRACE_REGION_WORDS * 64)

int sampler_open(struct sampler *s, const struct dm_volume *v)
{
	const void *map;

	memset(s, 0, sizeof(*s));
	s->volume = v;
	s->fd = control_open(v, &s->hello);
	if (s->fd < 0)
		return s->fd;
	if (!(s->hello.features & TERRACE_FEATURE_SUMMARY) || !s->hello.summary_bytes)
		return 0;
	map = mmap(NULL, s->hello.summary_bytes, PROT_READ, MAP_SHARED, s->fd, TERRACE_MAP_SUMMARY);
	s->summary = map == MAP_FAILED ? NULL : map;
	return 0;
}

void sampler_close(struct sampler *s)
{
	if (s->summary)
		munmap((void *)s->summary, s->hello.summary_bytes);
	if (s->fd >= 0)
		close(s->fd);
}

/* ---- taking one ---------------------------------------------------------------------------- */

static void read_cells(const struct sampler *s, struct sample *out)
{
	u64 regions = s->hello.regions, fast[SAMPLE_CELLS] = { 0 }, nr[SAMPLE_CELLS] = { 0 };

	out->nr_cells = regions < SAMPLE_CELLS ? (u32)regions : SAMPLE_CELLS;
	for (u64 r = 0; r < regions; r++) {
		u64 cell = r * out->nr_cells / regions;
		const struct terrace_summary *sum = &s->summary[r];
		u8 lately = (u8)(255 - sum->age);

		fast[cell] += sum->fast;
		nr[cell]++;
		if ((sum->fast || sum->packed || sum->loose) && lately > out->lately[cell])
			out->lately[cell] = lately;
	}
	for (u32 k = 0; k < out->nr_cells; k++)
		out->fast[k] = (u8)(fast[k] * 255 / (nr[k] * REGION_BLOCKS));
}

static void read_disk(u32 minor, struct sample *out)
{
	unsigned long long f[8];
	char *line = sysfs_line("/sys/block/dm-%u/stat", minor);

	if (line && sscanf(line, "%llu %llu %llu %llu %llu %llu %llu %llu", &f[0], &f[1], &f[2], &f[3],
			   &f[4], &f[5], &f[6], &f[7]) == 8) {
		out->ios = f[0] + f[4];
		out->busy_ms = f[3] + f[7];
	}
	free(line);
}

int sample_take(const struct sampler *s, struct sample *out)
{
	u32 minor = s->volume->minor;
	char *mode = sysfs_line(VOLUME_FOLDER "/mode", minor);
	struct timespec now;

	memset(out, 0, sizeof(*out));
	if (!mode) {
		ctl_error("volume '%s' has been deactivated", s->volume->name);
		return -ENODEV;
	}
	snprintf(out->mode, sizeof(out->mode), "%.15s", mode);
	free(mode);
	clock_gettime(CLOCK_MONOTONIC, &now);
	out->ns = (u64)now.tv_sec * 1000000000 + (u64)now.tv_nsec;
	out->nr_tiers = tiers_read(s->volume, out->tier);
#define WORD(word) sysfs_number(0, VOLUME_FOLDER "/" word, minor)
	out->packed_reads = WORD("packed_reads");
	out->cache_hits = WORD("cache_hits");
	out->zeros = WORD("zeros");
	out->new_writes = WORD("new");
	out->moved = WORD("moved");
	out->left_out = WORD("left_out");
	out->throttled = WORD("throttled");
	out->journal_used = WORD("journal_used");
	out->journal_blocks = WORD("journal_blocks");
	out->memory = WORD("memory");
#undef WORD
	read_disk(minor, out);
	if (s->summary)
		read_cells(s, out);
	return 0;
}

/* ---- between two --------------------------------------------------------------------------- */

void sample_compare(const struct sample *a, const struct sample *b, struct sample_rates *out)
{
	double all = 0, fast = 0, ios = (double)(b->ios - a->ios);

	memset(out, 0, sizeof(*out));
	out->seconds = b->ns > a->ns ? (double)(b->ns - a->ns) * 1e-9 : 1;
	for (u32 t = 0; t < b->nr_tiers; t++) {
		double reads = (double)(b->tier[t].reads - a->tier[t].reads);

		out->reads[t] = reads / out->seconds;
		out->writes[t] = (double)(b->tier[t].writes - a->tier[t].writes) / out->seconds;
		all += reads;
		if (b->tier[t].kind == TERRACE_KIND_SLOTS)
			fast += reads;
	}
	out->packed_reads = (double)(b->packed_reads - a->packed_reads) / out->seconds;
	all += (double)(b->packed_reads - a->packed_reads);
	fast += (double)(b->cache_hits - a->cache_hits);
	out->moved = (double)(b->moved - a->moved) / out->seconds;
	out->new_writes = (double)(b->new_writes - a->new_writes) / out->seconds;
	out->throttled = (double)(b->throttled - a->throttled) / out->seconds;
	out->hit_rate = all > 0 ? fast / all : -1;
	if (out->hit_rate > 1)
		out->hit_rate = 1;
	out->mean_us = ios > 0 ? (double)(b->busy_ms - a->busy_ms) * 1000 / ios : -1;
}

double sample_days_left(const struct sample *a, const struct sample *b)
{
	double grown = 0, left = 0, seconds = (double)(b->ns - a->ns) * 1e-9;

	for (u32 t = 0; t < b->nr_tiers; t++) {
		grown += (double)b->tier[t].used_blocks - (double)a->tier[t].used_blocks;
		left += (double)b->tier[t].blocks - (double)b->tier[t].used_blocks;
	}
	return grown > 0 && seconds > 0 ? left / (grown / seconds) / 86400 : -1;
}
