// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Orders of every mode at random, in batches of 1 to 16 (or to batch=), drawn so that nearly each
 * of them has something to do: a region's state is asked for before, and an order
 * that would find nothing is drawn again. (One in sixteen is given as it comes: being
 * refused is to be tried as well.) Most let a few dozen blocks go down or up, one in
 * four a whole region: what goes wrong between orders and writes does so at any size,
 * and small ones are more of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "orders.h"

#define MOST_REGIONS	256
#define BATCH		16
#define TRIES		12

static uint64_t seed;
static struct terrace_region region[MOST_REGIONS];
static unsigned int nr_regions;

/* What the words after COUNT SEED REGIONS say. Tiers: from the first of the two to the second. */
static unsigned int tier_up[2], tier_down[2] = { 1, 1 };
static unsigned int nr_shelves = 8, first_shelf;	/* are cleaned */
static unsigned int most_at_once = BATCH;
static unsigned long long first_region;
static bool drives;

/*
 * Orders of each mode, that were given and that were carried out, added up in a file: this program
 * may be killed at any time. What is given and has no result yet is under way.
 */
static struct tally {
	uint64_t given[8], ended[8], executed[8];
} *tally;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void look(struct volume *v)
{
	struct terrace_regions ask = {
		.first = first_region, .nr = nr_regions, .region_bytes = sizeof(region[0]), .regions = (uintptr_t)region,
	};

	if (ioctl(v->fd, TERRACE_IOC_REGIONS, &ask))
		die("REGIONS");
}

static void any_map(uint64_t *map)
{
	unsigned int kind = rnd() % 5, k;

	for (k = 0; k < TERRACE_REGION_WORDS; k++)
		map[k] = kind == 0 ? 0 : kind == 1 ? ~0ull : kind == 2 ? rnd() : kind == 3 ? rnd() & rnd() & rnd() :
			 rnd() % 2 ? ~0ull : 0;
}

/* Ones but for some bits in up to three words, or the other way round. */
static void small_map(uint64_t *map, bool ones)
{
	unsigned int k = rnd() % 3 + 1;

	memset(map, ones ? 0xff : 0, TERRACE_REGION_WORDS * 8);
	while (k--)
		map[rnd() % TERRACE_REGION_WORDS] = rnd();
}

static void random_up(struct terrace_move *move)
{
	if (rnd() % 4 == 0)
		any_map((uint64_t *)move->up);
	else
		small_map((uint64_t *)move->up, move->mode != TERRACE_MOVE_RAISE);
}

static unsigned int tier_of(const unsigned int *range)
{
	return range[0] + rnd() % (range[1] - range[0] + 1);
}

/* The last tier that takes what goes down has shelves, if any. */
static void draw(struct terrace_move *move)
{
	/* A cleaning moves a whole shelf, what all the others move together. */
	static const uint8_t mode[] = {
		TERRACE_MOVE_APPEND, TERRACE_MOVE_APPEND, TERRACE_MOVE_APPEND, TERRACE_MOVE_MERGE, TERRACE_MOVE_MERGE,
		TERRACE_MOVE_RAISE, TERRACE_MOVE_RAISE, TERRACE_MOVE_RAISE, TERRACE_MOVE_RAISE, TERRACE_MOVE_RAISE,
		TERRACE_MOVE_RAISE, TERRACE_MOVE_DROP, TERRACE_MOVE_DROP, TERRACE_MOVE_DROP, TERRACE_MOVE_DROP,
		TERRACE_MOVE_DROP, TERRACE_MOVE_DROP, TERRACE_MOVE_DROP, TERRACE_MOVE_SCRUB,
	};

	memset(move, 0, sizeof(*move));
	move->cookie = rnd() | 1;
	move->region = first_region + rnd() % nr_regions;
	move->mode = rnd() % 32 ? mode[rnd() % sizeof(mode)] : TERRACE_MOVE_CLEAN;
	if (move->mode == TERRACE_MOVE_CLEAN) {
		move->region = first_shelf + rnd() % nr_shelves;
		move->tier_down = tier_down[1];
		return;
	}
	if (move->mode != TERRACE_MOVE_SCRUB)
		random_up(move);
	if (move->mode != TERRACE_MOVE_SCRUB && move->mode != TERRACE_MOVE_DROP)
		move->tier_up = tier_of(tier_up);
	if (move->mode == TERRACE_MOVE_APPEND || move->mode == TERRACE_MOVE_MERGE) {
		any_map((uint64_t *)move->warm);
		move->tier_down = tier_of(tier_down);
		move->codec = rnd() % 3;
		move->shift = rnd() % 3 * 2;
		move->level = move->codec == TERRACE_CODEC_ZSTD ? rnd() % 6 : 0;
	}
}

/* Will it find something to do, if nobody changes the region before? */
static bool is_worthwhile(const struct terrace_move *move)
{
	uint64_t down = 0, up = 0, clean = 0, slow = 0;
	const struct terrace_region *r;
	unsigned int k;

	if (move->mode == TERRACE_MOVE_CLEAN)
		return true;	/* not known */
	r = &region[move->region - first_region];
	for (k = 0; k < TERRACE_REGION_WORDS; k++) {
		down |= r->present[k] & ~move->up[k];
		up |= r->packed[k] & ~r->present[k] & move->up[k];
		clean |= r->packed[k] & r->present[k] & ~move->up[k];
		slow |= r->present[k] & ~r->fast[k];
	}
	switch (move->mode) {
	case TERRACE_MOVE_APPEND:
		return down || up;
	case TERRACE_MOVE_MERGE:
		return down || r->nr_packs;
	case TERRACE_MOVE_RAISE:
		return up;
	case TERRACE_MOVE_DROP:
		return clean;
	default:
		return r->nr_packs || slow;
	}
}

static void random_move(struct terrace_move *move)
{
	unsigned int tries = rnd() % 16 ? TRIES : 1;

	do
		draw(move);
	while (!is_worthwhile(move) && --tries);
}

static bool tiers(const char *text, unsigned int *range)
{
	int n = sscanf(text, "%u-%u", &range[0], &range[1]);

	if (n == 1)
		range[1] = range[0];
	return n >= 1 && range[0] <= range[1] && range[1] < TERRACE_MAX_TIERS;
}

static void open_tally(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, sizeof(*tally)))
		die(path);
	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (tally == MAP_FAILED)
		die(path);
	close(fd);
}

static bool understood(const char *word)
{
	if (!strncmp(word, "tally=", 6)) {
		open_tally(word + 6);
		return true;
	}
	if (!strcmp(word, "claim")) {
		drives = true;
		return true;
	}
	if (!strncmp(word, "tier_up=", 8))
		return tiers(word + 8, tier_up);
	if (!strncmp(word, "tier_down=", 10))
		return tiers(word + 10, tier_down);
	if (sscanf(word, "batch=%u", &most_at_once) == 1)
		return most_at_once && most_at_once <= BATCH;
	if (sscanf(word, "shelves=%u+%u", &first_shelf, &nr_shelves) == 2)
		return nr_shelves;
	first_shelf = 0;
	if (sscanf(word, "shelves=%u", &nr_shelves) == 1)
		return nr_shelves;
	return sscanf(word, "region=%llu", &first_region) == 1;
}

int do_random(struct volume *v, int argc, char **argv)
{
	unsigned long count, done = 0, ended[6] = { 0 }, executed = 0, hard = 0, blocks_down = 0, blocks_up = 0, by_mode[7] = { 0 };
	struct terrace_move move[BATCH];
	unsigned int most_packs = 0;
	const struct terrace_result *r;
	unsigned long long began, took, longest = 0;
	int err, k;

	if (argc < 3)
		usage();
	count = strtoul(argv[0], NULL, 0);
	seed = strtoull(argv[1], NULL, 0) * 0x9e3779b97f4a7c15ull + 1;
	nr_regions = strtoul(argv[2], NULL, 0);
	if (!nr_regions || nr_regions > MOST_REGIONS)
		usage();
	for (k = 3; k < argc; k++)
		if (!understood(argv[k]))
			usage();
	if (drives)
		take_over(v);
	while (done < count) {
		int nr = rnd() % most_at_once + 1;

		look(v);
		for (k = 0; k < nr; k++)
			random_move(&move[k]);
		for (k = 0; k < nr && tally; k++)
			tally->given[move[k].mode]++;
		began = now_ns();
		err = submit(v, move, nr);
		took = now_ns() - began;
		longest = took > longest ? took : longest;
		if (err) {
			errno = -err;
			die("SUBMIT");
		}
		while ((r = next_result(v))) {
			ended[r->status]++;
			done++;
			blocks_down += r->down;
			blocks_up += r->up;
			executed += !r->error;
			by_mode[r->mode] += !r->error;
			if (tally) {
				tally->ended[r->mode]++;
				tally->executed[r->mode] += !r->error;
			}
			most_packs = r->packs > most_packs ? r->packs : most_packs;
			if (!r->error || r->error == -ENOENT || r->error == -ENOSPC || r->error == -EBUSY ||
			    r->error == -ETXTBSY)
				continue;
			printf("region %llu mode %u: %s\n", (unsigned long long)r->region, r->mode,
			       strerror(-r->error));
			hard++;
		}
	}
	if (most_packs > TERRACE_MAX_PACKS)
		hard += printf("a region of %u packs\n", most_packs) > 0;
	printf("packs=%u ", most_packs);
	printf("orders=%lu executed=%lu done=%lu partly=%lu no-room=%lu failed=%lu hard=%lu blocks_down=%lu blocks_up=%lu",
	       done, executed, ended[1], ended[2], ended[3], ended[5], hard, blocks_down, blocks_up);
	printf(" append=%lu merge=%lu raise=%lu drop=%lu scrub=%lu clean=%lu longest_batch_ms=%llu\n", by_mode[TERRACE_MOVE_APPEND],
	       by_mode[TERRACE_MOVE_MERGE], by_mode[TERRACE_MOVE_RAISE], by_mode[TERRACE_MOVE_DROP],
	       by_mode[TERRACE_MOVE_SCRUB], by_mode[TERRACE_MOVE_CLEAN],
	       longest / 1000000);
	return hard ? 1 : 0;
}
