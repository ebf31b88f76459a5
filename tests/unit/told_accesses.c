// SPDX-License-Identifier: GPL-2.0-or-later
/* Which accesses the module tells: by what they are and where they are served, one in so many; and which of them are timed. */
#include "core_lib.h"
#include "kernel.h"

/* Heard here, and not thrown away as by others who include kernel.h. */
#undef TRACE_EVENT
#define TRACE_EVENT(name, proto, ...)				\
	void trace_##name(proto);				\
	bool trace_##name##_enabled(void)
#undef current
#define current		(&myself)
#define bio_dev(bio)	((void)(bio), 7u)
#define op_is_write(op)	((op) != REQ_OP_READ)

static const struct { int pid, tgid; } myself = { 4711, 4700 };

#include "../../kmod/trace.c"

#define IOS	4096u	/* of each kind, a multiple of each rate here */
#define TIER	3u

static bool listens;
static u32 marks, told, first, last_thread, driver, by_jiffy;

void trace_terrace_access(u32 dev, u64 block, u32 count, u32 op, u32 where, u32 thread)
{
	assert_int_equal(dev, 7);
	first = told++ ? first : (u32)block;
	last_thread = thread;
}

void trace_terrace_end(u32 dev, u32 tier, u32 op, u64 nanoseconds) {}
bool trace_terrace_access_enabled(void) { return listens; }
bool trace_terrace_end_enabled(void) { return true; }
u32 tr_ranges_marks(struct terrace *tr, u64 block) { return marks; }
bool tr_drives(struct terrace *tr, u32 tgid) { return tgid == driver; }

static struct tr_stats stats;
static struct terrace volume = { .stats = &stats };

/* As many I/Os; so many of them were timed. */
static u32 pass(u32 op, u32 where, u32 heat_sample, u32 slow_sample)
{
	struct { struct tr_io io; struct bio bio; } one;
	u32 i, timed = 0;

	memset(&stats, 0, sizeof(stats));
	volume.tunes.value[TR_TUNE_HEAT_SAMPLE] = heat_sample;
	volume.tunes.value[TR_TUNE_SLOW_SAMPLE] = slow_sample;
	told = 0;
	for (i = 1; i <= IOS; i++) {
		memset(&one, 0, sizeof(one));
		one.io.told_tier = 255;
		kernel_jiffies += !(i % by_jiffy);
		tr_sense(&volume, &one.bio, i, 1, op, where);
		timed += one.io.timed;
		assert_int_equal(one.io.told_tier, one.io.timed ? where & TERRACE_WHERE_TIER : 255);
	}
	return timed;
}

static int listening(void **state)
{
	(void)state;
	listens = true;
	marks = 0;
	driver = 0;
	by_jiffy = 1;
	volume.ranges = NULL;
	return 0;
}

/* One row for each kind of access, wherever it is served. */
static const struct kind {
	u32 op, where;
	bool rare;	/* by slow_sample, each of them timed while they are few */
	bool nowhere;	/* nothing to be timed */
} kinds[] = {
	{ TERRACE_OP_READ, TIER, false, false },
	{ TERRACE_OP_READ, TIER | TERRACE_WHERE_SLOW, true, false },
	{ TERRACE_OP_READ, TIER | TERRACE_WHERE_SLOW | TERRACE_WHERE_PACKED, true, false },
	{ TERRACE_OP_READ, TERRACE_WHERE_NOWHERE, true, true },
	{ TERRACE_OP_WRITE, TIER, false, false },
	{ TERRACE_OP_WRITE, TIER | TERRACE_WHERE_SLOW, false, false },
	{ TERRACE_OP_WRITE, TERRACE_WHERE_NOWHERE, false, true },
};

static void each_kind_by_its_own_rate(void **state)
{
	static const u32 rates[] = { 1, 2, 8, 64 };

	(void)state;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		for (int h = 0; h < 4; h++) {
			for (int s = 0; s < 4; s++) {
				const struct kind *kind = &kinds[k];
				u32 rate = kind->rare ? rates[s] : rates[h], every = rate;
				u32 timed = pass(kind->op, kind->where, rates[h], rates[s]);

				/* A sample, not the first of them. */
				assert_int_equal(told, IOS / rate);
				assert_int_equal(first, rate);
				if (!kind->rare)
					every = 4 * rate > 16 ? 4 * rate : 16;
				assert_int_equal(timed, kind->nowhere ? 0 : IOS / every);
				assert_int_equal(stats.accesses, kind->rare ? 0 : IOS);
				assert_int_equal(stats.slow_accesses, kind->rare ? IOS : 0);
			}
		}
	}
}

/* Behind it the heat of a block means nothing. */
static void no_discard_is_left_out(void **state)
{
	(void)state;
	assert_int_equal(pass(TERRACE_OP_DISCARD, TERRACE_WHERE_NOWHERE, 64, 64), 0);
	assert_int_equal(told, IOS);
	assert_int_equal(stats.accesses + stats.slow_accesses, 0);
}

static void what_heats_nothing_is_not_told(void **state)
{
	(void)state;
	volume.ranges = (void *)&marks;
	marks = BIT(TERRACE_RANGE_HINT_NOHEAT);
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		assert_int_equal(pass(kinds[k].op, kinds[k].where, 1, 1), 0);
		assert_int_equal(told, 0);
	}
	pass(TERRACE_OP_DISCARD, TERRACE_WHERE_NOWHERE, 1, 1);
	assert_int_equal(told, IOS);
	marks = BIT(TERRACE_RANGE_HINT_COLD);
	pass(TERRACE_OP_READ, TIER, 1, 1);
	assert_int_equal(told, IOS);
}

/* By whatever thread of it; nor is it timed. */
static void who_drives_is_not_told(void **state)
{
	struct { struct tr_io io; struct bio bio; } one;

	(void)state;
	driver = 4700;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		assert_int_equal(pass(kinds[k].op, kinds[k].where, 1, 1), 0);
		assert_int_equal(told, 0);
	}
	pass(TERRACE_OP_DISCARD, TERRACE_WHERE_NOWHERE, 1, 1);
	assert_int_equal(told, IOS);
	/* A worker goes on with it, when nobody drives any more. */
	memset(&one, 0, sizeof(one));
	one.io.thread = tr_sense_who(&volume);
	driver = 0;
	told = 0;
	tr_sense(&volume, &one.bio, 5, 1, TERRACE_OP_READ, TIER);
	assert_int_equal(told, 0);
	one.io.thread = tr_sense_who(&volume);
	assert_int_equal(one.io.thread, 4711);
	driver = 4711;	/* a thread's number is not its process's */
	tr_sense(&volume, &one.bio, 5, 1, TERRACE_OP_READ, TIER);
	assert_int_equal(told, 1);
}

/* Of slow reads four in each jiffy, and all while they are fewer; hits go by their count. */
static void few_slow_reads_are_timed_in_one_jiffy(void **state)
{
	(void)state;
	for (by_jiffy = 1; by_jiffy <= 64; by_jiffy *= 2) {
		u32 timed = pass(TERRACE_OP_READ, TIER | TERRACE_WHERE_SLOW, 1, 1);

		assert_int_equal(told, IOS);
		/* One in an old jiffy, before the first that is new: at most these few more. */
		assert_in_range(timed, IOS / by_jiffy * min(by_jiffy, 4u), IOS / by_jiffy * min(by_jiffy, 4u) + 4);
		assert_int_equal(pass(TERRACE_OP_READ, TIER, 1, 1), IOS / 16);
	}
}

static void nobody_listens(void **state)
{
	(void)state;
	listens = false;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		assert_int_equal(pass(kinds[k].op, kinds[k].where, 1, 1), 0);
		assert_int_equal(told + stats.accesses + stats.slow_accesses, 0);
	}
}

static void who_asked_is_told(void **state)
{
	struct { struct tr_io io; struct bio bio; } one;

	(void)state;
	memset(&one, 0, sizeof(one));
	volume.tunes.value[TR_TUNE_HEAT_SAMPLE] = 1;
	tr_sense(&volume, &one.bio, 5, 1, TERRACE_OP_WRITE, TIER);
	assert_int_equal(last_thread, 4711);
	one.io.thread = 12;	/* whose bio waited for a worker */
	tr_sense(&volume, &one.bio, 5, 1, TERRACE_OP_WRITE, TIER);
	assert_int_equal(last_thread, 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_kind_by_its_own_rate, listening),
		cmocka_unit_test_setup(no_discard_is_left_out, listening),
		cmocka_unit_test_setup(what_heats_nothing_is_not_told, listening),
		cmocka_unit_test_setup(who_drives_is_not_told, listening),
		cmocka_unit_test_setup(few_slow_reads_are_timed_in_one_jiffy, listening),
		cmocka_unit_test_setup(nobody_listens, listening),
		cmocka_unit_test_setup(who_asked_is_told, listening),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
