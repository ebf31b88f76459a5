// SPDX-License-Identifier: GPL-2.0-or-later
/* A leaf says what a plain array would, whatever is set, cleared, grown or torn. */
#include "core_lib.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define BLOCKS	TERRACE_REGION_BLOCKS
#define ABSENT	(~0ull)

/* The oracle: ABSENT, or a place, or TR_NO_PLACE as a value. */
static u64 oracle[BLOCKS];

static u64 oracle_place(u32 i)
{
	return oracle[i] == ABSENT ? TR_NO_PLACE : oracle[i];
}

static u32 oracle_run(u32 i, u32 max)
{
	u32 n;

	for (n = 1; n < max; n++) {
		if ((oracle[i] == ABSENT) != (oracle[i + n] == ABSENT))
			break;
		if (oracle[i] != ABSENT && oracle[i + n] != tr_place_add(oracle[i], n))
			break;
	}
	return n;
}

static void check_tiers(const struct tr_leaf *leaf, u32 tiers)
{
	u64 mask[TR_LEAF_WORDS] = { 0 };
	u32 i;

	tr_leaf_on_tiers(leaf, tiers, mask);
	for (i = 0; i < BLOCKS; i++)
		assert_int_equal(mask[i / 64] >> (i % 64) & 1,
				 oracle_place(i) != TR_NO_PLACE && tiers >> tr_place_tier(oracle[i]) & 1);
}

static void check_all(const struct tr_leaf *leaf)
{
	u32 i, nr = 0, next = BLOCKS;

	for (i = BLOCKS; i-- > 0;) {
		assert_int_equal(tr_leaf_has(leaf, i), oracle[i] != ABSENT);
		assert_int_equal(tr_leaf_get(leaf, i), oracle_place(i));
		if (oracle[i] != ABSENT) {
			nr++;
			next = i;
		}
		assert_int_equal(tr_leaf_next(leaf, i), next);
	}
	assert_int_equal(leaf->nr, nr);
	for (i = 0, nr = 0; i < BLOCKS; i++) {
		if (i % 64 == 0)
			assert_int_equal(leaf->rank[i / 64], nr);
		nr += oracle[i] != ABSENT;
	}
	assert_int_equal(tr_leaf_next(leaf, BLOCKS), BLOCKS);
	check_tiers(leaf, 0x05);
	check_tiers(leaf, 0xff);
}

static void check_run(const struct tr_leaf *leaf, u32 i, u32 max)
{
	u64 place = 1;

	assert_int_equal(tr_leaf_run(leaf, i, max, &place), oracle_run(i, max));
	assert_int_equal(place, oracle_place(i));
}

static void oracle_clear(void)
{
	u32 i;

	for (i = 0; i < BLOCKS; i++)
		oracle[i] = ABSENT;
}

static int fresh_oracle(void **state)
{
	(void)state;
	oracle_clear();
	return 0;
}

static u64 random_place(u64 *seed, bool high)
{
	u32 tier = random_below(seed, 8);

	switch (random_below(seed, 6)) {
	case 0:
		return TR_NO_PLACE;
	case 1: /* around the end of 32 bits */
		return tr_place(tier, (1u << 29) - random_below(seed, high ? 40 : 4000) - (high ? 0 : 2000));
	case 2:
		return high ? tr_place(tier, random_bits(seed) % (TERRACE_MAX_PLACE_INDEX - BLOCKS)) :
			      tr_place(tier, random_below(seed, 1000));
	default:
		return tr_place(tier, random_below(seed, 1u << 20));
	}
}

static u32 random_length(u64 *seed, u32 i)
{
	u32 n = random_below(seed, 3) ? 1 + random_below(seed, 5) : 1 + random_below(seed, BLOCKS);

	return n < BLOCKS - i ? n : BLOCKS - i;
}

static void random_set(struct tr_leaf *leaf, u64 *seed)
{
	u32 k, missing = 0, i = random_below(seed, BLOCKS), n = random_length(seed, i);
	u64 place = random_place(seed, true), last = tr_place_add(place, n - 1);
	bool high = tr_place_is_high(last) && !leaf->high;

	for (k = 0; k < n; k++)
		missing += oracle[i + k] == ABSENT;
	assert_int_equal(tr_leaf_missing(leaf, i, n), missing);
	if (leaf->nr + missing > leaf->cap || high) {
		assert_int_equal(tr_leaf_set(leaf, i, n, place), -ENOSPC);
		check_all(leaf);
		leaf_room(leaf, tr_leaf_room(leaf->nr + missing), leaf->high || high);
	}
	assert_int_equal(tr_leaf_set(leaf, i, n, place), 0);
	for (k = 0; k < n; k++)
		oracle[i + k] = tr_place_add(place, k);
}

static void random_clear(struct tr_leaf *leaf, u64 *seed)
{
	u32 k, i = random_below(seed, BLOCKS), n = random_length(seed, i);

	tr_leaf_clear(leaf, i, n);
	for (k = 0; k < n; k++)
		oracle[i + k] = ABSENT;
}

static void random_refit(struct tr_leaf *leaf, u64 *seed)
{
	struct tr_leaf other;

	if (random_below(seed, 2)) {
		leaf_room(leaf, leaf->nr + random_below(seed, 3), tr_leaf_needs_high(leaf) ||
			  random_below(seed, 2));
		return;
	}
	tr_leaf_init(&other);
	leaf_room(&other, leaf->nr, tr_leaf_needs_high(leaf));
	assert_int_equal(tr_leaf_copy(&other, leaf), 0);
	leaf_free(leaf);
	*leaf = other;
}

static void random_changes_agree_with_a_plain_array(void **state)
{
	struct tr_leaf leaf;
	u64 seed;
	u32 step, i;

	for (seed = 1; seed <= 12; seed++) {
		u64 rnd = seed * 0x9e3779b97f4a7c15ull;

		fresh_oracle(state);
		tr_leaf_init(&leaf);
		for (step = 0; step < 400; step++) {
			u32 what = random_below(&rnd, 10);

			if (what < 5)
				random_set(&leaf, &rnd);
			else if (what < 9)
				random_clear(&leaf, &rnd);
			else
				random_refit(&leaf, &rnd);
			check_all(&leaf);
			i = random_below(&rnd, BLOCKS);
			check_run(&leaf, i, 1);
			check_run(&leaf, i, random_length(&rnd, i));
			check_run(&leaf, i, BLOCKS - i);
		}
		leaf_free(&leaf);
	}
}

static void every_position_alone_and_together(void **state)
{
	struct tr_leaf leaf;
	u32 i, step, order;

	(void)state;
	tr_leaf_init(&leaf);
	leaf_room(&leaf, 1, false);
	for (i = 0; i < BLOCKS; i++) {
		oracle[i] = tr_place(i % 8, 7 * i);
		assert_int_equal(tr_leaf_set(&leaf, i, 1, oracle[i]), 0);
		assert_int_equal(tr_leaf_set(&leaf, (i + 1) % BLOCKS, 1, 0), -ENOSPC);
		check_all(&leaf);
		tr_leaf_clear(&leaf, i, 1);
		oracle[i] = ABSENT;
		check_all(&leaf);
	}
	leaf_room(&leaf, BLOCKS, false);
	for (order = 0; order < 3; order++) { /* upwards, downwards, strewn */
		for (step = 0; step < BLOCKS; step++) {
			i = order == 0 ? step : order == 1 ? BLOCKS - 1 - step : step * 389 % BLOCKS;
			oracle[i] = tr_place(order, 3 * i);
			assert_int_equal(tr_leaf_set(&leaf, i, 1, oracle[i]), 0);
			assert_int_equal(tr_leaf_get(&leaf, i), oracle[i]);
		}
		check_all(&leaf);
		tr_leaf_clear(&leaf, 0, BLOCKS);
		oracle_clear();
		check_all(&leaf);
	}
	leaf_free(&leaf);
}

static void runs_end_at_gaps_tiers_words_and_the_maximum(void **state)
{
	struct tr_leaf leaf;
	u32 i, max;

	(void)state;
	tr_leaf_init(&leaf);
	leaf_room(&leaf, BLOCKS, true);
	assert_int_equal(tr_leaf_set(&leaf, 60, 200, tr_place(1, 1000)), 0);
	assert_int_equal(tr_leaf_set(&leaf, 260, 10, tr_place(2, 1200)), 0); /* other tier */
	assert_int_equal(tr_leaf_set(&leaf, 270, 10, tr_place(2, 1211)), 0); /* one skipped */
	assert_int_equal(tr_leaf_set(&leaf, 1000, 24, tr_place(0, (1u << 29) - 12)), 0);
	for (i = 0; i < 200; i++)
		oracle[60 + i] = tr_place(1, 1000 + i);
	for (i = 0; i < 10; i++) {
		oracle[260 + i] = tr_place(2, 1200 + i);
		oracle[270 + i] = tr_place(2, 1211 + i);
	}
	for (i = 0; i < 24; i++)
		oracle[1000 + i] = tr_place(0, (1u << 29) - 12 + i);
	for (i = 0; i < BLOCKS; i++)
		for (max = 1; max <= BLOCKS - i; max = max < 70 ? max + 1 : max * 2)
			check_run(&leaf, i, max);
	leaf_free(&leaf);
}

static void the_low_half_does_not_wrap_into_a_run(void **state)
{
	struct tr_leaf leaf;
	u64 place;

	(void)state;
	tr_leaf_init(&leaf);
	leaf_room(&leaf, 2, false);
	assert_int_equal(tr_leaf_set(&leaf, 5, 1, 0xfffffff8), 0);
	assert_int_equal(tr_leaf_set(&leaf, 6, 1, 0), 0);
	assert_int_equal(tr_leaf_run(&leaf, 5, 2, &place), 1);
	assert_int_equal(place, 0xfffffff8);
	leaf_free(&leaf);
}

static void high_places_need_high_bytes(void **state)
{
	const u64 last_low = tr_place(6, (1u << 29) - 1), looks_like_none = 0xffffffff;
	const u64 top = tr_place(7, TERRACE_MAX_PLACE_INDEX);
	struct tr_leaf leaf;

	(void)state;
	assert_false(tr_place_is_high(last_low));
	assert_true(tr_place_is_high(looks_like_none));
	assert_true(tr_place_is_high(top));
	assert_false(tr_place_is_high(TR_NO_PLACE));
	tr_leaf_init(&leaf);
	leaf_room(&leaf, 8, false);
	assert_int_equal(tr_leaf_set(&leaf, 0, 1, last_low), 0);
	assert_int_equal(tr_leaf_set(&leaf, 1, 2, last_low), -ENOSPC);
	assert_int_equal(tr_leaf_set(&leaf, 1, 1, looks_like_none), -ENOSPC);
	assert_int_equal(tr_leaf_set(&leaf, 1, 1, TR_NO_PLACE), 0);
	assert_false(tr_leaf_needs_high(&leaf));
	leaf_room(&leaf, 8, true);
	assert_false(tr_leaf_needs_high(&leaf));
	assert_int_equal(tr_leaf_get(&leaf, 1), TR_NO_PLACE);
	assert_int_equal(tr_leaf_set(&leaf, 2, 1, looks_like_none), 0);
	assert_int_equal(tr_leaf_set(&leaf, 3, 1, top), 0);
	assert_true(tr_leaf_needs_high(&leaf));
	assert_int_equal(tr_leaf_get(&leaf, 0), last_low);
	assert_int_equal(tr_leaf_get(&leaf, 1), TR_NO_PLACE);
	assert_int_equal(tr_leaf_get(&leaf, 2), looks_like_none);
	assert_int_equal(tr_leaf_get(&leaf, 3), top);
	assert_int_equal(tr_leaf_replace(&leaf, leaf.low, NULL, 8), -ENOSPC);
	assert_int_equal(tr_leaf_replace(&leaf, leaf.low, leaf.high, 3), -ENOSPC);
	assert_int_equal(leaf.cap, 8);
	leaf_free(&leaf);
}

static void room_grows_by_little(void **state)
{
	u32 nr;

	(void)state;
	for (nr = 0; nr <= BLOCKS; nr++) {
		assert_in_range(tr_leaf_room(nr), nr, nr + nr / 4 + 16);
		assert_in_range(tr_leaf_room(nr), 0, BLOCKS);
	}
	/* leaves 72 bytes of the 256 that a loaded region may take beside its places */
	assert_true(sizeof(struct tr_leaf) <= 184);
}

static void torn_values_never_lead_out_of_the_arrays(void **state)
{
	u64 rnd = 99, place;
	struct tr_leaf leaf;
	u32 step, w, i, n;

	(void)state;
	for (step = 0; step < 20000; step++) {
		tr_leaf_init(&leaf);
		leaf.cap = random_below(&rnd, 20);
		leaf.low = leaf.cap ? room_for(leaf.cap * sizeof(u32)) : NULL;
		leaf.high = random_below(&rnd, 2) && leaf.cap ? room_for(leaf.cap) : NULL;
		leaf.nr = random_bits(&rnd);
		for (w = 0; w < TR_LEAF_WORDS; w++) {
			leaf.present[w] = random_bits(&rnd) | random_bits(&rnd);
			leaf.rank[w] = random_below(&rnd, 2) ? random_below(&rnd, 30) : random_bits(&rnd);
		}
		i = random_below(&rnd, BLOCKS);
		place = tr_leaf_get(&leaf, i);
		assert_true(place <= TR_NO_PLACE);
		n = tr_leaf_run(&leaf, i, BLOCKS - i, &place);
		assert_in_range(n, 1, BLOCKS - i);
		assert_in_range(tr_leaf_next(&leaf, i), i, BLOCKS);
		free(leaf.low);
		free(leaf.high);
	}
}

/* --- readers beside a writer ------------------------------------------------ */

static struct tr_leaf shared;
static atomic_uint sequence;
static atomic_bool stop;
static atomic_uint undisturbed[2];	/* reads of each reader */

/* Block i is absent or at place (tier, round * BLOCKS + i): any other answer is torn. */
static void *reader(void *arg)
{
	u64 rnd = 5 + (uintptr_t)arg, place;
	unsigned int before;
	u32 i, n, k;

	while (!atomic_load(&stop)) {
		i = random_below(&rnd, BLOCKS);
		before = atomic_load(&sequence);
		n = tr_leaf_run(&shared, i, random_below(&rnd, 2) ? 1 : BLOCKS - i, &place);
		atomic_thread_fence(memory_order_acquire);
		if (before & 1 || atomic_load(&sequence) != before)
			continue;
		atomic_fetch_add(&undisturbed[(uintptr_t)arg], 1);
		if (place == TR_NO_PLACE)
			continue;
		for (k = 0; k < n; k++)
			if (tr_place_index(place + 8ull * k) % BLOCKS != i + k)
				return "a reader whose sequence held saw a wrong place";
	}
	return NULL;
}

static void change(u64 *rnd, u32 round, u32 **dead_low, u8 **dead_high)
{
	u32 i = random_below(rnd, BLOCKS), n = random_length(rnd, i);
	u32 what = random_below(rnd, 4), cap;
	u64 place = tr_place(round % 8, (u64)(round % 2 ? 1 << 20 : round) * BLOCKS + i);
	bool high;

	*dead_low = NULL;
	*dead_high = NULL;
	atomic_fetch_add(&sequence, 1);
	if (what == 0) {
		tr_leaf_clear(&shared, i, n);
	} else if (what < 3) {
		tr_leaf_set(&shared, i, n, place); /* no room: no change */
	} else {
		*dead_low = shared.low;
		*dead_high = shared.high;
		cap = random_below(rnd, 2) ? shared.nr : tr_leaf_room(shared.nr + 64);
		high = random_below(rnd, 2) || tr_leaf_needs_high(&shared);
		tr_leaf_replace(&shared, cap ? room_for(cap * sizeof(u32)) : NULL,
				high && cap ? room_for(cap) : NULL, cap);
	}
	atomic_fetch_add(&sequence, 1);
}

static void readers_beside_a_writer_get_the_truth_or_try_again(void **state)
{
	enum { ROUNDS = 20000, READERS = 2 };
	static u32 *low[ROUNDS];
	static u8 *high[ROUNDS];
	pthread_t thread[READERS];
	u64 rnd = 7;
	void *fault;
	u32 i;

	(void)state;
	tr_leaf_init(&shared);
	for (i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, reader, (void *)(uintptr_t)i), 0);
	for (i = 0; i < ROUNDS; i++)
		change(&rnd, i, &low[i], &high[i]);
	for (i = 0; i < READERS; i++) /* even on a busy machine */
		while (!atomic_load(&undisturbed[i]))
			usleep(100);
	atomic_store(&stop, true);
	for (i = 0; i < READERS; i++) {
		pthread_join(thread[i], &fault);
		if (fault)
			fail_msg("%s", (char *)fault);
	}
	for (i = 0; i < ROUNDS; i++) {
		free(low[i]);
		free(high[i]);
	}
	leaf_free(&shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(random_changes_agree_with_a_plain_array, fresh_oracle),
		cmocka_unit_test_setup(every_position_alone_and_together, fresh_oracle),
		cmocka_unit_test_setup(runs_end_at_gaps_tiers_words_and_the_maximum, fresh_oracle),
		cmocka_unit_test(the_low_half_does_not_wrap_into_a_run),
		cmocka_unit_test(high_places_need_high_bytes),
		cmocka_unit_test(room_grows_by_little),
		cmocka_unit_test(torn_values_never_lead_out_of_the_arrays),
		cmocka_unit_test(readers_beside_a_writer_get_the_truth_or_try_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
