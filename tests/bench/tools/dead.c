// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How much of what the fast tiers hold belongs to no file: the filesystem's free space beside the volume's map.
 *
 * usage: dead CONTROL MOUNTPOINT [LOOKS]
 *
 * The filesystem lies directly on the volume.  Prints "DEAD FAST": blocks.  With LOOKS it looks so often in a second until it is
 * killed, and once a second prints "DEAD FAST CAME DEAD_NOW DEAD_BEFORE LASTING": of the blocks that lay below a second before those
 * that are fast now; of these those that belong to no file now, some of which have died since; of these in turn those that
 * belonged to none then, either: they came up dead, or have been a file's, written and dead within that time; and of DEAD those
 * that were fast and dead a second before: what has just died is not among them.
 */
#include <err.h>
#include <fcntl.h>
#include <linux/fsmap.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "terrace.h"

#define BLOCK	4096u
#define AT_ONCE	64u	/* regions */
#define RECORDS	4096u	/* of the filesystem's map */
#define WORDS	TERRACE_REGION_WORDS

/* Of a region, a second before. */
struct before {
	uint64_t below[WORDS], dead[WORDS], held[WORDS];
};

static int control, mountpoint;
static uint64_t regions;
static struct terrace_region *region;
static uint64_t *nobodys;	/* a bit for each block */
static struct before *before;
static struct fsmap_head *map;

static void look_at_regions(void)
{
	for (uint64_t first = 0; first < regions; first += AT_ONCE) {
		struct terrace_regions ask = {
			.first = first, .nr = (uint32_t)(regions - first < AT_ONCE ? regions - first : AT_ONCE),
			.region_bytes = sizeof(*region), .regions = (uintptr_t)&region[first],
		};

		const uint32_t nr = ask.nr;

		if (ioctl(control, TERRACE_IOC_REGIONS, &ask))
			err(1, "regions from %llu", (unsigned long long)first);
		if (ask.nr != nr)	/* the rest would be of the look before */
			errx(1, "%u of %u regions from %llu", ask.nr, nr, (unsigned long long)first);
	}
}

static void mark(uint64_t from, uint64_t end)
{
	for (uint64_t b = from; b < end && b < regions * WORDS * 64; b++)
		nobodys[b / 64] |= 1ull << b % 64;
}

static void look_at_free_space(void)
{
	struct fsmap *last;

	memset(nobodys, 0, regions * WORDS * sizeof(*nobodys));
	memset(map, 0, sizeof(*map));
	map->fmh_count = RECORDS;
	map->fmh_keys[1] = (struct fsmap){
		.fmr_device = UINT32_MAX, .fmr_flags = UINT32_MAX, .fmr_physical = UINT64_MAX, .fmr_owner = UINT64_MAX, .fmr_offset = UINT64_MAX,
	};
	do {
		if (ioctl(mountpoint, FS_IOC_GETFSMAP, map))
			err(1, "the filesystem's map");
		for (uint32_t i = 0; i < map->fmh_entries; i++) {
			const struct fsmap *one = &map->fmh_recs[i];

			if (one->fmr_flags & FMR_OF_SPECIAL_OWNER && one->fmr_owner == FMR_OWN_FREE)
				mark(one->fmr_physical / BLOCK, (one->fmr_physical + one->fmr_length) / BLOCK);
		}
		if (!map->fmh_entries)
			return;
		last = &map->fmh_recs[map->fmh_entries - 1];
		fsmap_advance(map);
	} while (!(last->fmr_flags & FMR_OF_LAST));
}

static uint64_t ones(uint64_t word)
{
	return (uint64_t)__builtin_popcountll(word);
}

/* @compared: with a second before. */
static void look(bool compared)
{
	uint64_t dead = 0, fast = 0, came = 0, now = 0, then = 0, lasting = 0;

	look_at_regions();	/* first: what dies in between counts as dead */
	look_at_free_space();
	for (uint64_t r = 0; r < regions; r++) {
		for (uint32_t w = 0; w < WORDS && !region[r].status; w++) {
			const uint64_t is_dead = nobodys[r * WORDS + w], is_fast = region[r].fast[w], up = before[r].below[w] & is_fast;

			fast += ones(is_fast);
			dead += ones(is_fast & is_dead);
			if (!compared)
				continue;
			came += ones(up);
			now += ones(up & is_dead);
			then += ones(up & is_dead & before[r].dead[w]);
			lasting += ones(is_fast & is_dead & before[r].held[w]);
			before[r].below[w] = (region[r].present[w] | region[r].packed[w]) & ~is_fast;
			before[r].dead[w] = is_dead;
			before[r].held[w] = is_fast & is_dead;
		}
	}
	printf("%llu %llu", (unsigned long long)dead, (unsigned long long)fast);
	if (compared)
		printf(" %llu %llu %llu %llu", (unsigned long long)came, (unsigned long long)now, (unsigned long long)then, (unsigned long long)lasting);
	putchar('\n');
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct terrace_hello hello = { .bytes = sizeof(hello), .min_version = TERRACE_ABI_MIN, .max_version = TERRACE_ABI_MAX };
	const int looks = argc > 3 ? atoi(argv[3]) : 0;

	if (argc < 3 || (argc > 3 && (looks < 2 || looks > 1000)))
		errx(2, "usage: dead CONTROL MOUNTPOINT [LOOKS], 2 to 1000 a second");
	control = open(argv[1], O_RDWR);
	mountpoint = open(argv[2], O_RDONLY);
	if (control < 0 || mountpoint < 0)
		err(1, "%s", control < 0 ? argv[1] : argv[2]);
	if (ioctl(control, TERRACE_IOC_HELLO, &hello))
		err(1, "%s: hello", argv[1]);
	regions = hello.regions;
	region = calloc(regions, sizeof(*region));
	nobodys = calloc(regions * WORDS, sizeof(*nobodys));
	before = calloc(regions, sizeof(*before));
	map = malloc(fsmap_sizeof(RECORDS));
	if (!region || !nobodys || !before || !map)
		errx(1, "out of memory");
	look(looks > 0);
	for (uint64_t n = 1; looks; n++) {
		const struct timespec t = { .tv_nsec = 1000000000l / looks };

		nanosleep(&t, NULL);
		look(n % (uint64_t)looks == 0);
	}
	return 0;
}
