// SPDX-License-Identifier: GPL-2.0-or-later
/* Codec and cluster: by temperature, by sampled gain, nothing compressed in vain. */
#include "policy_lib.h"

#include "decide/codec.h"

static void expect(const struct codec_tunables *t, double coldness, double lz4, double z4, double z16,
		   enum codec codec, uint32_t cluster)
{
	struct codec_sample s = { lz4, z4, z16 };
	struct codec_choice c = codec_choose(t, coldness, &s);

	assert_int_equal(c.codec, codec);
	assert_int_equal(c.cluster, cluster);
}

static void by_temperature_and_gain(void **state)
{
	struct codec_tunables t;

	(void)state;
	tunable_defaults(&codec_tunable_table, &t);
	expect(&t, 0.5, 2.0, 2.6, 3.0, CODEC_LZ4, 1);	/* lukewarm: zstd's gain is no reason */
	expect(&t, 1.0, 2.0, 2.6, 3.0, CODEC_ZSTD, 16);
	expect(&t, 1.0, 2.0, 2.6, 2.7, CODEC_ZSTD, 4);	/* 2.7 < 2.6 * 1.08 */
	expect(&t, 1.0, 2.0, 2.05, 2.06, CODEC_LZ4, 1);	/* 2.05 < 2.0 * 1.05 */
	expect(&t, 1.0, 1.0, 1.02, 1.03, CODEC_NONE, 1);
	expect(&t, 0.5, 1.05, 2.0, 2.0, CODEC_NONE, 1);
	expect(&t, 1.0, 0, 0, 0, CODEC_NONE, 1);	/* nothing sampled */
}

static void each_tunable_changes_the_outcome(void **state)
{
	struct codec_tunables t;
	struct codec_sample s = { 2.0, 2.6, 2.7 };

	(void)state;
	assert_table_is_sound(&codec_tunable_table, &t);
	t.cluster_gain = 1.03;
	expect(&t, 1.0, 2.0, 2.6, 2.7, CODEC_ZSTD, 16);
	t.frozen = 0.4;
	expect(&t, 0.5, 2.0, 2.6, 2.7, CODEC_ZSTD, 16);
	t.most_cluster = 15;
	expect(&t, 0.5, 2.0, 2.6, 2.7, CODEC_ZSTD, 4);
	t.most_cluster = 3;
	expect(&t, 0.5, 2.0, 2.6, 2.7, CODEC_ZSTD, 1);
	t.frozen_level = 9;
	assert_int_equal(codec_choose(&t, 1, &s).level, 9);
	t.zstd_gain = 1.5;
	expect(&t, 0.5, 2.0, 2.6, 2.7, CODEC_LZ4, 1);
	assert_int_equal(codec_choose(&t, 0, &s).level, 1);
	t.acceleration = 8;
	assert_int_equal(codec_choose(&t, 0, &s).level, 8);
	t.min_gain = 2.5;
	expect(&t, 0.5, 2.0, 2.6, 2.7, CODEC_NONE, 1);
	assert_int_equal(codec_choose(&t, 0.5, &s).level, 0);	/* or the kernel refuses the order */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_temperature_and_gain),
		cmocka_unit_test(each_tunable_changes_the_outcome),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
