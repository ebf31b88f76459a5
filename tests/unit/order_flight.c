// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory for orders is kept while orders come, and given back when they do no longer. */
#include "core_lib.h"
#include "kernel.h"

#include "../../kmod/order_flight.c"

/*
 * One order works in nine megabytes. Given back with each tick, the next order clears them again,
 * more than a millisecond in which its region's writers are marked; never given back, a volume
 * that was packed once with eight orders in flight keeps seventy megabytes that no limit counts.
 */
static struct terrace *tr;
static int areas;		/* that there are, by their codecs */

struct tr_codec *tr_codec_create(bool compress)
{
	void *codec = kzalloc(1, GFP_KERNEL);

	areas += !!codec;
	return codec;
}

void tr_codec_destroy(struct tr_codec *codec)
{
	areas -= !!codec;
	kfree(codec);
}

void submit_bio(struct bio *bio) { kernel_bug("a bio is sent"); }

static int setup(void **state)
{
	tr = kzalloc(sizeof(*tr), GFP_KERNEL);
	tr_flight_init(tr);
	return 0;
}

/* The volume is freed: what was forgotten is found by LeakSanitizer as well. */
static int teardown(void **state)
{
	tr_orders_forget(tr, true);
	assert_int_equal(areas, 0);
	kfree(tr);
	return 0;
}

static void tick(void) { tr_orders_forget(tr, false); }

static struct tr_order_area *begin(void)
{
	struct tr_order_area *area = tr_order_area_get(tr);

	assert_non_null(area);
	return area;
}

static void end(struct tr_order_area *area) { tr_order_area_put(tr, area); }

static void memory_stays_while_orders_come(void **state)
{
	struct tr_order_area *first = begin();

	end(first);
	for (int ticks = 0; ticks < 5; ticks++) {
		tick();
		assert_int_equal(areas, 1);
		assert_ptr_equal(begin(), first);
		end(first);
	}
}

static void memory_goes_with_the_second_tick_without_an_order(void **state)
{
	end(begin());
	tick();
	assert_int_equal(areas, 1);
	tick();
	assert_int_equal(areas, 0);
	end(begin());
	tick();
	assert_int_equal(areas, 1);
}

/* Eight at once, then one after the other: what that one has used last is taken first, so the others age. */
static void memory_of_a_crowd_goes_when_one_is_left(void **state)
{
	struct tr_order_area *crowd[8], *one = NULL;

	for (u32 k = 0; k < ARRAY_SIZE(crowd); k++)
		crowd[k] = begin();
	for (u32 k = 0; k < ARRAY_SIZE(crowd); k++)
		end(crowd[k]);
	assert_int_equal(areas, 8);
	tick();
	for (u32 k = 0; k < 2 * ARRAY_SIZE(crowd); k++) {
		one = begin();
		end(one);
	}
	tick();
	assert_int_equal(areas, 1);
	assert_ptr_equal(begin(), one);
	end(one);
}

/* It may run for minutes: no tick takes from under it what it works in. */
static void an_order_that_runs_keeps_its_memory(void **state)
{
	struct tr_order_area *area = begin();

	for (int ticks = 0; ticks < 3; ticks++)
		tick();
	memset(area->data, 1, BLOCKS * TERRACE_BLOCK_BYTES);
	assert_int_equal(areas, 1);
	end(area);
	tick();
	assert_int_equal(areas, 1);	/* it has been used since the last one */
	tick();
	assert_int_equal(areas, 0);
}

static void no_memory_is_no_order(void **state)
{
	for (u32 nth = 1; nth <= 5; nth++) {
		kernel_refuse = nth;
		assert_null(tr_order_area_get(tr));
		assert_int_equal(areas, 0);
	}
	kernel_refuse = 6;
	end(begin());
	kernel_refuse = 0;
	end(NULL);
}

static void all_of_it_goes_with_the_volume(void **state)
{
	struct tr_order_area *a = begin(), *b = begin();

	end(a);
	tick();
	end(b);
	tr_orders_forget(tr, true);
	assert_int_equal(areas, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(memory_stays_while_orders_come, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_goes_with_the_second_tick_without_an_order, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_of_a_crowd_goes_when_one_is_left, setup, teardown),
		cmocka_unit_test_setup_teardown(an_order_that_runs_keeps_its_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(no_memory_is_no_order, setup, teardown),
		cmocka_unit_test_setup_teardown(all_of_it_goes_with_the_volume, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
