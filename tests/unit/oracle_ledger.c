// SPDX-License-Identifier: GPL-2.0-or-later
/* The oracle that judges volumes: what it allows and, above all, what it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "../oracle/ledger.c"
#include "../oracle/stamp.c"

#define A	((uint64_t)1 << 32 | 1)
#define B	((uint64_t)1 << 32 | 2)
#define C	((uint64_t)1 << 32 | 3)
#define ALLOWED(...) ((uint64_t[]){ __VA_ARGS__, NEVER })

static void written(struct ledger *l, uint64_t version, bool fua)
{
	ledger_end(l, ledger_begin(l, 0, 1, version, fua), true);
}

static void flushed(struct ledger *l)
{
	ledger_flush_end(l, ledger_flush_begin(l));
}

static bool is_in(uint64_t value, const uint64_t *list)
{
	for (; *list != NEVER; list++)
		if (*list == value)
			return true;
	return false;
}

/* Of zeros, A, B and C exactly those in @list may survive in block 0. */
static void survives(const struct ledger *l, const uint64_t *list)
{
	const uint64_t all[] = { 0, A, B, C };
	uint32_t k;

	for (k = 0; k < 4; k++)
		if (ledger_may_survive(l, 0, all[k]) != is_in(all[k], list))
			fail_msg("value %u: survival %s", k, is_in(all[k], list) ? "refused" : "allowed");
}

static void reads(const struct ledger *l, uint64_t began, const uint64_t *list)
{
	const uint64_t all[] = { 0, A, B, C };
	uint32_t k;

	for (k = 0; k < 4; k++)
		if (ledger_may_read(l, 0, all[k], began) != is_in(all[k], list))
			fail_msg("value %u: read %s", k, is_in(all[k], list) ? "refused" : "allowed");
}

static int fresh(void **state)
{
	*state = ledger_create(8, 77);
	return 0;
}

static int done(void **state)
{
	ledger_destroy(*state);
	return 0;
}

static void unflushed_write_may_be_lost(void **state)
{
	struct ledger *l = *state;

	written(l, A, false);
	survives(l, ALLOWED(0, A));
	reads(l, NEVER, ALLOWED(A));
}

static void flushed_write_must_stay(void **state)
{
	struct ledger *l = *state;

	written(l, A, false);
	flushed(l);
	survives(l, ALLOWED(A));
	written(l, B, false);
	survives(l, ALLOWED(A, B));
	reads(l, NEVER, ALLOWED(B));
}

static void fua_write_must_stay(void **state)
{
	struct ledger *l = *state;

	written(l, A, true);
	survives(l, ALLOWED(A));
}

static void flush_covers_only_what_ended_before_it_began(void **state)
{
	struct ledger *l = *state;
	uint32_t op = ledger_begin(l, 0, 1, A, false);
	uint64_t flush = ledger_flush_begin(l);

	ledger_end(l, op, true);
	ledger_flush_end(l, flush);
	survives(l, ALLOWED(0, A));
	flushed(l);
	survives(l, ALLOWED(A));
}

static void flush_that_never_ended_promises_nothing(void **state)
{
	struct ledger *l = *state;

	written(l, A, false);
	ledger_flush_begin(l);
	survives(l, ALLOWED(0, A));
}

static void failed_write_may_show_or_not(void **state)
{
	struct ledger *l = *state;

	written(l, A, true);
	ledger_end(l, ledger_begin(l, 0, 1, B, true), false);
	survives(l, ALLOWED(A, B));
	reads(l, NEVER, ALLOWED(A, B));
	written(l, C, true);
	survives(l, ALLOWED(C));
	reads(l, NEVER, ALLOWED(C));
}

static void write_under_way_may_show_or_not(void **state)
{
	struct ledger *l = *state;

	written(l, A, true);
	ledger_begin(l, 0, 1, B, true);
	survives(l, ALLOWED(A, B));
	reads(l, NEVER, ALLOWED(A, B));
}

static void order_of_overlapping_writes_is_open(void **state)
{
	struct ledger *l = *state;
	uint32_t a = ledger_begin(l, 0, 1, A, false), b = ledger_begin(l, 0, 1, B, false);

	ledger_end(l, b, true);
	ledger_end(l, a, true);
	flushed(l);
	survives(l, ALLOWED(A, B));
	reads(l, NEVER, ALLOWED(A, B));
	written(l, C, false);
	reads(l, NEVER, ALLOWED(C));
	survives(l, ALLOWED(A, B, C));
	flushed(l);
	survives(l, ALLOWED(C));
}

static void read_may_see_what_came_meanwhile(void **state)
{
	struct ledger *l = *state;
	uint64_t before, after;

	written(l, A, true);
	before = ledger_read_begin(l);
	written(l, B, true);
	written(l, C, true);	/* forgets nothing that the read may see */
	after = ledger_read_begin(l);
	reads(l, before, ALLOWED(A, B, C));
	reads(l, after, ALLOWED(C));
	ledger_read_end(l, before);
	ledger_read_end(l, after);
	survives(l, ALLOWED(C));
}

static void discard_is_a_write_of_zeros(void **state)
{
	struct ledger *l = *state;

	written(l, A, true);
	written(l, 0, false);
	survives(l, ALLOWED(0, A));
	reads(l, NEVER, ALLOWED(0));
	flushed(l);
	survives(l, ALLOWED(0));
	written(l, B, false);
	survives(l, ALLOWED(0, B));
}

static void settled_block_has_one_value(void **state)
{
	struct ledger *l = *state;

	written(l, A, false);
	written(l, B, false);
	ledger_settle(l, 0, A);
	survives(l, ALLOWED(A));
	reads(l, NEVER, ALLOWED(A));
	ledger_settle(l, 0, 0);
	survives(l, ALLOWED(0));
}

static void after_a_crash_any_survivor_may_be_read(void **state)
{
	struct ledger *l = *state;

	written(l, A, true);
	written(l, B, false);
	ledger_begin(l, 0, 1, C, false);
	ledger_crash(l);
	reads(l, NEVER, ALLOWED(A, B, C));
	survives(l, ALLOWED(A, B, C));
	assert_false(ledger_busy(l, 0, 1));
	flushed(l);
	survives(l, ALLOWED(A, B, C));
	written(l, A, true);
	survives(l, ALLOWED(A));
	written(l, B, false);
	flushed(l);
	ledger_crash(l);
	reads(l, NEVER, ALLOWED(B));
}

static void file_keeps_what_may_be(void **state)
{
	struct ledger *l = *state, *copy;
	char path[] = "/tmp/ledger-XXXXXX";
	int err, fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	written(l, A, true);
	written(l, B, false);
	ledger_begin(l, 0, 1, C, false);
	ledger_next_run(l);
	assert_int_equal(ledger_save(l, path), 0);
	copy = ledger_load(path, &err);
	assert_non_null(copy);
	survives(copy, ALLOWED(A, B, C));
	reads(copy, NEVER, ALLOWED(B, C));
	assert_true(ledger_touched(copy, 0));
	assert_false(ledger_touched(copy, 1));
	assert_int_equal(ledger_runs(copy), 1);
	flushed(copy);
	survives(copy, ALLOWED(B, C));
	assert_true(ledger_may_survive(copy, 1, 0));
	assert_false(ledger_may_survive(copy, 1, A));
	ledger_destroy(copy);
	assert_int_equal(truncate(path, 100), 0);
	assert_null(ledger_load(path, &err));
	assert_int_equal(err, -EINVAL);
	unlink(path);
}

static void busy_is_known_by_block(void **state)
{
	struct ledger *l = *state;
	uint32_t op = ledger_begin(l, 2, 3, A, false);

	assert_true(ledger_busy(l, 0, 3));
	assert_false(ledger_busy(l, 0, 2));
	assert_false(ledger_busy(l, 5, 3));
	ledger_end(l, op, true);
	assert_false(ledger_busy(l, 0, 8));
}

/* ---- stamps ---- */

static enum stamp_verdict verdict(const void *data, uint64_t block)
{
	struct stamp_found found;

	stamp_read(data, 77, block, &found);
	return found.verdict;
}

static void every_flipped_bit_of_a_stamp_shows(void **state)
{
	static uint64_t data[512];
	struct stamp_found found;
	uint8_t *byte = (uint8_t *)data;
	uint32_t k;

	(void)state;
	stamp_fill(data, 77, 5, A);
	stamp_read(data, 77, 5, &found);
	assert_int_equal(found.verdict, STAMP_WHOLE);
	assert_int_equal(found.version, A);
	for (k = 0; k < 4096; k++) {
		byte[k] ^= 1 << k % 8;
		assert_int_not_equal(verdict(data, 5), STAMP_WHOLE);
		byte[k] ^= 1 << k % 8;
	}
	assert_int_equal(verdict(data, 5), STAMP_WHOLE);
}

static void kinds_of_damage_are_told_apart(void **state)
{
	static uint64_t data[512], other[512];
	uint8_t *byte = (uint8_t *)data;

	(void)state;
	assert_int_equal(verdict(data, 5), STAMP_ZEROS);
	stamp_fill(data, 77, 6, A);
	assert_int_equal(verdict(data, 5), STAMP_FOREIGN);
	stamp_fill(data, 78, 5, A);
	assert_int_equal(verdict(data, 5), STAMP_ALIEN);
	stamp_fill(data, 77, 5, A);
	stamp_fill(other, 77, 5, B);
	memcpy(data + 64, other + 64, 512);
	assert_int_equal(verdict(data, 5), STAMP_TORN);
	memset(data + 64, 0, 512);
	assert_int_equal(verdict(data, 5), STAMP_TORN);
	stamp_fill(data, 77, 5, A);
	memset(byte, 0, STAMP_SECTOR);
	assert_int_equal(verdict(data, 5), STAMP_TORN);
	stamp_fill(data, 77, 5, A);
	memset(data, 0, 2048);
	stamp_fill(other, 77, 6, A);
	memcpy(data + 256, other, 2048);
	assert_int_equal(verdict(data, 5), STAMP_TORN);
	memmove(data, data + 256, 2048);
	memset(data + 256, 0xff, 2048);
	assert_int_equal(verdict(data, 5), STAMP_GARBAGE);
	stamp_fill(data, 77, 5, A);
	stamp_fill(other, 77, 5, A);
	memmove(data, (char *)other + 512, 3584);	/* shifted by a sector */
	assert_int_equal(verdict(data, 5), STAMP_TORN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(unflushed_write_may_be_lost, fresh, done),
		cmocka_unit_test_setup_teardown(flushed_write_must_stay, fresh, done),
		cmocka_unit_test_setup_teardown(fua_write_must_stay, fresh, done),
		cmocka_unit_test_setup_teardown(flush_covers_only_what_ended_before_it_began, fresh, done),
		cmocka_unit_test_setup_teardown(flush_that_never_ended_promises_nothing, fresh, done),
		cmocka_unit_test_setup_teardown(failed_write_may_show_or_not, fresh, done),
		cmocka_unit_test_setup_teardown(write_under_way_may_show_or_not, fresh, done),
		cmocka_unit_test_setup_teardown(order_of_overlapping_writes_is_open, fresh, done),
		cmocka_unit_test_setup_teardown(read_may_see_what_came_meanwhile, fresh, done),
		cmocka_unit_test_setup_teardown(discard_is_a_write_of_zeros, fresh, done),
		cmocka_unit_test_setup_teardown(settled_block_has_one_value, fresh, done),
		cmocka_unit_test_setup_teardown(after_a_crash_any_survivor_may_be_read, fresh, done),
		cmocka_unit_test_setup_teardown(file_keeps_what_may_be, fresh, done),
		cmocka_unit_test_setup_teardown(busy_is_known_by_block, fresh, done),
		cmocka_unit_test(every_flipped_bit_of_a_stamp_shows),
		cmocka_unit_test(kinds_of_damage_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
