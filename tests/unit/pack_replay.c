// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A region that is written, packed, merged, raised, discarded at random, cut
 * off after any record: page plus journal, newest first, give what the records
 * say oldest first, and no block comes back that was overwritten or discarded.
 */
#include "core_lib.h"

#define BLOCKS		128u	/* of the region: the first ones, as many meet as possible */
#define RECORDS		1500u
#define REGION		3u
#define FIRST		(REGION * TERRACE_REGION_BLOCKS)
#define ROOM		6000u	/* places of each tier */
#define FAST		0
#define SLOW		1

struct naive_pack {
	u64 id, place, index_place;
	u32 blocks, index_blocks, crc;
};

struct naive {
	u64 place[BLOCKS];
	u64 pack[BLOCKS];	/* id, 0: live in none */
	struct naive_pack list[64];
	u32 nr;
};

static struct tr_record record[RECORDS + 1];	/* record n has number n */
static bool page_allowed[RECORDS + 1];		/* a page may hold just the records so far */
static u32 nr_records;
static struct naive now;
static u8 used[2][ROOM];
static u32 hand[2];
static u64 next_id, seed;

/* --- oldest first, record by record ------------------------------------------- */

static struct naive_pack *naive_find(struct naive *n, u64 id)
{
	for (u32 k = 0; k < n->nr; k++)
		if (n->list[k].id == id)
			return &n->list[k];
	return NULL;
}

static void naive_block(struct naive *n, u32 i, u64 place, u64 pack)
{
	assert_true(!pack || naive_find(n, pack));
	n->place[i] = place;
	n->pack[i] = pack;
}

static void naive_apply(struct naive *n, const struct tr_record *r)
{
	struct naive_pack *pack = naive_find(n, r->old);
	u32 i = r->block - FIRST, k;

	switch (r->type) {
	case TERRACE_RECORD_PACK_ADD:
		assert_null(pack);
		n->list[n->nr++] = (struct naive_pack){ r->old, r->new, TR_NO_PLACE, r->nr, 0, r->aux };
		return;
	case TERRACE_RECORD_PACK_DROP:
		*pack = n->list[--n->nr];
		return;
	case TERRACE_RECORD_INDEX_ADD:
		pack->index_place = r->new;
		pack->index_blocks = r->nr;
		return;
	case TERRACE_RECORD_INDEX_DROP:
		pack->index_place = TR_NO_PLACE;
		pack->index_blocks = 0;
		return;
	case TERRACE_RECORD_DISCARD:
		for (k = 0; k < BLOCKS; k++)
			naive_block(n, k, TR_NO_PLACE, 0);
		return;
	}
	for (k = 0; k < r->nr; k++) {
		if (r->type == TERRACE_RECORD_MAP)
			naive_block(n, i + k, tr_place_add(r->new, k), 0);
		else if (r->type == TERRACE_RECORD_UNMAP)
			naive_block(n, i + k, TR_NO_PLACE, 0);
		else if (r->type == TERRACE_RECORD_CLEAN)
			naive_block(n, i + k, tr_place_add(r->new, k), r->old);
		else if (r->type == TERRACE_RECORD_PACKED || r->old >> k & 1)
			naive_block(n, i + k, TR_NO_PLACE, r->new);
	}
}

static void naive_init(struct naive *n)
{
	memset(n, 0, sizeof(*n));
	for (u32 i = 0; i < BLOCKS; i++)
		n->place[i] = TR_NO_PLACE;
}

/* --- what a volume does ------------------------------------------------------- */

static void space_set(u32 tier, u64 index, u32 n, bool in_use, void *ctx)
{
	(void)ctx;
	for (; n; n--, index++) {
		assert_int_not_equal(used[tier][index], in_use); /* never twice */
		used[tier][index] = in_use;
	}
}

static void journal(u8 type, u64 block, u32 nr, u64 new, u64 old, u32 aux)
{
	struct tr_record *r = &record[++nr_records];

	*r = (struct tr_record){ .type = type, .nr = nr, .aux = aux, .block = block, .new = new,
				 .old = old };
	assert_int_equal(tr_record_check(r), 0);
	naive_apply(&now, r);
	tr_record_space(r, space_set, NULL);
	page_allowed[nr_records] = true;
}

/* @n free places in a row. */
static u64 take(u32 tier, u32 n)
{
	u32 at, k = 0;

	for (at = hand[tier]; k < n; at++) {
		if (at >= ROOM)
			at = 0;
		k = used[tier][at] ? 0 : at ? k + 1 : 1;
	}
	hand[tier] = at;
	return tr_place(tier, at - n);
}

static u32 live_in(u64 id)
{
	u32 i, nr = 0;

	for (i = 0; i < BLOCKS; i++)
		nr += now.pack[i] == id;
	return nr;
}

static void drop_empty_packs(void)
{
	u32 k;

	for (k = now.nr; k-- > 0;) {
		struct naive_pack p = now.list[k];

		if (live_in(p.id))
			continue;
		if (p.index_blocks)
			journal(TERRACE_RECORD_INDEX_DROP, REGION, p.index_blocks, p.index_place, p.id, 0);
		journal(TERRACE_RECORD_PACK_DROP, REGION, p.blocks, p.place, p.id, 0);
	}
}

/* The packs stay: their tier of copies is to be left. */
static void drop_copies(void)
{
	u32 k;

	for (k = 0; k < now.nr; k++) {
		struct naive_pack p = now.list[k];

		if (p.index_blocks)
			journal(TERRACE_RECORD_INDEX_DROP, REGION, p.index_blocks, p.index_place, p.id, 0);
	}
}

static void write_blocks(u32 i, u32 n)
{
	u64 place = take(FAST, n);
	u32 k;

	for (k = 0; k < n; k++)
		journal(TERRACE_RECORD_MAP, FIRST + i + k, 1, tr_place_add(place, k), now.place[i + k], 0);
}

static void discard_blocks(u32 i, u32 n)
{
	u32 k;

	for (k = i; k < i + n; k++)
		if (now.place[k] != TR_NO_PLACE || now.pack[k])
			journal(TERRACE_RECORD_UNMAP, FIRST + k, 1, TR_NO_PLACE, now.place[k], 0);
}

/* The range record, then what follows when the region is loaded. */
static void discard_region(void)
{
	struct naive before = now;
	u32 first = nr_records + 1, i;

	journal(TERRACE_RECORD_DISCARD, REGION, 1, 1, 0, 0);
	for (i = 0; i < BLOCKS; i++)
		if (before.place[i] != TR_NO_PLACE || before.pack[i])
			journal(TERRACE_RECORD_UNMAP, FIRST + i, 1, TR_NO_PLACE, before.place[i], 0);
	for (i = first; i < nr_records; i++)
		page_allowed[i] = false;
}

/* Blocks [i, i+n) into a new pack; merge: all that is packed as well. */
static void pack_blocks(u32 i, u32 n, bool merge)
{
	u64 id = next_id++, mask[BLOCKS / 64] = {};
	u32 k, w, blocks = 1 + random_below(&seed, 5);

	journal(TERRACE_RECORD_PACK_ADD, REGION, blocks, take(SLOW, blocks), id, random_bits(&seed));
	for (k = 0; k < BLOCKS; k++) {
		bool mine = k >= i && k < i + n;

		if (!(mine && now.place[k] != TR_NO_PLACE) && !(merge && now.pack[k]))
			continue;
		if (!random_below(&seed, 8))
			continue; /* raced */
		if (now.place[k] == TR_NO_PLACE)
			mask[k / 64] |= 1ull << k % 64;
		else if (random_below(&seed, 4))
			journal(TERRACE_RECORD_PACKED, FIRST + k, 1, id, now.place[k], 0);
		else
			journal(TERRACE_RECORD_CLEAN, FIRST + k, 1, now.place[k], id, TERRACE_CLEAN_KEPT);
	}
	for (w = 0; w < BLOCKS / 64; w++)
		if (mask[w])
			journal(TERRACE_RECORD_PACKED_MASK, FIRST + w * 64, 64, id, mask[w], 0);
	if (random_below(&seed, 2))
		journal(TERRACE_RECORD_INDEX_ADD, REGION, 1, take(FAST, 1), id, 0);
	drop_empty_packs();
}

static void raise_or_drop(u32 i, u32 n, bool raise)
{
	u32 k;

	for (k = i; k < i + n; k++) {
		if (!now.pack[k] || raise != (now.place[k] == TR_NO_PLACE))
			continue;
		if (raise)
			journal(TERRACE_RECORD_CLEAN, FIRST + k, 1, take(FAST, 1), now.pack[k], 0);
		else
			journal(TERRACE_RECORD_PACKED, FIRST + k, 1, now.pack[k], now.place[k], 0);
	}
}

static void live_on(void)
{
	memset(used, 0, sizeof(used));
	memset(hand, 0, sizeof(hand));
	naive_init(&now);
	nr_records = 0;
	next_id = 1;
	page_allowed[0] = true;
	while (nr_records < RECORDS - 4 * BLOCKS) {
		u32 i = random_below(&seed, BLOCKS), n = 1 + random_below(&seed, BLOCKS - i);

		switch (random_below(&seed, 13)) {
		case 0 ... 3:
			write_blocks(i, n < 20 ? n : 20);
			break;
		case 4:
			discard_blocks(i, n < 30 ? n : 30);
			drop_empty_packs();
			break;
		case 5:
			if (random_below(&seed, 4))
				break;
			discard_region();
			drop_empty_packs();
			break;
		case 12:
			drop_copies();
			break;
		case 6 ... 8:
			pack_blocks(i, n, now.nr >= TERRACE_MAX_PACKS || !random_below(&seed, 3));
			break;
		default:
			raise_or_drop(i, n, random_below(&seed, 3));
		}
	}
}

/* Every place in use is some block's, run's or index copy's, and the other way round. */
static void check_space(void)
{
	u32 i, k, tier, n = 0, total = 0;

	for (i = 0; i < BLOCKS; i++)
		n += now.place[i] != TR_NO_PLACE;
	for (k = 0; k < now.nr; k++)
		n += now.list[k].blocks + now.list[k].index_blocks;
	for (tier = 0; tier < 2; tier++)
		for (k = 0; k < ROOM; k++)
			total += used[tier][k];
	assert_int_equal(total, n);
}

/* --- newest first ------------------------------------------------------------- */

static void state_at(struct naive *n, u32 last)
{
	naive_init(n);
	for (u32 k = 1; k <= last; k++)
		naive_apply(n, &record[k]);
}

/* The page of @n, and back from its bytes. */
static void load_page(const struct naive *n, struct tr_leaf *leaf, struct tr_packs *packs)
{
	static u8 page[TERRACE_MAP_MAX_BLOCKS * TERRACE_BLOCK_BYTES] __aligned(8);
	const struct tr_page_id id = { .magic = TERRACE_MAP_MAGIC, .index = REGION };
	const u64 data_blocks[2] = { ROOM, ROOM };
	u32 i, k, blocks, places, nr_packs;
	bool high;
	u8 age;

	for (k = 0; k < n->nr; k++) {
		const struct naive_pack *p = &n->list[k];
		const struct tr_pack pack = {
			.id = p->id, .place = p->place, .blocks = p->blocks, .header_crc = p->crc,
			.index_place = p->index_place, .index_blocks = p->index_blocks,
		};

		assert_int_equal(tr_packs_add(packs, &pack), 0);
	}
	for (i = 0; i < BLOCKS; i++) {
		if (n->place[i] != TR_NO_PLACE)
			assert_int_equal(tr_leaf_set(leaf, i, 1, n->place[i]), 0);
		if (n->pack[i])
			assert_int_equal(tr_packs_put(packs, n->pack[i], i, 1), 0);
	}
	blocks = tr_map_page_blocks(leaf, packs);
	tr_page_start(page, &id, blocks, 1, 1, (const u8 *)"0123456789abcdef");
	tr_map_encode(page, leaf, packs, 7);
	assert_int_equal(tr_map_room(page, blocks * 4096, &places, &high, &nr_packs), 0);
	assert_int_equal(nr_packs, n->nr);
	assert_int_equal(places, leaf->nr);
	packs->nr = 0;
	assert_int_equal(tr_map_decode(page, blocks * 4096, leaf, packs, &age, data_blocks, 2), 0);
	assert_int_equal(age, 7);
}

static void make_delta(struct tr_delta *delta, u32 tail, u32 last)
{
	bool high;
	u32 k;

	for (k = last; k > tail; k--) {
		u32 room = tr_delta_room(delta, &record[k], &high);
		u32 room_packs = tr_delta_room_packs(delta, &record[k]);

		if (room > delta->leaf.cap || room_packs > delta->cap_packs) {
			assert_int_equal(tr_delta_apply(delta, &record[k], k), -ENOSPC);
			leaf_room(&delta->leaf, room + 10, false);
			delta->cap_packs = room_packs;
			delta->packs = realloc(delta->packs, room_packs * sizeof(delta->packs[0]));
		}
		assert_true(tr_delta_apply(delta, &record[k], k) >= 0);
	}
}

static void compare(const struct naive *want, const struct tr_leaf *leaf,
		    const struct tr_packs *packs, const u64 *kept)
{
	u32 i, k;

	for (i = 0; i < BLOCKS; i++) {
		u64 place = tr_leaf_get(leaf, i), pack;

		k = tr_packs_find(packs, i);
		pack = k == TR_NO_PACK ? 0 : packs->pack[k].id;
		if (kept && !(kept[i / 64] >> i % 64 & 1)) {
			place = TR_NO_PLACE;
			pack = 0;
		}
		assert_int_equal(place, want->place[i]);
		assert_int_equal(pack, want->pack[i]);
	}
	assert_int_equal(packs->nr, want->nr);
	for (k = 0; k < packs->nr; k++) {
		const struct naive_pack *p = naive_find((struct naive *)want, packs->pack[k].id);

		assert_non_null(p);
		assert_true(!k || packs->pack[k - 1].id > p->id);
		assert_int_equal(packs->pack[k].place, p->place);
		assert_int_equal(packs->pack[k].blocks, p->blocks);
		assert_int_equal(packs->pack[k].header_crc, p->crc);
		assert_int_equal(packs->pack[k].index_place, p->index_place);
		assert_int_equal(packs->pack[k].index_blocks, p->index_blocks);
	}
}

/* Crash after record @last, with the page of record @at, the journal from @tail on. */
static void crash_and_check(u32 tail, u32 at, u32 last)
{
	struct tr_packs *packs = room_for(tr_packs_bytes(TERRACE_PACK_SLOTS));
	struct tr_delta delta = {};
	struct tr_leaf leaf;
	struct naive want;
	int nr;

	tr_leaf_init(&leaf);
	leaf_room(&leaf, BLOCKS, false);
	tr_packs_init(packs, TERRACE_PACK_SLOTS);
	state_at(&want, at);
	load_page(&want, &leaf, packs);
	make_delta(&delta, tail, last);
	nr = tr_delta_overlay_packs(&delta, packs);
	assert_in_range(nr, 0, TERRACE_PACK_SLOTS);
	packs->cap = nr - 1;
	if (nr && nr > packs->nr)
		assert_int_equal(tr_delta_overlay(&delta, &leaf, packs), -ENOSPC);
	packs->cap = TERRACE_PACK_SLOTS;
	assert_int_equal(tr_delta_overlay(&delta, &leaf, packs), 0);
	state_at(&want, last);
	compare(&want, &leaf, packs, delta.discard_seq > at ? delta.kept : NULL);
	leaf_free(&leaf);
	leaf_free(&delta.leaf);
	free(delta.packs);
	free(packs);
}

static void any_prefix_of_the_journal_is_a_sound_region(void **state)
{
	u32 round, k, last, at, tail;

	(void)state;
	for (round = 1; round <= 40; round++) {
		seed = round * 0x9e3779b97f4a7c15ull;
		live_on();
		check_space();
		for (k = 0; k < 60; k++) {
			last = random_below(&seed, nr_records + 1);
			for (at = random_below(&seed, last + 1); !page_allowed[at]; at--)
				;
			tail = random_below(&seed, at + 1);
			crash_and_check(tail, at, last);
		}
	}
}

/* --- orders of records that nobody writes --------------------------------------- */

static void journals_that_contradict_themselves_are_refused(void **state)
{
	const struct tr_record add = { .type = TERRACE_RECORD_PACK_ADD, .nr = 2, .block = 0,
				       .new = tr_place(1, 0), .old = 5 };
	const struct tr_record drop = { .type = TERRACE_RECORD_PACK_DROP, .nr = 2, .block = 0,
					.new = tr_place(1, 0), .old = 5 };
	const struct tr_record packed = { .type = TERRACE_RECORD_PACKED, .nr = 1, .block = 3,
					  .new = 5, .old = TR_NO_PLACE };
	struct tr_delta_pack packs[2];
	struct tr_packs *list = room_for(tr_packs_bytes(1));
	struct tr_pack on_page = { .id = 5, .blocks = 2, .index_place = TR_NO_PLACE, .live = { 16 } };
	struct tr_delta delta;
	struct tr_leaf leaf;
	u32 low[4];

#define DELTA() (delta = (struct tr_delta){ .packs = packs, .cap_packs = 2, \
					    .leaf = { .low = low, .cap = 4 } })
	(void)state;
	DELTA(); /* a block goes into a pack that is gone */
	assert_int_equal(tr_delta_apply(&delta, &drop, 9), 0);
	assert_int_equal(tr_delta_apply(&delta, &packed, 8), -EUCLEAN);
	DELTA(); /* the pack is dropped before a block is put into it */
	assert_int_equal(tr_delta_apply(&delta, &packed, 9), 1);
	assert_int_equal(tr_delta_apply(&delta, &drop, 8), -EUCLEAN);
	DELTA(); /* an id twice */
	assert_int_equal(tr_delta_apply(&delta, &add, 9), 0);
	assert_int_equal(tr_delta_apply(&delta, &add, 8), -EUCLEAN);
	DELTA();
	assert_int_equal(tr_delta_apply(&delta, &add, 9), 0);
	assert_int_equal(tr_delta_apply(&delta, &drop, 8), -EUCLEAN);
	tr_leaf_init(&leaf);
	DELTA(); /* a pack that neither page nor journal has added */
	assert_int_equal(tr_delta_apply(&delta, &packed, 9), 1);
	tr_packs_init(list, 1);
	assert_int_equal(tr_delta_overlay(&delta, &leaf, list), -EUCLEAN);
	assert_int_equal(tr_delta_overlay(&delta, &leaf, NULL), -EUCLEAN);
	DELTA(); /* dropped, and a block is still live in it on the page */
	assert_int_equal(tr_delta_apply(&delta, &drop, 9), 0);
	assert_int_equal(tr_packs_add(list, &on_page), 0);
	assert_int_equal(tr_delta_overlay(&delta, &leaf, list), -EUCLEAN);
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_prefix_of_the_journal_is_a_sound_region),
		cmocka_unit_test(journals_that_contradict_themselves_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
