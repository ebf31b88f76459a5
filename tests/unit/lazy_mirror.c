// SPDX-License-Identifier: GPL-2.0-or-later
/* The lazy mirror of the metadata: complete at any time, and mended when it is out of step. */
#include "lazy_lib.h"

/* ---- one thing at a time --------------------------------------------------------------- */

static void it_follows(void **state)
{
	assert_true(tr_lazy_lost(tr));
	copy();
	assert_false(tr_lazy_lost(tr));
	assert_int_equal(mirror(), tr->super.generation);
	checkpoint(false);
	copy();
	assert_int_equal(mirror(), tr->super.generation);
	copies = 0;
	copy();
	assert_int_equal(copies, 0);	/* nobody asked */
}

/* After a cut only what has changed since is copied again. */
static void what_it_has_is_not_copied_again(void **state)
{
	copy();
	checkpoint(false);		/* its superblock says that the mirror is in step */
	copy();
	cut();
	assert_false(tr_lazy_lost(tr));
	assert_int_equal(bitmap_weight(tr->pages->space.lazy_stale, META), 0);
	checkpoint(false);
	cut();
	assert_true(bitmap_weight(tr->pages->space.lazy_stale, META) <= 5);
}

/*
 * Out of step, it is copied as a whole. Crash scenario: the mirror has generation 5, whose pages
 * were used again by the primary while the mirror was away. Halfway through the new copy
 * the primary is lost: were the superblock of generation 5 still there, its map would
 * show blocks of others.
 */
static void what_is_out_of_step_is_mended(void **state)
{
	copy();
	assert_int_equal(mirror(), tr->super.generation);
	tr->lazy.failed = true;		/* its drive goes away */
	for (u32 k = 0; k < 40; k++) {
		commit();
		checkpoint(false);
	}
	cut();
	assert_true(tr_lazy_lost(tr));
	assert_int_equal(mirror(), 0);
	checkpoint(false);
	copy();
	assert_false(tr_lazy_lost(tr));
	assert_int_equal(mirror(), tr->super.generation);
	checkpoint(false);		/* the superblock that says so */
	copy();
	cut();
	assert_false(tr_lazy_lost(tr));
}

/*
 * Crash scenario: a clean mirror of generation 7. The volume is suspended, nothing has been
 * written; there is no memory to copy generation 8, and the suspension goes on without.
 * Resumed, the first commit takes the mark away, of the generation that the mirror has, in
 * its place. If that is not known any more the mark is taken off the other place; the fast
 * drive dies, and the mirror is believed to be the volume's last state.
 */
static void a_stop_without_memory_leaves_nothing_that_is_believed(void **state)
{
	for (u32 k = 0; k < 2; k++) {
		assert_int_equal(stop(false), 0);
		assert_int_equal(stop(true), -ENOMEM);
		assert_false(tr_lazy_lost(tr));
		commit();
		assert_true(mirror() > 0);
		checkpoint(false);
		copy();
		checkpoint(false);
		copy();
		assert_true(mirror() >= tr->super.generation - 1);
		checkpoint(false);
	}
}

/* In the place of the mirror's newer superblock: nothing, a torn one, the older, one of another volume. */
static void damage_newer(u32 how)
{
	u32 place = tr->pages->lazy_super.generation & 1;
	struct tr_super super;

	if (!how) {
		bad_sectors = 1u << place;
	} else if (how == 1) {
		safe[place][100] ^= 1;
	} else if (how == 2) {
		memcpy(safe[place], safe[!place], TERRACE_BLOCK_BYTES);
	} else {
		assert_int_equal(tr_super_decode(&super, safe[!place]), 0);
		super.generation--;
		super.volume_uuid[0] ^= 1;
		tr_super_encode(safe[place], &super);
	}
}

/*
 * Crash scenario: the mirror has generations 4 and 5, and the primary has used blocks again that only 4
 * needed. The power fails, and the superblock of 5 cannot be read. 4 is still there with its
 * bitmap; what the primary wrote since into blocks that are in it has never been copied.
 */
static void an_older_generation_does_not_say_what_is_the_same(void **state)
{
	for (u32 how = 0; how < 4; how++) {
		for (u32 k = 0; k < 4; k++) {
			copy();
			checkpoint(false);
		}
		copy();
		for (u32 k = 0; k < 8; k++)
			checkpoint(false);
		flush();
		damage_newer(how);
		cut();
		assert_true(tr_lazy_lost(tr));
		for (u32 k = 0; k < 3; k++) {
			checkpoint(false);
			copy();
		}
		assert_true(mirror() + 1 >= tr->super.generation);
	}
}

/* Has the primary written into blocks since that only this generation of the mirror needed? */
static bool uses_again(u64 generation)
{
	for (u32 k = 0; k < PAGES; k++)
		for (u32 q = 0; q < PAGES; q++)
			if (page[k].at == page_of[generation][q].at && page[k].generation > generation)
				return true;
	return false;
}

/*
 * Crash scenario: as in the one before; the mirror is made void, the place of the superblock of 5 first,
 * and the power fails before that of 4 is zeroed. At the next start 4 stands beside zeros.
 */
static void made_void_by_half_it_is_not_believed(void **state)
{
	for (u32 how = 0; how < 4; how++) {
		for (u32 k = 0; k < 4; k++) {
			copy();
			checkpoint(false);
		}
		do {
			copy();
			checkpoint(false);
			copy();
		} while (!memcmp(page_of[tr->super.generation], page_of[tr->super.generation - 1], sizeof(page)));
		for (u32 k = 0; k < 500 && !uses_again(tr->pages->lazy_super.generation - 1); k++)
			checkpoint(false);
		assert_true(uses_again(tr->pages->lazy_super.generation - 1));
		flush();
		damage_newer(how);
		zeroed = 0;
		cut();			/* activation makes the mirror void … */
		assert_int_equal(zeroed, 2);
		memcpy(safe, zeroed_once, sizeof(safe));	/* … and power fails between its two writes */
		nr_unsafe = 0;
		end();
		start();
		for (u32 k = 0; k < 3; k++) {
			checkpoint(false);
			copy();
		}
		assert_true(mirror() + 1 >= tr->super.generation);
	}
}

/*
 * Crash scenario: the newer superblock could not be read, so that its mark was taken off with the whole of it;
 * then the power failed.
 */
static void zeros_may_have_been_the_newer_one(void **state)
{
	for (u32 k = 0; k < 4; k++) {
		copy();
		checkpoint(false);
	}
	copy();
	for (u32 k = 0; k < 500 && !uses_again(tr->pages->lazy_super.generation - 1); k++)
		checkpoint(false);
	flush();
	memset(safe[tr->pages->lazy_super.generation & 1], 0, TERRACE_BLOCK_BYTES);
	cut();
	assert_true(tr_lazy_lost(tr));
	checkpoint(false);
	copy();
	assert_int_equal(mirror(), tr->super.generation);
}

/* Made void by half, the mirror does not have the older superblock any more. */
static void the_older_goes_first(void **state)
{
	struct tr_super super;

	for (u32 how = 0; how < 5; how++) {
		u64 newest;

		for (u32 k = 0; k < 4; k++) {
			copy();
			checkpoint(false);
		}
		flush();
		newest = tr->pages->lazy_super.generation;
		if (how < 4)
			damage_newer(how);
		else
			tr->lazy.failed = true;	/* its drive goes away */
		checkpoint(false);
		zeroed = 0;
		cut();
		assert_int_equal(zeroed, 2);
		if (how < 4)
			assert_int_not_equal(newest_super(zeroed_once, &super) ?: super.generation, newest - 1);
		else
			assert_int_equal(newest_super(zeroed_once, &super) ?: super.generation, newest);
	}
}

/* A generation that would go over the only complete one is left out. */
static void it_never_goes_over_the_one_that_it_has(void **state)
{
	copy();
	checkpoint(false);
	checkpoint(false);
	copies = 0;
	copy();
	assert_int_equal(copies, 0);
	checkpoint(false);
	copy();
	assert_int_equal(mirror(), tr->super.generation);
}

/* ---- anything, in any order --------------------------------------------------------------- */

static void anything(u64 seed)
{
	chance = seed;
	busy = 3 + random_below(&chance, 40);
	for (u32 step = 0; step < 60; step++) {
		switch (random_below(&chance, 12)) {
		case 0: case 1: case 2:
			commit();
			checkpoint(false);
			break;
		case 3: case 4: case 5:
			copy();
			break;
		case 6:
			commit();
			break;
		case 7:
			stop(false);
			break;
		case 8:
			stop(true);
			break;
		case 9:
			cut();
			break;
		case 10:
			if (!random_below(&chance, 4))
				refuse_write = 1 + random_below(&chance, 10);
			break;
		default:
			kernel_jiffies += HZ;
		}
	}
	refuse_write = busy = 0;
	cut();
	checkpoint(false);
	copy();
	checkpoint(false);
	copy();
	assert_false(tr_lazy_lost(tr));
	assert_true(mirror() + 1 >= tr->super.generation);
}

static void whatever_happens(void **state)
{
	for (u64 seed = 1; seed <= 40; seed++) {
		print_message("seed %llu\n", (unsigned long long)seed);
		anything(seed * 0x9e3779b97f4a7c15ull);
		teardown(NULL);
		setup(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_follows, setup, teardown),
		cmocka_unit_test_setup_teardown(what_it_has_is_not_copied_again, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_out_of_step_is_mended, setup, teardown),
		cmocka_unit_test_setup_teardown(a_stop_without_memory_leaves_nothing_that_is_believed, setup, teardown),
		cmocka_unit_test_setup_teardown(an_older_generation_does_not_say_what_is_the_same, setup, teardown),
		cmocka_unit_test_setup_teardown(made_void_by_half_it_is_not_believed, setup, teardown),
		cmocka_unit_test_setup_teardown(zeros_may_have_been_the_newer_one, setup, teardown),
		cmocka_unit_test_setup_teardown(the_older_goes_first, setup, teardown),
		cmocka_unit_test_setup_teardown(it_never_goes_over_the_one_that_it_has, setup, teardown),
		cmocka_unit_test_setup_teardown(whatever_happens, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
