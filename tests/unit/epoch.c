// SPDX-License-Identifier: GPL-2.0-or-later
/* Read-triggered epochs: every state with every kind of load, scaling, each tunable. */
#include "policy_lib.h"

#include "decide/epoch.h"

#define M	1000000ull

static void start(struct epoch *e, struct epoch_tunables *t)
{
	tunable_defaults(&epoch_tunable_table, t);
	assert_int_equal(epoch_init(e, t, 100000000), 0);
}

static void length_scales_with_the_volume(void **state)
{
	struct epoch_tunables t;
	struct epoch e;

	(void)state;
	start(&e, &t);
	assert_int_equal(e.epoch_ops, 1 * M);
	assert_int_equal(e.cool_down_ops, 10 * M);
	epoch_init(&e, &t, 400000000);
	assert_int_equal(e.epoch_ops, 4 * M);
	assert_int_equal(e.cool_down_ops, 40 * M);
	/* 1000 blocks would make an epoch of 10: the floor holds, and the proportion too. */
	epoch_init(&e, &t, 1000);
	assert_int_equal(e.epoch_ops, 10000);
	assert_int_equal(e.cool_down_ops, 100000);
}

/* 1 M reads, 60 % fast: run; 75 % in the measurement: again; 75.5 %: gain 0.5 % < 1 %, cool. */
static void the_whole_circle(void **state)
{
	struct epoch_tunables t;
	struct epoch e;

	(void)state;
	start(&e, &t);
	assert_false(epoch_moves(&e));
	assert_int_equal(epoch_step(&e, &t, M / 2, M / 2, 300000), EPOCH_DETECT);
	assert_int_equal(epoch_step(&e, &t, M / 2, M / 2, 300000), EPOCH_RUN);
	assert_near(e.ratio, 0.6, 1e-9);
	assert_true(epoch_moves(&e));
	assert_int_equal(epoch_step(&e, &t, M, M, 700000), EPOCH_MONITOR);
	assert_true(epoch_moves(&e));
	assert_int_equal(epoch_step(&e, &t, M / 10, M / 10, 75000), EPOCH_RUN);
	assert_int_equal(epoch_step(&e, &t, M, M, 750000), EPOCH_MONITOR);
	assert_int_equal(epoch_step(&e, &t, M / 10, M / 10, 75500), EPOCH_COOL);
	assert_false(epoch_moves(&e));
	assert_int_equal(epoch_step(&e, &t, 9 * M, 9 * M, 0), EPOCH_COOL);
	assert_int_equal(epoch_step(&e, &t, M, M, 0), EPOCH_DETECT);
	assert_int_equal(e.epochs_run, 2);
}

/* All (state, load) pairs: idle, write-only, all-fast reads, slow reads. */
static void every_state_meets_every_load(void **state)
{
	static const struct {
		uint64_t reads, fast;
		enum epoch_state next[EPOCH_STATES];	/* from DETECT, RUN, MONITOR, COOL */
	} loads[] = {
		{ 0, 0, { EPOCH_DETECT, EPOCH_MONITOR, EPOCH_COOL, EPOCH_DETECT } },
		{ 20 * M, 20 * M, { EPOCH_DETECT, EPOCH_MONITOR, EPOCH_RUN, EPOCH_DETECT } },
		{ 20 * M, 0, { EPOCH_RUN, EPOCH_MONITOR, EPOCH_COOL, EPOCH_DETECT } },
		{ 9 * M, 0, { EPOCH_DETECT, EPOCH_MONITOR, EPOCH_COOL, EPOCH_DETECT } },
	};
	struct epoch_tunables t;
	struct epoch e;

	(void)state;
	for (size_t l = 0; l < sizeof(loads) / sizeof(loads[0]); l++)
		for (int s = 0; s < EPOCH_STATES; s++) {
			start(&e, &t);
			e.state = (enum epoch_state)s;
			e.ratio = 0.5;
			assert_int_equal(epoch_step(&e, &t, 20 * M, loads[l].reads, loads[l].fast),
					 loads[l].next[s]);
			assert_int_equal(e.ops, 0);
		}
	/* No operations at all: nothing happens in any state. */
	for (int s = 0; s < EPOCH_STATES; s++) {
		start(&e, &t);
		e.state = (enum epoch_state)s;
		assert_int_equal(epoch_step(&e, &t, 0, 0, 0), s);
	}
}

static enum epoch_state run_circle(const struct epoch_tunables *t, uint64_t ops)
{
	struct epoch e;

	assert_int_equal(epoch_init(&e, t, 100000000), 0);
	return epoch_step(&e, t, ops, ops * 6 / 10, ops * 54 / 100);
}

static void each_tunable_changes_the_outcome(void **state)
{
	struct epoch_tunables t;
	struct epoch e;

	(void)state;
	assert_table_is_sound(&epoch_tunable_table, &t);
	assert_int_equal(run_circle(&t, M), EPOCH_RUN);	/* 60 % reads, 10 % of them slow */
	t.epoch_ops = 2 * M;
	assert_int_equal(run_circle(&t, M), EPOCH_DETECT);
	tunable_defaults(&epoch_tunable_table, &t);
	t.read_share = 0.7;
	assert_int_equal(run_circle(&t, M), EPOCH_DETECT);
	tunable_defaults(&epoch_tunable_table, &t);
	t.slow_share = 0.2;
	assert_int_equal(run_circle(&t, M), EPOCH_DETECT);
	tunable_defaults(&epoch_tunable_table, &t);
	t.reference_blocks = 50000000;
	assert_int_equal(run_circle(&t, M), EPOCH_DETECT);
	tunable_defaults(&epoch_tunable_table, &t);
	t.min_epoch_ops = 3 * M;
	assert_int_equal(run_circle(&t, M), EPOCH_DETECT);
	tunable_defaults(&epoch_tunable_table, &t);
	t.cool_down_ops = 0;
	epoch_init(&e, &t, 100000000);
	assert_int_equal(e.cool_down_ops, 0);

	tunable_defaults(&epoch_tunable_table, &t);
	t.min_gain = 0.3;
	epoch_init(&e, &t, 100000000);
	e.state = EPOCH_MONITOR;
	e.ratio = 0.5;
	assert_int_equal(epoch_step(&e, &t, M, M, M * 7 / 10), EPOCH_COOL);
	tunable_defaults(&epoch_tunable_table, &t);
	t.monitor_share = 1;
	epoch_init(&e, &t, 100000000);
	e.state = EPOCH_MONITOR;
	assert_int_equal(epoch_step(&e, &t, M / 10, M / 10, 0), EPOCH_MONITOR);
	t.epoch_ops = 0;
	assert_int_equal(epoch_init(&e, &t, 1), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(length_scales_with_the_volume),
		cmocka_unit_test(the_whole_circle),
		cmocka_unit_test(every_state_meets_every_load),
		cmocka_unit_test(each_tunable_changes_the_outcome),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
