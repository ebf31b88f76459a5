// SPDX-License-Identifier: GPL-2.0-or-later
/* Marks on ranges, held against an array with the marks of each block. */
#include "core_lib.h"
#include "ranges.h"

#define BLOCKS	200
#define ROOM	64

static u32 model[BLOCKS];

static void compare(const struct tr_range *range, u32 nr)
{
	u64 n;
	u32 i, k;

	for (k = 0; k < nr; k++) {
		assert_true(range[k].first < range[k].end);
		assert_int_not_equal(range[k].marks, 0);
		if (k) {
			assert_true(range[k - 1].end <= range[k].first);
			assert_true(range[k - 1].end < range[k].first || range[k - 1].marks != range[k].marks);
		}
	}
	for (i = 0; i < BLOCKS; i++) {
		n = BLOCKS - i;
		assert_int_equal(tr_ranges_find(range, nr, i, &n), model[i]);
		assert_true(n >= 1);
		for (k = 0; k < n; k++)
			assert_int_equal(model[i + k], model[i]);
		assert_true(i + n == BLOCKS || model[i + n] != model[i]);
	}
}

static void random_changes(void **state)
{
	struct tr_range a[ROOM], b[ROOM];
	struct tr_range *now = a, *next = b, *swap;
	u32 nr = 0, step, i, full = 0;

	(void)state;
	srandom(1);
	for (step = 0; step < 20000; step++) {
		u32 first = random() % BLOCKS, end = first + 1 + random() % (BLOCKS - first);
		u32 clear = random() % 8, set = random() % 8;
		int got = tr_ranges_change(now, nr, next, ROOM, first, end, clear, set);

		if (step % 500 == 0) {		/* and from an empty one */
			first = 0;
			end = BLOCKS;
			clear = 7;
			set = 0;
			got = tr_ranges_change(now, nr, next, ROOM, first, end, clear, set);
			assert_int_equal(got, 0);
		}
		if (got == -ENOSPC) {
			full++;
			compare(now, nr);	/* nothing has changed */
			continue;
		}
		assert_true(got >= 0);
		nr = got;
		swap = now;
		now = next;
		next = swap;
		for (i = first; i < end; i++)
			model[i] = (model[i] & ~clear) | set;
		compare(now, nr);
	}
	assert_int_equal(full, 0);
}

static void no_room(void **state)
{
	struct tr_range two[2], to[3];

	(void)state;
	assert_int_equal(tr_ranges_change(NULL, 0, two, 2, 10, 20, 0, 1), 1);
	assert_int_equal(tr_ranges_change(two, 1, to, 3, 12, 14, 1, 2), 3);
	assert_int_equal(tr_ranges_change(two, 1, to, 2, 12, 14, 1, 2), -ENOSPC);
	assert_int_equal(tr_ranges_change(NULL, 0, to, 0, 1, 2, 0, 1), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_changes),
		cmocka_unit_test(no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
