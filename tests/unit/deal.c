// SPDX-License-Identifier: GPL-2.0-or-later
/* Every record reaches the shards of its region and of its chunks, newest first, none twice. */
#include "core_lib.h"
#include "deal.h"

#define RECORDS	(TR_DEAL_BLOCKS * TERRACE_RECORDS_PER_BLOCK)

static struct tr_record record[RECORDS];	/* oldest first */
static u8 *unit;
static u32 nr_records, nr_blocks;
static u64 seed;

static void start(void)
{
	unit = room_for(TR_DEAL_BLOCKS * TERRACE_BLOCK_BYTES);
	nr_records = 0;
}

/* Puts the records into blocks, each @full of them at most; record k has number k + 1. */
static void fill_blocks(u32 full)
{
	static const u8 uuid[TERRACE_UUID_BYTES] = "deal";
	struct tr_journal_link link = { .block_seq = 1, .record_seq = 1, .nonce = 7 };
	u32 k = 0, i;

	for (nr_blocks = 0; k < nr_records; nr_blocks++) {
		void *block = unit + nr_blocks * TERRACE_BLOCK_BYTES;

		assert_true(nr_blocks < TR_DEAL_BLOCKS);
		tr_jblock_start(block, &link, 7, uuid);
		for (i = 0; i < full && k < nr_records; i++)
			tr_jblock_append(block, &record[k++]);
		tr_jblock_seal(block, &link);
	}
}

static u64 any_place(u32 nr)
{
	u64 index = random_below(&seed, 100) * (u64)TERRACE_CHUNK_BLOCKS;

	if (random_below(&seed, 4))
		index += random_below(&seed, TERRACE_CHUNK_BLOCKS);
	else	/* across a border */
		index += 2048 * (1 + random_below(&seed, 8)) - 1 - random_below(&seed, min(nr, 2000u));
	if (!random_below(&seed, 10))
		index = TERRACE_MAX_PLACE_INDEX - nr + 1;
	return tr_place(random_below(&seed, TERRACE_MAX_TIERS), index);
}

static struct tr_record any_record(void)
{
	u32 nr = random_below(&seed, 2) ? 1 : 1 + random_below(&seed, 1024);
	struct tr_record r = { .type = 1 + random_below(&seed, 13), .nr = nr };

	r.block = (u64)random_below(&seed, 300) * TERRACE_REGION_BLOCKS +
		  random_below(&seed, TERRACE_REGION_BLOCKS - nr + 1);
	if (!random_below(&seed, 10))
		r.block = TR_MAX_BLOCKS - TERRACE_REGION_BLOCKS + r.block % TERRACE_REGION_BLOCKS;
	r.new = any_place(nr);
	r.old = random_below(&seed, 3) ? any_place(nr) : TR_NO_PLACE;
	switch (r.type) {
	case TERRACE_RECORD_PACK_ADD:
	case TERRACE_RECORD_PACK_DROP:
		r.nr = 1 + random_below(&seed, TERRACE_PACK_MAX_BLOCKS);
		r.new = any_place(r.nr);
		fallthrough;
	case TERRACE_RECORD_INDEX_ADD:
	case TERRACE_RECORD_INDEX_DROP:
		r.block >>= TERRACE_REGION_SHIFT;
		fallthrough;
	case TERRACE_RECORD_CLEAN:
		r.old = 1 + random_below(&seed, 1000);
		break;
	case TERRACE_RECORD_PACKED_MASK:
		r.nr = 1 + random_below(&seed, 64);
		r.block &= ~1023ull;
		r.old = 1;
	}
	return r;
}

/* --- what should be on the lists -------------------------------------------------- */

struct taken {
	u16 map_at[TR_DEAL_SHARDS], space_at[TR_DEAL_SHARDS];
};

static struct tr_deal *deal;
static struct taken taken;
static struct { u64 place; u32 nr; bool used; } run[4];
static u32 nr_runs;

static void collect(u32 tier, u64 index, u32 n, bool used, void *ctx)
{
	(void)ctx;
	for (; n; n--, index++) {
		if (!nr_runs || !(index % 2048) ||
		    run[nr_runs - 1].place + ((u64)run[nr_runs - 1].nr << 3) != tr_place(tier, index) ||
		    run[nr_runs - 1].used != used) {
			assert_true(nr_runs < 4);
			run[nr_runs].place = tr_place(tier, index);
			run[nr_runs].nr = 0;
			run[nr_runs++].used = used;
		}
		run[nr_runs - 1].nr++;
	}
}

static bool decides_all(const struct tr_record *r)
{
	return r->type == TERRACE_RECORD_MAP || r->type == TERRACE_RECORD_UNMAP ||
	       r->type == TERRACE_RECORD_CLEAN || r->type == TERRACE_RECORD_PACKED;
}

/* The next of its shard is record k. */
static void take_map(u32 k)
{
	const struct tr_record *r = &record[k];
	const struct tr_deal_map *entry;
	struct tr_record found;
	u64 region;
	u32 s;

	if (!tr_record_region(r, &region))
		return;
	s = tr_deal_shard(region);
	assert_int_not_equal(taken.map_at[s], deal->map_list[s].end);
	entry = &deal->map[taken.map_at[s]];
	assert_int_equal(entry->region, region);
	assert_int_equal(tr_deal_seq(deal, tr_deal_map_record(entry->what)), k + 1);
	tr_deal_record(deal, tr_deal_map_record(entry->what), &found);
	assert_true(found.type == r->type && found.nr == r->nr && found.block == r->block &&
		    found.new == r->new && found.old == r->old);
	assert_int_equal(tr_deal_map_plain(entry->what), decides_all(r));
	if (decides_all(r)) {
		assert_int_equal(tr_deal_map_first(entry->what), r->block % TERRACE_REGION_BLOCKS);
		assert_int_equal(tr_deal_map_nr(entry->what), r->nr);
	}
	taken.map_at[s] = tr_deal_next(deal->map_next, taken.map_at[s], deal->map_list[s].end);
}

static void take_space(u32 k)
{
	u32 s;

	nr_runs = 0;
	tr_record_space(&record[k], collect, NULL);
	while (nr_runs--) {
		u64 entry;

		s = tr_deal_shard(tr_deal_part(run[nr_runs].place));
		assert_int_not_equal(taken.space_at[s], deal->space_list[s].end);
		entry = deal->space[taken.space_at[s]];
		assert_int_equal(tr_deal_place(entry), run[nr_runs].place);
		assert_int_equal(tr_deal_space_nr(entry), run[nr_runs].nr);
		assert_int_equal(tr_deal_space_used(entry), run[nr_runs].used);
		assert_int_equal(tr_deal_seq(deal, tr_deal_space_record(entry)), k + 1);
		taken.space_at[s] = tr_deal_next(deal->space_next, taken.space_at[s],
						 deal->space_list[s].end);
	}
}

static void deal_and_check(bool space)
{
	u32 s, k;

	deal = room_for(sizeof(*deal));
	memset(deal, 0xa5, sizeof(*deal));
	tr_deal(deal, unit, nr_blocks, space);
	for (s = 0; s < TR_DEAL_SHARDS; s++) {
		taken.map_at[s] = deal->map_list[s].first;
		taken.space_at[s] = deal->space_list[s].first;
	}
	for (k = nr_records; k--;) {
		take_map(k);
		if (space)
			take_space(k);
	}
	for (s = 0; s < TR_DEAL_SHARDS; s++) {
		assert_int_equal(taken.map_at[s], deal->map_list[s].end);
		assert_int_equal(taken.space_at[s], deal->space_list[s].end);
	}
	free(deal);
	free(unit);
}

/* --- the tests ----------------------------------------------------------------------- */

static void every_record_reaches_its_shards_newest_first(void **state)
{
	u32 round;

	(void)state;
	for (round = 1; round < 60; round++) {
		seed = round * 0x9e3779b97f4a7c15ull;
		start();
		while (nr_records < round * 33)
			record[nr_records++] = any_record();
		fill_blocks(TERRACE_RECORDS_PER_BLOCK);
		deal_and_check(round % 5);
	}
}

static void blocks_that_are_not_full_keep_their_numbers(void **state)
{
	u32 full;

	(void)state;
	for (full = 1; full < 10; full++) {
		seed = full;
		start();
		while (nr_records < full * TR_DEAL_BLOCKS)
			record[nr_records++] = any_record();
		fill_blocks(full);
		deal_and_check(true);
	}
}

/* Each record crosses two borders; each shard gets a slab that it does not fill. */
static void the_worst_unit_finds_room(void **state)
{
	u32 k;

	(void)state;
	start();
	for (k = 0; k < RECORDS; k++)
		record[nr_records++] = (struct tr_record){
			.type = TERRACE_RECORD_MAP, .nr = 2, .block = k % 65ull * TERRACE_REGION_BLOCKS,
			.new = tr_place(0, (k * 3 + 1ull) * TERRACE_CHUNK_BLOCKS - 1),
			.old = tr_place(1, (k * 5 + 1ull) * TERRACE_CHUNK_BLOCKS - 1),
		};
	fill_blocks(TERRACE_RECORDS_PER_BLOCK);
	deal_and_check(true);

	start();	/* all of them in one shard */
	for (k = 0; k < RECORDS; k++)
		record[nr_records++] = (struct tr_record){
			.type = TERRACE_RECORD_MAP, .nr = 1, .block = k % 1024,
			.new = tr_place(0, k), .old = tr_place(0, k + 1),
		};
	fill_blocks(TERRACE_RECORDS_PER_BLOCK);
	deal_and_check(true);
}

static void regions_a_power_of_two_apart_are_in_many_shards(void **state)
{
	u32 shift, k;

	(void)state;
	for (shift = 0; shift <= 6; shift++) {
		u64 seen = 0;

		for (k = 0; k < TR_DEAL_SHARDS; k++)
			seen |= 1ull << tr_deal_shard((u64)k << shift);
		assert_true(hweight64(seen) >= 32);
	}
}

static void only_what_newer_records_decided_in_full_is_superseded(void **state)
{
	struct tr_delta delta = {};
	u32 nr, first, k;

	(void)state;
	tr_leaf_init(&delta.leaf);
	delta.leaf.low = calloc(TERRACE_REGION_BLOCKS, sizeof(u32));
	delta.leaf.cap = TERRACE_REGION_BLOCKS;
	for (k = 0; k < 200; k++)
		tr_leaf_set(&delta.leaf, (k * 7 + k / 30) % TERRACE_REGION_BLOCKS, 1, tr_place(0, k));
	for (nr = 1; nr < 70; nr += 1 + nr / 3)
		for (first = 0; first + nr <= TERRACE_REGION_BLOCKS; first++) {
			bool all = true;

			for (k = first; k < first + nr; k++)
				all &= tr_leaf_has(&delta.leaf, k);
			assert_int_equal(tr_deal_superseded(tr_deal_what(0x7ff, true, first, nr), &delta), all);
			assert_false(tr_deal_superseded(tr_deal_what(0x7ff, false, first, nr), &delta));
		}
	free(delta.leaf.low);
}

static void the_newest_word_on_a_place_counts(void **state)
{
	static u64 touched[TERRACE_CHUNK_BLOCKS / 64], used[TERRACE_CHUNK_BLOCKS / 64];
	static bool last[TERRACE_CHUNK_BLOCKS], named[TERRACE_CHUNK_BLOCKS];
	struct { u32 first, nr; bool used; } step[500];
	u32 k, i;

	(void)state;
	seed = 99;
	for (k = 0; k < 500; k++) {	/* oldest first, on plain arrays */
		step[k].nr = random_below(&seed, 2) ? 1 : 1 + random_below(&seed, 300);
		step[k].first = random_below(&seed, TERRACE_CHUNK_BLOCKS - step[k].nr + 1);
		step[k].used = random_below(&seed, 2);
		for (i = step[k].first; i < step[k].first + step[k].nr; i++) {
			last[i] = step[k].used;
			named[i] = true;
		}
	}
	while (k--)
		tr_deal_decide(touched, used, step[k].first, step[k].nr, step[k].used);
	for (i = 0; i < TERRACE_CHUNK_BLOCKS; i++) {
		assert_int_equal(touched[i / 64] >> (i % 64) & 1, named[i]);
		assert_int_equal(used[i / 64] >> (i % 64) & 1, last[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_record_reaches_its_shards_newest_first),
		cmocka_unit_test(blocks_that_are_not_full_keep_their_numbers),
		cmocka_unit_test(the_worst_unit_finds_room),
		cmocka_unit_test(regions_a_power_of_two_apart_are_in_many_shards),
		cmocka_unit_test(only_what_newer_records_decided_in_full_is_superseded),
		cmocka_unit_test(the_newest_word_on_a_place_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
