// SPDX-License-Identifier: GPL-2.0-or-later
/* Samples: what random, repetitive and mixed data gain, read from a file that stands for the volume. */
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

static void reads_what_it_was_asked_for(void **state)
{
	static char data[BYTES];
	char path[] = "/var/tmp/sampler-XXXXXX";
	int fd = mkstemp(path);
	struct sampler *s;
	struct port_gain g[8];
	uint64_t blocks[PORT_SAMPLE_BLOCKS];
	struct prng p = { 1 };
	int got = 0, err;

	(void)state;
	assert_true(fd >= 0);
	fill(data, 16, &p);
	assert_int_equal(pwrite(fd, data, BYTES, 0), BYTES);
	fill(data, 0, &p);
	assert_int_equal(pwrite(fd, data, BYTES, BYTES), BYTES);
	err = sampler_open(&s, path, -1);
	if (err) {
		unlink(path);
		print_message("not here: %s\n", strerror(-err));	/* no io_uring */
		skip();
	}
	/* Regions 1 and 2: random, repetitive; 3: beyond the end. */
	for (uint64_t region = 1; region <= 3; region++) {
		for (uint64_t i = 0; i < PORT_SAMPLE_BLOCKS; i++)
			blocks[i] = (region - 1) * PORT_SAMPLE_BLOCKS + i;
		err = sampler_ask(s, region, blocks);
		if (err == -EINVAL) {	/* a file system without O_DIRECT */
			sampler_close(s);
			close(fd);
			unlink(path);
			skip();
		}
		assert_int_equal(err, 0);
	}
	for (int tries = 0; got < 3 && tries < 100000; tries++) {
		int n = sampler_gains(s, &g[got], 8 - (uint32_t)got);

		assert_true(n >= 0);
		got += n;
		usleep(n ? 0 : 100);
	}
	assert_int_equal(got, 3);
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
	close(fd);
	unlink(path);
	assert_int_equal(sampler_open(&s, path, -1), 0);
	assert_int_equal(sampler_ask(s, 2, blocks), -ENOENT);
	sampler_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measures),
		cmocka_unit_test(reads_what_it_was_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
