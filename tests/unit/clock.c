// SPDX-License-Identifier: GPL-2.0-or-later
/* The clock tracker: insertion at 0, promotion to the maximum, the hand, bounded memory. */
#include "policy_lib.h"

#include "decide/prng.h"
#include "decide/tracker.h"

struct fixture {
	struct tracker_tunables t;
	struct tracker tr;
	void *mem;
};

static void make(struct fixture *f, uint64_t limit)
{
	f->mem = malloc(tracker_bytes(limit));
	assert_int_equal(tracker_init(&f->tr, &f->t, limit, f->mem, tracker_bytes(limit)), 0);
}

static void set_up(struct fixture *f, uint64_t limit)
{
	tunable_defaults(&tracker_tunable_table, &f->t);
	make(f, limit);
}

static void first_access_enters_at_0_and_the_next_sets_3(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f, 4);
	assert_int_equal(tracker_value(&f.tr, 7, 0), TRACKER_NO_VALUE);
	assert_int_equal(tracker_touch(&f.tr, 7, 0), 0);
	assert_int_equal(tracker_touch(&f.tr, 7, 0), 3);
	assert_int_equal(tracker_touch(&f.tr, 7, 0), 3);
	assert_int_equal(tracker_value(&f.tr, 7, 0), 3);
	free(f.mem);
}

/*
 * Limit 4: blocks 1..4 tracked, 1..3 touched twice (value 3), 4 once (value 0).
 * A fifth block needs room: whichever way the hand goes, it lowers some of 1..3
 * and takes block 4, the only one at 0.
 */
static void the_hand_takes_the_block_at_0(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f, 4);
	for (uint64_t b = 1; b <= 4; b++)
		tracker_touch(&f.tr, b, 0);
	for (uint64_t b = 1; b <= 3; b++)
		tracker_touch(&f.tr, b, 0);
	tracker_touch(&f.tr, 5, 0);
	assert_int_equal(f.tr.count, 4);
	assert_int_equal(tracker_value(&f.tr, 4, 0), TRACKER_NO_VALUE);
	assert_int_equal(tracker_value(&f.tr, 5, 0), 0);
	for (uint64_t b = 1; b <= 3; b++)
		assert_true(tracker_value(&f.tr, b, 0) >= 2);
	free(f.mem);
}

/* All at 3: three sweeps lower everything to 0, the fourth takes the first it meets. */
static void a_full_tracker_of_popular_blocks_still_makes_room(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f, 4);
	for (int twice = 0; twice < 2; twice++)
		for (uint64_t b = 1; b <= 4; b++)
			tracker_touch(&f.tr, b, 0);
	assert_int_equal(f.tr.population[3], 4);
	tracker_touch(&f.tr, 5, 0);
	assert_int_equal(f.tr.count, 4);
	assert_int_equal(f.tr.population[0], 4);
	free(f.mem);
}

static void a_new_generation_starts_cold(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f, 4);
	tracker_touch(&f.tr, 9, 1);
	tracker_touch(&f.tr, 9, 1);
	assert_int_equal(tracker_value(&f.tr, 9, 2), TRACKER_NO_VALUE);
	assert_int_equal(tracker_touch(&f.tr, 9, 2), 0);
	assert_int_equal(f.tr.count, 1);
	assert_true(tracker_forget(&f.tr, 9));
	assert_false(tracker_forget(&f.tr, 9));
	free(f.mem);
}

static void a_scan_does_not_displace_the_popular(void **state)
{
	struct fixture f;
	int kept = 0;

	(void)state;
	set_up(&f, 1000);
	for (int round = 0; round < 20; round++) {
		for (uint64_t b = 0; b < 500; b++)
			tracker_touch(&f.tr, b, 0);
		for (uint64_t b = 0; b < 400; b++)
			tracker_touch(&f.tr, 1000000 + (uint64_t)round * 400 + b, 0);
	}
	for (uint64_t b = 0; b < 500; b++)
		kept += tracker_value(&f.tr, b, 0) > 0;
	assert_true(kept >= 490);
	free(f.mem);
}

/* Random operations against the invariants: counts, populations, the watch's view. */
struct shadow {
	int value[512];
};

static void shadow_watch(void *ctx, uint64_t block, int from, int to)
{
	struct shadow *s = ctx;

	assert_int_equal(s->value[block], from);
	s->value[block] = to;
}

static void the_watch_sees_every_change(void **state)
{
	struct fixture f;
	struct shadow s;
	struct prng p = { 1 };

	(void)state;
	set_up(&f, 100);
	for (int i = 0; i < 512; i++)
		s.value[i] = TRACKER_NO_VALUE;
	tracker_watch(&f.tr, shadow_watch, &s);
	for (int i = 0; i < 20000; i++) {
		uint64_t b = prng_below(&p, 512);

		if (prng_below(&p, 10))
			tracker_touch(&f.tr, b, 0);
		else
			tracker_forget(&f.tr, b);
	}
	uint64_t count = 0;

	for (uint64_t b = 0; b < 512; b++) {
		assert_int_equal(tracker_value(&f.tr, b, 0), s.value[b]);
		count += s.value[b] >= 0;
	}
	assert_int_equal(f.tr.count, count);
	assert_true(count <= 100);
	free(f.mem);
}

static void bad_arguments_are_refused(void **state)
{
	struct tracker_tunables t;
	struct tracker tr;
	uint64_t mem[8];

	(void)state;
	tunable_defaults(&tracker_tunable_table, &t);
	assert_int_equal(tracker_init(&tr, &t, 0, mem, sizeof(mem)), -EINVAL);
	assert_int_equal(tracker_init(&tr, &t, 100, mem, sizeof(mem)), -ENOMEM);
	assert_int_equal(tracker_init(&tr, &t, 4, mem, sizeof(mem)), 0);
	assert_int_equal(tracker_touch(&tr, TRACKER_BLOCK_LIMIT, 0), -ERANGE);
	t.clock_bits = 5;
	assert_int_equal(tracker_init(&tr, &t, 4, mem, sizeof(mem)), -EINVAL);
}

static void each_tunable_changes_the_outcome(void **state)
{
	struct fixture f;

	(void)state;
	assert_table_is_sound(&tracker_tunable_table, &f.t);
	f.t.clock_bits = 3;
	make(&f, 4);
	tracker_touch(&f.tr, 1, 0);
	assert_int_equal(tracker_touch(&f.tr, 1, 0), 7);
	free(f.mem);
	assert_int_equal(tracker_limit(&f.t, 1000), 200);
	f.t.tracked_share = 0.1;
	assert_int_equal(tracker_limit(&f.t, 1000), 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_access_enters_at_0_and_the_next_sets_3),
		cmocka_unit_test(the_hand_takes_the_block_at_0),
		cmocka_unit_test(a_full_tracker_of_popular_blocks_still_makes_room),
		cmocka_unit_test(a_new_generation_starts_cold),
		cmocka_unit_test(a_scan_does_not_displace_the_popular),
		cmocka_unit_test(the_watch_sees_every_change),
		cmocka_unit_test(bad_arguments_are_refused),
		cmocka_unit_test(each_tunable_changes_the_outcome),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
