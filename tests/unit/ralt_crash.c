// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RALT after kill -9 at random moments (in flushes, merges, evictions, discards), and with damaged
 * files: it opens, keeps what was committed, sets aside what is broken, says so.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "ralt_lib.h"

#include "ralt/forget.h"
#include "ralt/manifest.h"
#include "ralt/page.h"
#include "ralt/run.h"

static void small(struct bench *b)
{
	bench_init(b, 2000);
	b->config.tunables.buffer_records = 256;
	b->config.tunables.page_bytes = 4096;
	b->config.tunables.samples = 512;
	b->config.tunables.tracked_share = 1;
	b->config.tunables.physical_ratio = 1;	/* evictions all the time */
}

static void load(struct bench *b, struct prng *p, int accesses)
{
	for (int i = 0; i < accesses; i++)
		touch(b, prng_below(p, 4) ? 500 + 13 * prng_below(p, 100) : prng_below(p, 100000));
}

static int hot_known(struct bench *b)
{
	int hot = 0;

	for (uint64_t i = 0; i < 100; i++)
		hot += ralt_is_hot(b->r, 500 + 13 * i);
	return hot;
}

/* The child works until it is killed; every tenth round it discards some. */
static void work_for_ever(struct bench *b, uint64_t seed)
{
	struct prng p = { seed };
	struct ralt_range range = { 90000, 10 };

	if (ralt_open(&b->r, &b->config))
		_exit(1);
	for (int i = 0;; i++) {
		load(b, &p, 500);
		if (i % 10 == 0 && ralt_forget(b->r, &range, 1))
			_exit(1);
	}
}

static void kill_9_loses_no_more_than_the_buffer(void **state)
{
	struct bench b;
	struct prng p = { 1 };

	(void)state;
	small(&b);
	bench_open(&b);
	load(&b, &p, 20000);
	assert_true(hot_known(&b) >= 98);
	assert_int_equal(ralt_close(b.r), 0);
	for (int round = 0; round < 40; round++) {
		pid_t child = fork();
		int status;

		assert_true(child >= 0);
		if (!child)
			work_for_ever(&b, (uint64_t)round + 100);
		usleep((useconds_t)(2000 + prng_below(&p, 60000)));
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		bench_open(&b);
		assert_int_equal(b.reports[RALT_SET_ASIDE], 0);
		assert_int_equal(b.reports[RALT_COLD], 0);
		assert_true(hot_known(&b) >= 95);
		assert_int_equal(ralt_close(b.r), 0);
	}
	b.r = NULL;
	bench_exit(&b);
}

/* Each stop leaves a run, and may come before a merge has ended: with no room for one more they are merged first. */
static void stopped_again_and_again_it_works_on(void **state)
{
	struct bench b;
	struct prng p = { 5 };

	(void)state;
	small(&b);
	for (uint32_t i = 0; i < RALT_RUNS_MAX + 10; i++) {
		bench_open(&b);
		load(&b, &p, 100);
		assert_int_equal(ralt_close(b.r), 0);
		assert_int_equal(b.reports[RALT_WRITE_FAILED] + b.reports[RALT_DROPPED], 0);
	}
	bench_open(&b);
	load(&b, &p, 20000);
	assert_true(hot_known(&b) >= 98);
	bench_exit(&b);
}

static int damage(const char *path, uint64_t where, bool cut)
{
	struct stat st;
	uint8_t byte;
	int fd = open(path, O_RDWR), done = 0;

	assert_true(fd >= 0 && !fstat(fd, &st));
	if (st.st_size > 0) {
		off_t at = (off_t)(where % (uint64_t)st.st_size);

		if (cut) {
			done = !ftruncate(fd, at);
		} else {
			assert_int_equal(pread(fd, &byte, 1, at), 1);
			byte ^= 0x40;
			assert_int_equal(pwrite(fd, &byte, 1, at), 1);
			done = 1;
		}
	}
	close(fd);
	return done;
}

static char victim[512];

static void pick_victim(const char *path)
{
	/* The last run listed, or the manifest when asked for. */
	if (strstr(path, victim[0] == 'M' ? "MANIFEST" : "run-") && !strstr(path, ".bad"))
		strcpy(victim + 1, path);
}

static int ignore(void *ctx, const struct ralt_heat *h)
{
	(void)ctx;
	(void)h;
	return 0;
}

/* Damage somewhere in a run or in the manifest, by a flipped bit or a cut: found, reported, survived. */
static void damaged_files_are_set_aside(void **state)
{
	struct bench b;
	struct prng p = { 3 };
	int reported = 0, rounds = 0;

	(void)state;
	small(&b);
	for (int round = 0; round < 60; round++) {
		bench_open(&b);
		load(&b, &p, 3000);
		assert_int_equal(ralt_close(b.r), 0);
		memset(victim, 0, sizeof(victim));
		victim[0] = round % 3 ? 'r' : 'M';
		bench_files(&b, pick_victim);
		damage(victim + 1, prng_next(&p), round % 2);
		bench_open(&b);
		/* Pages are checked when they are read. */
		assert_int_equal(ralt_scan(b.r, 0, UINT64_MAX, false, ignore, NULL), 0);
		finish_work(&b);
		rounds++;
		reported += b.reports[RALT_SET_ASIDE] > 0;
		load(&b, &p, 2000);
		assert_int_equal(ralt_close(b.r), 0);
	}
	print_message("%d of %d damages met and reported\n", reported, rounds);
	/* What is left fell into the hole or the header of a run, which nobody reads. */
	assert_true(reported >= rounds * 6 / 10);
	b.r = NULL;
	bench_exit(&b);
}

static char run_path[RALT_RUNS_MAX][512];
static int run_paths;

static void list_run(const char *path)
{
	if (strstr(path, "run-") && !strstr(path, ".bad"))
		strcpy(run_path[run_paths++], path);
}

/*
 * A page that is damaged costs its run, not the count of what there is: on that hang tuning and eviction.  Met by the
 * count itself, or by a query before it.
 */
static void damage_while_counting_ends_no_eviction(void **state)
{
	(void)state;
	for (int query = 0; query < 2; query++) {
		struct bench b;
		struct ralt_stats stats;
		struct prng p = { 7 };

		small(&b);
		b.config.tunables.young_runs = 64;
		bench_open(&b);
		load(&b, &p, 3000);
		assert_int_equal(ralt_close(b.r), 0);
		run_paths = 0;
		bench_files(&b, list_run);
		assert_true(run_paths >= 2);
		damage(run_path[0], 4096 + 100, false);
		b.config.tunables.young_runs = 4;
		bench_open(&b);
		if (query)
			assert_int_equal(ralt_scan(b.r, 0, UINT64_MAX, false, ignore, NULL), 0);
		finish_work(&b);
		assert_true(b.reports[RALT_SET_ASIDE] > 0);
		load(&b, &p, 40000);
		finish_work(&b);
		ralt_stats(b.r, &stats);
		assert_true(stats.tunings > 0);
		assert_true(stats.evictions > 0);
		assert_true(stats.records <= 2 * stats.physical_limit);
		assert_true(hot_known(&b) >= 95);
		bench_exit(&b);
	}
}

static void another_volumes_heat_is_not_used(void **state)
{
	struct bench b;
	struct prng p = { 4 };

	(void)state;
	small(&b);
	bench_open(&b);
	load(&b, &p, 20000);
	assert_int_equal(ralt_close(b.r), 0);
	b.config.volume = 78;
	bench_open(&b);
	assert_int_equal(b.reports[RALT_OTHER_VOLUME], 1);
	assert_int_equal(b.reports[RALT_COLD], 1);
	assert_int_equal(hot_known(&b), 0);
	bench_exit(&b);
}

/* Every byte of a valid manifest, footer and page: a flip is refused, whatever it hits. */
static void every_flipped_byte_is_noticed(void **state)
{
	struct forget_range mem[8], mem2[8];
	struct forget f, g;
	struct manifest m = { .store = 1, .volume = 2, .runs = 3, .hot = { true, 2, 1.5, 7 } }, back;
	uint8_t raw[4096], page[4096];
	size_t bytes;

	(void)state;
	forget_init(&f, mem, 8);
	forget_init(&g, mem2, 8);
	assert_int_equal(forget_add(&f, 10, 20, 1), 0);
	assert_int_equal(forget_add(&f, 15, 30, 2), 0);
	m.run[2] = (struct manifest_run){ 9, 1 };
	bytes = manifest_bytes(m.runs, f.count);
	manifest_encode(&m, &f, raw);
	assert_int_equal(manifest_decode(&back, &g, raw, bytes), 0);
	assert_int_equal(back.run[2].id, 9);
	assert_int_equal(back.hot.rank, 2);
	assert_int_equal(forget_generation(&g, 12), 1);
	assert_int_equal(forget_generation(&g, 16), 2);
	assert_int_equal(forget_generation(&g, 30), 0);
	for (size_t i = 0; i < bytes; i++) {
		raw[i] ^= 1;
		assert_true(manifest_decode(&back, &g, raw, bytes) < 0);
		raw[i] ^= 1;
	}
	assert_int_equal(manifest_decode(&back, &g, raw, bytes - 8), -EBADMSG);
	forget_init(&g, mem2, 1);
	assert_int_equal(manifest_decode(&back, &g, raw, bytes), -ENOSPC);

	struct run_footer footer = { .store = 1, .id = 5, .pages = 3, .page_bytes = 4096 }, again;

	run_footer_encode(&footer, page);
	assert_int_equal(run_footer_decode(&again, page), 0);
	for (size_t i = 0; i < 128; i++) {
		page[i] ^= 1;
		assert_true(run_footer_decode(&again, page) < 0);
		page[i] ^= 1;
	}
	memset(page, 7, sizeof(page));
	page_seal(page, sizeof(page), 5, 2, 100);
	assert_int_equal(page_open(page, sizeof(page), 5, 2), 100);
	assert_int_equal(page_open(page, sizeof(page), 5, 3), -EBADMSG);
	assert_int_equal(page_open(page, sizeof(page), 6, 2), -EBADMSG);
	for (size_t i = 0; i < sizeof(page); i++) {
		page[i] ^= 1;
		assert_int_equal(page_open(page, sizeof(page), 5, 2), -EBADMSG);
		page[i] ^= 1;
	}
}

/* The forgotten ranges against an array of generations. */
static void forgotten_ranges_agree_with_an_array(void **state)
{
	enum { N = 200 };
	struct forget_range mem[600];
	struct forget f;
	uint32_t want[N] = { 0 };
	struct prng p = { 6 };

	(void)state;
	forget_init(&f, mem, 600);
	assert_int_equal(forget_add(&f, 5, 5, 1), -EINVAL);
	for (uint32_t g = 1; g < 400; g++) {
		uint64_t first = prng_below(&p, N), end = first + 1 + prng_below(&p, N - first);
		size_t cursor = 0;

		assert_int_equal(forget_add(&f, first, end, g), 0);
		for (uint64_t i = first; i < end; i++)
			want[i] = g;
		for (uint64_t i = 0; i < N; i++) {
			assert_int_equal(forget_generation(&f, i), want[i]);
			assert_int_equal(forget_covers(&f, &cursor, i, g / 2), want[i] > g / 2);
		}
	}
	forget_purge(&f, 390);
	for (uint64_t i = 0; i < N; i++)
		assert_int_equal(forget_generation(&f, i), want[i] > 390 ? want[i] : 0);
}

/* 20 bits a block: about 1 false positive in 14,000; 4 bits: many. */
static void blooms_err_as_seldom_as_they_should(void **state)
{
	(void)state;
	for (uint32_t bits = 4; bits <= 20; bits += 16) {
		uint32_t count = bloom_words(1000, bits), probes = bloom_probes(bits);
		uint64_t *words = calloc(count, 8);
		int wrong = 0;

		for (uint64_t b = 0; b < 1000; b++)
			bloom_add(words, count, probes, b * 7);
		for (uint64_t b = 0; b < 1000; b++)
			assert_true(bloom_test(words, count, probes, b * 7));
		for (uint64_t b = 0; b < 100000; b++)
			wrong += bloom_test(words, count, probes, 10000000 + b);
		print_message("%u bits: %d of 100000 false positives\n", bits, wrong);
		assert_true(bits == 20 ? wrong < 40 : wrong > 5000);
		free(words);
	}
	assert_false(bloom_test(NULL, 0, 3, 1));
}

/* Those of pages are small: 50 hot blocks, 20 bits each, 12 probes: (1 - e^(-12 * 50 / 1024))^12 = 1 in 16,000. */
static void small_blooms_err_no_more_often(void **state)
{
	uint32_t count = bloom_words(50, 20), probes = bloom_probes(20);
	uint64_t words[16];
	int wrong = 0;

	(void)state;
	assert_int_equal(count, 16);
	for (uint64_t f = 0; f < 500; f++) {
		memset(words, 0, sizeof(words));
		for (uint64_t i = 0; i < 50; i++)
			bloom_add(words, count, probes, f * 100000 + i * 20);
		for (uint64_t i = 0; i < 2000; i++)
			wrong += bloom_test(words, count, probes, f * 100000 + 50000 + i);
	}
	print_message("%d of 1000000 false positives\n", wrong);
	assert_true(wrong < 120);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_flipped_byte_is_noticed),
		cmocka_unit_test(forgotten_ranges_agree_with_an_array),
		cmocka_unit_test(blooms_err_as_seldom_as_they_should),
		cmocka_unit_test(small_blooms_err_no_more_often),
		cmocka_unit_test(another_volumes_heat_is_not_used),
		cmocka_unit_test(kill_9_loses_no_more_than_the_buffer),
		cmocka_unit_test(stopped_again_and_again_it_works_on),
		cmocka_unit_test(damaged_files_are_set_aside),
		cmocka_unit_test(damage_while_counting_ends_no_eviction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
