// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The BPF sense of block heat, turn by turn, on a kernel that is none: the module tells one access in so many as it has been
 * told to, the program puts them into the table whose turn it is.
 *
 * Each entry's block says what it stands for, so that it can be held against what the sense says of those that it gives.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "policy_lib.h"

#include "sense/heat.h"

#define STRIDE	((sizeof(struct terrace_heat_table) + 7) & ~(size_t)7)

struct program {	/* heat.bpf.c's variables */
	uint32_t mask, half;
};

/* ---- a kernel ------------------------------------------------------------------------ */

static struct program *program;
static char *tables;
static int memory;
static struct timespec now;
/* the module */
static uint32_t heat_sample, slow_sample;
static int heat_error, slow_error;
static uint32_t heat_calls, slow_calls;

int libbpf_num_possible_cpus(void)
{
	return 1;
}

int bpf_object__load_skeleton(struct bpf_object_skeleton *s)
{
	for (int i = 0; i < s->map_cnt; i++)
		if (!strcmp(s->maps[i].name, "heat.bss"))
			program = *s->maps[i].mmaped;
	return 0;
}

int bpf_object__attach_skeleton(struct bpf_object_skeleton *s)
{
	(void)s;
	return 0;
}

int bpf_map__fd(const struct bpf_map *map)
{
	return strcmp(bpf_map__name(map), "heat") ? -1 : memory;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	(void)clock;
	*t = now;
	return 0;
}

static int set_heat(void *ctx, uint32_t n)
{
	(void)ctx;
	heat_calls++;
	if (!heat_error)
		heat_sample = n;
	return heat_error;
}

static int set_slow(void *ctx, uint32_t n)
{
	(void)ctx;
	slow_calls++;
	if (!slow_error)
		slow_sample = n;
	return slow_error;
}

/* @nr different hits, of which the module and the program leave out what they should. */
static void hits(uint32_t nr)
{
	struct terrace_heat_table *t = (void *)(tables + STRIDE * (program->half & 1));
	uint32_t each = heat_sample * (program->mask + 1);

	for (uint32_t i = 0; i < nr / each && t->nr < TERRACE_HEAT_ENTRIES; i++)
		t->entry[t->nr++] = (struct terrace_heat_entry){ .block = each, .count = 1, .hits = 1 };
}

static void slow_reads(uint32_t nr)
{
	struct terrace_heat_table *t = (void *)(tables + STRIDE * (program->half & 1));

	for (uint32_t i = 0; i < nr / slow_sample && t->nr < TERRACE_HEAT_ENTRIES; i++)
		t->entry[t->nr++] = (struct terrace_heat_entry){
			.block = slow_sample, .count = 1, .kind = 1 | TERRACE_WHERE_SLOW, .hits = 1,
		};
}

/* ---- the daemon ------------------------------------------------------------------------ */

struct heard {
	struct sense *sense;
	uint32_t sampling, slow;	/* as the sense said before it gave them */
	uint32_t fast_reads, slow_reads;
};

static void hear(void *ctx, const struct port_access *a)
{
	struct heard *h = ctx;

	if (a->where == PORT_SLOW) {
		h->slow_reads++;
		assert_int_equal(a->block, h->slow);
	} else {
		h->fast_reads++;
		assert_int_equal(a->block, h->sampling);
	}
}

/* A tenth of a second later. */
static void tick(struct heard *h)
{
	now.tv_nsec += 100000000;
	if (now.tv_nsec == 1000000000)
		now = (struct timespec){ .tv_sec = now.tv_sec + 1 };
	h->sampling = h->sense->sampling;
	h->slow = h->sense->slow_sampling;
	assert_true(h->sense->drain(h->sense, 65536, hear, h) >= 0);
}

static struct heard *open_heat(struct heard *h, uint32_t most)
{
	const struct heat_module module = {
		.now = heat_sample, .most = most, .set = set_heat, .slow_now = slow_sample, .set_slow = set_slow,
	};
	char why[200];
	int err = heat_open(253, 0, &module, &h->sense, why, sizeof(why));

	if (err)
		fail_msg("%s", why);
	return h;
}

static int begin(void **state)
{
	(void)state;
	memory = memfd_create("tables", MFD_CLOEXEC);
	if (memory < 0 || ftruncate(memory, 1 << 20))
		return -1;
	tables = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	heat_sample = 16;
	slow_sample = 1;
	heat_error = slow_error = 0;
	heat_calls = slow_calls = 0;
	return tables == MAP_FAILED;
}

static int end(void **state)
{
	(void)state;
	munmap(tables, 1 << 20);
	close(memory);
	return 0;
}

/* ---- what is said of accesses ------------------------------------------------------------- */

/* Few, very many, few again, in all of which the module's rate and the program's change. */
static void accesses_come_with_the_rate_they_were_told_at(void **state)
{
	struct heard h = { 0 };
	uint32_t told;

	(void)state;
	open_heat(&h, 16);
	for (int i = 0; i < 400; i++) {
		hits(i < 10 ? 100 : i < 60 ? 60000 : 20);
		tick(&h);
		if (i == 59) {
			assert_int_equal(heat_sample, 16);
			assert_true(program->mask > 0);
		}
	}
	told = h.fast_reads;
	assert_true(told > 1000);
	assert_int_equal(heat_sample, 1);
	assert_int_equal(program->mask, 0);
	h.sense->close(h.sense);
}

/* As many as of hits while a sample will do, then each again; those in between count for what they stand for. */
static void slow_reads_come_with_the_rate_they_were_told_at(void **state)
{
	struct heard h = { 0 };

	(void)state;
	open_heat(&h, 16);
	for (int i = 0; i < 60; i++) {
		hits(2000);
		slow_reads(64);
		tick(&h);
		h.sense->each_slow(h.sense, i < 20 || i >= 40);
		if (i == 39)
			assert_true(slow_sample > 1);
	}
	assert_int_equal(slow_sample, 1);
	assert_int_equal(h.sense->slow_sampling, 1);
	assert_in_range(h.slow_reads, 64 * 38, 64 * 50);
	h.sense->close(h.sense);
}

/*
 * A tier of flash, 75,000 reads a second, all of them slow: as many are told as are worth it, whoever wants each. Hits are told no
 * more often. And each again, when they are few.
 */
static void a_flood_of_slow_reads_is_thinned(void **state)
{
	struct heard h = { 0 };
	uint32_t told = 0;

	(void)state;
	open_heat(&h, 16);
	for (int i = 0; i < 300; i++) {
		hits(i < 100 ? 100 : 50);
		slow_reads(i < 100 ? 7500 : 20);
		if (i == 20)
			told = h.slow_reads;
		tick(&h);
		assert_true(slow_sample <= heat_sample);
		if (i == 99) {
			assert_int_equal(slow_sample, 16);
			assert_in_range(h.slow_reads - told, 80 * HEAT_SLOW_TOLD / 40, 80 * HEAT_SLOW_TOLD / 10);
		}
	}
	assert_int_equal(slow_sample, 1);
	assert_int_equal(heat_sample, 1);
	h.sense->close(h.sense);
}

/*
 * 30,000 hits a second, and as many slow reads: a quarter of what is told else, and all of it again. What is told comes with
 * its rate all the while.
 */
static void less_is_told_while_it_is_worth_less(void **state)
{
	struct heard h = { 0 };
	uint32_t fast[3], slow[3];

	(void)state;
	open_heat(&h, 16);
	for (int i = 0; i < 300; i++) {
		h.sense->spare(h.sense, i >= 100 && i < 200);
		if (i % 100 == 50)	/* it has come to rest */
			h.fast_reads = h.slow_reads = 0;
		hits(3000);
		slow_reads(3000);
		tick(&h);
		if (i % 100 == 99) {
			fast[i / 100] = h.fast_reads;
			slow[i / 100] = h.slow_reads;
		}
	}
	assert_in_range(fast[0], 5 * HEAT_TOLD / 4, 5 * HEAT_TOLD);
	assert_in_range(slow[0], 5 * HEAT_SLOW_TOLD / 2, 5 * HEAT_SLOW_TOLD);
	print_message("%u, %u, %u hits in 5 s, %u, %u, %u slow reads\n", fast[0], fast[1], fast[2], slow[0], slow[1], slow[2]);
	assert_in_range(fast[1], 5 * HEAT_TOLD / HEAT_SPARED / 4, 5 * HEAT_TOLD / HEAT_SPARED);
	assert_in_range(slow[1], 5 * HEAT_SLOW_TOLD / HEAT_SPARED / 2, 5 * HEAT_SLOW_TOLD / HEAT_SPARED);
	assert_in_range(fast[2], fast[0] * 9 / 10, fast[0] * 11 / 10);
	assert_in_range(slow[2], slow[0] * 9 / 10, slow[0] * 11 / 10);
	h.sense->close(h.sense);
}

/* The module may refuse one rate, and then the other: hits are told no more often all the same. */
static void no_refusal_turns_the_rates_round(void **state)
{
	struct heard h = { 0 };

	(void)state;
	heat_sample = 1;
	heat_error = -EACCES;
	open_heat(&h, 16);
	for (int i = 0; i < 100; i++) {
		slow_reads(7500);
		tick(&h);
		assert_true(slow_sample <= heat_sample);
		heat_error = i < 50 ? -EACCES : 0;
		slow_error = i < 70 ? 0 : -EACCES;
	}
	assert_int_equal(slow_sample, 16);
	for (int i = 0; i < 200; i++) {
		slow_reads(20);
		tick(&h);
		assert_true(slow_sample <= heat_sample);
	}
	slow_error = 0;
	for (int i = 0; i < 50; i++)
		tick(&h);
	assert_int_equal(slow_sample, 1);
	h.sense->close(h.sense);
}

/* Tables that are a half too full are filled with half: what was filled before that is known does not halve it again. */
static void a_flood_is_thinned_no_more_than_it_takes(void **state)
{
	struct heard h = { 0 };

	(void)state;
	open_heat(&h, 1);
	for (int i = 0; i < 100; i++) {
		hits(HEAT_BUSY * 3 / 2);
		tick(&h);
	}
	assert_int_equal(program->mask, 1);
	for (int i = 0; i < 100; i++) {
		hits(HEAT_BUSY * 3);
		tick(&h);
	}
	assert_int_equal(program->mask, 3);
	h.sense->close(h.sense);
}

/* A predecessor was killed while a sample of slow reads did, and the module's rates cannot be set: they are what counts. */
static void what_the_module_refuses_counts_as_it_is(void **state)
{
	struct heard h = { 0 };

	(void)state;
	heat_sample = 4;
	slow_sample = 8;
	heat_error = slow_error = -EACCES;
	open_heat(&h, 16);
	assert_int_equal(h.sense->set_error, -EACCES);
	for (int i = 0; i < 60; i++) {
		hits(i < 50 ? 3000 : 100);
		slow_reads(64);
		tick(&h);
	}
	assert_int_equal(heat_sample, 4);
	assert_int_equal(slow_sample, 8);
	assert_in_range(h.slow_reads, 8 * 55, 8 * 60);
	assert_int_equal(h.sense->set_error, -EACCES);
	/* One of them is not all. */
	slow_error = 0;
	tick(&h);
	assert_int_equal(slow_sample, 1);
	assert_int_equal(h.sense->set_error, -EACCES);
	heat_error = 0;
	for (int i = 0; i < 60; i++) {
		hits(3000);
		slow_reads(64);
		tick(&h);
	}
	assert_int_equal(heat_sample, 8);	/* of 30,000 hits a second */
	assert_int_equal(h.sense->set_error, 0);
	h.sense->close(h.sense);
}

static void a_module_that_tells_each_slow_read_is_not_asked_for_fewer(void **state)
{
	struct heard h = { 0 };

	(void)state;
	slow_sample = 0;
	slow_error = -ENOENT;
	open_heat(&h, 16);
	slow_sample = 1;
	h.sense->each_slow(h.sense, false);
	for (int i = 0; i < 60; i++) {
		hits(3000);
		slow_reads(64);
		tick(&h);
	}
	assert_int_equal(slow_calls, 0);
	assert_int_equal(h.sense->set_error, 0);
	h.sense->close(h.sense);
	assert_int_equal(slow_calls, 0);
}

static void whoever_listens_next_finds_what_was_configured(void **state)
{
	struct heard h = { 0 };

	(void)state;
	open_heat(&h, 5);
	assert_int_equal(heat_sample, 1);
	h.sense->each_slow(h.sense, false);
	for (int i = 0; i < 20; i++) {
		hits(3000);
		tick(&h);
	}
	assert_int_equal(slow_sample, 5);
	h.sense->close(h.sense);
	assert_int_equal(heat_sample, 5);
	assert_int_equal(slow_sample, 1);
}

int main(void)
{
#define ON_KERNEL(test)	cmocka_unit_test_setup_teardown(test, begin, end)
	const struct CMUnitTest tests[] = {
		ON_KERNEL(accesses_come_with_the_rate_they_were_told_at),
		ON_KERNEL(slow_reads_come_with_the_rate_they_were_told_at),
		ON_KERNEL(a_flood_of_slow_reads_is_thinned),
		ON_KERNEL(less_is_told_while_it_is_worth_less),
		ON_KERNEL(no_refusal_turns_the_rates_round),
		ON_KERNEL(a_flood_is_thinned_no_more_than_it_takes),
		ON_KERNEL(what_the_module_refuses_counts_as_it_is),
		ON_KERNEL(a_module_that_tells_each_slow_read_is_not_asked_for_fewer),
		ON_KERNEL(whoever_listens_next_finds_what_was_configured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
