// SPDX-License-Identifier: GPL-2.0-or-later
/* Each decision is a line of the log where somebody wants to read it, and none where nobody does. */
#include "sim_lib.h"

enum { BLOCKS = 65536, FAST = 8192 };

static uint64_t lines;

static void read_it(void *ctx, enum engine_level level, const char *line)
{
	(void)ctx;
	if (level != ENGINE_DEBUG)
		return;
	assert_non_null(strstr(line, "decision"));
	lines++;
}

static uint64_t lines_of(struct sim *s, uint64_t ops)
{
	lines = 0;
	sim_hotspot(s, ops, 2048, 0.8, 0.5);
	return lines;
}

static void as_the_log_level_says_now(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	uint64_t before;

	(void)state;
	s->c.log = read_it;
	sim_open(s);
	assert_int_equal(lines_of(s, 30000), 0);
	before = s->e.decisions;
	assert_true(before > 10);
	s->c.debug = true;
	engine_retune(&s->e, &s->c);
	assert_true(lines_of(s, 10000) > 0);
	/* When it is given, and when it is done: the last ones are under way. */
	assert_in_range(lines, 2 * (s->e.decisions - before) - s->e.under_way, 2 * (s->e.decisions - before) + ENGINE_ORDERS);
	s->c.debug = false;
	engine_retune(&s->e, &s->c);
	assert_int_equal(lines_of(s, 10000), 0);
	sim_remove(s);
}

/* What it would do is told by whoever only looks. */
static void what_is_only_evaluated_is_told_as_well(void **state)
{
	(void)state;
	for (int debug = 0; debug < 2; debug++) {
		struct sim *s = sim_create(BLOCKS, FAST);

		s->c.log = read_it;
		s->c.evaluate = true;
		s->c.debug = debug;
		sim_open(s);
		lines_of(s, 10000);
		assert_true(s->e.decisions > 0);
		assert_int_equal(lines, debug ? s->e.decisions : 0);
		sim_remove(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_the_log_level_says_now),
		cmocka_unit_test(what_is_only_evaluated_is_told_as_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
