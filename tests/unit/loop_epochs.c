// SPDX-License-Identifier: GPL-2.0-or-later
/* The daemon's loop on a simulated volume: what is tried for a while and measured, read-triggered epochs and the pinning threshold. */
#include "sim_lib.h"

#define BLOCKS	(64 * 1024)
#define FAST	(8 * 1024)

/* So many regions, of which nothing comes up but in epochs, and the governor does not judge. */
static struct sim *only_epochs(uint64_t regions, enum heat_kind heat)
{
	struct sim *s = sim_create(regions * REGION_BLOCKS, 2 * FAST);

	s->c.heat = heat;
	s->c.cache_blocks = 4096;
	s->c.tuning.flush.run_blocks = 4096;
	s->c.tuning.flush.hot_fraction = 1;
	s->c.tuning.admit.fill = 0;
	s->c.tuning.governor.epoch_ops = 1000000000;
	return s;
}

/* Of the hot regions, the share of blocks that is fast. */
static double come_up(const struct sim *s, uint64_t stride, uint64_t nr)
{
	uint64_t fast = 0;

	for (uint64_t r = 0; r < nr; r++)
		for (uint64_t i = 0; i < REGION_BLOCKS; i++)
			fast += s->v.place[r * stride * REGION_BLOCKS + i] != PLACE_PACKED;
	return (double)fast / (double)(nr * REGION_BLOCKS);
}

/*
 * What has come up of the 16 hot regions among 4096, one of them loose, when the first epoch is over, and the orders in each
 * state.  With a clock none of what is read slowly is told.
 */
static double found_in_an_epoch(enum heat_kind heat, uint64_t ops, const char *tunable, const char *value, uint64_t *orders)
{
	struct sim *s = only_epochs(4096, heat);
	double at_the_end = 0;

	s->c.tuning.epoch.epoch_ops = ops;
	s->c.tuning.epoch.reference_blocks = s->v.blocks;
	if (tunable)
		assert_null(tuning_set(&s->c.tuning, "epoch", tunable, value));
	s->loose[0] = REGION_BLOCKS;
	sim_open(s);
	for (int i = 0; i < 200000; i++) {
		enum epoch_state now = s->e.epoch.state;
		uint64_t before;

		if (i % 8)
			sim_access(s, prng_below(&s->prng, 16) * 256 * REGION_BLOCKS + prng_below(&s->prng, REGION_BLOCKS), false);
		else
			sim_access(s, prng_below(&s->prng, s->v.blocks), false);
		if (heat == HEAT_CLOCK)
			s->heard[s->nr_heard - 1].where = PORT_FAST;
		if (i % 64 != 63)
			continue;
		before = s->e.stats.orders[WHY_EPOCH];
		assert_int_equal(sim_tick(s), 0);
		orders[s->e.epoch.state] += s->e.stats.orders[WHY_EPOCH] - before;
		if (now == EPOCH_RUN && s->e.epoch.state == EPOCH_MONITOR && s->e.epoch.epochs_run == 1)
			at_the_end = come_up(s, 256, 16);
	}
	print_message("%s%s%s: %.3f came up in an epoch; orders in it %llu, in the rest %llu; %llu blocks\n",
		      heat_kind_name(heat), tunable ? ", " : "", tunable ? tunable : "", at_the_end, (unsigned long long)orders[EPOCH_RUN],
		      (unsigned long long)orders[EPOCH_COOL], (unsigned long long)s->e.stats.promoted_by_epoch);
	assert_int_equal(s->e.stats.promoted_by_flush, 0);
	if (!tunable) {
		assert_true(s->e.stats.promoted_by_epoch > 0 && s->e.epoch.state == EPOCH_COOL);
		assert_true(sim_explained(s, WHY_EPOCH, " hot below, estimated ") > 0);
		assert_int_equal(sim_explained(s, WHY_EPOCH, " 0 hot below") + sim_explained(s, WHY_EPOCH, "estimated 0;") +
				 sim_explained(s, WHY_EPOCH, "may raise 0;"), 0);
	}
	sim_remove(s);
	return at_the_end;
}

/*
 * Slow-read blocks are never enough to go up by themselves.  An epoch finds the hot regions before it is over: by what was
 * read slowly, and with a clock even if none of that is told, by its buckets.  In the rest after it nothing is looked for.
 */
static void epochs_find_the_hot_regions(void **state)
{
	(void)state;
	for (int heat = HEAT_RALT; heat <= HEAT_CLOCK; heat++) {
		uint64_t orders[EPOCH_STATES] = { 0 };

		assert_true(found_in_an_epoch((enum heat_kind)heat, 40000, NULL, NULL, orders) > 0.8);
		assert_true(orders[EPOCH_RUN] >= 16);
		assert_int_equal(orders[EPOCH_COOL], 0);
	}
}

/* By estimates alone not all regions have had their turn when an epoch ends if few have it in a tick; by RALT's it finds less where nothing is asked. */
static void turns_of_an_epoch_change_the_outcome(void **state)
{
	static const struct {
		enum heat_kind heat;
		const char *tunable, *usual, *less;
	} cases[] = { { HEAT_CLOCK, "turn_regions", "1024", "16" }, { HEAT_RALT, "asked_blocks", "128", "0" } };

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint64_t orders[EPOCH_STATES] = { 0 };
		double usually = found_in_an_epoch(cases[i].heat, 10000, cases[i].tunable, cases[i].usual, orders);

		assert_true(found_in_an_epoch(cases[i].heat, 10000, cases[i].tunable, cases[i].less, orders) < 0.8 * usually);
	}
}

static int stale_summaries(struct port *port, uint64_t first, uint32_t nr, struct terrace_summary *out)
{
	int got = sim_summaries(port, first, nr, out);

	for (int i = 0; i < got; i++) {
		out[i].flags |= TERRACE_SUMMARY_STALE;
		out[i].dirty = 0;
	}
	return got;
}

/* Half of each hot region was written after it was counted: that is not taken for clean slots of what is packed. */
static void hot_regions_that_are_stale_come_up(void **state)
{
	struct sim *s = only_epochs(1024, HEAT_CLOCK);
	struct port_ops ops;

	(void)state;
	s->c.tuning.epoch.min_epoch_ops = 20000;
	sim_open(s);
	ops = *s->port.ops;
	ops.summaries = stale_summaries;
	s->port.ops = &ops;
	for (uint64_t r = 0; r < 8; r++)
		for (uint64_t i = 0; i < REGION_BLOCKS / 2; i++)
			volume_write(&s->v, r * 64 * REGION_BLOCKS + i);
	for (int i = 0; i < 80000; i++) {
		sim_access(s, prng_below(&s->prng, 8) * 64 * REGION_BLOCKS + prng_below(&s->prng, REGION_BLOCKS), false);
		s->heard[s->nr_heard - 1].where = PORT_FAST;	/* what is read slowly is not told: by the estimates alone */
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	print_message("%.3f came up\n", come_up(s, 64, 8));
	assert_true(come_up(s, 64, 8) > 0.8);
	sim_remove(s);
}

/*
 * What comes up goes down again at once, as where more is hot than fits and the janitor makes room: an epoch does not fight
 * it, but raises no more blocks than could have saved a slow read.
 */
static void an_epoch_does_not_raise_in_vain(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	const struct upmask none = { 0 };
	uint64_t slow;

	(void)state;
	s->c.heat = HEAT_CLOCK;
	s->c.tuning.governor.epoch_ops = 1000000000;
	s->c.tuning.epoch.cool_down_ops = 0;
	sim_open(s);
	for (uint64_t i = 0; i < 100000; i++) {
		sim_access(s, prng_below(&s->prng, 4096), false);
		if (i % 64 != 63)
			continue;
		assert_int_equal(sim_tick(s), 0);
		for (uint64_t r = 0; r < 4; r++)
			volume_move(&s->v, (i / 64 * 4 + r) % 8, &none, MOVE_APPEND);
	}
	slow = s->v.reads - s->v.fast_hits;
	print_message("%llu slow reads, %llu blocks raised in %llu epochs\n", (unsigned long long)slow,
		      (unsigned long long)s->e.stats.promoted_by_epoch, (unsigned long long)s->e.epoch.epochs_run);
	assert_true(s->e.epoch.epochs_run > 1);
	assert_true(s->e.stats.promoted_by_epoch > 0);
	assert_true(s->e.stats.promoted_by_epoch <= slow);
	sim_remove(s);
}

/* What is hot and lies below may not come up: it is not looked for again and again, for each look reads RALT's runs. */
static void an_epoch_does_not_look_in_vain(void **state)
{
	struct sim *s = only_epochs(1024, HEAT_RALT);
	uint64_t ticks = 0, looks;

	(void)state;
	s->c.tuning.epoch.min_epoch_ops = 20000;
	sim_open(s);
	for (uint64_t r = 0; r < 16; r++)
		engine_ban(&s->e, r * 64 * REGION_BLOCKS, REGION_BLOCKS, true);
	for (int i = 0; i < 80000; i++) {
		sim_access(s, prng_below(&s->prng, 16) * 64 * REGION_BLOCKS + prng_below(&s->prng, REGION_BLOCKS), false);
		if (i % 64 != 63)
			continue;
		ticks += epoch_moves(&s->e.epoch);
		assert_int_equal(sim_tick(s), 0);
	}
	looks = s->e.stats.epoch_looks;
	print_message("%llu looks in %llu ticks of epochs\n", (unsigned long long)looks, (unsigned long long)ticks);
	assert_true(ticks > 100);
	assert_true(looks >= 16);
	assert_true(looks <= ticks + 16);
	sim_remove(s);
}

/* The hottest region's metadata cannot be read: what comes up of so many hot blocks in each of eight others, and with how many looks. */
static double others_come_up(uint64_t blocks, double vain_seconds, uint64_t *looks)
{
	struct sim *s = only_epochs(1024, HEAT_CLOCK);
	double others = 0;

	s->c.tuning.epoch.min_epoch_ops = 20000;
	s->c.tuning.epoch.vain_seconds = vain_seconds;
	s->unreadable = 512;
	sim_open(s);
	for (int i = 0; i < 80000; i++) {
		uint64_t region = i % 2 ? 512 : prng_below(&s->prng, 8) * 64;

		sim_access(s, region * REGION_BLOCKS + prng_below(&s->prng, i % 2 ? REGION_BLOCKS : blocks), false);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	for (uint64_t r = 0; r < 8; r++)
		for (uint64_t i = 0; i < blocks; i++)
			others += s->v.place[r * 64 * REGION_BLOCKS + i] != PLACE_PACKED;
	others /= 8 * (double)blocks;
	print_message("%.3f of the others came up, %llu looks\n", others, (unsigned long long)s->e.stats.epoch_looks);
	*looks = s->e.stats.epoch_looks;
	sim_remove(s);
	return others;
}

/* They do all the same, and it is looked at now and then only. */
static void a_region_that_cannot_be_read_does_not_keep_an_epoch(void **state)
{
	uint64_t looks;

	(void)state;
	assert_true(others_come_up(REGION_BLOCKS, 10, &looks) > 0.8);
	assert_true(looks < 80000 / 64);
}

/* It is looked at in each tick, unless it is left alone for a while. */
static void vain_seconds_change_the_outcome(void **state)
{
	uint64_t at_once, later;

	(void)state;
	others_come_up(256, 10, &later);
	others_come_up(256, 0, &at_once);
	assert_true(at_once > 3 * later);
}

/* What epochs bring up with that tunable: of 16 hot regions, a tenth of the accesses being writes, and then of 16 others. */
static uint64_t raised_in_epochs(const char *tunable, const char *value, double min_gain)
{
	struct sim *s = only_epochs(1024, HEAT_CLOCK);
	uint64_t raised;

	s->c.tuning.epoch.min_gain = min_gain;
	if (tunable)
		assert_null(tuning_set(&s->c.tuning, "epoch", tunable, value));
	sim_open(s);
	for (int i = 0; i < 80000; i++) {
		uint64_t region = i % 8 ? prng_below(&s->prng, 16) * 64 + (i >= 50000) : prng_below(&s->prng, 1024);

		sim_access(s, region * REGION_BLOCKS + prng_below(&s->prng, REGION_BLOCKS), prng_unit(&s->prng) < 0.1);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	raised = s->e.stats.promoted_by_epoch;
	sim_remove(s);
	return raised;
}

static void each_tunable_of_epochs_changes_the_outcome(void **state)
{
	static const struct {
		const char *tunable, *value;
		bool more, once;	/* one epoch, whatever it gains: else the next one has what its measurement would */
	} cases[] = {
		{ "epoch_ops", "100000000", false, false }, { "cool_down_ops", "0", true, false },
		{ "reference_blocks", "100000", false, false }, { "min_epoch_ops", "1000000", false, false },
		{ "monitor_share", "1", true, true }, { "min_gain", "1", false, false },
		{ "read_share", "0.95", false, false }, { "slow_share", "1", false, false },
		{ "looks", "1", false, false },
	};
	uint64_t usually[2] = { raised_in_epochs(NULL, NULL, 0.01), raised_in_epochs(NULL, NULL, 1) };

	(void)state;
	print_message("usually %llu blocks, in one epoch %llu\n", (unsigned long long)usually[0], (unsigned long long)usually[1]);
	/* turn_regions, asked_blocks, vain_seconds: see above */
	assert_int_equal(sizeof(cases) / sizeof(cases[0]) + 3, epoch_tunable_table.count);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t usual = usually[cases[i].once];
		uint64_t raised = raised_in_epochs(cases[i].tunable, cases[i].value, cases[i].once ? 1 : 0.01);

		print_message("%s = %s: %llu\n", cases[i].tunable, cases[i].value, (unsigned long long)raised);
		if (cases[i].more)
			assert_true((double)raised > 1.1 * (double)usual);
		else
			assert_true((double)raised < 0.9 * (double)usual);
	}
}

/* Where a search of 20 periods has come to. */
static double climbed_with(uint64_t seed, double from, double min, double read_share, double *hits)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	double reached;

	s->prng.state = seed;
	s->c.heat = HEAT_CLOCK;
	s->c.tuning.mapper.pinning_threshold = from;
	s->c.tuning.climb.min = min;
	s->c.tuning.climb.read_share = read_share;
	s->c.tuning.governor.epoch_ops = 10000;
	s->c.tuning.governor.min_moved = 1e9;
	sim_open(s);
	sim_hotspot(s, 200000, 4096, 0.9, 0.3);
	*hits = sim_hit_rate(s, 20000, 4096);
	reached = s->e.c.tuning.mapper.pinning_threshold;
	sim_remove(s);
	return reached;
}

static double climbed_above(uint64_t seed, double from, double min, double *hits)
{
	return climbed_with(seed, from, min, 0.1, hits);
}

static double climbed(uint64_t seed, double from, double *hits)
{
	return climbed_above(seed, from, 0.1, hits);
}

/*
 * The clock's pinning threshold starts far too low, and finds its way up to where the hot set fits: whatever the seed.
 * Epochs of 10,000 operations are so short that chance moves a hit rate by half a point.
 */
static void the_pinning_threshold_climbs(void **state)
{
	double fixed, hits, lowest = 1, sum = 0;

	(void)state;
	/* Below climb.min it is fixed. */
	assert_near(climbed(42, 0.05, &fixed), 0.05, 1e-9);
	for (uint64_t seed = 42; seed < 62; seed++) {
		double reached = climbed(seed, 0.1, &hits);

		lowest = reached < lowest ? reached : lowest;
		sum += hits / 20;
	}
	print_message("lowest threshold %.3f; hit rate %.3f, fixed %.3f\n", lowest, sum, fixed);
	assert_true(lowest > 0.2);
	assert_true(sum > fixed + 0.02);
}

/* A reload that changes nothing of the search, or not the start of it, does not throw away what it has found. */
static void a_reload_keeps_the_threshold_that_was_found(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	struct engine_config c;
	struct climb found;

	(void)state;
	s->c.heat = HEAT_CLOCK;
	s->c.tuning.mapper.pinning_threshold = 0.1;
	s->c.tuning.governor.epoch_ops = 10000;
	s->c.tuning.governor.min_moved = 1e9;
	sim_open(s);
	sim_hotspot(s, 100000, 4096, 0.9, 0.3);
	c = s->c;
	found = s->e.climb;
	assert_true(found.value > 0.15);
	assert_near(s->e.c.tuning.mapper.pinning_threshold, found.value, 0);
	c.tuning.choose.candidates++;
	for (int i = 0; i < 2; i++) {
		engine_retune(&s->e, &c);
		assert_near(s->e.c.tuning.mapper.pinning_threshold, found.value, 0);
		assert_memory_equal(&s->e.climb, &found, sizeof(found));
	}
	/* Another search, another start: begun anew. */
	c.tuning.climb.max = 0.8;
	engine_retune(&s->e, &c);
	assert_near(s->e.c.tuning.mapper.pinning_threshold, 0.1, 0);
	assert_near(s->e.climb.value, 0.1, 0);
	assert_near(s->e.climb.periods, 0, 0);
	c.tuning.mapper.pinning_threshold = 0.3;
	engine_retune(&s->e, &c);
	assert_near(s->e.c.tuning.mapper.pinning_threshold, 0.3, 0);
	assert_near(s->e.climb.value, 0.3, 0);
	/* Where it is fixed no search goes on. */
	c.tuning.mapper.pinning_threshold = 0.05;
	for (int i = 0; i < 2; i++) {
		engine_retune(&s->e, &c);
		assert_false(s->e.climbs);
		assert_near(s->e.c.tuning.mapper.pinning_threshold, 0.05, 0);
	}
	sim_remove(s);
}

/* From the same start: below the lowest value it is fixed, else it climbs and more is served fast. */
static void climb_min_changes_the_outcome(void **state)
{
	double fixed, hits;

	(void)state;
	assert_near(climbed_above(42, 0.05, 0.1, &fixed), 0.05, 1e-9);
	assert_true(climbed_above(42, 0.05, 0.01, &hits) > 0.1);
	print_message("hit rate %.3f, fixed %.3f\n", hits, fixed);
	assert_true(hits > fixed + 0.01);
}

/* A third of what is done is writes: that says enough, or nothing, and then it is where it began but for the two epochs of reads at the end. */
static void climb_read_share_changes_the_outcome(void **state)
{
	double hits, enough = climbed_with(42, 0.1, 0.1, 0.1, &hits), nothing = climbed_with(42, 0.1, 0.1, 1, &hits);

	(void)state;
	print_message("%.3f, and where only reads say something %.3f\n", enough, nothing);
	assert_true(enough > nothing + 0.05);
	assert_true(nothing < 0.2 + 1e-9);
}

/* Any epoch is a period then, but one without a read has nothing that could be told of it: the search goes on with the next. */
static void an_epoch_of_writes_does_not_end_the_climb(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	s->c.heat = HEAT_CLOCK;
	s->c.tuning.mapper.pinning_threshold = 0.1;
	s->c.tuning.climb.read_share = 0;
	s->c.tuning.governor.epoch_ops = 10000;
	s->c.tuning.governor.min_moved = 1e9;
	sim_open(s);
	sim_hotspot(s, 20000, 4096, 0.9, 1);
	assert_int_equal(s->v.reads, 0);
	assert_near(s->e.climb.periods, 0, 0);
	sim_hotspot(s, 200000, 4096, 0.9, 0.3);
	print_message("%.3f after an epoch of writes\n", s->e.c.tuning.mapper.pinning_threshold);
	assert_true(s->e.c.tuning.mapper.pinning_threshold > 0.2);
	sim_remove(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(epochs_find_the_hot_regions),
		cmocka_unit_test(turns_of_an_epoch_change_the_outcome),
		cmocka_unit_test(hot_regions_that_are_stale_come_up),
		cmocka_unit_test(an_epoch_does_not_raise_in_vain),
		cmocka_unit_test(an_epoch_does_not_look_in_vain),
		cmocka_unit_test(a_region_that_cannot_be_read_does_not_keep_an_epoch),
		cmocka_unit_test(vain_seconds_change_the_outcome),
		cmocka_unit_test(each_tunable_of_epochs_changes_the_outcome),
		cmocka_unit_test(the_pinning_threshold_climbs),
		cmocka_unit_test(a_reload_keeps_the_threshold_that_was_found),
		cmocka_unit_test(climb_min_changes_the_outcome),
		cmocka_unit_test(climb_read_share_changes_the_outcome),
		cmocka_unit_test(an_epoch_of_writes_does_not_end_the_climb),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
