// SPDX-License-Identifier: GPL-2.0-or-later
/* What an order to clean a shelf says is true of the shelf, also when its tier grows while it waits. */
#include "core_lib.h"
#include "kernel.h"

#include "../../kmod/order_clean.c"

/*
 * A tier that grows gets another array of chunks, and the old one is freed (tr_space_grow()).
 * An order to clean sleeps twice, for seconds each time, in which that can happen: before it
 * begins, for what is dead already, and at its end, for what it has moved. The mark that tells
 * whether the shelf has been free since is in that array: set in the old one it is
 * lost, and the order says that a shelf is free on which something stays. Whoever ordered it,
 * terraced or an administrator that takes a drive away, believes that.
 */
#define SHELF	3
#define CHUNKS	5

static struct terrace *tr;
static struct tr_tier *tier;
static struct tr_order order;
static bool grows[3];		/* at the first, second wait; while it is cleaned */
static u32 waits, moves, stays;	/* blocks that cleaning moves, that stay */
static s64 says;		/* what cleaning ends with, if it moves nothing */

static void grow(void)
{
	u32 more = tier->nr_chunks + 2;
	struct tr_chunk_info *old = tier->chunks, *chunks = kcalloc(more, sizeof(*chunks), GFP_KERNEL);

	spin_lock_irq(&tier->lock);
	memcpy(chunks, old, tier->nr_chunks * sizeof(*chunks));
	tier->chunks = chunks;
	tier->nr_chunks = more;
	spin_unlock_irq(&tier->lock);
	kvfree(old);
}

/* So many blocks of the shelf become free: as in space.c. */
static void free_blocks(u32 nr)
{
	struct tr_chunk_info *info;

	spin_lock_irq(&tier->lock);
	info = &tier->chunks[SHELF];
	info->used -= nr;
	if (!info->used)
		info->flags &= ~TR_CHUNK_CLEANED;
	spin_unlock_irq(&tier->lock);
}

/* ---- the stages around it ------------------------------------------------------------ */

bool tr_frees_wait(struct terrace *volume)
{
	if (waits++ < 2 && grows[waits - 1])
		grow();
	if (waits > 1 && tier->chunks[SHELF].used > stays)
		free_blocks(moves);
	return true;
}

s64 tr_clean_shelf(struct terrace *volume, struct tr_tier *of, u32 chunk, struct tr_order *by)
{
	assert_ptr_equal(of, tier);
	assert_int_equal(chunk, SHELF);
	if (grows[2])
		grow();
	return moves ?: says;
}

void submit_bio(struct bio *bio) { kernel_bug("a bio is sent"); }

static int setup(void **state)
{
	tr = kzalloc(sizeof(*tr), GFP_KERNEL);
	tr->nr_tiers = 2;
	tier = &tr->tier[1];
	tier->number = 1;
	tier->nr_chunks = CHUNKS;
	tier->chunks = kcalloc(CHUNKS, sizeof(*tier->chunks), GFP_KERNEL);
	order = (struct tr_order){ .ask = { .mode = TERRACE_MOVE_CLEAN, .region = SHELF, .tier_down = 1 } };
	memset(grows, 0, sizeof(grows));
	waits = moves = stays = says = 0;
	return 0;
}

static int teardown(void **state)
{
	kvfree(tier->chunks);
	kfree(tr);
	return 0;
}

/* Of @used blocks @moved leave the shelf. What the order says: */
static int clean(u32 used, u32 moved)
{
	tier->chunks[SHELF].used = used;
	moves = moved;
	stays = used - moved;
	return tr_order_clean(tr, &order);
}

/* ---- what it says, at whichever moment the tier grows --------------------------------- */

static void each_moment(void (*is)(void))
{
	for (u32 when = 0; when < 8; when++) {
		setup(NULL);
		for (u32 k = 0; k < 3; k++)
			grows[k] = when >> k & 1;
		is();
		assert_int_equal(tier->nr_chunks, CHUNKS + 2 * (grows[0] + (grows[1] && waits > 1) + grows[2]));
		teardown(NULL);
	}
}

/* Blocks are used that nobody has met: a pack without a header, say. */
static void stays_is_told(void)
{
	assert_int_equal(clean(20, 15), -EIO);
	assert_int_equal(order.result.down, 15);
}

static void nothing_moved_is_told(void)
{
	says = -ENOENT;
	assert_int_equal(clean(20, 0), -EIO);
}

static void free_is_told(void)
{
	order.result.unreadable = 2;	/* they have gone all the same */
	assert_int_equal(clean(20, 20), 0);
	assert_int_equal(order.result.unreadable, 0);
}

static void a_shelf_on_which_something_stays_is_not_called_free(void **state)
{
	each_moment(stays_is_told);
	each_moment(nothing_moved_is_told);
}

static void a_shelf_that_has_been_free_is_called_so(void **state)
{
	each_moment(free_is_told);
}

/* A write that a move has left out is on its way: another go is worth it. */
static void what_raced_is_told(void)
{
	order.result.raced = 1;
	assert_int_equal(clean(20, 19), -EBUSY);
}

static void a_shelf_of_which_a_block_raced_is_busy(void **state)
{
	each_moment(what_raced_is_told);
}

static void an_empty_shelf_has_nothing(void)
{
	says = -ENOENT;
	assert_int_equal(clean(0, 0), -ENOENT);
}

static void there_is_nothing_on_an_empty_shelf(void **state)
{
	each_moment(an_empty_shelf_has_nothing);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_shelf_on_which_something_stays_is_not_called_free),
		cmocka_unit_test(a_shelf_that_has_been_free_is_called_so),
		cmocka_unit_test(a_shelf_of_which_a_block_raced_is_busy),
		cmocka_unit_test(there_is_nothing_on_an_empty_shelf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
