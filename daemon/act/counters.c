// SPDX-License-Identifier: GPL-2.0-or-later
/* Files of sysfs, kept open where each tick reads them; see counters.h. */
#include "act/counters.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HOME_FULL_PERMILLE	900	/* inside, as the kernel has it: nothing more goes there */

/* ---- files ------------------------------------------------------------------------------ */

static int open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 ? fd : errno == ENOENT ? -ENODEV : -errno;
}

/* Its first line, as it is now, however long the file has been open. */
static int first_line(int fd, char *line, size_t bytes)
{
	ssize_t n = pread(fd, line, bytes - 1, 0);

	if (n < 0)
		return errno == ENODEV || errno == ENOENT ? -ENODEV : -EIO;
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	return 0;
}

int first_line_of(const char *path, char *line, size_t bytes)
{
	int fd = open_file(path), err = fd < 0 ? fd : first_line(fd, line, bytes);

	if (fd >= 0)
		close(fd);
	return err;
}

/* They are asked for in the same order each tick: most likely the next one. */
static struct kept *kept(struct counters *c, const char *name)
{
	for (uint32_t n = 0; n < c->nr_kept; n++, c->next_kept++) {
		if (c->next_kept >= c->nr_kept)
			c->next_kept = 0;
		if (!strcmp(c->kept[c->next_kept].name, name))
			return &c->kept[c->next_kept++];
	}
	return NULL;
}

/* Of FOLDER/DISK/NAME; names are of one folder only. */
static int kept_line(struct counters *c, const char *folder, const char *name, char *line, size_t bytes)
{
	struct kept *k = kept(c, name);
	char path[128];
	int fd;

	if (k)
		return first_line(k->fd, line, bytes);
	snprintf(path, sizeof(path), "%s/%s/%s", folder, c->disk, name);
	if (c->nr_kept == COUNTERS_KEPT)
		return first_line_of(path, line, bytes);
	fd = open_file(path);
	if (fd < 0)
		return fd;
	k = &c->kept[c->nr_kept++];
	snprintf(k->name, sizeof(k->name), "%s", name);
	k->fd = fd;
	return first_line(fd, line, bytes);
}

static int word(struct counters *c, const char *name, char *line, size_t bytes)
{
	return kept_line(c, COUNTERS_FOLDER, name, line, bytes);
}

int counters_number(struct counters *c, const char *name, uint64_t *out)
{
	char line[64];
	int err = word(c, name, line, sizeof(line));

	*out = err ? 0 : strtoull(line, NULL, 10);
	return err;
}

int counters_find(struct counters *c, const char *name)
{
	char path[512], line[128];
	DIR *dir = opendir(COUNTERS_FOLDER);
	struct dirent *entry;
	int found = -ENODEV;

	if (!dir)
		return -ENODEV;
	while (found && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof(c->disk))
			continue;
		snprintf(path, sizeof(path), COUNTERS_FOLDER "/%s/name", entry->d_name);
		if (first_line_of(path, line, sizeof(line)) || strcmp(line, name))
			continue;
		memcpy(c->disk, entry->d_name, strlen(entry->d_name) + 1);
		found = 0;
	}
	closedir(dir);
	if (found)
		return found;
	snprintf(path, sizeof(path), "/sys/block/%s/dev", c->disk);
	found = first_line_of(path, line, sizeof(line));
	if (!found && sscanf(line, "%u:%u", &c->major, &c->minor) != 2)
		found = -ENODEV;
	return found;
}

int counters_set(const struct counters *c, const char *name, uint32_t n)
{
	char path[160], text[16];
	int bytes = snprintf(text, sizeof(text), "%u\n", n), fd, err = 0;

	snprintf(path, sizeof(path), COUNTERS_FOLDER "/%s/tune/%s", c->disk, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, (size_t)bytes) != bytes)
		err = -errno;
	close(fd);
	return err;
}

void counters_close(struct counters *c)
{
	for (uint32_t i = 0; i < c->nr_kept; i++)
		close(c->kept[i].fd);
	c->nr_kept = 0;
}

/* ---- what they say ---------------------------------------------------------------------- */

static uint32_t kind_of(const char *name)
{
	static const char *const kinds[] = { "?", "slots", "shelves", "home" };

	for (uint32_t k = 1; k < 4; k++)
		if (!strcmp(kinds[k], name))
			return k;
	return 0;
}

static int read_tier(struct counters *c, uint32_t t, struct port_tier *out, uint64_t *reads,
		     uint64_t *writes)
{
	uint64_t limit, used;
	char name[48], line[64];
	int err;

#define WORD(what) (snprintf(name, sizeof(name), "tier%u/" what, t), name)
	err = word(c, WORD("class"), line, sizeof(line));
	if (err)
		return err;
	snprintf(out->class, sizeof(out->class), "%.11s", line);
	err = word(c, WORD("kind"), line, sizeof(line));
	out->kind = kind_of(line);
	if (!err)
		err = counters_number(c, WORD("used_blocks"), &out->used_blocks);
	if (!err)
		err = counters_number(c, WORD("blocks"), &out->blocks);
	if (!err)
		err = counters_number(c, WORD("reads"), reads);
	if (!err)
		err = counters_number(c, WORD("writes"), writes);
	if (!err)
		err = word(c, WORD("missing"), line, sizeof(line));
	out->missing = !strcmp(line, "yes");
	if (!err)
		counters_number(c, WORD("reserve_blocks"), &out->reserve_blocks);	/* older modules do not tell */
	if (out->kind == TERRACE_KIND_SHELVES)
		counters_number(c, WORD("free_shelves"), &out->free_shelves);
	if (!err)
		counters_number(c, WORD("io_errors"), &out->io_errors);	/* older modules do not count */
	if (out->kind == TERRACE_KIND_HOME && !counters_number(c, WORD("physical_limit"), &limit) &&
	    !counters_number(c, WORD("physical_used"), &used))
		out->full = limit && used * 1000 >= limit * HOME_FULL_PERMILLE;
#undef WORD
	return err;
}

/* Writes are counted, not measured: each as long as the users' mean since the last call. */
static void measure_writes(struct counters *c, uint32_t nr_tiers, const uint64_t *writes, uint64_t ios, uint64_t sectors)
{
	double each = ios > c->last_ios ? (double)(sectors - c->last_sectors) / 8 / (double)(ios - c->last_ios) : 1;

	for (uint32_t t = 0; t < nr_tiers; t++) {
		if (writes[t] > c->last_writes[t])
			c->written_blocks[t] += (uint64_t)((double)(writes[t] - c->last_writes[t]) * each);
		c->last_writes[t] = writes[t];
	}
	c->last_ios = ios;
	c->last_sectors = sectors;
}

static int read_latency(struct counters *c, struct port_state *out, const uint64_t *writes)
{
	unsigned long long f[8] = { 0 };
	char line[256];
	int err;

	err = kept_line(c, "/sys/block", "stat", line, sizeof(line));
	if (err)
		return err;
	if (sscanf(line, "%llu %llu %llu %llu %llu %llu %llu %llu", &f[0], &f[1], &f[2], &f[3], &f[4],
		   &f[5], &f[6], &f[7]) != 8)
		return -EIO;
	out->busy_ns = (f[3] + f[7]) * 1000000;
	measure_writes(c, out->nr_tiers, writes, f[4], f[6]);
	return 0;
}

/* Tiers of kind home are as full as their drives say. */
static void report_physical(struct counters *c, struct health *health, const struct port_state *state)
{
	struct timespec now;
	bool any = false;

	for (uint32_t t = 0; t < state->nr_tiers; t++)
		any |= state->tier[t].kind == TERRACE_KIND_HOME && !state->tier[t].missing;
	if (!any)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	physical_report(c->major, c->minor, health, now.tv_sec, &c->heard);
}

int counters_read(struct counters *c, uint32_t nr_tiers, uint64_t of_blocks, struct health *health, struct port_state *out)
{
	uint64_t reads = 0, writes[TERRACE_MAX_RESULT_TIERS] = { 0 }, blocks = 0, avoid = 0;
	char line[64];
	int err = counters_number(c, "virtual_blocks", &blocks);

	if (!err && blocks != of_blocks)
		err = -ENODEV;
	memset(out, 0, sizeof(*out));
	out->nr_tiers = nr_tiers;
	for (uint32_t t = 0; !err && t < out->nr_tiers; t++) {
		err = read_tier(c, t, &out->tier[t], &reads, &writes[t]);
		out->reads += reads;
		out->writes += writes[t];
		if (out->tier[t].kind == TERRACE_KIND_SLOTS)
			out->fast_reads += reads;
	}
	if (!err)
		counters_number(c, "index_lookups", &out->vain_reads);
	if (!err && !counters_number(c, "tune/avoid_tiers", &avoid))
		for (uint32_t t = 0; t < out->nr_tiers; t++)
			out->tier[t].avoided = avoid >> t & 1;
	if (!err)
		err = word(c, "mode", line, sizeof(line));
	if (!err)
		err = read_latency(c, out, writes);
	if (err)
		return err;
	report_physical(c, health, out);
	cpu_time_read(&c->cpu);
	out->cpu_idle = c->cpu.idle;
	out->cpu_all = c->cpu.all;
	out->writable = !strcmp(line, "write");
	memcpy(out->written_blocks, c->written_blocks, sizeof(out->written_blocks));
	return 0;
}
