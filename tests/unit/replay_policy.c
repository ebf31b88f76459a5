// SPDX-License-Identifier: GPL-2.0-or-later
/* The replay's loop does as the daemon's: what was full once is not filled at first sight. */
#include "policy_lib.h"

#include "../replay/policy.c"
#include "../replay/volume.c"

#define BLOCKS	(128 * 1024ull)
#define FAST	(8 * 1024ull)
#define HOT	(12 * 1024ull)

struct world {
	struct volume v;
	struct policy p;
	struct prng prng;
};

/* Nothing goes up but at first sight. */
static struct world *set_up(void)
{
	struct world *w = calloc(1, sizeof(*w));
	struct policy_config c;

	policy_config_defaults(&c);
	c.heat = HEAT_LRU;
	c.flush = false;
	assert_true(volume_init(&w->v, BLOCKS, FAST, 0.5));
	assert_true(policy_init(&w->p, &c, &w->v));
	w->p.epoch_t.epoch_ops = w->p.epoch_t.cool_down_ops = w->p.epoch_t.min_epoch_ops = 1000000000;
	return w;
}

static void tear_down(struct world *w)
{
	policy_exit(&w->p);
	volume_exit(&w->v);
	free(w);
}

/* How many of @n reads of the hot tenth went up at first sight. */
static uint64_t go_up(struct world *w, uint64_t n)
{
	uint64_t before = w->p.first_sight_promotions;

	for (uint64_t i = 0; i < n; i++)
		policy_access(&w->p, prng_below(&w->prng, HOT), false);
	return w->p.first_sight_promotions - before;
}

/* Of the fast blocks @left stay. */
static void empty(struct world *w, uint64_t left)
{
	const struct upmask none = { 0 };

	while (w->v.fast_used > left)
		volume_move(&w->v, w->v.fast_regions[0], &none, MOVE_APPEND);
}

static void what_was_full_is_not_filled_at_first_sight(void **state)
{
	struct world *w = set_up();

	(void)state;
	for (int i = 0; i < 400 && !w->p.filled.been_full; i++)
		go_up(w, 64);
	assert_in_range(w->p.first_sight_promotions, FAST * 9 / 10, FAST);
	empty(w, FAST / 2);
	assert_int_equal(go_up(w, 2000), 0);
	/* Next to nothing is left: as at the beginning. */
	empty(w, FAST / 8);
	assert_true(go_up(w, 2000) > 500);
	tear_down(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_full_is_not_filled_at_first_sight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
