// SPDX-License-Identifier: GPL-2.0-or-later
/* The daemon's loop on a simulated volume: limits, the governor, orders that fail, find no room, or lose their volume. */
#include "sim_lib.h"

#define BLOCKS	(64 * 1024)
#define FAST	(8 * 1024)

/* Orders a tick stay within the bandwidth: 4 MB a second for 200 s of ticks. */
static void bandwidth_is_kept(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	double most;

	(void)state;
	for (int t = 0; t < 2; t++)
		s->c.budget[t].bytes_per_second = 1e6;
	s->c.tuning.idle.boost = 1;
	sim_open(s);
	sim_hotspot(s, 40000, 4096, 0.8, 0.5);
	most = 1e6 * ((double)s->e.ticks / 10 + 1) * 1.1 + 8e6;
	assert_true((double)(s->e.stats.written_bytes[1] + s->e.stats.read_bytes[1]) < most);
	assert_true((double)s->e.stats.written_bytes[0] < most);
	assert_true(s->e.stats.held_by_budget > 0);
	sim_remove(s);
}

/* While orders wait for bandwidth that is why nothing moves; and without skew nothing goes up. */
static void the_status_names_the_limit(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	for (int t = 0; t < 2; t++)
		s->c.budget[t].bytes_per_second = 1e4;
	s->c.tuning.idle.boost = 1;
	sim_open(s);
	assert_int_equal(sim_tick(s), 0);
	assert_null(engine_still(&s->e));
	assert_non_null(strstr(engine_promotions(&s->e), "no skew"));
	sim_hotspot(s, 40000, 2048, 0.8, 0.5);
	assert_true(s->e.stats.held_by_budget > 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(sim_tick(s), 0);
	assert_int_equal(s->e.under_way, 0);
	assert_non_null(strstr(engine_still(&s->e), "budget.bytes_per_second"));
	assert_true(hear_skewed(&s->e));
	assert_string_equal(engine_promotions(&s->e), "moves repay");
	s->e.mean.brake.share = 0.5;
	sim_tick(s);
	assert_non_null(strstr(engine_still(&s->e), "brake.tolerance"));
	sim_remove(s);
}

/* Of a tier that is neither the first nor the one that moves go to, too: raises read it. */
static void bandwidth_of_further_tiers_is_kept(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	double rate = 0.1e6;

	(void)state;
	s->deep = true;
	s->c.budget[2].bytes_per_second = rate;
	s->c.tuning.idle.boost = 1;
	sim_open(s);
	sim_hotspot(s, 40000, 4096, 0.95, 0);
	assert_true(s->e.stats.read_bytes[2] > 1e6);
	assert_true(s->e.stats.held_by_budget > 0);
	/* Those of a tick that were admitted may leave a debt. */
	assert_true((double)s->e.stats.read_bytes[2] < rate * ((double)s->e.ticks / 10 + 1) + 4e6);
	sim_remove(s);
}

/* A tier of class net has a limit by its class, another one does not; but for what was said of it alone. */
static void a_network_has_less_bandwidth(void **state)
{
	static const struct { const char *class; double net; bool own; double holds; } want[] = {
		{ "net", 1e4, false, 1e4 }, { "hdd", 1e4, false, 0 }, { "net", 0, false, 0 }, { "net", 1e4, true, 0 },
	};
	double defaults, moved[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct sim *s = sim_create(BLOCKS, FAST);

		s->slow_class = want[i].class;
		s->c.tuning.idle.boost = 1;
		defaults = s->c.budget[1].net_bytes_per_second;
		s->c.budget[1].net_bytes_per_second = want[i].net;
		s->c.own_rate[1] = want[i].own;
		sim_open(s);
		sim_hotspot(s, 40000, 4096, 0.8, 0.5);
		moved[i] = (double)(s->e.stats.written_bytes[1] + s->e.stats.read_bytes[1]);
		assert_near(s->e.c.budget[1].bytes_per_second, want[i].holds, 0);
		assert_near(s->e.c.budget[0].bytes_per_second, 0, 0);
		assert_int_equal(s->e.stats.held_by_budget > 0, want[i].holds > 0);
		/* It holds after a reload as well, and gives way to one. */
		engine_retune(&s->e, &s->c);
		assert_int_equal(sim_tick(s), 0);
		assert_near(s->e.c.budget[1].bytes_per_second, want[i].holds, 0);
		s->c.own_rate[1] = true;
		s->c.budget[1].bytes_per_second = 7e6;
		engine_retune(&s->e, &s->c);
		assert_int_equal(sim_tick(s), 0);
		assert_near(s->e.c.budget[1].bytes_per_second, 7e6, 0);
		sim_remove(s);
	}
	print_message("%.1f MB to and from a network, %.1f without its limit\n", moved[0] / 1e6, moved[2] / 1e6);
	assert_near(defaults, 100e6, 0);
	assert_true(moved[0] < 0.6 * moved[2]);
}

static void orders_in_flight_are_limited(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	s->c.budget[0].in_flight = 3;
	s->delay = 5;
	sim_open(s);
	sim_hotspot(s, 40000, 4096, 0.8, 0.5);
	assert_int_equal(s->most_queued, 3);
	sim_remove(s);
}

/* So much may be written to a tier since @s began, at @share of its @size a day. */
static double rated(const struct sim *s, double share, double size)
{
	return share * size * (1 + (double)(s->now_ns - 1000000000) / 86400e9);
}

/* Endurance is a hard limit: not a byte beyond what is saved up, however many orders are under way. */
static void endurance_ends_moves(void **state)
{
	(void)state;
	for (uint32_t delay = 0; delay < 60; delay += 30) {
		struct sim *s = sim_create(BLOCKS, FAST);

		s->c.endurance[1].drive_writes_per_day = 0.05;	/* 13.4 MB of 268 */
		s->delay = delay;
		sim_open(s);
		sim_hotspot(s, 60000, 2048, 0.5, 0.7);
		assert_true(s->e.stats.held_by_endurance > 0);
		assert_true((double)s->e.stats.written_bytes[1] <= rated(s, 0.05, BLOCKS * 4096.0));
		assert_true((double)s->e.stats.written_bytes[1] > 0.5 * 0.05 * BLOCKS * 4096);
		for (uint32_t i = 0; i < 3 + delay; i++)
			assert_int_equal(sim_tick(s), 0);
		assert_near(s->e.endurance[1].reserved, 0, 0);
		assert_int_equal(sim_tick(s), 0);
		assert_non_null(strstr(engine_still(&s->e), "endurance.drive_writes_per_day"));
		engine_close(&s->e);
		/* A restart does not fill the bank. */
		sim_open(s);
		assert_true(s->e.endurance[1].saved < 0.02 * BLOCKS * 4096);
		sim_remove(s);
	}
}

/* Stops without a word: what it would have written at its end is taken back. */
static void killed(struct sim *s)
{
	char command[400];

	snprintf(command, sizeof(command), "cp %s/wear %s/before 2>/dev/null || rm -f %s/before", s->dir, s->dir, s->dir);
	assert_int_equal(system(command), 0);
	engine_close(&s->e);
	snprintf(command, sizeof(command), "mv %s/before %s/wear 2>/dev/null || rm -f %s/wear", s->dir, s->dir, s->dir);
	assert_int_equal(system(command), 0);
}

/* Killed again and again, with orders under way: all that it has spent in its lives together was saved up. */
static void a_kill_gives_no_endurance_back(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	double written = 0;

	(void)state;
	s->c.endurance[1].drive_writes_per_day = 0.05;
	s->delay = 2;
	for (int life = 0; life < 40; life++) {
		sim_open(s);
		sim_hotspot(s, 3000, 2048, 0.5, 0.7);
		written += (double)s->e.stats.written_bytes[1];
		/* They are carried out whether anybody hears of it or not. */
		killed(s);
		for (uint32_t i = 0; i < s->queued; i++) {
			struct terrace_result r = { 0 };

			sim_carry_out(s, &s->queue[i], &r);
			written += (double)r.written_bytes[1];
		}
		s->queued = 0;
	}
	print_message("%.1f MB of %.1f written\n", written / 1e6, rated(s, 0.05, BLOCKS * 4096.0) / 1e6);
	assert_true(written <= rated(s, 0.05, BLOCKS * 4096.0));
	assert_true(written > 0.2 * rated(s, 0.05, BLOCKS * 4096.0));
	sim_open(s);
	sim_remove(s);
}

/* Where the account cannot be written down it is not spent, or the next start would have a full bank. */
static void an_account_that_cannot_be_kept_is_not_spent(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	char path[128];

	(void)state;
	s->c.endurance[1].drive_writes_per_day = 0.05;
	snprintf(path, sizeof(path), "%s/wear.new", s->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	sim_open(s);
	sim_hotspot(s, 30000, 2048, 0.5, 0.7);
	assert_int_equal(s->e.stats.written_bytes[1], 0);
	assert_true(s->e.stats.held_by_endurance > 0);
	assert_non_null(strstr(engine_still(&s->e), "cannot be written down"));
	assert_int_equal(rmdir(path), 0);
	sim_hotspot(s, 30000, 2048, 0.5, 0.7);
	assert_true(s->e.stats.written_bytes[1] > 0);
	sim_remove(s);
}

/* Users have worn the fast tier's drive beyond what it is rated for: what writes nothing to it goes on. */
static void a_worn_fast_tier_still_empties(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	s->c.endurance[0].drive_writes_per_day = 0.01;
	sim_open(s);
	/* The simulated volume does not say what users write to a tier. */
	s->e.endurance[0].saved = -1e6;
	sim_hotspot(s, 60000, 2048, 0.5, 0.9);
	assert_true(s->e.endurance[0].saved < 0);
	assert_true(s->e.stats.held_by_endurance > 0);
	assert_int_equal(s->e.stats.written_bytes[0], 0);
	assert_true(s->e.stats.demoted > 1000);
	assert_true(s->v.fast_used < FAST);
	sim_remove(s);
}

/* A limit that was not there before begins with a full bank: by a restart, or by SIGHUP. */
static void a_new_limit_begins_with_a_full_bank(void **state)
{
	(void)state;
	for (int restart = 0; restart < 2; restart++) {
		struct sim *s = sim_create(BLOCKS, FAST);
		double bank = 0.5 * BLOCKS * 4096;

		sim_open(s);
		sim_hotspot(s, 30000, 2048, 0.5, 0.7);
		assert_true(s->e.stats.written_bytes[1] > 0);
		s->c.endurance[1].drive_writes_per_day = 0.5;
		if (restart) {
			engine_close(&s->e);
			sim_open(s);
		} else {
			engine_retune(&s->e, &s->c);
		}
		assert_null(strstr(s->log, "wear cannot be used"));
		assert_near(s->e.endurance[1].saved, bank, 1);
		sim_remove(s);
	}
}

/* A home tier whose drive is full inside is emptied by the kernel's janitor alone: it must be let in. */
static void a_full_home_lets_the_janitor_in(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	sim_open(s);
	assert_int_equal(sim_tick(s), 0);
	assert_true(s->claimed);
	s->home_full = true;
	for (int i = 0; i < 3; i++)
		assert_int_equal(sim_tick(s), 0);
	assert_false(s->claimed);
	s->home_full = false;
	assert_int_equal(sim_tick(s), 0);
	assert_true(s->claimed);
	sim_remove(s);
}

/* The janitor makes room until the loop can: where summaries are dear that takes long. */
static void the_claim_waits_for_the_book(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	s->port.summaries_per_tick = 1;
	sim_open(s);
	for (int i = 0; i < 200 && !s->e.book.complete; i++) {
		assert_false(s->claimed);
		assert_int_equal(sim_tick(s), 0);
	}
	assert_true(s->e.book.complete);
	assert_int_equal(sim_tick(s), 0);
	assert_true(s->claimed);
	sim_remove(s);
}

static struct port_wear told_wear;

static bool sim_wear(struct health *health, uint32_t tier, struct port_wear *out)
{
	(void)health;
	*out = told_wear;
	out->error = tier == 1 ? 0 : -EACCES;
	return tier == 1;
}

/* Who else writes to the drive leaves less for moves; one past its life is told, once. */
static void the_drives_own_count_ends_moves(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	struct health health = { .wear = sim_wear };
	uint64_t orders;

	(void)state;
	s->c.endurance[1].drive_writes_per_day = 1;
	s->port.health = &health;
	told_wear = (struct port_wear){ .written_bytes = 1e12 };
	sim_open(s);
	sim_hotspot(s, 60000, 2048, 0.5, 0.7);
	assert_int_equal(s->e.stats.held_by_endurance, 0);
	assert_int_equal(times(s->log, "tier 0: its drive's SMART log cannot be read (Permission denied)"), 1);
	told_wear = (struct port_wear){ .written_bytes = 1.1e12, .percent_used = 101, .critical = 4 };
	assert_int_equal(sim_tick(s), 0);
	orders = s->e.stats.orders[WHY_ROOM];
	sim_hotspot(s, 20000, 2048, 0.5, 0.7);
	assert_true(s->e.stats.held_by_endurance > 0);
	assert_int_equal(s->e.stats.orders[WHY_ROOM], orders);
	assert_non_null(strstr(s->log, "tier 1: its drive has used 101 % of its rated life"));
	assert_non_null(strstr(s->log, "critical warning 0x04"));
	assert_null(strstr(s->log, "tier 0: its drive has"));
	sim_remove(s);
}

/* What others write while nobody listens is charged afterwards, by the drive's own count. */
static void the_drives_count_outlives_a_kill(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	struct health health = { .wear = sim_wear };
	double bank = BLOCKS * 4096.0;

	(void)state;
	s->c.endurance[1].drive_writes_per_day = 1;
	s->port.health = &health;
	told_wear = (struct port_wear){ .written_bytes = 1e12 };
	sim_open(s);
	sim_hotspot(s, 10000, 2048, 0.5, 0.7);
	killed(s);
	told_wear.written_bytes = 1e12 + 0.5 * bank;
	sim_open(s);
	assert_int_equal(sim_tick(s), 0);
	assert_near(s->e.endurance[1].saved, 0.5 * bank, 0.01 * bank);
	sim_remove(s);
}

/* Uniform reads gain nothing from moves: fewer than 1 % of the data comes up in ten passes. */
static void uniform_reads_move_next_to_nothing(void **state)
{
	struct sim *s = sim_create(BLOCKS / 2, FAST / 2);

	(void)state;
	sim_open(s);
	for (uint64_t i = 0; i < 10 * s->v.blocks; i++) {
		sim_access(s, prng_below(&s->prng, s->v.blocks), false);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
	if ((double)s->v.promoted >= 0.01 * (double)s->v.blocks)
		fail_msg("promoted %.4f of the data", (double)s->v.promoted / (double)s->v.blocks);
	sim_remove(s);
}

static bool sim_worn(struct health *health, uint32_t tier, struct port_wear *out)
{
	(void)health;
	*out = (struct port_wear){ .percent_used = 101 };
	return tier == 0;
}

/* What is written to a worn drive is dear: promotions that repaid before do not now, and stop. */
static void promotions_to_a_worn_tier_do_not_repay(void **state)
{
	(void)state;
	for (int worn = 0; worn < 2; worn++) {
		struct sim *s = sim_create(BLOCKS, FAST);
		struct health health = { .wear = sim_worn };

		if (worn)
			s->port.health = &health;
		s->slow_class = "qlc";
		s->c.endurance[0].max_price = 1000;
		s->c.tuning.governor.epoch_ops = 10000;
		sim_open(s);
		/* A hit saves 0.4 ms, and each block is hit twice or thrice an epoch; to write it takes 2 us, or 2 ms if it is dear. */
		sim_hotspot(s, 60000, 4096, 0.95, 0);
		print_message("%s: %llu promoted, stopped %llu times\n", worn ? "worn" : "healthy",
			      (unsigned long long)s->v.promoted, (unsigned long long)s->e.governor.up.stops);
		assert_true(s->v.promoted > 256);
		assert_int_equal(s->e.governor.up.stops > 0, worn);
		assert_int_equal(times(s->log, "promotions cost more than their hits saved") > 0, worn);
		sim_remove(s);
	}
}

/* Promotions repay; not where reading is said to be as fast below, nor where writing above takes 4 ms a block. */
static void the_price_of_io_changes_the_outcome(void **state)
{
	(void)state;
	for (int way = 0; way < 3; way++) {
		struct sim *s = sim_create(BLOCKS, FAST);

		s->slow_class = "qlc";
		s->c.price[1].read_us = way == 1 ? 6 : 0;
		s->c.price[0].bytes_per_us = way == 2 ? 1 : 0;
		s->c.tuning.governor.epoch_ops = 10000;
		sim_open(s);
		sim_hotspot(s, 60000, 4096, 0.95, 0);
		print_message("way %d: %llu promoted, stopped %llu times\n", way,
			      (unsigned long long)s->v.promoted, (unsigned long long)s->e.governor.up.stops);
		assert_true(s->v.promoted > 256);
		assert_int_equal(s->e.governor.up.stops > 0, way > 0);
		assert_int_equal(times(s->log, "promotions cost more than their hits saved") > 0, way > 0);
		sim_remove(s);
	}
}

static void refused_orders_leave_nothing_behind(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	sim_open(s);
	s->submit_error = -EAGAIN;
	sim_hotspot(s, 30000, 2048, 0.8, 0.5);
	assert_int_equal(s->e.under_way, 0);
	assert_int_equal(s->e.leaving, 0);
	assert_int_equal(s->e.coming, 0);
	assert_int_equal(s->e.budget[0].under_way, 0);
	assert_true(s->e.stats.failed > 0);
	s->submit_error = 0;
	sim_hotspot(s, 30000, 2048, 0.8, 0.5);
	assert_true(s->e.stats.demoted > 500);
	sim_remove(s);
}

static void failed_orders_are_told_and_tried_again(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	sim_open(s);
	s->order_error = -EIO;
	sim_hotspot(s, 20000, 2048, 0.8, 0.5);
	assert_non_null(strstr(s->log, "could not be moved: Input/output error"));
	assert_int_equal(s->e.stats.demoted, 0);
	s->order_error = 0;
	sim_hotspot(s, 30000, 2048, 0.8, 0.5);
	assert_true(s->e.stats.demoted > 300);
	sim_remove(s);
}

/* An order that found no room has ended; the next ones wait a second, and the regions go down when there is room. */
static void no_room_is_final_and_tried_again(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);
	uint64_t seen;

	(void)state;
	sim_open(s);
	s->no_room = true;
	sim_hotspot(s, 20000, 2048, 0.2, 0.9);
	for (int i = 0; i < 3; i++)
		assert_int_equal(sim_tick(s), 0);
	assert_int_equal(s->e.under_way, 0);
	seen = s->e.stats.no_room;
	assert_true(seen > 0);
	assert_int_equal(s->e.stats.done, 0);
	assert_true(s->e.stats.held_by_room > 0);
	assert_string_equal(engine_still(&s->e), "the slow tier has no room");
	for (int i = 0; i < 100; i++)
		assert_int_equal(sim_tick(s), 0);
	/* Ten seconds: ten times at most those of a tick. */
	assert_in_range(s->e.stats.no_room - seen, 1, 10 * 64);
	s->no_room = false;
	sim_hotspot(s, 20000, 2048, 0.2, 0.9);
	assert_true(s->e.stats.done > 0);
	assert_true(s->e.stats.demoted > 300);
	assert_null(engine_still(&s->e));
	sim_remove(s);
}

static void a_volume_that_vanishes_ends_the_loop(void **state)
{
	struct sim *s = sim_create(BLOCKS, FAST);

	(void)state;
	sim_open(s);
	sim_hotspot(s, 10000, 2048, 0.8, 0.5);
	s->gone = true;
	assert_int_equal(sim_tick(s), -ENODEV);
	sim_remove(s);
}

/*
 * A database that reads a few blocks again and again and writes five others, in turn, for each read: an LRU's hits of all
 * accesses are not even those of a random placement, but those of the reads, for which blocks go up, are.
 */
static void writes_do_not_hide_skew(void **state)
{
	struct sim *s = sim_create(64 * 1024, 8 * 1024);

	(void)state;
	sim_open(s);
	for (uint64_t i = 0; i < 120000; i++) {
		bool write = i % 6 != 0;

		sim_access(s, write ? 2048 + i % 60000 : prng_below(&s->prng, 1024), write);
		if (i % 512 == 511)
			assert_int_equal(sim_tick(s), 0);
	}
	assert_true(hear_skewed(&s->e));
	sim_remove(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bandwidth_is_kept),
		cmocka_unit_test(the_status_names_the_limit),
		cmocka_unit_test(bandwidth_of_further_tiers_is_kept),
		cmocka_unit_test(a_network_has_less_bandwidth),
		cmocka_unit_test(orders_in_flight_are_limited),
		cmocka_unit_test(endurance_ends_moves),
		cmocka_unit_test(a_kill_gives_no_endurance_back),
		cmocka_unit_test(an_account_that_cannot_be_kept_is_not_spent),
		cmocka_unit_test(a_worn_fast_tier_still_empties),
		cmocka_unit_test(a_new_limit_begins_with_a_full_bank),
		cmocka_unit_test(a_full_home_lets_the_janitor_in),
		cmocka_unit_test(the_claim_waits_for_the_book),
		cmocka_unit_test(the_drives_own_count_ends_moves),
		cmocka_unit_test(the_drives_count_outlives_a_kill),
		cmocka_unit_test(uniform_reads_move_next_to_nothing),
		cmocka_unit_test(promotions_to_a_worn_tier_do_not_repay),
		cmocka_unit_test(the_price_of_io_changes_the_outcome),
		cmocka_unit_test(refused_orders_leave_nothing_behind),
		cmocka_unit_test(failed_orders_are_told_and_tried_again),
		cmocka_unit_test(no_room_is_final_and_tried_again),
		cmocka_unit_test(a_volume_that_vanishes_ends_the_loop),
		cmocka_unit_test(writes_do_not_hide_skew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
