// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The drive model's arithmetic, to the nanosecond, and every tunable matters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../drive/model_time.c"

#define US 1000ULL
#define MS 1000000ULL
#define KIB 1024ULL
#define MIB (1024 * KIB)

static struct drive_clock state;

static u64 at(const struct drive_model *m, u64 now, enum drive_kind kind, u64 start, u64 bytes)
{
	struct drive_cmd cmd = { .kind = kind, .start = start, .bytes = bytes };

	return drive_time(m, &state, &cmd, now);
}

static int fresh(void **unused)
{
	(void)unused;
	memset(&state, 0, sizeof(state));
	return 0;
}

static void test_flash_queues_on_channels_then_bus(void **unused)
{
	const struct drive_model m = { .channels = 2, .read_lat_ns = 100 * US, .write_lat_ns = 10 * US, .read_bw = 1000000000 };

	(void)unused;
	/* the second shares the bus, the third waits for a channel */
	assert_int_equal(at(&m, 0, DRIVE_READ, 0, 1000), 101 * US);
	assert_int_equal(at(&m, 0, DRIVE_READ, 0, 1000), 102 * US);
	assert_int_equal(at(&m, 0, DRIVE_READ, 0, 1000), 202 * US);
	assert_int_equal(at(&m, 500 * US, DRIVE_WRITE, 0, 1000), 510 * US);
}

static void test_flash_never_exceeds_its_bandwidth(void **unused)
{
	const struct drive_model m = { .channels = 64, .read_lat_ns = 5 * US, .read_bw = 100000000 };
	u64 done = 0;
	int i;

	(void)unused;
	for (i = 0; i < 1000; i++)
		done = at(&m, 0, DRIVE_READ, 0, 1000);
	assert_int_equal(done, 1000 * 10 * US + 5 * US);
}

static void test_flush_costs_latency_and_drain(void **unused)
{
	const struct drive_model m = { .channels = 1, .flush_lat_ns = MS, .flush_bw = 1000000000 };

	(void)unused;
	assert_int_equal(at(&m, 0, DRIVE_FLUSH, 0, 2000000), 3 * MS);
}

static void test_seek_curve_ends_where_it_should(void **unused)
{
	const struct drive_model m = { .seek_min_ns = MS, .seek_max_ns = 9 * MS, .stroke_bytes = 1 << 30, .track_bytes = MIB };

	(void)unused;
	assert_int_equal(drive_seek_ns(&m, 0, 1 << 30), 9 * MS);
	assert_int_equal(drive_seek_ns(&m, 1 << 30, 0), 9 * MS);
	assert_int_equal(drive_seek_ns(&m, 0, 1 << 28), 5 * MS);
	assert_int_equal(drive_seek_ns(&m, 0, 1ULL << 40), 9 * MS);
	assert_int_equal(drive_seek_ns(&m, 5, MIB - 1), 0);
	assert_true(drive_seek_ns(&m, 0, MIB) > MS && drive_seek_ns(&m, 0, MIB) < 2 * MS);
}

static void test_rotation_waits_for_the_first_byte(void **unused)
{
	const struct drive_model m = { .rev_ns = 6 * MS, .track_bytes = 6 * MIB, .stroke_bytes = 1 << 30 };
	const struct drive_cmd third = { .kind = DRIVE_READ, .start = 2 * MIB, .bytes = 4096 };

	(void)unused;
	assert_int_equal(drive_position_ns(&m, &state, &third, 0), 2 * MS);
	assert_int_equal(drive_position_ns(&m, &state, &third, 2 * MS), 0);
	assert_int_equal(drive_position_ns(&m, &state, &third, 2 * MS + 1), 6 * MS - 1);
	assert_int_equal(drive_position_ns(&m, &state, &third, 600 * MS + 5 * MS), 3 * MS);
}

static void test_streams_cost_transfer_only(void **unused)
{
	const struct drive_model m = { .seek_min_ns = MS, .seek_max_ns = 9 * MS, .rev_ns = 6 * MS, .stroke_bytes = 1 << 30,
				       .read_bw = 100000000, .write_bw = 100000000, .ahead_bytes = 2000 };
	u64 t = at(&m, 0, DRIVE_READ, 100 * MIB, 1000);

	(void)unused;
	assert_int_equal(at(&m, t, DRIVE_READ, 100 * MIB + 1000, 1000), t + 10 * US);
	/* while the host thinks, the disk reads 2000 bytes ahead, not more */
	assert_int_equal(at(&m, t + MS, DRIVE_READ, 100 * MIB + 2000, 1000), t + MS);
	assert_int_equal(at(&m, t + MS, DRIVE_READ, 100 * MIB + 3000, 1000), t + MS);
	assert_int_equal(at(&m, t + MS, DRIVE_READ, 100 * MIB + 4000, 1000), t + MS + 10 * US);
	assert_int_equal(state.seeks, 1);
	/* a write there is no stream of reads */
	at(&m, t + MS, DRIVE_WRITE, 100 * MIB + 5000, 1000);
	assert_int_equal(state.seeks, 2);
}

static void test_slc_fills_exhausts_and_drains(void **unused)
{
	const struct drive_model m = { .channels = 1, .write_bw = 1000000000, .slc_bytes = 10 * MIB, .fold_bw = 100000000 };
	u64 t;

	(void)unused;
	t = at(&m, 0, DRIVE_WRITE, 0, 10 * MIB);
	assert_int_equal(t, 10 * MIB);
	assert_int_equal(at(&m, t, DRIVE_WRITE, 0, MIB), t + 10 * MIB);
	t += 10 * MIB;
	assert_int_equal(state.slc_fill, 10 * MIB);
	drive_time_idle(&m, &state, t + MS);
	assert_int_equal(state.slc_fill, 10 * MIB - 100000);
	drive_time_idle(&m, &state, t + 1000 * MS);
	assert_int_equal(state.slc_fill, 0);
	assert_int_equal(state.programmed, 2 * state.host_bytes);
	assert_int_equal(state.folded, state.host_bytes);
}

static void test_units_are_rewritten_whole(void **unused)
{
	static const struct { u64 start, bytes, programmed, rmw; } cases[] = {
		{ 0, 16 * KIB, 16 * KIB, 0 },		/* one whole */
		{ 16 * KIB, 64 * KIB, 64 * KIB, 0 },	/* four whole */
		{ 4 * KIB, 4 * KIB, 16 * KIB, 1 },	/* inside one */
		{ 0, 4 * KIB, 16 * KIB, 1 },		/* its head */
		{ 12 * KIB, 4 * KIB, 16 * KIB, 1 },	/* its tail */
		{ 12 * KIB, 8 * KIB, 32 * KIB, 2 },	/* over a border */
		{ 8 * KIB, 24 * KIB, 32 * KIB, 1 },	/* half and a whole */
		{ 16 * KIB, 20 * KIB, 32 * KIB, 1 },	/* a whole and a bit */
	};
	const struct drive_model m = { .channels = 1, .iu_bytes = 16 * KIB };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		fresh(unused);
		at(&m, 0, DRIVE_WRITE, 1 * MIB + cases[i].start, cases[i].bytes);
		assert_int_equal(state.programmed, cases[i].programmed);
		assert_int_equal(state.rmw, cases[i].rmw);
	}
}

static void test_streams_fill_units_without_rewriting(void **unused)
{
	const struct drive_model m = { .channels = 1, .iu_bytes = 16 * KIB };
	u64 i, s;

	(void)unused;
	/* four streams at once, each 1 MiB in writes of 4 KiB */
	for (i = 0; i < 256; i++)
		for (s = 0; s < DRIVE_STREAMS; s++)
			at(&m, 0, DRIVE_WRITE, (s + 1) * 64 * MIB + i * 4 * KIB, 4 * KIB);
	assert_int_equal(state.programmed, DRIVE_STREAMS * MIB);
	assert_int_equal(state.rmw, DRIVE_STREAMS);	/* the first of each could not know */
}

static void test_a_flush_finds_units_half_written(void **unused)
{
	const struct drive_model m = { .channels = 1, .iu_bytes = 16 * KIB };

	fresh(unused);
	at(&m, 0, DRIVE_WRITE, 1 * MIB, 16 * KIB);
	at(&m, 0, DRIVE_FLUSH, 0, 0);
	assert_int_equal(state.split, 0);
	at(&m, 0, DRIVE_WRITE, 1 * MIB + 16 * KIB, 4 * KIB);
	at(&m, 0, DRIVE_WRITE, 2 * MIB, 20 * KIB);
	at(&m, 0, DRIVE_FLUSH, 0, 0);
	assert_int_equal(state.split, 2);
	at(&m, 0, DRIVE_FLUSH, 0, 0);		/* nothing new */
	at(&m, 0, DRIVE_WRITE, 2 * MIB + 20 * KIB, 12 * KIB);
	at(&m, 0, DRIVE_FLUSH, 0, 0);		/* filled since */
	assert_int_equal(state.split, 2);
}

/* Time of a fixed mix of commands: the fingerprint of a model. */
static u64 fingerprint(const struct drive_model *m)
{
	u64 sum = 0, x = 1, now = 0;
	int i;

	memset(&state, 0, sizeof(state));
	for (i = 0; i < 400; i++) {
		enum drive_kind kind = i % 7 == 3 ? DRIVE_FLUSH : i % 11 == 5 ? DRIVE_DISCARD : i % 2 ? DRIVE_READ : DRIVE_WRITE;
		u64 done;

		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		now += x >> 46;
		done = at(m, now, kind, i % 5 ? (x >> 36) / 512 * 512 : state.head, 512 + (x >> 48));
		assert_true(done >= now);
		sum = sum * 31 + done;
	}
	return sum + state.programmed;
}

static void test_every_tunable_changes_the_times(void **unused)
{
	const struct drive_model flash = { .read_lat_ns = 80 * US, .write_lat_ns = 20 * US, .flush_lat_ns = MS, .discard_lat_ns = 30 * US,
		.channels = 4, .read_bw = 3000000000, .write_bw = 2000000000, .flush_bw = 1000000000, .slc_bytes = 256 * KIB,
		.fold_bw = 100000000, .iu_bytes = 16 * KIB };
	const struct drive_model disk = { .read_lat_ns = 80 * US, .write_lat_ns = 20 * US, .flush_lat_ns = MS, .discard_lat_ns = 30 * US,
		.read_bw = 200000000, .write_bw = 150000000, .flush_bw = 100000000, .seek_min_ns = MS, .seek_max_ns = 9 * MS,
		.stroke_bytes = 1 << 28, .rev_ns = 6 * MS, .track_bytes = MIB, .ahead_bytes = 64 * KIB };
	/* where the platter turns, a little latency is lost in the wait for it */
	const struct drive_model still = { .read_lat_ns = 80 * US, .write_lat_ns = 20 * US, .read_bw = 200000000,
		.seek_max_ns = 9 * MS, .stroke_bytes = 1 << 28, .track_bytes = MIB };
	const u64 flash_print = fingerprint(&flash), disk_print = fingerprint(&disk), still_print = fingerprint(&still);
	struct drive_model m;

#define MATTERS(base, field) do {						\
		m = base;							\
		m.field += m.field / 2;						\
		if (fingerprint(&m) == base##_print)				\
			fail_msg(#base "." #field " changes nothing");		\
	} while (0)
	(void)unused;
	MATTERS(flash, read_lat_ns);
	MATTERS(flash, write_lat_ns);
	MATTERS(flash, flush_lat_ns);
	MATTERS(flash, discard_lat_ns);
	MATTERS(flash, channels);
	MATTERS(flash, read_bw);
	MATTERS(flash, write_bw);
	MATTERS(flash, flush_bw);
	MATTERS(flash, slc_bytes);
	MATTERS(flash, fold_bw);
	MATTERS(flash, iu_bytes);
	MATTERS(still, read_lat_ns);
	MATTERS(still, write_lat_ns);
	MATTERS(disk, flush_lat_ns);
	MATTERS(disk, discard_lat_ns);
	MATTERS(disk, read_bw);
	MATTERS(disk, write_bw);
	MATTERS(disk, flush_bw);
	MATTERS(disk, seek_min_ns);
	MATTERS(disk, seek_max_ns);
	MATTERS(disk, stroke_bytes);
	MATTERS(disk, rev_ns);
	MATTERS(disk, track_bytes);
	/* ahead_bytes needs a host that thinks: test_streams_cost_transfer_only; ncq is the queue's */
}

static void test_instant_means_no_time_at_all(void **unused)
{
	const struct drive_model none = { .channels = 1 };
	struct drive_model m = none;

	(void)unused;
	assert_true(drive_model_is_instant(&none));
	assert_int_equal(at(&none, 7, DRIVE_WRITE, 0, 1 << 20), 7);
	m.iu_bytes = 16 * KIB;
	assert_true(drive_model_is_instant(&m));
	m.rev_ns = 1;
	assert_false(drive_model_is_instant(&m));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_flash_queues_on_channels_then_bus, fresh),
		cmocka_unit_test_setup(test_flash_never_exceeds_its_bandwidth, fresh),
		cmocka_unit_test_setup(test_flush_costs_latency_and_drain, fresh),
		cmocka_unit_test_setup(test_seek_curve_ends_where_it_should, fresh),
		cmocka_unit_test_setup(test_rotation_waits_for_the_first_byte, fresh),
		cmocka_unit_test_setup(test_streams_cost_transfer_only, fresh),
		cmocka_unit_test_setup(test_slc_fills_exhausts_and_drains, fresh),
		cmocka_unit_test_setup(test_units_are_rewritten_whole, fresh),
		cmocka_unit_test_setup(test_streams_fill_units_without_rewriting, fresh),
		cmocka_unit_test_setup(test_a_flush_finds_units_half_written, fresh),
		cmocka_unit_test_setup(test_every_tunable_changes_the_times, fresh),
		cmocka_unit_test_setup(test_instant_means_no_time_at_all, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
