// SPDX-License-Identifier: GPL-2.0
/*
 * Leaves: presence bitmap, packed places, rank. See leaf.h for what readers
 * beside a writer may rely on.
 *
 * Writers keep rank[w] = population of present[0 .. w-1] and nr = population
 * of all, and move the tail of the arrays when a place comes or goes: for the
 * average region half of 4 KiB, for appends nothing.
 */
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <asm/barrier.h>
#include <asm/byteorder.h>
#include "leaf.h"

#define LOW_NO_PLACE	0xffffffffu	/* without high bytes, or with one of 0xff */

/* Where the arrays are and how far they reach: see the rule in leaf.h. */
struct arrays {
	const u32 *low;
	const u8 *high;
	u32 cap;
};

static __always_inline void load_arrays(const struct tr_leaf *leaf, struct arrays *a)
{
	a->low = READ_ONCE(leaf->low);
	a->high = READ_ONCE(leaf->high);
	smp_rmb(); /* pairs with tr_leaf_replace() */
	a->cap = READ_ONCE(leaf->cap);
	smp_rmb(); /* pairs with tr_leaf_replace() */
	if (unlikely(READ_ONCE(leaf->low) != a->low || READ_ONCE(leaf->high) != a->high ||
		     !a->low)) /* NULL is the one array that may come back */
		a->cap = 0;
}

static __always_inline u64 place_at(const struct arrays *a, u32 rank)
{
	u32 low = READ_ONCE(a->low[rank]);

	if (unlikely(a->high))
		return (u64)READ_ONCE(a->high[rank]) << 32 | low;
	return likely(low != LOW_NO_PLACE) ? low : TR_NO_PLACE;
}

/* Bits @from .. @to-1 of a word; 0 <= from < to <= 64. */
static u64 bits_between(u32 from, u32 to)
{
	return (~0ull >> (64 - (to - from))) << from;
}

static u32 rank_of(const struct tr_leaf *leaf, u32 i)
{
	if (i == TERRACE_REGION_BLOCKS)
		return leaf->nr;
	return leaf->rank[i / 64] + hweight64(leaf->present[i / 64] & ((1ull << (i % 64)) - 1));
}

static void count_ranks(struct tr_leaf *leaf, u32 from_word)
{
	u32 w, sum = leaf->rank[from_word];

	for (w = from_word; w < TR_LEAF_WORDS; w++) {
		leaf->rank[w] = sum;
		sum += hweight64(leaf->present[w]);
	}
	leaf->nr = sum;
}

void tr_leaf_init(struct tr_leaf *leaf)
{
	memset(leaf, 0, sizeof(*leaf));
}

u64 tr_leaf_at(const struct tr_leaf *leaf, u32 rank)
{
	struct arrays a;

	load_arrays(leaf, &a);
	return likely(rank < a.cap) ? place_at(&a, rank) : TR_NO_PLACE;
}

/* How many blocks from @i on, up to @max, are like the first: present or not. */
static u32 run_alike(const struct tr_leaf *leaf, u32 i, u32 max, u64 word)
{
	u64 flip = word >> (i % 64) & 1 ? ~0ull : 0;
	u32 end = i + max, at = i;
	u64 differ;

	for (;;) {
		differ = (word ^ flip) >> (at % 64);
		if (differ)
			return min_t(u32, at + __ffs64(differ), end) - i;
		at = (at | 63) + 1;
		if (at >= end)
			return max;
		word = READ_ONCE(leaf->present[at / 64]);
	}
}

static u32 run_places(const struct tr_leaf *leaf, u32 rank, u32 nr, u64 *place)
{
	struct arrays a;
	u64 expected;
	u32 n;

	load_arrays(leaf, &a);
	if (unlikely(rank >= a.cap)) {
		*place = TR_NO_PLACE;
		return 1;
	}
	expected = place_at(&a, rank);
	*place = expected;
	nr = min(nr, a.cap - rank);
	for (n = 1; n < nr; n++) {
		expected = tr_place_add(expected, 1);
		if (place_at(&a, rank + n) != expected)
			break;
	}
	return n;
}

static noinline u32 run_long(const struct tr_leaf *leaf, u32 i, u32 max, u64 *place)
{
	u64 word = READ_ONCE(leaf->present[i / 64]);
	u64 bit = 1ull << (i % 64);
	u32 nr = run_alike(leaf, i, max, word);

	if (!(word & bit)) {
		*place = TR_NO_PLACE;
		return nr;
	}
	return run_places(leaf, READ_ONCE(leaf->rank[i / 64]) + hweight64(word & (bit - 1)), nr,
			  place);
}

u32 tr_leaf_run(const struct tr_leaf *leaf, u32 i, u32 max, u64 *place)
{
	if (max > 1)
		return run_long(leaf, i, max, place);
	*place = tr_leaf_get(leaf, i);
	return 1;
}

#define ONES	0x1111111111111111ull		/* in each four bits */

/* The high one of four bits is set where @x has those of @as; none of both has it. */
static u64 same(u64 x, u64 as)
{
	return (8 * ONES - (x ^ as)) & 8 * ONES;
}

/* The tiers of two places that follow each other, in the low bits of each half. */
static u64 two_tiers(const u32 *low)
{
	return (low[0] | (u64)low[1] << 32) & ((TERRACE_MAX_TIERS - 1) * 0x100000001ull);
}

/* Half @half of both, the one of @second above. */
static u64 halves(u64 first, u64 second, u32 half)
{
	return half ? first >> 32 | second >> 32 << 32 : (first & 0xffffffff) | second << 32;
}

/*
 * Of the 64 blocks whose places begin at @low, those on one of @tiers. Places are read two by two: of the first 32 blocks @a has
 * 0 and 1, 4 and 5, and so on, @b has 2 and 3, 6 and 7; @c and @d the same of the last. Put together by halves, tiers are
 * compared sixteen at a time: of blocks 0, 4, 8 and so on, then of 1, 5, 9, so that the answers fall between each other.
 */
static u64 full_word_on_tiers(const u32 *low, u32 tiers)
{
	u64 a = 0, b = 0, c = 0, d = 0, on = 0, tier;
	u32 i;

	for (i = 32; i > 0; i -= 4) {
		a = a << 4 | two_tiers(low + i - 4);
		b = b << 4 | two_tiers(low + i - 2);
		c = c << 4 | two_tiers(low + 32 + i - 4);
		d = d << 4 | two_tiers(low + 32 + i - 2);
	}
	for (; tiers; tiers &= tiers - 1) {
		tier = __ffs(tiers) * ONES;
		on |= same(halves(a, c, 0), tier) >> 3 | same(halves(a, c, 1), tier) >> 2 |
		      same(halves(b, d, 0), tier) >> 1 | same(halves(b, d, 1), tier);
	}
	return on;
}

/*
 * Of the blocks of a word, whose places begin at @low, those on one of @tiers. The tier stands in
 * the low bits, and TR_NO_PLACE passes for the last one.
 */
static u64 word_on_tiers(const u32 *low, u64 present, u32 tiers)
{
	u64 on = 0, left;

	if (present == ~0ull)
		return full_word_on_tiers(low, tiers);
	for (left = present; left; left &= left - 1)
		if (tiers >> tr_place_tier(*low++) & 1)
			on |= left & -left;
	return on;
}

/* The last tier has one place less: that of TR_NO_PLACE. */
static u64 word_without_place(const struct tr_leaf *leaf, u64 present, u32 rank)
{
	struct arrays a = { leaf->low, leaf->high, leaf->cap };
	u64 without = 0, left;

	for (left = present; left; left &= left - 1)
		if (place_at(&a, rank++) == TR_NO_PLACE)
			without |= left & -left;
	return without;
}

void tr_leaf_on_tiers(const struct tr_leaf *leaf, u32 tiers, u64 *mask)
{
	bool last = tiers >> (TERRACE_MAX_TIERS - 1) & 1;
	u32 w, rank = 0;
	u64 present, on;

	for (w = 0; w < TR_LEAF_WORDS; w++) {
		present = leaf->present[w];
		if (!present)
			continue;
		on = word_on_tiers(leaf->low + rank, present, tiers);
		if (unlikely(last))
			on &= ~word_without_place(leaf, present, rank);
		mask[w] |= on;
		rank += hweight64(present);
	}
}

u32 tr_leaf_missing(const struct tr_leaf *leaf, u32 i, u32 n)
{
	return n - (rank_of(leaf, i + n) - rank_of(leaf, i));
}

static void put_place(struct tr_leaf *leaf, u32 rank, u64 place)
{
	leaf->low[rank] = place;
	if (leaf->high)
		leaf->high[rank] = place >> 32;
}

/* Moves the places from @from on to @to on. */
static void move_tail(struct tr_leaf *leaf, u32 from, u32 to)
{
	u32 tail = leaf->nr - from;

	if (!tail || from == to)
		return;
	memmove(leaf->low + to, leaf->low + from, tail * sizeof(*leaf->low));
	if (leaf->high)
		memmove(leaf->high + to, leaf->high + from, tail);
}

/* The common case apart: one block, room is there. */
static void set_one(struct tr_leaf *leaf, u32 i, u64 place)
{
	u64 bit = 1ull << (i % 64);
	u32 w = i / 64, rank = rank_of(leaf, i);

	if (!(leaf->present[w] & bit)) {
		move_tail(leaf, rank, rank + 1);
		leaf->present[w] |= bit;
		leaf->nr++;
		while (++w < TR_LEAF_WORDS)
			leaf->rank[w]++;
	}
	put_place(leaf, rank, place);
}

static void set_range(struct tr_leaf *leaf, u32 i, u32 n, u64 place)
{
	u32 rank = rank_of(leaf, i), first_word = i / 64, end = i + n;
	u32 to, k;

	move_tail(leaf, rank_of(leaf, end), rank + n);
	for (k = 0; k < n; k++)
		put_place(leaf, rank + k, tr_place_add(place, k));
	for (; i < end; i = to) {
		to = min((i | 63) + 1, end);
		leaf->present[i / 64] |= bits_between(i % 64, to - (i & ~63u));
	}
	count_ranks(leaf, first_word);
}

int tr_leaf_set(struct tr_leaf *leaf, u32 i, u32 n, u64 place)
{
	if (!n)
		return 0;
	if (leaf->nr + tr_leaf_missing(leaf, i, n) > leaf->cap)
		return -ENOSPC;
	if (!leaf->high && tr_place_is_high(tr_place_add(place, n - 1)))
		return -ENOSPC;
	if (n == 1)
		set_one(leaf, i, place);
	else
		set_range(leaf, i, n, place);
	return 0;
}

void tr_leaf_clear(struct tr_leaf *leaf, u32 i, u32 n)
{
	u32 end = i + n, first_word = i / 64;
	u32 to;

	if (tr_leaf_missing(leaf, i, n) == n)
		return;
	move_tail(leaf, rank_of(leaf, end), rank_of(leaf, i));
	for (; i < end; i = to) {
		to = min((i | 63) + 1, end);
		leaf->present[i / 64] &= ~bits_between(i % 64, to - (i & ~63u));
	}
	count_ranks(leaf, first_word);
}

bool tr_leaf_needs_high(const struct tr_leaf *leaf)
{
	struct arrays a = { leaf->low, leaf->high, leaf->cap };
	u32 rank;

	if (!leaf->high)
		return false;
	for (rank = 0; rank < leaf->nr; rank++)
		if (tr_place_is_high(place_at(&a, rank)))
			return true;
	return false;
}

/* Copies the places of @leaf into arrays that may have high bytes or not. */
static int copy_places(const struct tr_leaf *leaf, u32 *low, u8 *high, u32 cap)
{
	struct arrays a = { leaf->low, leaf->high, leaf->cap };
	u32 rank;

	if (leaf->nr > cap || (!high && tr_leaf_needs_high(leaf)))
		return -ENOSPC;
	if (!leaf->nr)
		return 0;
	memcpy(low, leaf->low, leaf->nr * sizeof(*low));
	for (rank = 0; high && rank < leaf->nr; rank++)
		high[rank] = place_at(&a, rank) >> 32;
	return 0;
}

int tr_leaf_replace(struct tr_leaf *leaf, u32 *low, u8 *high, u32 cap)
{
	int err = copy_places(leaf, low, high, cap);

	if (err)
		return err;
	WRITE_ONCE(leaf->cap, min_t(u32, leaf->cap, cap));
	smp_wmb(); /* the lower cap and the copied places before the arrays: load_arrays() */
	WRITE_ONCE(leaf->low, low);
	WRITE_ONCE(leaf->high, high);
	smp_wmb(); /* the arrays before the higher cap: load_arrays() */
	WRITE_ONCE(leaf->cap, cap);
	return 0;
}

int tr_leaf_copy(struct tr_leaf *to, const struct tr_leaf *from)
{
	int err = copy_places(from, to->low, to->high, to->cap);

	if (err)
		return err;
	memcpy(to->present, from->present, sizeof(to->present));
	memcpy(to->rank, from->rank, sizeof(to->rank));
	to->nr = from->nr;
	return 0;
}

void tr_leaf_write(const struct tr_leaf *leaf, u8 *to)
{
	struct arrays a = { leaf->low, leaf->high, leaf->cap };
	__le64 place;
	u32 rank;

	for (rank = 0; rank < leaf->nr; rank++) {
		place = cpu_to_le64(place_at(&a, rank));
		memcpy(to + rank * TR_PLACE_BYTES, &place, TR_PLACE_BYTES);
	}
}

u32 tr_leaf_room(u32 nr)
{
	return min_t(u32, (nr + nr / 8 + 8) & ~7u, TERRACE_REGION_BLOCKS);
}

u32 tr_leaf_next(const struct tr_leaf *leaf, u32 i)
{
	u64 word;

	for (; i < TERRACE_REGION_BLOCKS; i = (i | 63) + 1) {
		word = READ_ONCE(leaf->present[i / 64]) >> (i % 64);
		if (word)
			return i + __ffs64(word);
	}
	return TERRACE_REGION_BLOCKS;
}
