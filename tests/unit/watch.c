// SPDX-License-Identifier: GPL-2.0-or-later
/* Where files lie, as far as that is known when they die: what has been cut or shared meanwhile is not told as a dead file's own. */
#include "watch_lib.h"

#define PIECES	3000u

static struct watch *watch_one_table(void)
{
	const struct watch_tell tell = { .dead = on_dead };
	struct watch *w = watch_with(&tell);

	pieces = PIECES;
	written(1);
	watch_tick(w, false, false);
	assert_int_equal(asked, 1);
	return w;
}

/* A table in thousands of pieces: all of them are its own. */
static void the_dead_are_told_with_all_their_extents(void **state)
{
	struct watch *w = watch_one_table();

	(void)state;
	dies(w);
	assert_int_equal(told.nr, PIECES);
	assert_int_equal(told.sure, 1);
}

/* What was allocated ahead is given up a moment after a file is closed, and may have been asked for by then: others are placed there. */
static void what_lies_beyond_its_end_is_not_its_own(void **state)
{
	const struct watch_tell tell = { .dead = on_dead };
	struct watch *w = watch_with(&tell);

	(void)state;
	pieces = SIZE / 4096 + 100;
	written(1);
	watch_tick(w, false, false);
	assert_int_equal(asked, 1);
	dies(w);
	assert_int_equal(told.nr, SIZE / 4096);
	assert_int_equal(told.sure, 1);
}

/* Truncated or punched by whom nobody hears closing it: asked again, and what is left is its own. Dead before that: nobody can be sure. */
static void what_was_cut_is_asked_for_again(void **state)
{
	(void)state;
	for (int in_time = 0; in_time <= 1; in_time++) {
		struct watch *w = watch_one_table();

		happens(TERRACE_FILE_CHANGED, 0);
		happens(TERRACE_FILE_CHANGED, 0);
		pieces = 10;
		if (in_time) {
			watch_tick(w, false, false);
			assert_int_equal(asked, 2);
		}
		dies(w);
		assert_int_equal(told.nr, in_time ? 10 : PIECES);
		assert_int_equal(told.sure, in_time);
	}
}

/* Written on, closed and deleted within a tick. */
static void what_was_closed_again_is_not_sure_before_it_is_asked(void **state)
{
	struct watch *w = watch_one_table();

	(void)state;
	happens(TERRACE_FILE_CLOSED, 0);
	dies(w);
	assert_int_equal(told.sure, 0);
}

/* Another file has the same blocks: they outlive this one, also when it is asked for something else later. */
static void what_was_shared_is_not_its_own(void **state)
{
	(void)state;
	for (int again = 0; again <= 1; again++) {
		struct watch *w = watch_one_table();

		happens(TERRACE_FILE_CHANGED, TERRACE_FILE_SHARED);
		if (again)
			happens(TERRACE_FILE_CLOSED, 0);
		for (int i = 0; i < 3; i++)
			watch_tick(w, false, false);
		assert_int_equal(asked, 1 + again);
		dies(w);
		assert_int_equal(told.sure, 0);
	}
}

/* Its filesystem hangs: nobody waits for it, and what happens meanwhile is heard with the answer. */
static void an_answer_may_come_late(void **state)
{
	(void)state;
	for (int what = 0; what < 4; what++) {
		struct watch *w = watch_one_table();

		held = true;
		written(2);
		watch_tick(w, false, false);
		assert_int_equal(asked, 2);
		if (what == 1)
			happens_to(2, TERRACE_FILE_CHANGED, 0);
		else if (what == 2)
			happens_to(2, TERRACE_FILE_CHANGED, TERRACE_FILE_SHARED);
		else if (what == 3)
			happens_to(2, TERRACE_FILE_CLOSED, 0);
		watch_tick(w, false, false);
		/* what was cut is asked once more; should it die before that, nobody can be sure */
		assert_int_equal(asked, what % 2 ? 3 : 2);
		while (nr_asks > 1)
			free(asks[--nr_asks].answer.extent);
		held = false;
		watch_tick(w, false, false);
		assert_int_equal(watch_counts(w)->mapped, 2);
		held = true;
		happens_to(2, TERRACE_FILE_UNLINKED, 0);
		happens_to(2, TERRACE_FILE_DIED, 0);
		watch_tick(w, false, false);
		assert_int_equal(told.deaths, 1);
		assert_int_equal(told.nr, PIECES);
		assert_int_equal(told.sure, what == 0);
		watch_close(w);
	}
}

/* It lay there when it was asked; where it lies now is another's, perhaps. */
static void who_dies_while_it_is_asked_is_trimmed_where_it_is_free(void **state)
{
	struct watch *w = watch_one_table();

	(void)state;
	held = true;
	written(2);
	watch_tick(w, false, false);
	happens_to(2, TERRACE_FILE_UNLINKED, 0);
	happens_to(2, TERRACE_FILE_DIED, 0);
	watch_tick(w, false, false);
	assert_int_equal(told.deaths, 1);
	assert_int_equal(told.nr, 0);
	held = false;
	watch_tick(w, false, false);
	assert_int_equal(told.deaths, 2);
	assert_int_equal(told.nr, PIECES);
	assert_int_equal(told.sure, 0);
	watch_close(w);
}

/* Cut, and deleted before it is asked again: what was its own is trimmed where it is free. */
static void what_cannot_be_asked_any_more_keeps_its_place(void **state)
{
	struct watch *w = watch_one_table();

	(void)state;
	happens(TERRACE_FILE_CHANGED, 0);
	gone = 1;
	watch_tick(w, false, false);
	assert_int_equal(asked, 2);
	assert_int_equal(watch_counts(w)->unmapped, 1);
	dies(w);
	assert_int_equal(told.nr, PIECES);
	assert_int_equal(told.sure, 0);
}

/* However many are closed at once, a tick asks and tells so many; those that find no room are counted. */
static void a_tick_asks_so_many_and_no_more(void **state)
{
	struct watch *w = watch_one_table();

	(void)state;
	held = true;
	pieces = 1;
	for (uint64_t i = 2; i < 2 + 64 + INQUIRIES + 10; i++)
		written(i);
	watch_tick(w, false, false);
	assert_int_equal(asked, 1 + ASKER_PATIENT);
	assert_int_equal(watch_counts(w)->not_asked, 64 + 10);
	held = false;
	watch_tick(w, false, false);
	assert_int_equal(watch_counts(w)->mapped, 1 + INQUIRIES);
	watch_close(w);
	/* in many pieces, each: with later ticks */
	w = watch_one_table();
	for (uint64_t i = 2; i < 12; i++)
		written(i);
	watch_tick(w, false, false);
	assert_in_range(watch_counts(w)->mapped, 2, 3);
	for (int i = 0; i < 10; i++)
		watch_tick(w, false, false);
	assert_int_equal(watch_counts(w)->mapped, 11);
	watch_close(w);
}

/* A death costs what it leaves behind: thousands of them are told in several ticks, in their order, all the same. */
static void a_tick_tells_so_many_deaths_and_no_more(void **state)
{
	struct watch *w = watch_one_table();
	int before, ticks = 0;

	(void)state;
	pieces = 10;
	for (uint64_t i = 2; i < 1002; i++)
		written(i);
	watch_tick(w, false, false);
	assert_int_equal(watch_counts(w)->mapped, 1 + 373);
	while (watch_counts(w)->mapped < 1001)
		watch_tick(w, false, false);
	for (uint64_t i = 2; i < 1002; i++) {
		happens_to(i, TERRACE_FILE_UNLINKED, 0);
		happens_to(i, TERRACE_FILE_DIED, 0);
	}
	do {
		before = told.deaths;
		watch_tick(w, false, false);
		assert_in_range(told.deaths - before, 0, 200);
		ticks++;
	} while (told.deaths > before);
	assert_int_equal(told.deaths, 1000);
	assert_int_equal(told.sure, 1000);
	assert_in_range(ticks, 6, 20);
	watch_close(w);
}

/* What was missed of them may be anything: none is believed before it has been asked again, and who has died is told. */
static void lost_events_are_made_good(void **state)
{
	struct watch *w = watch_one_table();

	(void)state;
	pieces = 5;
	for (uint64_t i = 2; i < 100; i++)
		written(i);
	watch_tick(w, false, false);
	/* the death of one, and that another was cut or shared, are missed; a third is heard to die right after that */
	held = true;
	lost += 3;
	happens_to(3, TERRACE_FILE_UNLINKED, 0);
	happens_to(3, TERRACE_FILE_DIED, 0);
	watch_tick(w, false, false);
	assert_int_equal(told.deaths, 1);
	assert_int_equal(told.nr, 5);
	assert_int_equal(told.sure, 0);
	held = false;
	gone = 2;
	pieces = 3;
	for (int i = 0; i < 20; i++)
		watch_tick(w, false, false);
	assert_int_equal(watch_counts(w)->looked_again, 97);
	assert_int_equal(watch_counts(w)->died_unheard, 1);
	assert_int_equal(told.deaths, 2);
	assert_int_equal(told.nr, 5);
	assert_int_equal(told.sure, 0);
	/* once */
	asked = 0;
	watch_tick(w, false, false);
	assert_int_equal(asked, 0);
	/* and what has been asked is relied upon again */
	happens_to(4, TERRACE_FILE_UNLINKED, 0);
	happens_to(4, TERRACE_FILE_DIED, 0);
	watch_tick(w, false, false);
	assert_int_equal(told.deaths, 3);
	assert_int_equal(told.nr, 3);
	assert_int_equal(told.sure, 1);
	watch_close(w);
}

/* Events are lost while answers are on their way: these are older than that. */
static void an_answer_from_before_a_loss_is_not_believed(void **state)
{
	struct watch *w = watch_one_table();

	(void)state;
	held = true;
	written(2);
	watch_tick(w, false, false);
	lost++;
	watch_tick(w, false, false);
	assert_int_equal(nr_asks, 3);
	for (int i = 1; i < 3; i++)
		free(asks[i].answer.extent);
	nr_asks = 1;
	held = false;
	watch_tick(w, false, false);
	held = true;
	happens_to(2, TERRACE_FILE_UNLINKED, 0);
	happens_to(2, TERRACE_FILE_DIED, 0);
	watch_tick(w, false, false);
	assert_int_equal(told.deaths, 1);
	assert_int_equal(told.nr, PIECES);
	assert_int_equal(told.sure, 0);
	watch_close(w);
}

/* The closing of an output was missed: it has a place all the same, which is not relied upon; nothing more is said of it. */
static void who_was_closed_unheard_has_a_place(void **state)
{
	struct watch *w = watch_one_table();

	(void)state;
	happens_to(2, TERRACE_FILE_CREATED, 0);
	happens_to(2, TERRACE_FILE_WRITTEN, 0);
	pieces = 0;	/* nothing is allocated yet */
	watch_tick(w, false, false);
	assert_int_equal(asked, 2);
	pieces = PIECES;
	lost++;
	watch_tick(w, false, false);
	assert_int_equal(asked, 4);
	happens_to(2, TERRACE_FILE_UNLINKED, 0);
	happens_to(2, TERRACE_FILE_DIED, 0);
	watch_tick(w, false, false);
	assert_int_equal(told.nr, PIECES);
	assert_int_equal(told.sure, 0);
	watch_close(w);
}

/* Fresh ones come first. */
static void what_is_looked_at_again_gives_way(void **state)
{
	struct watch *w = watch_one_table();
	uint32_t fresh = 0;

	(void)state;
	pieces = 1;
	for (uint64_t i = 2; i < 500; i++)
		written(i);
	watch_tick(w, false, false);
	held = true;
	asked = 0;
	lost++;
	watch_tick(w, false, false);
	assert_int_equal(asked, INQUIRIES_FEW);
	for (uint64_t i = 1000; i < 1040; i++)
		written(i);
	watch_tick(w, false, false);
	assert_int_equal(asked, INQUIRIES_FEW + 40);
	for (uint32_t i = INQUIRIES_FEW; i < asked; i++)
		fresh += order[i] >= 1000;
	assert_int_equal(fresh, 40);
	watch_close(w);
}

/* Tables from before the daemon's start have places and are told, a few at a time: fresh ones come first. */
static void who_was_there_before_is_found(void **state)
{
	struct watch *w = watch_one_table();
	uint32_t fresh = 0;

	(void)state;
	assert_int_equal(walks, 1);
	pieces = 1;
	held = true;
	asked = 0;
	first_found = 100;
	nr_found = 50;
	watch_tick(w, false, false);
	assert_int_equal(asked, INQUIRIES_FEW);
	for (uint64_t i = 2; i < 22; i++)
		written(i);
	watch_tick(w, false, false);
	assert_int_equal(asked, INQUIRIES_FEW + 20);
	for (uint32_t i = INQUIRIES_FEW; i < asked; i++)
		fresh += order[i] < 100;
	assert_int_equal(fresh, 20);
	held = false;
	gone = 149;
	watch_tick(w, false, false);
	assert_int_equal(watch_counts(w)->found, 49);
	assert_int_equal(watch_counts(w)->mapped, 21);
	assert_int_equal(watch_counts(w)->unmapped, 0);
	/* those that have a place are not asked again; one that dies is told */
	first_found = 100;
	nr_found = 49;
	asked = 0;
	watch_tick(w, false, false);
	assert_int_equal(nr_found, 0);
	assert_int_equal(asked, 0);
	happens_to(120, TERRACE_FILE_UNLINKED, 0);
	happens_to(120, TERRACE_FILE_DIED, 0);
	watch_tick(w, false, false);
	assert_int_equal(told.nr, 1);
	assert_int_equal(told.sure, 1);
	/* what is closed again lies elsewhere */
	happens_to(121, TERRACE_FILE_CLOSED, TERRACE_FILE_UNSEEN);
	watch_tick(w, false, false);
	assert_int_equal(asked, 1);
	/* after a loss all folders are read again */
	lost++;
	watch_tick(w, false, false);
	assert_int_equal(walks, 2);
	lost++;
	watch_tick(w, false, false);
	assert_int_equal(walks, 2);
	watch_close(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_dead_are_told_with_all_their_extents),
		cmocka_unit_test(what_lies_beyond_its_end_is_not_its_own),
		cmocka_unit_test(what_was_cut_is_asked_for_again),
		cmocka_unit_test(what_was_closed_again_is_not_sure_before_it_is_asked),
		cmocka_unit_test(what_was_shared_is_not_its_own),
		cmocka_unit_test(an_answer_may_come_late),
		cmocka_unit_test(who_dies_while_it_is_asked_is_trimmed_where_it_is_free),
		cmocka_unit_test(what_cannot_be_asked_any_more_keeps_its_place),
		cmocka_unit_test(a_tick_asks_so_many_and_no_more),
		cmocka_unit_test(a_tick_tells_so_many_deaths_and_no_more),
		cmocka_unit_test(lost_events_are_made_good),
		cmocka_unit_test(an_answer_from_before_a_loss_is_not_believed),
		cmocka_unit_test(who_was_closed_unheard_has_a_place),
		cmocka_unit_test(what_is_looked_at_again_gives_way),
		cmocka_unit_test(who_was_there_before_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
