// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What is asked of a region exactly: the masks, and the runs of its loose blocks only where they are wanted. What is known of
 * all of them, by summaries, also by those that are STALE.
 */
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

/* ---- summaries ---- */

static struct terrace_summary said;

static int summaries(struct port *p, uint64_t first, uint32_t nr, struct terrace_summary *out)
{
	(void)p;
	(void)first;
	assert_int_equal(nr, 1);
	*out = said;
	return 1;
}

static const struct port_ops summary_ops = { .summaries = summaries };
static struct port summary_port = { .ops = &summary_ops };

static struct region_view seen(struct book *b, struct terrace_summary s)
{
	struct region_view view;

	said = s;
	assert_int_equal(book_refresh(b, &summary_port, 0), 0);
	book_view(b, 0, &view);
	return view;
}

/* What left memory before it was counted holds as much as before, and what is fast may all be dirty. */
static void a_stale_region_is_mapped_as_it_was_counted(void **state)
{
	struct terrace_summary s = { .fast = 20, .dirty = 12, .loose = 30, .packed = 500, .packs = 1, .packed_blocks = 250 };
	struct region_view view;
	struct book b;

	(void)state;
	assert_int_equal(book_init(&b, 3, true), 0);
	assert_int_equal(book_dirty(&s), 12);
	view = seen(&b, s);
	assert_int_equal(b.mapped, 542);
	assert_int_equal(view.dirty_blocks, 12);
	assert_int_equal(view.clean_blocks, 8);
	s.flags = TERRACE_SUMMARY_STALE;
	s.fast = 70;
	assert_int_equal(book_dirty(&s), 70);
	view = seen(&b, s);
	assert_int_equal(b.mapped, 542);
	assert_int_equal(view.dirty_blocks, 70);
	assert_int_equal(view.clean_blocks, 0);
	assert_int_equal(view.packs, 1);
	assert_int_equal(view.packed_blocks, 280);
	/* It went down: dirty is from when it was fast. */
	s.fast = 0;
	view = seen(&b, s);
	assert_int_equal(b.mapped, 542);
	assert_int_equal(view.dirty_blocks, 0);
	assert_int_equal(b.fast_count, 0);
	/* Nothing but its page is known. */
	view = seen(&b, (struct terrace_summary){ .fast = 70, .flags = TERRACE_SUMMARY_STALE });
	assert_int_equal(b.mapped, 70);
	assert_int_equal(view.dirty_blocks, 70);
	assert_int_equal(view.clean_blocks, 0);
	seen(&b, (struct terrace_summary){ .age = 255 });
	assert_int_equal(b.mapped, 0);
	book_exit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(runs_are_counted_for_who_gathers, three_blocks),
		cmocka_unit_test_setup(errors_are_passed_on, three_blocks),
		cmocka_unit_test(a_stale_region_is_mapped_as_it_was_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
