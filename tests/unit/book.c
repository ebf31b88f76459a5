// SPDX-License-Identifier: GPL-2.0-or-later
/* What is asked of a region exactly: the masks, and the runs of its loose blocks only where they are wanted. */
#include <errno.h>

#include "policy_lib.h"

#include "loop/book.h"

static struct terrace_region answer;
static uint32_t asked, asked_runs;
static int got = 1;

static int regions(struct port *port, uint64_t first, uint32_t nr, bool runs, struct terrace_region *out)
{
	(void)port;
	assert_int_equal(first, 7);
	assert_int_equal(nr, 1);
	asked++;
	asked_runs += runs;
	*out = answer;
	out->copies = runs ? answer.copies : 0;
	return got;
}

static const struct port_ops ops = { .regions = regions };
static struct port port = { .ops = &ops };

static int three_blocks(void **state)
{
	(void)state;
	memset(&answer, 0, sizeof(answer));
	answer.fast[0] = 1;
	answer.packed[0] = 2;
	answer.present[0] = 1 | 4;
	answer.copies = 3;
	asked = asked_runs = 0;
	got = 1;
	return 0;
}

static void runs_are_counted_for_who_gathers(void **state)
{
	struct upmask fast, slow, loose;
	uint32_t runs = 99;

	(void)state;
	assert_int_equal(book_masks(&port, 7, &fast, &slow), 0);
	assert_int_equal(asked, 1);
	assert_int_equal(asked_runs, 0);
	assert_int_equal(fast.bits[0], 1);
	assert_int_equal(slow.bits[0], 2 | 4);
	assert_int_equal(book_loose(&port, 7, &loose, &runs), 0);
	assert_int_equal(asked, 2);
	assert_int_equal(asked_runs, 1);
	assert_int_equal(loose.bits[0], 4);
	assert_int_equal(runs, 3);
}

static void errors_are_passed_on(void **state)
{
	static const struct { int got, status, says; } want[] = { { -ENODEV, 0, -ENODEV }, { 0, 0, -EIO }, { 1, -EBUSY, -EBUSY } };

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct upmask fast, slow;
		uint32_t runs;

		got = want[i].got;
		answer.status = want[i].status;
		assert_int_equal(book_masks(&port, 7, &fast, &slow), want[i].says);
		assert_int_equal(book_loose(&port, 7, &fast, &runs), want[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(runs_are_counted_for_who_gathers, three_blocks),
		cmocka_unit_test_setup(errors_are_passed_on, three_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
