// SPDX-License-Identifier: GPL-2.0-or-later
/* A FUA write that has waited, for room, for journal room or for a credit, is as durable when it is acknowledged as any other. */
#include "fua_lib.h"

/*
 * A FUA write is cut into pieces: to fresh places (written without FUA, durable with the
 * commit of their records) and over places that are there (with FUA, if a durable record
 * names them). In between it may have to wait, with some pieces sent and others to come.
 *
 * Crash scenario: its first block got the last slot and is in the drive's cache, the second
 * waits for room. Parked, and brought back, the write forgets that its first block needs a
 * commit; the second goes in place, with FUA, and the write is acknowledged. The power
 * fails: the first block is what it was before.
 */

/* ---- one thing at a time --------------------------------------------------------------------- */

static void says(u32 nr, const enum tr_verdict *verdicts)
{
	memcpy(script, verdicts, nr * sizeof(*script));
	nr_script = nr;
	at_script = 0;
}
#define SAYS(...) says(sizeof((enum tr_verdict[]){ __VA_ARGS__ }) / sizeof(enum tr_verdict), (enum tr_verdict[]){ __VA_ARGS__ })

static const enum tr_verdict waits_for[] = { TR_ROOM, TR_BUSY, TR_PAGES };

static void wake(void)
{
	tr_room_made(tr);
	credits_come();
}

static void a_fua_write_that_waited_ends_with_the_commit_of_its_place(void **state)
{
	for (u32 k = 0; k < ARRAY_SIZE(waits_for); k++) {
		struct write *write = write_begin(k, 1, true);

		SAYS(waits_for[k]);
		walk(write);
		assert_int_equal(parked, k + 1);
		wake();
		walk(write);
		assert_int_equal(nr_sent, 1);
		assert_false(sent[0]->bi_opf & REQ_FUA);	/* the commit flushes it */
		piece_arrives(BLK_STS_OK);
		assert_int_equal(acknowledged, k);
		settle();
		assert_int_equal(acknowledged, k + 1);
	}
}

/* Two blocks: the first goes to a fresh place, the second waits; meanwhile another write gives it
 * a place, and commits. With FUA, in place, the second is durable by itself; the first is not.
 */
static void what_was_sent_before_it_waited_is_not_forgotten(void **state)
{
	for (u32 k = 0; k < ARRAY_SIZE(waits_for); k++) {
		u64 block = 4 * k;
		struct write *write = write_begin(block, 2, true), *other;
		struct bio *first;

		SAYS(TR_GO, waits_for[k]);
		walk(write);
		assert_int_equal(nr_sent, 1);
		first = sent[--nr_sent];		/* it is slow */
		other = write_begin(block + 1, 1, true);
		walk(other);
		cancel_work_sync(&write->io.work);	/* not yet woken */
		while (nr_sent)
			piece_arrives(BLK_STS_OK);
		commit_fn(&tr->journal.commit_work);
		assert_int_equal(acknowledged, 3 * k + 1);
		wake();
		walk(write);
		assert_int_equal(nr_sent, 1);
		assert_true(sent[0]->bi_opf & REQ_FUA);
		write->version = other->version = ++next_version;
		piece_arrives(BLK_STS_OK);
		sent[nr_sent++] = first;
		piece_arrives(BLK_STS_OK);
		assert_int_equal(acknowledged, 3 * k + 1);
		settle();
		assert_int_equal(acknowledged, 3 * k + 2);
		write_begin(30, 1, false);
		settle();
	}
}

/* A place that no durable record names yet: the data are down, the commit comes all the same. */
static void a_place_that_is_not_durable_yet_is_waited_for(void **state)
{
	struct write *write = write_begin(3, 1, false);

	walk(write);
	piece_arrives(BLK_STS_OK);
	assert_int_equal(acknowledged, 1);
	write = write_begin(3, 1, true);
	SAYS(TR_BUSY);
	walk(write);
	wake();
	walk(write);
	piece_arrives(BLK_STS_OK);
	assert_int_equal(acknowledged, 1);
	settle();
	assert_int_equal(acknowledged, 2);
}

/* A suspend without a flush gives it back to device-mapper, which sends it again, whole. */
static void one_that_is_sent_back_is_not_acknowledged(void **state)
{
	struct write *write = write_begin(3, 2, true);

	SAYS(TR_GO, TR_ROOM);
	walk(write);
	piece_arrives(BLK_STS_OK);
	tr->noflush = true;
	tr_requeue_waiters(tr);
	tr->noflush = false;
	assert_int_equal(requeued, 1);
	write_begin(3, 2, true);
	settle();
	assert_int_equal(acknowledged, 1);
}

static void one_that_waits_when_the_volume_becomes_read_only_fails(void **state)
{
	struct write *write = write_begin(3, 2, true);

	SAYS(TR_GO, TR_ROOM);
	walk(write);
	piece_arrives(BLK_STS_OK);
	tr->mode = TR_MODE_READ_ONLY;
	SAYS(TR_ROOM);
	wake();
	walk(write);
	assert_int_equal(failed, 1);
	assert_int_equal(acknowledged, 0);
}

static void one_of_which_a_piece_failed_fails(void **state)
{
	struct write *write = write_begin(3, 2, true);

	SAYS(TR_GO, TR_ROOM);
	walk(write);
	piece_arrives(BLK_STS_IOERR);
	wake();
	settle();
	assert_int_equal(failed, 1);
}

static void one_whose_drive_does_not_flush_fails(void **state)
{
	no_flush[0] = no_flush[1] = true;
	tr->meta[0].tier = TERRACE_META_DEVICE;
	for (u32 k = 0; k < 5; k++) {	/* records are held back for some rounds, not for ever */
		struct write *write = write_begin(k, 2, true);

		SAYS(TR_GO, TR_ROOM);
		walk(write);
		wake();
		settle();
		assert_int_equal(failed, k + 1);
	}
}

/*
 * A round that runs anyway ends the bio as soon as it is on the list, and with it the last one of the
 * volume, which may be gone then: nobody asks for a commit afterwards. Whoever ends a piece
 * of it is no work of the volume, but an interrupt, say.
 */
static void other_cpu(spinlock_t *lock)
{
	struct tr_journal *j = &tr->journal;

	if (lock != &j->lock || bio_list_empty(&j->fuas))
		return;
	kernel_unlocked = NULL;
	cancel_work_sync(&j->commit_work);
	commit_fn(&j->commit_work);
	assert_int_equal(acknowledged, 1);
	cancel_work_sync(&j->commit_work);
	free_volume();
}

static void nothing_is_done_for_one_that_has_ended(void **state)
{
	struct write *write = write_begin(3, 1, true);

	SAYS(TR_ROOM);
	walk(write);
	wake();
	walk(write);
	cancel_work_sync(&tr->refill_work);
	cancel_work_sync(&tr->journal.commit_work);
	kernel_unlocked = other_cpu;
	piece_arrives(BLK_STS_OK);
	assert_null(tr);
}

/* ---- anything, in any order --------------------------------------------------------------------- */

static bool overlaps(u64 block, u32 nr)
{
	for (u32 k = 0; k < DEEP; k++)
		if (slot[k].used && block < slot[k].block + slot[k].nr && slot[k].block < block + nr)
			return true;
	return false;
}

static void begin_any(void)
{
	u32 nr = 1 + random_below(&chance, LONGEST), used = 0;
	u64 block = random_below(&chance, VOLUME - nr + 1);

	for (u32 k = 0; k < DEEP; k++)
		used += slot[k].used;
	if (used < DEEP && !overlaps(block, nr))
		write_begin(block, nr, random_below(&chance, 2));
}

static void work_any(void)
{
	u32 skip = random_below(&chance, 4);
	struct work_struct *work;

	list_for_each_entry(work, &kernel_work, list)
		if (!skip--)
			break;
	if (list_entry_is_head(work, &kernel_work, list))
		return;
	cancel_work_sync(work);
	work->func(work);
}

static void anything(u64 seed)
{
	chance = seed;
	for (u32 k = TR_LOAD; k <= TR_PAGES; k++)
		refuses[k] = k == TR_SLOW || k == TR_GROW ? 0 : random_below(&chance, 40);
	for (u32 step = 0; step < 1500; step++) {
		switch (random_below(&chance, 8)) {
		case 0: case 1:
			begin_any();
			break;
		case 2: case 3: case 4:
			work_any();
			break;
		case 5:
			if (nr_sent)
				piece_arrives(random_below(&chance, 100) ? BLK_STS_OK : BLK_STS_IOERR);
			break;
		case 6:
			wake();
			break;
		default:
			if (!random_below(&chance, 20))
				no_flush[1] = random_below(&chance, 2);
			if (!random_below(&chance, 50))
				memset(place_of, 0, sizeof(place_of));	/* discarded; nobody reads */
		}
	}
	memset(refuses, 0, sizeof(refuses));
	wake();
	settle();
	for (u32 k = 0; k < DEEP; k++)
		assert_false(slot[k].used);
}

static void whatever_happens(void **state)
{
	u32 ended = 0;

	for (u64 seed = 1; seed <= 60; seed++) {
		print_message("seed %llu\n", (unsigned long long)seed);
		anything(seed * 0x9e3779b97f4a7c15ull);
		ended += acknowledged;
		teardown(NULL);
		setup(NULL);
	}
	assert_true(ended > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_fua_write_that_waited_ends_with_the_commit_of_its_place, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_sent_before_it_waited_is_not_forgotten, setup, teardown),
		cmocka_unit_test_setup_teardown(a_place_that_is_not_durable_yet_is_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_is_sent_back_is_not_acknowledged, setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_waits_when_the_volume_becomes_read_only_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(one_of_which_a_piece_failed_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(one_whose_drive_does_not_flush_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_done_for_one_that_has_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(whatever_happens, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
