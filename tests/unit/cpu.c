// SPDX-License-Identifier: GPL-2.0-or-later
/* The machine's brake: when CPUs are full, by what the kernel says of them, and what moves keep then. */
#include "policy_lib.h"

#include "act/cpu_time.h"
#include "decide/cpu.h"

/* One second of @cpus CPUs, a share @idle of it idle. */
static bool look(struct cpu *c, const struct cpu_tunables *t, uint64_t cpus, double idle)
{
	return cpu_look(c, t, c->idle + (uint64_t)((double)cpus * 100 * idle), c->all + cpus * 100);
}

/* Orders of @blocks that may be given now. */
static int give(struct cpu *c, const struct cpu_tunables *t, uint32_t blocks)
{
	int n = 0;

	for (; n < 1000 && !cpu_holds(c); n++)
		cpu_charge(c, t, blocks);
	return n;
}

/* Looked at as if it had been full for long, and reads were served as by an LRU. */
static void full(struct cpu *c, const struct cpu_tunables *t)
{
	*c = (struct cpu){ .served = true };
	look(c, t, 1, 0.5);
	look(c, t, 1, 0);
}

/* The example of cpu.h. */
static void full_cpus_hold_moves_back(void **state)
{
	struct cpu_tunables t;
	struct cpu c = { 0 };
	int given = 0;

	(void)state;
	tunable_defaults(&cpu_tunable_table, &t);
	/* Since the machine's start says nothing of now. */
	assert_false(look(&c, &t, 1, 0));
	assert_int_equal(give(&c, &t, 100), 1000);
	assert_true(look(&c, &t, 1, 0));
	cpu_judge(&c, &t, 0.75, 0.70);
	for (int i = 0; i < 100; i++) {
		given += give(&c, &t, 100);
		look(&c, &t, 1, 0.02);
	}
	/* 5 ms by 1.5 ms: the last may leave a debt. */
	assert_in_range(given, 333, 335);
	/* 16 CPUs */
	give(&c, &t, 100);
	look(&c, &t, 16, 0);
	assert_in_range(give(&c, &t, 100), 53, 54);
	/* Half of the time is idle, and not for a moment only. */
	for (uint32_t i = 0; i < CPU_CALM; i++) {
		assert_int_not_equal(give(&c, &t, 100), 1000);
		look(&c, &t, 1, 0.5);
	}
	assert_int_equal(give(&c, &t, 100), 1000);
	/* What was left then is not saved up, nor owed. */
	look(&c, &t, 1, 0.5);
	look(&c, &t, 1, 0);
	assert_in_range(give(&c, &t, 100), 4, 4);
}

/* The first look that finds no CPU idle is late: what was given before it counts, the time of so many looks at most. */
static void what_was_given_before_the_look_is_owed(void **state)
{
	struct cpu_tunables t;
	struct cpu c = { .served = true };
	int seconds = 0;

	(void)state;
	tunable_defaults(&cpu_tunable_table, &t);
	look(&c, &t, 1, 0.5);
	look(&c, &t, 1, 0.5);
	/* 14.7 ms; what was refused is not owed. */
	cpu_charge(&c, &t, 1200);
	cpu_refund(&c, cpu_charge(&c, &t, 10000));
	look(&c, &t, 1, 0);
	for (; cpu_holds(&c); seconds++)
		look(&c, &t, 1, 0);
	assert_int_equal(seconds, 2);
	for (uint32_t i = 0; i < CPU_CALM; i++)
		look(&c, &t, 1, 0.5);
	for (int i = 0; i < 100; i++)
		cpu_charge(&c, &t, 800);
	look(&c, &t, 1, 0);
	for (seconds = 0; cpu_holds(&c); seconds++)
		look(&c, &t, 1, 0);
	assert_int_equal(seconds, CPU_OWED);
	/* While reads are served worse than they could be moves are free, then and later. */
	for (uint32_t i = 0; i < CPU_CALM; i++)
		look(&c, &t, 1, 0.5);
	cpu_judge(&c, &t, 0.10, 0.70);
	cpu_charge(&c, &t, 10000);
	look(&c, &t, 1, 0);
	cpu_judge(&c, &t, 0.70, 0.70);
	assert_false(cpu_holds(&c));
}

static void not_where_reads_are_served_worse_than_could_be(void **state)
{
	struct cpu_tunables t;
	struct cpu c;

	(void)state;
	tunable_defaults(&cpu_tunable_table, &t);
	full(&c, &t);
	cpu_judge(&c, &t, 0.10, 0.70);
	assert_int_equal(give(&c, &t, 100), 1000);
	look(&c, &t, 1, 0);
	cpu_judge(&c, &t, 0.685, 0.70);
	assert_int_equal(give(&c, &t, 100), 4);
}

/* After some looks in a row, and no longer than it is so. */
static void a_load_is_content_that_gets_all_it_can(void **state)
{
	struct cpu_tunables t;
	struct cpu c;

	(void)state;
	tunable_defaults(&cpu_tunable_table, &t);
	full(&c, &t);
	for (uint32_t i = 0; i < 3 * CPU_CONTENT; i++) {
		assert_int_equal(cpu_is_content(&c), i >= CPU_CONTENT);
		cpu_judge(&c, &t, 0.70, 0.70);
	}
	cpu_judge(&c, &t, 0.60, 0.70);
	assert_false(cpu_is_content(&c));
	for (uint32_t i = 0; i < CPU_CONTENT; i++)
		cpu_judge(&c, &t, 0.70, 0.70);
	assert_true(cpu_is_content(&c));
	for (uint32_t i = 0; i < CPU_CALM; i++)
		look(&c, &t, 1, 0.5);
	cpu_judge(&c, &t, 0.70, 0.70);
	assert_false(cpu_is_content(&c));
}

/* An order may be as large as it is, and is paid off. */
static void a_debt_is_paid_off(void **state)
{
	struct cpu_tunables t;
	struct cpu c;
	int seconds = 0;

	(void)state;
	tunable_defaults(&cpu_tunable_table, &t);
	full(&c, &t);
	assert_int_equal(give(&c, &t, 10000), 1);	/* 120.3 ms */
	for (; cpu_holds(&c); seconds++)
		look(&c, &t, 1, 0);
	assert_int_equal(seconds, 24);
}

/* What came back undone was not done. */
static void what_comes_back_is_given_back(void **state)
{
	struct cpu_tunables t;
	struct cpu c;
	double us;

	(void)state;
	tunable_defaults(&cpu_tunable_table, &t);
	full(&c, &t);
	us = cpu_charge(&c, &t, 10000);
	assert_near(us, 120300, 1e-6);
	assert_true(cpu_holds(&c));
	cpu_refund(&c, us);
	assert_int_equal(give(&c, &t, 100), 4);
	/* What was free is not given back. */
	c.served = false;
	assert_near(cpu_charge(&c, &t, 10000), 0, 0);
}

static void counts_that_say_nothing_hold_nothing(void **state)
{
	struct cpu_tunables t;
	struct cpu c = { .served = true };

	(void)state;
	tunable_defaults(&cpu_tunable_table, &t);
	for (int i = 0; i < 3; i++) {
		assert_false(cpu_look(&c, &t, 0, 0));
		assert_false(c.full);
	}
	full(&c, &t);
	assert_true(c.full);
	/* The same again is no look. */
	assert_false(cpu_look(&c, &t, c.idle, c.all));
	assert_true(c.full);
	/* Not known any more, and then again. */
	assert_true(cpu_look(&c, &t, 0, 0));
	assert_false(c.full);
	assert_near(c.left_us, 0, 0);
	cpu_judge(&c, &t, 1, 1);
	assert_false(cpu_is_content(&c));
	assert_false(cpu_look(&c, &t, 0, 0));
	full(&c, &t);
	/* iowait may run backwards, and a CPU that is switched off takes its counts along. */
	cpu_look(&c, &t, c.idle - 1, c.all + 100);
	assert_false(c.full);
	look(&c, &t, 1, 0);
	assert_true(c.full);
	cpu_look(&c, &t, c.idle, c.all - 50);
	assert_false(c.full);
}

static void cpu_tunables_change_the_outcome(void **state)
{
	struct cpu_tunables t;
	struct cpu c;

	(void)state;
	assert_table_is_sound(&cpu_tunable_table, &t);
	full(&c, &t);
	assert_int_equal(give(&c, &t, 100), 4);
	t.share = 0.05;
	full(&c, &t);
	assert_int_equal(give(&c, &t, 100), 34);
	t.order_us = 3800;
	full(&c, &t);
	assert_int_equal(give(&c, &t, 100), 10);
	t.block_us = 62;
	full(&c, &t);
	assert_int_equal(give(&c, &t, 100), 5);
	for (uint32_t i = 0; i < CPU_CALM; i++)
		look(&c, &t, 1, 0.1);
	assert_false(c.full);
	t.min_idle = 0.2;
	look(&c, &t, 1, 0.1);
	assert_true(c.full);
	t.min_idle = 0;		/* never */
	for (uint32_t i = 0; i < CPU_CALM; i++)
		look(&c, &t, 1, 0);
	assert_false(c.full);
	cpu_judge(&c, &t, 0.60, 0.70);
	assert_false(c.served);
	t.enough = 0.11;
	cpu_judge(&c, &t, 0.60, 0.70);
	assert_true(c.served);
}

static void the_kernels_figures(void **state)
{
	struct cpu_time c = { 0 };

	(void)state;
	/* user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice: guests are in user and nice */
	cpu_time_parse(&c, "cpu  100 20 30 4000 500 6 7 8 90 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n");
	assert_int_equal(c.idle, 20 + 4000 + 500);
	assert_int_equal(c.all, 100 + 20 + 30 + 4000 + 500 + 6 + 7 + 8);
	/* What is none changes nothing. */
	cpu_time_parse(&c, "");
	cpu_time_parse(&c, "cpu  1 2 3");
	cpu_time_parse(&c, "intr 1 2 3 4 5 6 7 8");
	assert_int_equal(c.all, 4671);
}

/* A container's /proc may stop counting, or /proc be gone: for some looks that may be by chance. */
static void figures_that_stop_are_not_known_any_more(void **state)
{
	static const char stands[] = "cpu  100 20 30 4000 500 6 7 8 90 10\n", runs[] = "cpu  101 20 30 4000 500 6 7 8 90 10\n";
	static const char *const silent[] = { stands, "" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct cpu_time c = { 0 };

		cpu_time_hear(&c, silent[i]);
		cpu_time_hear(&c, stands);
		for (uint32_t n = c.same + 1; n < CPU_TIME_SAME; n++) {
			cpu_time_hear(&c, silent[i]);
			assert_int_equal(c.all, 4671);
			assert_int_equal(c.idle, 4520);
		}
		for (int n = 0; n < 3; n++) {
			cpu_time_hear(&c, silent[i]);
			assert_int_equal(c.all, 0);
			assert_int_equal(c.idle, 0);
		}
		cpu_time_hear(&c, stands);
		assert_int_equal(c.all, 0);
		cpu_time_hear(&c, runs);
		assert_int_equal(c.all, 4672);
		assert_int_equal(c.idle, 4520);
	}
}

/* Not again at once; here they run. */
static void they_are_read(void **state)
{
	struct cpu_time c = { 0 }, before;

	(void)state;
	cpu_time_read(&c);
	assert_true(c.all > 0 && c.idle <= c.all);
	before = c;
	c.all = 0;
	cpu_time_read(&c);
	assert_int_equal(c.all, 0);
	c.next_ns = 0;
	cpu_time_read(&c);
	assert_true(c.all >= before.all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_cpus_hold_moves_back),
		cmocka_unit_test(not_where_reads_are_served_worse_than_could_be),
		cmocka_unit_test(what_was_given_before_the_look_is_owed),
		cmocka_unit_test(a_load_is_content_that_gets_all_it_can),
		cmocka_unit_test(a_debt_is_paid_off),
		cmocka_unit_test(what_comes_back_is_given_back),
		cmocka_unit_test(counts_that_say_nothing_hold_nothing),
		cmocka_unit_test(cpu_tunables_change_the_outcome),
		cmocka_unit_test(the_kernels_figures),
		cmocka_unit_test(figures_that_stop_are_not_known_any_more),
		cmocka_unit_test(they_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
