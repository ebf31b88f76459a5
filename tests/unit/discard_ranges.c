// SPDX-License-Identifier: GPL-2.0-or-later
/* Which range discards are open, on the way through workers and checkpoints: what was discarded stays so until a page or a record says it. */
#include "core_lib.h"
#include "kernel.h"

#include "../../kmod/discard.c"

/*
 * discard.c whole; regions, journal and modes are played here. No region of the volume has
 * anything to empty; some pages are damaged, one cannot be read just now.
 *
 * A discard was acknowledged when its record was durable. From then on, at any moment, each of
 * its regions either has been emptied, or is below an open range with the number of that
 * record: then a checkpoint, which moves the tail past the record, writes it again. A
 * region in neither reads as before the discard after the next power cut.
 */
#define REGIONS		1000
#define SEQ		5		/* of the range that the tests are about … */
#define FIRST		10
#define END		40		/* … and its regions, */
#define DAMAGED		15		/* of which this one's page is damaged, */
#define UNREAD		25		/* and this one's cannot be read now */

static struct terrace *tr;
static struct workqueue_struct queue;
static bool damaged[REGIONS], unread[REGIONS], emptied[REGIONS];
static void (*while_waiting)(void);	/* for journal room: what others do */
static void (*at_region)(u64 number);

static struct tr_record written[2 * TR_OPEN_RANGES];
static u32 nr_written, credits;
static u64 next_record;

/* ---- the stages around it -------------------------------------------------------- */

struct tr_region *tr_region_get(struct terrace *volume, u64 number, bool create)
{
	if (at_region)
		at_region(number);
	if (damaged[number] || unread[number])
		return ERR_PTR(damaged[number] ? -EUCLEAN : -EIO);
	emptied[number] = true;
	return NULL;
}

void tr_region_put(struct tr_region *region) { kernel_bug("no region was given out"); }
struct tr_region *tr_region_find(struct terrace *volume, u64 number) { return NULL; }
u32 tr_region_unmap__f(struct terrace *volume, struct tr_region *region, u32 i, u32 n) { return 0; }
void tr_reserve_wait(struct terrace *volume) {}
void tr_commit_fua(struct terrace *volume, struct bio *bio) { bio_endio(bio); }
void tr_room_made(struct terrace *volume) {}
void submit_bio(struct bio *bio) { kernel_bug("a bio is sent"); }

void tr_mode_lower(struct terrace *volume, enum tr_mode mode, const char *why, int err)
{
	volume->mode = mode;
}

int tr_journal_reserve_wait(struct terrace *volume, u32 n)
{
	if (while_waiting)
		while_waiting();
	credits += n;
	return 0;
}

void tr_journal_unreserve(struct terrace *volume, u32 n)
{
	assert_true(n <= credits);
	credits -= n;
}

u64 tr_journal_append(struct terrace *volume, const struct tr_record *record)
{
	assert_true(credits > 0);
	assert_true(nr_written < ARRAY_SIZE(written));
	credits--;
	written[nr_written++] = *record;
	return next_record++;
}

/* ---- a volume -------------------------------------------------------------------- */

static int setup(void **state)
{
	tr = kzalloc(sizeof(*tr), GFP_KERNEL);
	tr->mode = TR_MODE_WRITE;
	tr->nr_regions = REGIONS;
	tr->meta_wq = &queue;
	tr_discards_init(tr);
	memset(damaged, 0, sizeof(damaged));
	memset(unread, 0, sizeof(unread));
	memset(emptied, 0, sizeof(emptied));
	nr_written = credits = 0;
	next_record = 1000;
	tr->journal.durable_record = next_record - 1;
	return 0;
}

static int teardown(void **state)
{
	kernel_unlocked = NULL;
	while_waiting = NULL;
	at_region = NULL;
	cancel_work_sync(&tr->discard_work);
	tr_discards_exit(tr);
	kfree(tr);
	return 0;
}

/* The worker goes as far as it can. */
static void work(void)
{
	tr_discards_kick(tr);
	kernel_work_run();
}

static bool held_open(u64 region) { return tr_discard_pending(tr, region) == SEQ; }

/* The power fails: what the journal has behind the tail is all that is known of discards. */
static void cut(void)
{
	tr_discards_exit(tr);
	tr_discards_init(tr);
	tr->nr_discards = 0;
	for (u32 i = 0; i < nr_written; i++)
		tr_discard_add(tr, written[i].block, written[i].block + written[i].new,
			       written[i].old ?: SEQ);
}

/* So many younger ranges, each of a region of its own. */
static void younger(u32 nr)
{
	for (u32 k = 0; k < nr; k++)
		tr_discard_add(tr, 100 + k, 101 + k, SEQ + 1 + k);
}

static void none_was_forgotten(void)
{
	for (u64 region = FIRST; region < END; region++)
		if (!emptied[region] && !held_open(region))
			fail_msg("region %llu was discarded, and is neither emptied nor in a range", (unsigned long long)region);
}

/* ---- a range in the middle of which a page is damaged -------------------------------- */

/* Its region leaves the range with a range of its own; the others are emptied around it. */
static void a_range_is_split_by_a_damaged_page(void **state)
{
	damaged[DAMAGED] = true;
	unread[UNREAD] = true;
	tr_discard_add(tr, FIRST, END, SEQ);
	work();
	none_was_forgotten();
	assert_true(held_open(DAMAGED));
	assert_true(held_open(UNREAD));
	assert_false(held_open(DAMAGED + 1));
	assert_int_equal(tr->nr_discards, 2);
	unread[UNREAD] = false;
	work();
	none_was_forgotten();
	assert_false(held_open(UNREAD));
	assert_true(held_open(DAMAGED));
	assert_int_equal(tr->nr_discards, 1);
}

/* Checkpoint, which takes discard_lock, may come between any two steps of the worker. */
static void looks(spinlock_t *lock)
{
	if (lock == &tr->discard_lock) {
		kernel_unlocked = NULL;		/* looking takes it as well */
		none_was_forgotten();
		kernel_unlocked = looks;
	}
}

static void at_no_moment_is_a_region_in_no_range(void **state)
{
	damaged[DAMAGED] = true;
	tr_discard_add(tr, FIRST, END, SEQ);
	kernel_unlocked = looks;
	work();
}

/*
 * Crash scenario: the worker has passed the damaged page, a checkpoint moves the tail past
 * the discard's record, the power fails. The page can be read again (a mirror is back):
 * without a record of its own the region shows what was discarded.
 */
static void what_is_left_of_a_split_range_is_written_again(void **state)
{
	damaged[DAMAGED] = true;
	unread[UNREAD] = true;
	tr_discard_add(tr, FIRST, END, SEQ);
	work();
	assert_int_equal(tr_discards_relog(tr), 0);
	assert_int_equal(nr_written, 2);
	assert_int_equal(credits, 0);
	cut();
	none_was_forgotten();
	assert_true(held_open(DAMAGED));
	/* What was emptied may have been written since, which is older than the new records. */
	assert_false(held_open(DAMAGED + 1));
	assert_false(held_open(FIRST));
}

/* The checkpoint has counted one range, and waits for journal room without a lock. */
static void worker_meets_it(void)
{
	while_waiting = NULL;
	work();
}

static void a_range_that_is_split_while_a_checkpoint_waits_is_written_again(void **state)
{
	damaged[DAMAGED] = true;
	unread[UNREAD] = true;
	tr_discard_add(tr, FIRST, END, SEQ);
	while_waiting = worker_meets_it;
	assert_int_equal(tr_discards_relog(tr), 0);
	assert_int_equal(credits, 0);
	cut();
	none_was_forgotten();
	assert_true(held_open(DAMAGED));
	assert_true(held_open(UNREAD));
}

/* Without room for one more the volume is written no more; the range stays as it is. */
static void a_split_too_many_makes_it_read_only(void **state)
{
	damaged[DAMAGED] = true;
	tr_discard_add(tr, FIRST, END, SEQ);
	younger(TR_OPEN_RANGES - 1);
	work();
	assert_int_equal(tr->mode, TR_MODE_READ_ONLY);
	none_was_forgotten();
}

/* ---- ranges that a checkpoint ends ---------------------------------------------------- */

/* tr_settle_discards() of settle.c: a page for each region of it, then it is closed. */
static u32 settle(void)
{
	u64 first, end, seq;
	u32 nr = 0;

	while (tr_discard_closing(tr, &first, &end, &seq)) {
		assert_true(++nr < 10);
		for (u64 region = first; region < end; region++)
			emptied[region] = true;
		tr_discard_close(tr, first, end, seq);
		none_was_forgotten();
	}
	return nr;
}

/*
 * Crash scenario: recovery found more ranges than a checkpoint writes again. This one puts the
 * oldest into pages and closes it. The region whose page is damaged has a range with the
 * same number, since it was left by this one; it was not put into any page. Closed along
 * with the other, it is not written again by the next checkpoint, and what was discarded
 * is back when its page can be read.
 */
static void a_checkpoint_ends_just_the_ranges_that_it_emptied(void **state)
{
	damaged[DAMAGED] = true;
	unread[UNREAD] = true;
	tr_discard_add(tr, FIRST, END, SEQ);
	work();
	younger(TR_OPEN_RANGES - 1);
	assert_int_equal(tr->nr_discards, TR_OPEN_RANGES + 1);
	assert_int_equal(tr_discards_relog(tr), 0);
	assert_int_equal(nr_written, TR_OPEN_RANGES);
	assert_int_equal(settle(), 1);
	assert_false(held_open(UNREAD));
	assert_true(held_open(DAMAGED));
	nr_written = 0;
	assert_int_equal(tr_discards_relog(tr), 0);
	cut();
	none_was_forgotten();
	assert_true(held_open(DAMAGED));
}

/* Recovery finds what was written again beside the longer one it stands for: that was not emptied as a whole. */
static void a_range_that_reaches_further_stays(void **state)
{
	tr_discard_add(tr, 20, END, SEQ);
	tr_discard_add(tr, FIRST, END, SEQ);
	younger(TR_OPEN_RANGES - 1);
	assert_int_equal(tr_discards_relog(tr), 0);
	assert_int_equal(settle(), 1);
	assert_true(held_open(FIRST));
}

/* ... and one that lies within it goes with it: it would be worked on for nothing. */
static void a_range_within_it_goes_with_it(void **state)
{
	tr_discard_add(tr, FIRST, END, SEQ);
	younger(TR_OPEN_RANGES - 1);
	tr_discard_add(tr, 20, END, SEQ);
	assert_int_equal(tr_discards_relog(tr), 0);
	assert_int_equal(settle(), 1);
	assert_false(held_open(30));
	assert_int_equal(tr->nr_discards, TR_OPEN_RANGES - 1);
}

/* The worker is at it, and holds it: only he takes it away. */
static void checkpoint_comes(u64 number)
{
	if (number != UNREAD)
		return;
	at_region = NULL;
	assert_int_equal(tr_discards_relog(tr), 0);
	assert_int_equal(settle(), 1);
}

static void a_range_that_is_worked_on_is_left_to_the_worker(void **state)
{
	tr_discard_add(tr, FIRST, END, SEQ);
	younger(TR_OPEN_RANGES);
	at_region = checkpoint_comes;
	work();
	none_was_forgotten();
	assert_int_equal(tr->nr_discards, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_range_is_split_by_a_damaged_page, setup, teardown),
		cmocka_unit_test_setup_teardown(at_no_moment_is_a_region_in_no_range, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_left_of_a_split_range_is_written_again, setup, teardown),
		cmocka_unit_test_setup_teardown(a_range_that_is_split_while_a_checkpoint_waits_is_written_again, setup, teardown),
		cmocka_unit_test_setup_teardown(a_split_too_many_makes_it_read_only, setup, teardown),
		cmocka_unit_test_setup_teardown(a_checkpoint_ends_just_the_ranges_that_it_emptied, setup, teardown),
		cmocka_unit_test_setup_teardown(a_range_that_reaches_further_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(a_range_within_it_goes_with_it, setup, teardown),
		cmocka_unit_test_setup_teardown(a_range_that_is_worked_on_is_left_to_the_worker, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
