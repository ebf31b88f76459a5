// SPDX-License-Identifier: GPL-2.0-or-later
/* The daemon's loop on a simulated volume: what comes up, and what does not. */
#include "sim_lib.h"

#define BLOCKS	(64 * 1024)
#define FAST	(8 * 1024)

/* 4096 hot blocks of 8192 fast ones get 95 %: most of that is served fast in the end. */
static void hot_blocks_come_up(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	sim_open(s);
	sim_hotspot(s, 60000, 4096, 0.95, 0);
	assert_true(sim_hit_rate(s, 10000, 4096) > 0.85);
	assert_true(s->e.stats.promoted_by_flush > 3000);
	assert_int_equal(s->e.stats.failed, 0);
	assert_true(s->e.stats.flushes > 0);
	sim_remove(s);
}

/* A fifth of the reads to 6 % of the blocks: an LRU has few more hits than by chance, but it is the same blocks each time. */
static void skew_that_only_lasts_is_enough(void **state)
{
	(void)state;
	for (int asked = 0; asked < 2; asked++) {
		struct sim *s = sim_create(BLOCKS, FAST);

		if (!asked)
			s->c.tuning.admit.lasting = 0;
		sim_open(s);
		sim_hotspot(s, 6 * BLOCKS, BLOCKS * 6 / 100, 0.2, 0);
		assert_true(shards_lasting(&s->e.shards) > 0.3);
		assert_int_equal(hear_skewed(&s->e), asked);
		assert_int_equal(s->e.stats.promoted_by_flush > BLOCKS / 50, asked);
		assert_int_equal(s->e.stats.promoted_by_flush > 0, asked);
		sim_remove(s);
	}
}

/* While there is room all goes up at first sight; without it a batch by its hot blocks, of which half a run is enough. */
static void flushes_are_explained(void **state)
{
	(void)state;
	for (int full = 0; full < 2; full++) {
		struct sim *s = sim_create(BLOCKS, FAST);

		s->c.tuning.admit.fill = full ? 0 : 0.9;
		s->c.tuning.flush.run_blocks = 512;
		sim_open(s);
		for (int i = 0; i < 400 && !s->e.stats.orders[WHY_FLUSH]; i++)
			sim_hotspot(s, 1000, 4096, 0.95, 0);
		assert_true(s->e.stats.orders[WHY_FLUSH] > 0);
		assert_int_equal(sim_explained(s, WHY_FLUSH, " admitted at first sight, 256 are enough, ") > 0, !full);
		assert_int_equal(sim_explained(s, WHY_FLUSH, " hot, 256 are enough, ") > 0, full);
		assert_int_equal(sim_explained(s, WHY_FLUSH, "score"), 0);
		sim_remove(s);
	}
}

/* Of two fast tiers writes have filled the first: blocks come up to the second. */
static void a_full_first_tier_does_not_end_promotions(void **state)
{
	(void)state;
	for (uint64_t kept = 0; kept <= FAST / 16; kept += FAST / 16) {
		struct sim *s = sim_create(BLOCKS, FAST);

		s->top = FAST / 4;
		s->kept_back = kept;
		sim_open(s);
		for (uint64_t b = 0; s->v.fast_used < s->top - kept; b++)
			volume_write(&s->v, b * 7 % BLOCKS);
		sim_hotspot(s, 60000, 4096, 0.95, 0);
		assert_true(s->e.stats.promoted_by_flush > 1000);
		assert_int_equal(s->to_full, 0);
		assert_true(s->e.stats.written_bytes[1] > 1000 * 4096);
		assert_int_equal(s->e.coming_to[0] + s->e.coming_to[1], s->e.coming);
		sim_remove(s);
	}
}

/* A promotion cache that holds less than a run's hot share is judged by its own size. */
static void hot_blocks_come_up_through_a_small_cache(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	s->c.cache_blocks = 64;
	sim_open(s);
	sim_hotspot(s, 60000, 4096, 0.95, 0);
	print_message("promoted by flush: %llu\n", (unsigned long long)s->e.stats.promoted_by_flush);
	assert_true(s->e.stats.promoted_by_flush > 1000);
	sim_remove(s);
}

/*
 * Sixty blocks become hot among others that are fast, far fewer than a batch: as soon as slow reads of them have been as many as
 * a batch has blocks they go up, and the volume has no slow reads any more.
 */
static void a_few_hot_blocks_do_not_wait_for_more(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	uint64_t slow;
	uint32_t up = 0;

	(void)state;
	s->c.tuning.epoch.slow_share = 1;	/* nothing else brings them up */
	sim_open(s);
	sim_hotspot(s, 60000, 4096, 1, 0);
	s->e.fresh = 0;
	for (int i = 0; i < 20000; i++) {
		sim_access(s, i % 10 ? prng_below(&s->prng, 4096) * 16 : prng_below(&s->prng, 60) * 64 + 7, false);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	slow = s->e.stats.slow_reads;
	for (int i = 0; i < 4096; i++) {
		sim_access(s, prng_below(&s->prng, 60) * 64 + 7, false);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	for (uint64_t b = 0; b < 60; b++)
		up += s->v.place[b * 64 + 7] != PLACE_PACKED;
	print_message("%u of 60 are up, %u of 4096 reads were slow\n", up, (uint32_t)(s->e.stats.slow_reads - slow));
	assert_true(up >= 58);
	assert_true(s->e.stats.slow_reads - slow < 200);
	assert_true(sim_explained(s, WHY_FLUSH, ", fewer than 128, but read slowly again ") > 0);
	sim_remove(s);
}

/* The same where the sense does not say where reads went: the book's masks do. */
static void masks_tell_slow_reads(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	s->tells_where = false;
	sim_open(s);
	sim_hotspot(s, 60000, 4096, 0.95, 0);
	assert_true(sim_hit_rate(s, 10000, 4096) > 0.85);
	sim_remove(s);
}

/* Hot blocks that lie together: those that chance has not had read yet go up with the others. */
static void neighbours_go_up_with_hot_blocks(void **state)
{
	double hits[2];

	(void)state;
	for (int with = 0; with < 2; with++) {
		struct sim *s = sim_create(BLOCKS, FAST);

		s->c.tuning.flush.neighbours = with ? 0.6 : 2;
		sim_open(s);
		/* One and a half times the hot set: a fifth of it is not seen. */
		for (int i = 0; i < 9216; i++) {
			sim_access(s, i % 3 ? prng_below(&s->prng, 4096) : prng_below(&s->prng, BLOCKS), false);
			if (i % 64 == 63)
				assert_int_equal(sim_tick(s), 0);
		}
		hits[with] = 0;
		for (uint64_t block = 0; block < 4096; block++)
			hits[with] += s->v.place[block] != PLACE_PACKED;
		sim_remove(s);
	}
	print_message("fast of 4096: %.0f with neighbours, %.0f without\n", hits[1], hits[0]);
	assert_true(hits[1] > 1.15 * hits[0]);
}

/* Hot blocks that lie apart have none: of so many orders, how often is it looked. */
static double looked_for_neighbours(uint32_t lonely_batches)
{
	struct sim *s = sim_create(BLOCKS, 2 * FAST);
	uint64_t looks, orders;

	s->c.tuning.flush.lonely_batches = lonely_batches;
	sim_open(s);
	for (int i = 0; i < 60000; i++) {
		sim_access(s, i % 3 ? prng_below(&s->prng, 4096) * 16 : prng_below(&s->prng, BLOCKS), false);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	looks = s->e.stats.neighbour_looks;
	orders = s->e.stats.orders[WHY_FLUSH];
	print_message("%llu looks for %llu orders\n", (unsigned long long)looks, (unsigned long long)orders);
	assert_true(looks >= 64);
	assert_true(orders > 300);
	sim_remove(s);
	return (double)looks / (double)orders;
}

/* Their regions are looked into once in eight batches, unless it is said otherwise. */
static void neighbours_are_not_looked_for_in_vain(void **state)
{
	(void)state;
	assert_true(looked_for_neighbours(7) <= 0.25);
	assert_true(looked_for_neighbours(0) > 0.9);
}

/*
 * Half writes to more than the fast tier holds, and whoever makes room makes much of it: what is free for a moment is not
 * filled by whatever is read next, for it goes down again before it is read twice.
 */
static void room_that_was_made_is_not_filled_at_first_sight(void **state)
{
	struct sim *s = sim_create(BLOCKS, 1024);
	const struct upmask none = { 0 };
	uint64_t before = 0;

	(void)state;
	s->c.tuning.governor.epoch_ops = 1000000000;
	sim_open(s);
	for (int i = 0; i < 120000; i++) {
		sim_access(s, prng_below(&s->prng, 8192), i & 1);
		if (i % 512 == 511)
			assert_int_equal(sim_tick(s), 0);
		for (uint64_t r = 0; s->v.fast_used > 1000 && r < 4; r++)
			volume_move(&s->v, (uint64_t)i % 2 * 4 + r, &none, MOVE_APPEND);
		if (i == 20000)
			before = s->e.stats.first_sight;
	}
	print_message("%llu blocks at first sight while it filled, %llu afterwards\n", (unsigned long long)before,
		      (unsigned long long)(s->e.stats.first_sight - before));
	assert_true(before > 0);
	assert_int_equal(s->e.stats.first_sight, before);
	sim_remove(s);
}

/* Where only slow reads are all told, heat and ghost cache see them at the rate of the others. */
static void slow_reads_are_thinned_for_heat(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	s->port.sampling = 1.0 / 16;
	s->port.slow_always = true;
	sim_open(s);
	for (int i = 0; i < 16000; i++) {
		sim_access(s, prng_below(&s->prng, BLOCKS), false);
		s->heard[s->nr_heard - 1].always = true;
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	assert_in_range(s->e.stats.accesses, 800, 1200);
	assert_in_range(s->e.stats.slow_reads, 15000, 16000);
	sim_remove(s);
}

static void a_merge_promotes_what_it_meets(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	s->c.tuning.msc.append_debt = 10;	/* appends look dear */
	s->c.tuning.governor.min_moved = 1e9;
	s->c.tuning.admit.skew = 1000;		/* flushes are held back */
	sim_open(s);
	for (uint64_t i = 0; i < 60000; i++) {
		bool write = i % 2;

		/* The hot ones are only read, so that writes do not bring them up. */
		sim_access(s, write ? prng_below(&s->prng, BLOCKS) : prng_below(&s->prng, 2048) * 32, write);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	assert_true(s->e.stats.promoted_by_compaction > 0);
	sim_remove(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hot_blocks_come_up),
		cmocka_unit_test(skew_that_only_lasts_is_enough),
		cmocka_unit_test(flushes_are_explained),
		cmocka_unit_test(a_full_first_tier_does_not_end_promotions),
		cmocka_unit_test(hot_blocks_come_up_through_a_small_cache),
		cmocka_unit_test(a_few_hot_blocks_do_not_wait_for_more),
		cmocka_unit_test(masks_tell_slow_reads),
		cmocka_unit_test(neighbours_go_up_with_hot_blocks),
		cmocka_unit_test(neighbours_are_not_looked_for_in_vain),
		cmocka_unit_test(room_that_was_made_is_not_filled_at_first_sight),
		cmocka_unit_test(slow_reads_are_thinned_for_heat),
		cmocka_unit_test(a_merge_promotes_what_it_meets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
