// SPDX-License-Identifier: GPL-2.0-or-later
/* Replay newest first comes to what a naive replay in order of writing comes to. */
#include "core_lib.h"

#define BLOCKS		TERRACE_REGION_BLOCKS
#define REGIONS		6
#define MAX_RECORDS	8192
#define SPACE		(1u << 17)	/* blocks of each of two tiers */

/* --- a small volume that writes its own journal ------------------------------- */

struct model {
	u64 place[REGIONS][BLOCKS];	/* now */
	u64 pending[REGIONS];		/* range discard whose places are not freed yet, or 0 */
	u32 changed[REGIONS];		/* newest record of a block of it */
	bool used[2][SPACE];
	u32 hand[2];
	struct tr_record record[MAX_RECORDS + 1];
	u32 nr;				/* record k has number k, 1 .. nr */
	u64 rnd;
};

static struct model now, at_page, pure;

static void journal(struct model *m, u8 type, u64 block, u32 nr, u64 new, u64 old)
{
	m->record[++m->nr] = (struct tr_record){
		.type = type, .nr = nr, .block = block, .new = new, .old = old,
	};
	if (type != TERRACE_RECORD_DISCARD)
		assert_int_equal(tr_record_check(&m->record[m->nr]), 0);
}

static void mark(struct model *m, u64 place, u32 n, bool used)
{
	u32 k;

	for (k = 0; k < n && place != TR_NO_PLACE; k++)
		m->used[tr_place_tier(place)][tr_place_index(place) + k] = used;
}

/* One record for each run with one `old`, as the module writes them. */
static void change(struct model *m, u32 region, u32 i, u32 n, u64 place)
{
	u64 *at = m->place[region];
	u32 k, run;

	for (; n; i += run, n -= run, place = tr_place_add(place, run)) {
		for (run = 1; run < n; run++)
			if (at[i + run] != tr_place_add(at[i], run))
				break;
		if (place == TR_NO_PLACE && at[i] == TR_NO_PLACE)
			continue;
		journal(m, place == TR_NO_PLACE ? TERRACE_RECORD_UNMAP : TERRACE_RECORD_MAP,
			(u64)region * BLOCKS + i, run, place, at[i]);
		m->changed[region] = m->nr;
		mark(m, at[i], run, false);
		mark(m, place, run, true);
		for (k = 0; k < run; k++)
			at[i + k] = tr_place_add(place, k);
	}
}

static void resolve(struct model *m, u32 region)
{
	if (m->pending[region])
		change(m, region, 0, BLOCKS, TR_NO_PLACE);
	m->pending[region] = 0;
}

static u64 take_place(struct model *m, u32 n)
{
	u32 k, tier = random_below(&m->rnd, 2);

	for (;;) {
		if (m->hand[tier] + n > SPACE)
			m->hand[tier] = 0;
		for (k = 0; k < n && !m->used[tier][m->hand[tier] + k]; k++)
			;
		if (k == n)
			return tr_place(tier, m->hand[tier]);
		m->hand[tier] += k + 1;
	}
}

static void step(struct model *m)
{
	u32 region = random_below(&m->rnd, REGIONS), i = random_below(&m->rnd, BLOCKS);
	u32 n = random_below(&m->rnd, 4) ? 1 + random_below(&m->rnd, 4) : 1 + random_below(&m->rnd, BLOCKS);
	u32 what = random_below(&m->rnd, 100), k, last;

	n = min(n, BLOCKS - i);
	if (what < 70) {
		resolve(m, region);
		change(m, region, i, n, take_place(m, n));
	} else if (what < 90) {
		resolve(m, region);
		change(m, region, i, n, TR_NO_PLACE);
	} else if (what < 95) {
		last = region + random_below(&m->rnd, REGIONS - region);
		journal(m, TERRACE_RECORD_DISCARD, region, 0, last - region + 1, 0);
		for (k = region; k <= last; k++)
			m->pending[k] = m->nr;
	} else {
		resolve(m, region);
	}
}

static bool room_left(const struct model *m)
{
	/* the most that a step writes: a record for each block, twice */
	return m->nr + 2 * BLOCKS < MAX_RECORDS;
}

static void run_steps(struct model *m, u32 steps)
{
	while (steps-- && room_left(m))
		step(m);
}

/* --- naive: oldest first, on plain arrays --------------------------------------- */

static void naive(struct model *m, const struct tr_record *r)
{
	u32 region = r->block / BLOCKS, i = r->block % BLOCKS, k;

	if (r->type == TERRACE_RECORD_DISCARD && r->old)
		return; /* written again: happened before */
	if (r->type == TERRACE_RECORD_DISCARD) {
		for (k = 0; k < r->new * BLOCKS; k++)
			m->place[r->block + k / BLOCKS][k % BLOCKS] = TR_NO_PLACE;
		return;
	}
	for (k = 0; k < r->nr; k++)
		m->place[region][i + k] = r->type == TERRACE_RECORD_MAP ? tr_place_add(r->new, k) :
					  TR_NO_PLACE;
}

static void model_init(struct model *m, u64 rnd)
{
	u32 region, i;

	memset(m, 0, sizeof(*m));
	m->rnd = rnd;
	for (region = 0; region < REGIONS; region++)
		for (i = 0; i < BLOCKS; i++)
			m->place[region][i] = TR_NO_PLACE;
}

/* --- newest first ----------------------------------------------------------------- */

static struct tr_delta *new_delta(void)
{
	struct tr_delta *delta = calloc(1, sizeof(*delta));

	assert_non_null(delta);
	tr_leaf_init(&delta->leaf);
	return delta;
}

static void free_delta(struct tr_delta *delta)
{
	leaf_free(&delta->leaf);
	free(delta);
}

static bool concerns(const struct tr_record *r, u32 region)
{
	if (r->type == TERRACE_RECORD_DISCARD)
		return region >= r->block && region - r->block < r->new;
	return r->block / BLOCKS == region;
}

static u32 apply(struct tr_delta *delta, const struct tr_record *r, u64 seq)
{
	struct tr_leaf before = delta->leaf;
	bool high;
	u32 room = tr_delta_room(delta, r, &high);
	int decided;

	if (room > delta->leaf.cap || (high && !delta->leaf.high)) {
		assert_int_equal(tr_delta_apply(delta, r, seq), -ENOSPC);
		assert_memory_equal(&before, &delta->leaf, sizeof(before));
		leaf_room(&delta->leaf, room, high);
	}
	decided = tr_delta_apply(delta, r, seq);
	assert_true(decided >= 0);
	assert_int_equal(delta->leaf.nr, before.nr + decided);
	return decided;
}

/* Replays the regions of one partition: those with region % parts == part. */
static void replay_part(const struct model *m, u32 tail, u32 last, struct tr_delta **delta,
			u32 part, u32 parts)
{
	u32 k, region;

	for (k = last; k > tail; k--)
		for (region = part; region < REGIONS; region += parts)
			if (concerns(&m->record[k], region))
				apply(delta[region], &m->record[k], k);
}

/* The page of @region as it was in @old, then the delta, then the discard. */
static void load(const struct tr_delta *delta, const struct model *old, u32 region, u64 page_seq,
		 struct tr_leaf *leaf)
{
	u32 i, room, nr = 0;
	bool high;

	for (i = 0; i < BLOCKS; i++)
		nr += old->place[region][i] != TR_NO_PLACE;
	tr_leaf_init(leaf);
	leaf_room(leaf, nr, false);
	for (i = 0; i < BLOCKS; i++)
		if (old->place[region][i] != TR_NO_PLACE)
			assert_int_equal(tr_leaf_set(leaf, i, 1, old->place[region][i]), 0);
	room = tr_delta_overlay_room(delta, leaf, &high);
	if (room > leaf->cap || (high && !leaf->high)) {
		assert_int_equal(tr_delta_overlay(delta, leaf, NULL), -ENOSPC);
		assert_int_equal(leaf->nr, nr);
		leaf_room(leaf, max(room, nr), high);
	}
	assert_int_equal(tr_delta_overlay(delta, leaf, NULL), 0);
	assert_int_equal(leaf->nr, room);
	for (i = 0; i < BLOCKS && delta->discard_seq > page_seq; i++)
		if (!(delta->kept[i / 64] >> (i % 64) & 1))
			tr_leaf_clear(leaf, i, 1);
}

static void check_region(const struct model *m, u32 region, const struct tr_leaf *leaf)
{
	u32 i;

	for (i = 0; i < BLOCKS; i++) {
		assert_int_equal(tr_leaf_get(leaf, i), m->place[region][i]);
		assert_int_equal(tr_leaf_has(leaf, i), m->place[region][i] != TR_NO_PLACE);
	}
}

static void replay_and_check(u32 tail, u32 last, const u32 *page_seq, u32 parts)
{
	struct tr_delta *delta[REGIONS];
	struct tr_leaf leaf;
	u32 region, part;

	for (region = 0; region < REGIONS; region++)
		delta[region] = new_delta();
	for (part = 0; part < parts; part++)
		replay_part(&now, tail, last, delta, part, parts);
	for (region = 0; region < REGIONS; region++) {
		load(delta[region], &at_page, region, page_seq[region], &leaf);
		check_region(&pure, region, &leaf);
		leaf_free(&leaf);
		free_delta(delta[region]);
	}
}

/* --- the tests ----------------------------------------------------------------------- */

/*
 * Pages are written now and then, each by itself, with no discard of theirs
 * unresolved. The journal replayed begins before them, so that a delta also
 * has records that its page contains, and ends with any record: in the middle
 * of a write, or of the UNMAPs that follow a discard.
 */
static void newest_first_equals_oldest_first(void **state)
{
	u32 round, k, region, newest_page, last, page_seq[REGIONS], discards = 0;

	(void)state;
	for (round = 1; round <= 1200; round++) {
		model_init(&now, round * 0x9e3779b97f4a7c15ull);
		model_init(&at_page, 1);
		memset(page_seq, 0, sizeof(page_seq));
		newest_page = 0;
		while (now.nr < 100 + round % 200) {
			run_steps(&now, 1 + random_below(&now.rnd, 20));
			region = random_below(&now.rnd, REGIONS);
			if (now.pending[region] || now.nr > 100)
				continue;
			memcpy(at_page.place[region], now.place[region], sizeof(now.place[region]));
			newest_page = page_seq[region] = now.nr;
		}
		last = newest_page + random_below(&now.rnd, now.nr - newest_page + 1);

		model_init(&pure, 1);
		for (k = 1; k <= last; k++) {
			naive(&pure, &now.record[k]);
			discards += now.record[k].type == TERRACE_RECORD_DISCARD;
		}
		replay_and_check(0, last, page_seq, 1 + round % REGIONS);
	}
	assert_true(discards > round);
}

/* Writes the discards again that still have work to do, with all their regions. */
static u32 repeat_discards(struct model *m, u32 last)
{
	const struct tr_record *r;
	u32 k, region, repeated = 0;

	for (k = 1; k <= last; k++) {
		r = &m->record[k];
		if (r->type != TERRACE_RECORD_DISCARD || r->old)
			continue;
		for (region = 0; region < REGIONS; region++)
			if (concerns(r, region) && m->pending[region] == k)
				break;
		if (region == REGIONS)
			continue;
		journal(m, TERRACE_RECORD_DISCARD, r->block, 1, r->new, k);
		repeated++;
	}
	return repeated;
}

/*
 * A checkpoint that moves the tail: regions changed up to there get pages (and
 * their discards are resolved before); life goes on; the discards that are
 * still open are written again. Returns the new tail.
 */
static u32 checkpoint(struct model *m, u32 *page_seq, u32 *repeated)
{
	u32 region, tail = m->nr;

	for (region = 0; region < REGIONS; region++) {
		if (m->changed[region] <= page_seq[region])
			continue;
		resolve(m, region);
		memcpy(at_page.place[region], m->place[region], sizeof(m->place[region]));
		page_seq[region] = m->nr;
	}
	run_steps(m, random_below(&m->rnd, 12));
	*repeated += repeat_discards(m, tail);
	return tail;
}

static void a_discard_outlives_the_tail_and_stays_as_old_as_it_is(void **state)
{
	u32 round, k, tail, safe, last, repeated = 0, page_seq[REGIONS];

	(void)state;
	for (round = 1; round <= 800; round++) {
		model_init(&now, round * 0x9e3779b97f4a7c15ull);
		model_init(&at_page, 1);
		memset(page_seq, 0, sizeof(page_seq));
		tail = 0;
		safe = 0;
		for (k = random_below(&now.rnd, 5); k > 0; k--) {
			run_steps(&now, random_below(&now.rnd, 12));
			tail = checkpoint(&now, page_seq, &repeated);
			safe = now.nr; /* durable before the superblock that moves the tail */
			run_steps(&now, random_below(&now.rnd, 12));
		}
		last = safe + random_below(&now.rnd, now.nr - safe + 1);
		model_init(&pure, 1);
		for (k = 1; k <= last; k++)
			naive(&pure, &now.record[k]);
		replay_and_check(tail, last, page_seq, 1 + round % REGIONS);
	}
	assert_true(repeated > 100);
}

static void space_fn(u32 tier, u64 index, u32 n, bool used, void *ctx)
{
	struct model *m = ctx;
	u32 k;

	assert_int_equal(index / TERRACE_CHUNK_BLOCKS, (index + n - 1) / TERRACE_CHUNK_BLOCKS);
	assert_true(n);
	for (k = 0; k < n; k++)
		m->used[tier][index + k] = used;
}

static void space_follows_the_records(void **state)
{
	u32 round, k;

	(void)state;
	for (round = 1; round <= 100; round++) {
		model_init(&now, round * 0x2545f4914f6cdd1dull);
		now.hand[0] = TERRACE_CHUNK_BLOCKS - 100; /* some runs cross a border */
		run_steps(&now, 200);
		model_init(&pure, 1);
		for (k = 1; k <= now.nr; k++)
			tr_record_space(&now.record[k], space_fn, &pure);
		assert_memory_equal(pure.used, now.used, sizeof(now.used));
	}
}

static u32 calls;
static void count_fn(u32 tier, u64 index, u32 n, bool used, void *ctx)
{
	(void)tier;
	(void)index;
	(void)ctx;
	calls += used ? n << 16 : n;
}

static u32 space_of(u8 type, u64 new, u64 old)
{
	struct tr_record r = { .type = type, .nr = 3, .block = 1, .new = new, .old = old };

	calls = 0;
	tr_record_space(&r, count_fn, NULL);
	return calls;
}

static void each_type_of_record_moves_its_own_space(void **state)
{
	const u64 a = tr_place(0, 5), b = tr_place(1, 6), none = TR_NO_PLACE;

	(void)state;
	assert_int_equal(space_of(TERRACE_RECORD_MAP, a, b), 0x30003);
	assert_int_equal(space_of(TERRACE_RECORD_MAP, a, none), 0x30000);
	assert_int_equal(space_of(TERRACE_RECORD_UNMAP, none, b), 3);
	assert_int_equal(space_of(TERRACE_RECORD_UNMAP, none, none), 0);
	assert_int_equal(space_of(TERRACE_RECORD_DISCARD, 1, 0), 0);
	assert_int_equal(space_of(TERRACE_RECORD_RESIZE, 1, 0), 0);
	assert_int_equal(space_of(TERRACE_RECORD_PACK_ADD, a, 99), 0x30000);
	assert_int_equal(space_of(TERRACE_RECORD_PACK_DROP, a, 99), 3);
	assert_int_equal(space_of(TERRACE_RECORD_HOME_SET, 0, b), 3);
	assert_int_equal(space_of(TERRACE_RECORD_HOME_CLEAR, 0, none), 0);
	assert_int_equal(space_of(TERRACE_RECORD_CLEAN, a, 99), 0x30000);
}

static void a_run_is_cut_at_every_chunk_border(void **state)
{
	struct tr_record r = {
		.type = TERRACE_RECORD_MAP, .nr = 1024, .old = TR_NO_PLACE,
		.new = tr_place(1, 2 * TERRACE_CHUNK_BLOCKS - 1),
	};

	(void)state;
	model_init(&pure, 1);
	tr_record_space(&r, space_fn, &pure);
	assert_false(pure.used[1][2 * TERRACE_CHUNK_BLOCKS - 2]);
	assert_true(pure.used[1][2 * TERRACE_CHUNK_BLOCKS - 1]);
	assert_true(pure.used[1][2 * TERRACE_CHUNK_BLOCKS + 1022]);
	assert_false(pure.used[1][2 * TERRACE_CHUNK_BLOCKS + 1023]);
}

static void a_discard_still_collects_what_is_older_but_keeps_only_newer(void **state)
{
	const struct tr_record newer = { .type = TERRACE_RECORD_MAP, .nr = 2, .block = 10,
					 .new = tr_place(0, 100), .old = TR_NO_PLACE };
	const struct tr_record discard = { .type = TERRACE_RECORD_DISCARD, .block = 0, .new = 1 };
	const struct tr_record older = { .type = TERRACE_RECORD_MAP, .nr = 4, .block = 9,
					 .new = tr_place(0, 200), .old = TR_NO_PLACE };
	struct tr_delta *delta = new_delta();

	(void)state;
	assert_int_equal(apply(delta, &newer, 9), 2);
	assert_int_equal(apply(delta, &discard, 8), 0);
	assert_int_equal(apply(delta, &older, 7), 2);
	assert_int_equal(apply(delta, &discard, 6), 0);
	assert_int_equal(delta->discard_seq, 8);
	assert_int_equal(delta->newest_seq, 9);
	assert_int_equal(delta->kept[0], 3ull << 10);
	assert_int_equal(tr_leaf_get(&delta->leaf, 9), tr_place(0, 200));
	assert_int_equal(tr_leaf_get(&delta->leaf, 10), tr_place(0, 100));
	assert_int_equal(tr_leaf_get(&delta->leaf, 12), tr_place(0, 203));
	free_delta(delta);
}

static void what_a_delta_cannot_hold_is_said(void **state)
{
	struct tr_record r = { .type = TERRACE_RECORD_HOME_SET, .nr = 1 };
	struct tr_delta *delta = new_delta();

	(void)state;
	for (; r.type <= TERRACE_RECORD_HOME_CLEAR; r.type++)
		assert_int_equal(tr_delta_apply(delta, &r, 5), -EOPNOTSUPP);
	r.type = TERRACE_RECORD_RESIZE;
	assert_int_equal(tr_delta_apply(delta, &r, 5), 0);
	assert_int_equal(delta->newest_seq, 0);
	free_delta(delta);
}

static void high_places_get_high_bytes(void **state)
{
	const struct tr_record far = { .type = TERRACE_RECORD_MAP, .nr = 3, .block = 63, .old = TR_NO_PLACE,
				       .new = tr_place(3, (1u << 29) - 2) };
	const struct tr_record near = { .type = TERRACE_RECORD_MAP, .nr = 3, .block = 65, .old = TR_NO_PLACE,
					.new = tr_place(3, 7) };
	struct tr_delta *delta = new_delta();
	struct tr_leaf leaf;
	bool high = true;

	(void)state;
	assert_int_equal(tr_delta_room(delta, &near, &high), 3);
	assert_false(high);
	apply(delta, &near, 3);
	assert_null(delta->leaf.high);
	apply(delta, &far, 2);
	assert_non_null(delta->leaf.high);
	tr_leaf_init(&leaf);
	leaf_room(&leaf, 5, false);
	assert_int_equal(tr_delta_overlay_room(delta, &leaf, &high), 5);
	assert_false(high); /* the third block of `far`, the high one, was decided by `near` */
	assert_int_equal(tr_delta_overlay(delta, &leaf, NULL), 0);
	assert_int_equal(tr_leaf_get(&leaf, 64), tr_place(3, (1u << 29) - 1));
	assert_int_equal(tr_leaf_get(&leaf, 65), tr_place(3, 7));
	leaf_free(&leaf);
	free_delta(delta);
}

/*
 * Single blocks at random, now and then a run or a discard: with `arrival` a
 * delta comes to the same as without, sorted at the end or by a run.
 */
static void the_order_of_arrival_changes_nothing(void **state)
{
	u32 round, k;

	(void)state;
	for (round = 1; round <= 300; round++) {
		struct tr_delta *plain = new_delta(), *loose = new_delta();
		u64 rnd = round * 0x9e3779b97f4a7c15ull;
		bool high = round % 3 == 0;

		leaf_room(&plain->leaf, BLOCKS, high);
		leaf_room(&loose->leaf, BLOCKS, high);
		loose->arrival = room_for(BLOCKS * sizeof(*loose->arrival));
		u16 *arrival = loose->arrival;

		for (k = 2 + random_below(&rnd, 2000); k > 1; k--) {
			bool one = round % 4 || random_below(&rnd, 200);
			struct tr_record r = {
				.type = TERRACE_RECORD_MAP, .nr = one ? 1 : 1 + random_below(&rnd, 200),
				.block = random_below(&rnd, BLOCKS - 200), .old = TR_NO_PLACE,
				.new = tr_place(1, random_below(&rnd, 1u << 30) * (high ? 100ull : 1)),
			};

			if (!random_below(&rnd, 300))
				r = (struct tr_record){ .type = TERRACE_RECORD_DISCARD, .new = 1 };
			assert_int_equal(tr_delta_apply(plain, &r, k), tr_delta_apply(loose, &r, k));
		}
		tr_delta_sort(loose);
		assert_null(loose->arrival);
		assert_int_equal(plain->leaf.nr, loose->leaf.nr);
		assert_memory_equal(plain->leaf.present, loose->leaf.present, sizeof(plain->leaf.present));
		assert_memory_equal(plain->leaf.rank, loose->leaf.rank, sizeof(plain->leaf.rank));
		assert_memory_equal(plain->kept, loose->kept, sizeof(plain->kept));
		assert_int_equal(plain->newest_seq, loose->newest_seq);
		assert_int_equal(plain->discard_seq, loose->discard_seq);
		for (k = 0; k < BLOCKS; k++)
			assert_int_equal(tr_leaf_get(&plain->leaf, k), tr_leaf_get(&loose->leaf, k));
		free(arrival);
		free_delta(plain);
		free_delta(loose);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newest_first_equals_oldest_first),
		cmocka_unit_test(the_order_of_arrival_changes_nothing),
		cmocka_unit_test(a_discard_outlives_the_tail_and_stays_as_old_as_it_is),
		cmocka_unit_test(space_follows_the_records),
		cmocka_unit_test(each_type_of_record_moves_its_own_space),
		cmocka_unit_test(a_run_is_cut_at_every_chunk_border),
		cmocka_unit_test(a_discard_still_collects_what_is_older_but_keeps_only_newer),
		cmocka_unit_test(what_a_delta_cannot_hold_is_said),
		cmocka_unit_test(high_places_get_high_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
