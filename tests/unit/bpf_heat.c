// SPDX-License-Identifier: GPL-2.0-or-later
/* The BPF sense of block heat: its entries as accesses, its pace. */
#include "policy_lib.h"

#include "sense/heat.h"

static void seen(void *ctx, const struct port_access *a)
{
	struct port_access *last = ctx;

	*last = *a;
}

static struct terrace_heat_entry entry(uint32_t op, uint32_t where, uint16_t hits)
{
	return (struct terrace_heat_entry){ .block = 77, .count = 4, .kind = (uint16_t)(where | op << 12), .hits = hits };
}

static void tells_entries(void **state)
{
	static const struct {
		uint32_t op, where;
		enum port_where wanted;
		bool always;
	} known[] = {
		{ TERRACE_OP_READ, 0, PORT_FAST, false },
		{ TERRACE_OP_READ, 1 | TERRACE_WHERE_SLOW, PORT_SLOW, true },
		{ TERRACE_OP_READ, 1 | TERRACE_WHERE_SLOW | TERRACE_WHERE_PACKED, PORT_SLOW, true },
		{ TERRACE_OP_READ, TERRACE_WHERE_NOWHERE, PORT_NOWHERE, true },
		{ TERRACE_OP_WRITE, 0, PORT_FAST, false },
		{ TERRACE_OP_DISCARD, TERRACE_WHERE_NOWHERE, PORT_NOWHERE, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct terrace_heat_entry e = entry(known[i].op, known[i].where, 3);
		struct port_access a = { 0 };

		assert_int_equal(heat_tell(&e, seen, &a), 3);
		assert_int_equal(a.block, 77);
		assert_int_equal(a.count, 4);
		assert_int_equal(a.op, known[i].op);
		assert_int_equal(a.where, known[i].wanted);
		assert_int_equal(a.always, known[i].always);
	}
}

/* Torn or damaged ones tell nothing. */
static void leaves_nonsense_out(void **state)
{
	struct terrace_heat_entry e = entry(9, 0, 3);
	struct port_access a;

	(void)state;
	assert_int_equal(heat_tell(&e, seen, &a), 0);
	e = entry(TERRACE_OP_READ, 0, 3);
	e.count = 0;
	assert_int_equal(heat_tell(&e, seen, &a), 0);
}

static void keeps_pace(void **state)
{
	struct heat_pace p = { 0 };

	(void)state;
	heat_adapt(&p, HEAT_BUSY, HEAT_BUSY, 0);
	assert_int_equal(p.mask, 0);
	heat_adapt(&p, HEAT_BUSY, HEAT_BUSY + 1, 0);
	assert_int_equal(p.mask, 1);
	for (int i = 0; i < 20; i++)
		heat_adapt(&p, HEAT_BUSY, TERRACE_HEAT_ENTRIES, 1000);
	assert_int_equal(p.mask, HEAT_MASK_MOST);
	/* back, but not at once, and not if twice as much would not fit */
	for (int i = 0; i < 1000; i++)
		heat_adapt(&p, HEAT_BUSY, HEAT_BUSY / 4, 0);
	assert_int_equal(p.mask, HEAT_MASK_MOST);
	heat_adapt(&p, HEAT_BUSY, 0, 0);
	assert_int_equal(p.mask, HEAT_MASK_MOST);
	for (int i = 0; i < 1000; i++)
		heat_adapt(&p, HEAT_BUSY, 0, 0);
	assert_int_equal(p.mask, 0);
}

/* All hits while they are few, none of them too many; back when it has been quiet. */
static void follows_the_load(void **state)
{
	struct heat_rate r = { .now = 1, .most = 16 };

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_false(heat_rate(&r, HEAT_TOLD, HEAT_TOLD / 10, 0.1));
	assert_int_equal(r.now, 1);
	assert_true(heat_rate(&r, HEAT_TOLD, HEAT_TOLD / 10 + 1, 0.1));
	assert_int_equal(r.now, 2);
	/* a flood: at once, and not beyond what is allowed */
	assert_true(heat_rate(&r, HEAT_TOLD, 1000000, 0.1));
	assert_int_equal(r.now, 16);
	assert_false(heat_rate(&r, HEAT_TOLD, 1000000, 0.1));
	assert_int_equal(r.now, 16);
	/* twice as many would be too many: it stays */
	for (int i = 0; i < 1000; i++)
		assert_false(heat_rate(&r, HEAT_TOLD, HEAT_TOLD / 20, 0.1));
	/* quiet, but not for long */
	for (int i = 0; i < 10; i++)
		assert_false(heat_rate(&r, HEAT_TOLD, 0, 0.1));
	assert_false(heat_rate(&r, HEAT_TOLD, HEAT_TOLD / 20, 0.1));
	for (int i = 0; i < 31; i++)
		assert_false(heat_rate(&r, HEAT_TOLD, 0, 0.1));
	assert_true(heat_rate(&r, HEAT_TOLD, 0, 0.1));
	assert_int_equal(r.now, 8);
	for (int i = 0; i < 1000; i++)
		heat_rate(&r, HEAT_TOLD, 0, 0.1);
	assert_int_equal(r.now, 1);
	/* any number may be the most; a tick that took no time is none */
	r = (struct heat_rate){ .now = 1, .most = 5 };
	heat_rate(&r, HEAT_TOLD, 1000000, 0);
	assert_int_equal(r.now, 5);
}

/* Bucket b holds up to 2^b µs, and the last all above. */
static void times_go_to_their_buckets(void **state)
{
	(void)state;
	assert_int_equal(terrace_heat_bucket(0), 0);
	for (uint32_t b = 0; b < TERRACE_HEAT_BUCKETS - 1; b++) {
		assert_int_equal(terrace_heat_bucket(1ull << b), b);
		assert_int_equal(terrace_heat_bucket((1ull << b) + 1), b + 1);
	}
	for (uint32_t b = TERRACE_HEAT_BUCKETS - 1; b < 64; b++)
		assert_int_equal(terrace_heat_bucket(1ull << b), TERRACE_HEAT_BUCKETS - 1);
	assert_int_equal(terrace_heat_bucket(~0ull), TERRACE_HEAT_BUCKETS - 1);
}

/* A table full of slow reads: hits are told as before, for to leave them out makes no room. */
static void slow_reads_do_not_crowd_hits_out(void **state)
{
	struct heat_tally t = { 0 };
	struct heat_pace p = { 0 };

	(void)state;
	for (uint32_t i = 0; i < TERRACE_HEAT_ENTRIES; i++) {
		bool slow = i % 100, write = i % 200;
		struct terrace_heat_entry e = slow ? entry(TERRACE_OP_READ, 1 | TERRACE_WHERE_SLOW, 1) :
			write ? entry(TERRACE_OP_WRITE, 1 | TERRACE_WHERE_SLOW, 2) : entry(TERRACE_OP_READ, 0, 2);

		heat_count(&t, &e);
	}
	assert_int_equal(t.entries, 41);
	assert_int_equal(t.told, 82);
	assert_int_equal(heat_dropped(&t, TERRACE_HEAT_ENTRIES, 1000), 0);
	for (int i = 0; i < 100; i++)
		heat_adapt(&p, HEAT_BUSY, t.entries, heat_dropped(&t, TERRACE_HEAT_ENTRIES, 1000));
	assert_int_equal(p.mask, 0);
	t.entries = TERRACE_HEAT_ENTRIES / 2;
	assert_int_equal(heat_dropped(&t, TERRACE_HEAT_ENTRIES, 1000), 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_entries),
		cmocka_unit_test(leaves_nonsense_out),
		cmocka_unit_test(keeps_pace),
		cmocka_unit_test(follows_the_load),
		cmocka_unit_test(times_go_to_their_buckets),
		cmocka_unit_test(slow_reads_do_not_crowd_hits_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
