// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ideal: the best static placement of 4 KiB blocks for one of fio's distributions, or for reads that were counted
 *
 *	ideal zipf:THETA:CENTRE|zoned:A/S:B/T|counted:FILE BLOCKS FAST_BLOCKS FAST_DEVICE SLOW_DEVICE
 *
 * Prints the table of a dm-linear device on which the FAST_BLOCKS likeliest blocks
 * lie on FAST_DEVICE, together, and all others at their own place on SLOW_DEVICE.
 * The share of accesses that the fast device serves, in parts of a million, is
 * the line on stderr. Nothing that keeps a block where it is can serve more.
 *
 * The numbers are fio 3.33's own (lib/zipf.c, zone_split in init.c): rank r of a
 * Zipf distribution is block (r * GOLDEN_RATIO + CENTRE * BLOCKS) mod BLOCKS.
 * With a power of two of blocks no two ranks share a block; anything else is refused.
 *
 * FILE: a line for each read that came, its first sector, its sectors, how often. Those that came most often get
 * all of their blocks first: a read whose blocks lie on both devices waits for the slow one. That is the best there is
 * as far as reads do not overlap.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN_RATIO	0x61C8864680B583EBULL
#define SECTORS		8	/* of a block */

static void usage(const char *text)
{
	fprintf(stderr, "ideal: %s\n", text);
	exit(2);
}

/* fio's approximation turned round: the share of accesses to the FAST first ranks. */
static double zipf_share(double theta, double blocks, double fast)
{
	double zetan = 0, zeta2 = 1 + pow(0.5, theta), eta;

	for (double i = 1; i <= blocks; i++)
		zetan += pow(1 / i, theta);
	eta = (1 - pow(2 / blocks, 1 - theta)) / (1 - zeta2 / zetan);
	return (pow(fast / blocks, 1 - theta) + eta - 1) / eta;
}

static double zipf(bool *is_fast, const char *words, uint64_t blocks, uint64_t fast)
{
	double theta, centre;

	if (sscanf(words, "%lf:%lf", &theta, &centre) != 2)
		usage("zipf:THETA:CENTRE");
	if (blocks & (blocks - 1))
		usage("the number of blocks must be a power of two");
	for (uint64_t r = 0; r < fast; r++)
		is_fast[(r * GOLDEN_RATIO + (uint64_t)((double)blocks * centre)) % blocks] = true;
	return zipf_share(theta, (double)blocks, (double)fast);
}

/* A per cent of accesses to the first S per cent of the blocks, evenly. */
static double zoned(bool *is_fast, const char *words, uint64_t blocks, uint64_t fast)
{
	double a, s, hot;

	if (sscanf(words, "%lf/%lf", &a, &s) != 2)
		usage("zoned:A/S:B/T");
	hot = (double)blocks * s / 100;
	memset(is_fast, true, fast);
	if ((double)fast <= hot)
		return a / 100 * (double)fast / hot;
	return a / 100 + (1 - a / 100) * ((double)fast - hot) / ((double)blocks - hot);
}

struct request {
	unsigned long long sector, sectors, count;
};

static int most_first(const void *a, const void *b)
{
	const struct request *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return x->sector < y->sector ? -1 : x->sector > y->sector;
}

/* The blocks of a request that FAST would have to take in, or all of them are made fast. */
static uint64_t blocks_of(bool *is_fast, const struct request *r, uint64_t blocks, bool take)
{
	uint64_t first = r->sector / SECTORS, last = (r->sector + r->sectors - 1) / SECTORS, missing = 0;

	for (uint64_t b = first; b <= last && b < blocks; b++) {
		missing += !is_fast[b];
		is_fast[b] |= take;
	}
	return missing;
}

static double counted(bool *is_fast, const char *path, uint64_t blocks, uint64_t fast)
{
	struct request *all = NULL;
	uint64_t used = 0;
	size_t number = 0, room = 0;
	double sum = 0, served = 0;
	FILE *f = fopen(path, "r");

	for (struct request r; f && fscanf(f, "%llu %llu %llu", &r.sector, &r.sectors, &r.count) == 3;) {
		if (number == room) {
			room = room * 2 + 1024;
			all = realloc(all, room * sizeof(*all));
		}
		if (!all || !r.sectors)
			usage("no memory, or a read of nothing");
		all[number++] = r;
	}
	if (!number)
		usage("no reads in that file");
	fclose(f);
	qsort(all, number, sizeof(*all), most_first);
	for (size_t k = 0; k < number; k++) {
		uint64_t missing = blocks_of(is_fast, &all[k], blocks, false);

		sum += (double)all[k].count;
		if (used + missing > fast)
			continue;
		used += blocks_of(is_fast, &all[k], blocks, true);
		served += (double)all[k].count;
	}
	free(all);
	return served / sum;
}

int main(int argc, char **argv)
{
	uint64_t blocks, fast, used = 0, start = 0;
	bool *is_fast;
	double share = 0;

	if (argc != 6)
		usage("DISTRIBUTION BLOCKS FAST_BLOCKS FAST_DEVICE SLOW_DEVICE");
	blocks = strtoull(argv[2], NULL, 0);
	fast = strtoull(argv[3], NULL, 0);
	is_fast = calloc(blocks + 1, sizeof(*is_fast));
	if (!is_fast || !blocks || fast > blocks)
		usage("bad number of blocks");
	if (!strncmp(argv[1], "zipf:", 5))
		share = zipf(is_fast, argv[1] + 5, blocks, fast);
	else if (!strncmp(argv[1], "zoned:", 6))
		share = zoned(is_fast, argv[1] + 6, blocks, fast);
	else if (!strncmp(argv[1], "counted:", 8))
		share = counted(is_fast, argv[1] + 8, blocks, fast);
	else
		usage("zipf:, zoned: or counted:");
	for (uint64_t b = 1; b <= blocks; b++) {
		uint64_t at = start * SECTORS, length = (b - start) * SECTORS;

		if (b < blocks && is_fast[b] == is_fast[start])
			continue;
		printf("%llu %llu linear %s %llu\n", (unsigned long long)at, (unsigned long long)length,
		       is_fast[start] ? argv[4] : argv[5],
		       (unsigned long long)(is_fast[start] ? used * SECTORS : at));
		used += is_fast[start] ? b - start : 0;
		start = b;
	}
	fprintf(stderr, "%.0f\n", share * 1e6);
	free(is_fast);
	return 0;
}
