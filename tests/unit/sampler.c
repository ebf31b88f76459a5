// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Samples: what random, repetitive and mixed data gain, read from a file that stands for the volume.
 */
#include <fcntl.h>
#include <unistd.h>

#include "policy_lib.h"

#include "act/sampler.h"
#include "decide/codec.h"
#include "decide/prng.h"

#define BYTES	(PORT_SAMPLE_BLOCKS * TERRACE_BLOCK_BYTES)

static void fill(char *to, size_t random_of_16, struct prng *p)
{
	for (size_t i = 0; i < BYTES; i++)
		to[i] = i % 16 < random_of_16 ? (char)prng_next(p) : (char)(i / 4096);
}

static struct codec_choice chosen(const struct port_gain *g, double coldness)
{
	struct codec_sample s = { g->lz4, g->zstd_4, g->zstd_16 };
	struct codec_tunables t;

	tunable_defaults(&codec_tunable_table, &t);
	return codec_choose(&t, coldness, &s);
}

static void measures(void **state)
{
	static char data[BYTES];
	struct prng p = { 1 };
	struct port_gain g;

	(void)state;
	fill(data, 16, &p);
	sampler_measure(data, &g);
	assert_near(g.lz4, 1, 1e-6);
	assert_true(g.zstd_4 < 1.02 && g.zstd_16 < 1.02);
	assert_int_equal(chosen(&g, 0).codec, CODEC_NONE);
	assert_int_equal(chosen(&g, 1).codec, CODEC_NONE);
	fill(data, 0, &p);
	sampler_measure(data, &g);
	assert_true(g.lz4 > 20 && g.zstd_4 > 20 && g.zstd_16 > g.zstd_4);
	assert_int_equal(chosen(&g, 0).codec, CODEC_LZ4);
	assert_int_equal(chosen(&g, 1).codec, CODEC_ZSTD);
	/* No repetitions, few values: nothing for LZ4, something for zstd. */
	for (size_t i = 0; i < BYTES; i++)
		data[i] = (char)(prng_next(&p) % 16);
	sampler_measure(data, &g);
	assert_true(g.lz4 < 1.2 && g.zstd_4 > 1.6);
	assert_int_equal(chosen(&g, 1).codec, CODEC_ZSTD);
}

/* Nor does LZ4 find anything where only the first quarter has few values, or the last: zstd is asked all the same. */
static void what_shrinks_at_either_end_is_found(void **state)
{
	static char data[BYTES];
	struct prng p = { 1 };

	(void)state;
	for (size_t from = 0; from < BYTES; from += BYTES * 3 / 4) {
		struct port_gain g;

		fill(data, 16, &p);
		for (size_t i = 0; i < BYTES / 4; i++)
			data[from + i] &= 0x3f;
		sampler_measure(data, &g);
		assert_near(g.lz4, 1, 1e-6);
		assert_true(g.zstd_4 > 1.04);
	}
}

/* ---- a file for the volume ------------------------------------------------------------------- */

static char path[] = "/var/tmp/sampler-XXXXXX";
static int file;

/* Two samples' worth of blocks: random, repetitive. */
static int make_file(void **state)
{
	static char data[BYTES];
	struct prng p = { 1 };

	(void)state;
	strcpy(path + sizeof(path) - 7, "XXXXXX");
	file = mkstemp(path);
	if (file < 0)
		return -1;
	fill(data, 16, &p);
	assert_int_equal(pwrite(file, data, BYTES, 0), BYTES);
	fill(data, 0, &p);
	assert_int_equal(pwrite(file, data, BYTES, BYTES), BYTES);
	return 0;
}

static int remove_file(void **state)
{
	(void)state;
	close(file);
	unlink(path);
	return 0;
}

/* Without io_uring, or on a file system without O_DIRECT, there is nothing to be seen. */
static struct sampler *open_or_skip(void)
{
	int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC), err;
	struct sampler *s;

	err = fd < 0 ? -errno : sampler_open(&s, path);
	if (fd >= 0)
		close(fd);
	if (err) {
		print_message("not here: %s\n", strerror(-err));
		skip();
	}
	return s;
}

/* The first @most that come; their number. */
static uint32_t wait_for(struct sampler *s, struct port_gain *g, uint32_t most)
{
	uint32_t got = 0;

	for (int tries = 0; got < most && tries < 100000; tries++) {
		int n = sampler_gains(s, g + got, most - got);

		assert_true(n >= 0);
		got += (uint32_t)n;
		usleep(n ? 0 : 100);
	}
	return got;
}

static void row(uint64_t *blocks, uint64_t first)
{
	for (uint64_t i = 0; i < PORT_SAMPLE_BLOCKS; i++)
		blocks[i] = first + i;
}

static void reads_what_it_was_asked_for(void **state)
{
	struct sampler *s = open_or_skip();
	struct port_gain g[3];
	uint64_t blocks[PORT_SAMPLE_BLOCKS];

	(void)state;
	/* Regions 1 and 2: random, repetitive; 3: beyond the end. */
	for (uint64_t region = 1; region <= 3; region++) {
		row(blocks, (region - 1) * PORT_SAMPLE_BLOCKS);
		assert_int_equal(sampler_ask(s, region, blocks), 0);
	}
	assert_int_equal(wait_for(s, g, 3), 3);
	for (int i = 0; i < 3; i++) {
		assert_true((g[i].region == 3) == (g[i].error != 0));
		if (g[i].region == 1)
			assert_near(g[i].lz4, 1, 1e-6);
		if (g[i].region == 2)
			assert_true(g[i].lz4 > 20);
	}
	/* As many as there are places, then busy; closed with reads under way. */
	for (int i = 0; i < 8; i++)
		assert_int_equal(sampler_ask(s, 2, blocks), 0);
	assert_int_equal(sampler_ask(s, 2, blocks), -EBUSY);
	sampler_close(s);
}

static void a_disk_that_has_gone_is_told(void **state)
{
	struct sampler *s = open_or_skip();
	uint64_t blocks[PORT_SAMPLE_BLOCKS];

	(void)state;
	unlink(path);
	row(blocks, 0);
	assert_int_equal(sampler_ask(s, 2, blocks), -ENOENT);
	sampler_close(s);
}

int main(void)
{
#define ON_FILE(test)	cmocka_unit_test_setup_teardown(test, make_file, remove_file)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measures),
		cmocka_unit_test(what_shrinks_at_either_end_is_found),
		ON_FILE(reads_what_it_was_asked_for),
		ON_FILE(a_disk_that_has_gone_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
