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
 * usage: optimum BLOCKS FAST STAGES ACCESSES_PER_STAGE [WINDOWS_PER_STAGE] < TRACE
 */
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
	uint64_t accesses;
	uint64_t windows;
	uint64_t *trace;
	struct counted *counts;
	uint8_t *chosen;	/* 1: among the best, 2: and seen before */
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
	return 0;
}

static void print(struct stage *s, uint64_t number)
{
	uint64_t per_window = s->accesses / s->windows;

	for (uint64_t w = 0; w < s->windows; w++) {
		uint64_t best = 0, reachable = 0;

		for (uint64_t i = w * per_window; i < (w + 1) * per_window; i++) {
			uint8_t *c = &s->chosen[s->trace[i]];

			best += *c > 0;
			reachable += *c > 1;
			*c += *c == 1;
		}
		printf("stage=%llu window=%llu optimum=%.4f reachable=%.4f\n",
		       (unsigned long long)number, (unsigned long long)w,
		       (double)best / (double)per_window, (double)reachable / (double)per_window);
	}
}

int main(int argc, char **argv)
{
	struct stage s = { .windows = 1 };
	uint64_t stages;

	if (argc < 5 || argc > 6) {
		fprintf(stderr, "usage: optimum BLOCKS FAST STAGES ACCESSES_PER_STAGE [WINDOWS_PER_STAGE] < TRACE\n");
		return 2;
	}
	s.blocks = strtoull(argv[1], NULL, 0);
	s.fast = strtoull(argv[2], NULL, 0);
	stages = strtoull(argv[3], NULL, 0);
	s.accesses = strtoull(argv[4], NULL, 0);
	if (argc > 5)
		s.windows = strtoull(argv[5], NULL, 0);
	s.trace = malloc(s.accesses * sizeof(*s.trace));
	s.counts = malloc(s.blocks * sizeof(*s.counts));
	s.chosen = malloc(s.blocks);
	if (!s.trace || !s.counts || !s.chosen || !s.windows)
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
	return 0;
}
