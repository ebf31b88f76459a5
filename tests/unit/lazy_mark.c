// SPDX-License-Identifier: GPL-2.0-or-later
/* The lazy mirror is never called clean when the volume has gone on. */
#include "lazy_lib.h"

/* A stop that goes well leaves it clean; the first record takes that away, and no copy brings it back. */
static void it_is_clean_until_the_volume_goes_on(void **state)
{
	struct tr_super super;

	for (u32 k = 0; k < 2; k++) {	/* each of its two places */
		assert_int_equal(stop(false), 0);
		assert_int_equal(tr_super_read(tr, TR_COPY_LAZY, &super), 0);
		assert_int_equal(super.generation, tr->super.generation);
		assert_true(super.flags & TERRACE_SUPER_CLEAN);
		commit();
		assert_int_equal(tr_super_read(tr, TR_COPY_LAZY, &super), 0);
		assert_false(super.flags & TERRACE_SUPER_CLEAN);
		assert_int_equal(mirror(), tr->super.generation);
		checkpoint(false);
		copy();
		checkpoint(false);
	}
}

/*
 * Crash scenario: two clean stops without a record between them leave a superblock that says
 * CLEAN in both places of the mirror. The volume goes on, and the mark is taken off the newer one
 * alone. The mirror gets out of step, and the next activation zeroes its superblocks, the one at
 * block 0 first. If that is the newer, and the power fails before the other is zeroed, the mirror
 * says CLEAN of a generation after which the volume went on; with the primary gone it is believed.
 * A bad sector in the newer one comes to the same, any day.
 */
static void neither_of_its_places_says_clean_when_the_volume_has_gone_on(void **state)
{
	copy();
	for (u32 k = 0; k < 2; k++) {
		assert_int_equal(stop(false), 0);
		assert_int_equal(stop(false), 0);
		commit();
		tr->lazy.failed = true;
		checkpoint(false);
		checkpoint(false);
		cut();			/* the next activation invalidates it */
		checkpoint(false);
		copy();
		checkpoint(false);
		if (k == 0)
			checkpoint(false);
		copy();
	}
}

/*
 * Crash scenario: the mirror is clean. There is no memory to copy the generation of another clean
 * stop; the worker copies it later, beside the clean one and without its mark. The volume goes on, and
 * the newest of the mirror does not say CLEAN; the older one does.
 */
static void a_generation_beside_a_clean_one_hides_nothing(void **state)
{
	assert_int_equal(stop(false), 0);
	assert_int_equal(stop(true), -ENOMEM);
	copy();
	assert_int_equal(mirror(), tr->super.generation);
	commit();
}

static void say_clean(u32 place)
{
	struct tr_super super;

	flush();
	assert_int_equal(tr_super_decode(&super, safe[place]), 0);
	super.flags |= TERRACE_SUPER_CLEAN;
	tr_super_encode(safe[place], &super);
}

/* What format, and modules before this one, leave in the older place. The mark that the newer one has stays until a record comes. */
static void an_old_mark_goes_with_the_first_record(void **state)
{
	copy();
	for (u32 k = 0; k < 2; k++) {
		checkpoint(false);
		copy();
		went_on = false;
		say_clean(!(tr->super.generation & 1));
		cut();
		assert_true(says_clean(safe, !(tr->super.generation & 1)));
		commit();
	}
}

/*
 * A place that cannot be written: the older one is hidden by the newer, whose mark goes all the
 * same. The other drives take note of it, and it is tried again until it is gone.
 */
static void a_mark_that_stays_is_noted_and_tried_again(void **state)
{
	static const struct { u32 first, more; } refused[] = { { 1, 0 }, { 2, 0 }, { 1, 1 }, { 1, 3 }, { 2, 2 } };

	for (u32 k = 0; k < ARRAY_SIZE(refused); k++) {
		teardown(NULL);
		setup(NULL);
		copy();
		assert_int_equal(stop(false), 0);
		assert_int_equal(stop(false), 0);
		refuse_write = refused[k].first;
		refuse_writes = refused[k].more;
		commit();
		assert_true(tr->lazy.failed);
		refuse_write = refuse_writes = 0;
		kernel_jiffies += 2 * HZ;
		commit();
		noted = 0;
		look();
		checkpoint(false);
		cut();
		checkpoint(false);
		copy();
		assert_int_equal(mirror(), tr->super.generation);
	}
}

/* A 32-bit kernel begins to count shortly before its jiffies wrap around. */
static void a_mark_goes_right_after_boot_as_well(void **state)
{
	struct tr_super super;

	copy();
	assert_int_equal(stop(false), 0);
	kernel_jiffies = -300ul * HZ;
	cut();
	commit();
	assert_int_equal(tr_super_read(tr, TR_COPY_LAZY, &super), 0);
	assert_false(super.flags & TERRACE_SUPER_CLEAN);
}

/* The drive says that the superblock of a clean stop failed, and has it all the same. */
static void a_mark_may_have_arrived_with_an_error(void **state)
{
	copy();
	for (u32 write = 1; write < 12; write++) {
		teardown(NULL);
		setup(NULL);
		copy();
		refuse_write = write;
		refused_arrives = true;
		stop(false);
		refuse_write = 0;
		commit();
	}
}

/* A superblock that cannot be read may be a clean one. */
static void a_bad_sector_hides_no_mark(void **state)
{
	for (u32 bad = 1; bad < 4; bad++) {
		teardown(NULL);
		setup(NULL);
		copy();
		assert_int_equal(stop(false), 0);
		assert_int_equal(stop(false), 0);
		bad_sectors = bad;
		had_one = false;	/* until it is written again */
		commit();
		assert_int_equal(mirror(), tr->super.generation);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_is_clean_until_the_volume_goes_on, setup, teardown),
		cmocka_unit_test_setup_teardown(neither_of_its_places_says_clean_when_the_volume_has_gone_on, setup, teardown),
		cmocka_unit_test_setup_teardown(a_generation_beside_a_clean_one_hides_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(an_old_mark_goes_with_the_first_record, setup, teardown),
		cmocka_unit_test_setup_teardown(a_mark_that_stays_is_noted_and_tried_again, setup, teardown),
		cmocka_unit_test_setup_teardown(a_mark_goes_right_after_boot_as_well, setup, teardown),
		cmocka_unit_test_setup_teardown(a_mark_may_have_arrived_with_an_error, setup, teardown),
		cmocka_unit_test_setup_teardown(a_bad_sector_hides_no_mark, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
