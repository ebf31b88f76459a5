// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The best static placement, computed from a trace alone: per stage, the hit rate of the FAST
 * blocks accessed most often in that stage.  Shares no code with the policies.
 *
 * It knows the future, so no policy can beat it by more than luck; with few accesses per block
 * it also profits from chance repetitions: make stages long.
 *
 * Beside it, `reachable`: the same placement, but a block counts only from its second access in the
 * stage on.  That is what promotion at first sight of exactly the right blocks would give, the
 * bound for anything that moves blocks on demand; the difference is the price of warming up.
 *
 * And `counted`: the blocks accessed most often *so far*, in exact counts, moved at no cost and in no time.
 * It does not know the future.  Of blocks whose names tell nothing, drawn independently from one
 * distribution, the likelier to come next is the one that came more often, so no policy has more hits to expect.
 *
 * `passes`: how often the trace had been through the hot set when the window began, that is how often each of
 * the HOT (FAST, if not said) blocks accessed most often had come once more.
 *
 * usage: optimum BLOCKS FAST STAGES ACCESSES_PER_STAGE [WINDOWS_PER_STAGE [HOT]] < TRACE
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct counted {
	uint32_t block;
	uint32_t count;
};

struct stage {
	uint64_t blocks;
	uint64_t fast;
	uint64_t hot;
	uint64_t accesses;
	uint64_t windows;
	uint64_t *trace;
	struct counted *counts;
	uint8_t *chosen;	/* 1: among the best, 2: and seen before */
	uint32_t *so_far;	/* accesses of each block */
	uint64_t *places;	/* blocks accessed so often, or more often */
	uint64_t *at;		/* blocks by accesses so far, most first, ... */
	uint64_t *place;	/* ... and where each block is in that order */
	uint32_t *came;		/* of the hot set: in which pass it came last, from 1 on; 0: not of it */
	uint32_t pass;
	uint64_t missing;	/* blocks that have not come in this one */
};

static int descending(const void *a, const void *b)
{
	const struct counted *x = a, *y = b;

	return x->count < y->count ? 1 : x->count > y->count ? -1 : 0;
}

static int count(struct stage *s)
{
	for (uint64_t b = 0; b < s->blocks; b++)
		s->counts[b] = (struct counted){ (uint32_t)b, 0 };
	if (fread(s->trace, sizeof(*s->trace), s->accesses, stdin) != s->accesses)
		return -1;
	for (uint64_t i = 0; i < s->accesses; i++) {
		if (s->trace[i] >= s->blocks)
			return -1;
		s->counts[s->trace[i]].count++;
	}
	qsort(s->counts, s->blocks, sizeof(*s->counts), descending);
	memset(s->chosen, 0, s->blocks);
	for (uint64_t i = 0; i < s->fast && i < s->blocks; i++)
		s->chosen[s->counts[i].block] = 1;
	memset(s->came, 0, s->blocks * sizeof(*s->came));
	for (uint64_t i = 0; i < s->hot && i < s->blocks; i++)
		s->came[s->counts[i].block] = 1;
	s->pass = 1;
	s->missing = s->hot;
	return 0;
}

static void nothing_yet(struct stage *s)
{
	memset(s->so_far, 0, s->blocks * sizeof(*s->so_far));
	memset(s->places, 0, (s->accesses + 2) * sizeof(*s->places));
	s->places[0] = s->blocks;
	for (uint64_t b = 0; b < s->blocks; b++)
		s->at[b] = s->place[b] = b;
}

/* True if @block is among the FAST; then one access more: it goes before all that had as many. */
static bool counted(struct stage *s, uint64_t block)
{
	bool hit = s->so_far[block] && s->place[block] < s->fast;
	uint64_t to = s->places[++s->so_far[block]]++, from = s->place[block], other = s->at[to];

	s->at[to] = block;
	s->place[block] = to;
	s->at[from] = other;
	s->place[other] = from;
	return hit;
}

static void pass(struct stage *s, uint64_t block)
{
	if (!s->came[block] || s->came[block] > s->pass)
		return;
	s->came[block] = s->pass + 1;
	if (--s->missing)
		return;
	s->pass++;
	s->missing = s->hot;
}

static void print(struct stage *s, uint64_t number)
{
	uint64_t per_window = s->accesses / s->windows;

	nothing_yet(s);
	for (uint64_t w = 0; w < s->windows; w++) {
		uint64_t best = 0, reachable = 0, known = 0;
		uint32_t passes = s->pass - 1;

		for (uint64_t i = w * per_window; i < (w + 1) * per_window; i++) {
			uint8_t *c = &s->chosen[s->trace[i]];

			best += *c > 0;
			reachable += *c > 1;
			*c += *c == 1;
			known += counted(s, s->trace[i]);
			pass(s, s->trace[i]);
		}
		printf("stage=%llu window=%llu optimum=%.4f reachable=%.4f counted=%.4f passes=%u\n",
		       (unsigned long long)number, (unsigned long long)w, (double)best / (double)per_window,
		       (double)reachable / (double)per_window, (double)known / (double)per_window, passes);
	}
}

int main(int argc, char **argv)
{
	struct stage s = { .windows = 1 };
	uint64_t stages;

	if (argc < 5 || argc > 7) {
		fprintf(stderr, "usage: optimum BLOCKS FAST STAGES ACCESSES_PER_STAGE [WINDOWS_PER_STAGE [HOT]] < TRACE\n");
		return 2;
	}
	s.blocks = strtoull(argv[1], NULL, 0);
	s.fast = strtoull(argv[2], NULL, 0);
	stages = strtoull(argv[3], NULL, 0);
	s.accesses = strtoull(argv[4], NULL, 0);
	if (argc > 5)
		s.windows = strtoull(argv[5], NULL, 0);
	s.hot = argc > 6 ? strtoull(argv[6], NULL, 0) : s.fast;
	s.trace = malloc(s.accesses * sizeof(*s.trace));
	s.counts = malloc(s.blocks * sizeof(*s.counts));
	s.chosen = malloc(s.blocks);
	s.so_far = malloc(s.blocks * sizeof(*s.so_far));
	s.places = malloc((s.accesses + 2) * sizeof(*s.places));
	s.at = malloc(s.blocks * sizeof(*s.at));
	s.place = malloc(s.blocks * sizeof(*s.place));
	s.came = malloc(s.blocks * sizeof(*s.came));
	if (!s.trace || !s.counts || !s.chosen || !s.windows || !s.so_far || !s.places || !s.at || !s.place || !s.came)
		return 1;
	for (uint64_t n = 0; n < stages; n++) {
		if (count(&s)) {
			fprintf(stderr, "optimum: trace too short or block out of range\n");
			return 1;
		}
		print(&s, n);
	}
	free(s.trace);
	free(s.counts);
	free(s.chosen);
	free(s.so_far);
	free(s.places);
	free(s.at);
	free(s.place);
	free(s.came);
	return 0;
}
