// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * deaths: trims dead ranges with terraced's own code
 *
 *	deaths MOUNTPOINT [all]
 *
 * Each line of its input is a dead range of the filesystem, "START LENGTH" in bytes; all have died now. Prints a line for
 * each FITRIM that terraced's thread gives, when they are settled: "START LENGTH LEAST TRIMMED NANOSECONDS". all: the same, but every free
 * extent is looked at, as a trim without a least length does.
 */
#include <errno.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "act/device.h"
#include "act/invalidate.h"

#define BLOCK	4096u
#define MOST	16384u	/* ranges, and lines */

struct port;

static bool all;
static struct line {
	struct fstrim_range asked;
	uint64_t trimmed, ns;
} lines[MOST];
static size_t nr_lines;
static int64_t banned;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* Each FITRIM comes by here. */
int ioctl(int fd, unsigned long request, ...)
{
	struct fstrim_range *range;
	uint64_t began;
	va_list args;
	long err;

	va_start(args, request);
	range = va_arg(args, struct fstrim_range *);
	va_end(args);
	if (all)
		range->minlen = 0;
	if (nr_lines < MOST)
		lines[nr_lines].asked = *range;
	began = now();
	err = syscall(SYS_ioctl, fd, request, range);
	if (nr_lines < MOST) {
		lines[nr_lines].ns = now() - began;
		lines[nr_lines++].trimmed = err ? 0 : range->len;
	}
	return (int)err;
}

int device_range(struct port *port, uint32_t what, uint64_t block, uint64_t nr)
{
	(void)port;
	(void)what;
	(void)block;
	(void)nr;
	return 0;
}

static void on_banned(void *ctx, uint64_t block, uint64_t nr, bool yes)
{
	(void)ctx;
	(void)block;
	banned += yes ? (int64_t)nr : -(int64_t)nr;
}

int main(int argc, char **argv)
{
	const struct invalidate_config c = { .ban = true, .trim = true, .wait_ms = 50, .banned = on_banned };
	static struct dead_range range[MOST];
	unsigned long long from, bytes;
	struct invalidate *i;
	uint32_t nr = 0;
	struct stat st;

	if (argc < 2) {
		fprintf(stderr, "usage: deaths MOUNTPOINT [all]\n");
		return 2;
	}
	all = argc > 2 && !strcmp(argv[2], "all");
	if (stat(argv[1], &st) || invalidate_open(NULL, &c, &i)) {
		fprintf(stderr, "deaths: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	for (; nr < MOST && scanf("%llu %llu", &from, &bytes) == 2; nr++)
		range[nr] = (struct dead_range){ .block = from / BLOCK, .nr = bytes / BLOCK, .physical = from };
	invalidate_add(i, argv[1], major(st.st_dev) << 20 | minor(st.st_dev), range, nr);
	while (banned) {
		usleep(20000);
		invalidate_tick(i);
	}
	invalidate_close(i);
	for (size_t n = 0; n < nr_lines; n++)
		printf("%llu %llu %llu %llu %llu\n", lines[n].asked.start, lines[n].asked.len, lines[n].asked.minlen,
		       (unsigned long long)lines[n].trimmed, (unsigned long long)lines[n].ns);
	return 0;
}
