// SPDX-License-Identifier: GPL-2.0-or-later
/* What is known of how the volume shrinks: from samples, for the orders that have none. */
#include <errno.h>

#include "policy_lib.h"

#include "loop/engine.h"

static struct engine e;
static struct port_gain answer;

static int one_answer(struct port *port, struct port_gain *out, uint32_t most)
{
	(void)port;
	assert_true(most > 0);
	*out = answer;
	return 1;
}

static const struct port_ops ops = { .gains = one_answer };
static struct port port = { .ops = &ops };

static int new_engine(void **state)
{
	(void)state;
	memset(&e, 0, sizeof(e));
	tuning_defaults(&e.c.tuning);
	e.port = &port;
	e.state.nr_tiers = 2;
	e.down = 1;
	e.state.tier[1].kind = TERRACE_KIND_SHELVES;
	orders_init(&e);
	return 0;
}

static void learn(double gain)
{
	const struct codec_sample s = { gain, 2 * gain, 3 * gain };

	orders_learn_gain(&e, &s);
}

static void assert_known(double gain)
{
	assert_near(e.gain.lz4, gain, 1e-9);
	assert_near(e.gain.zstd_4, 2 * gain, 1e-9);
	assert_near(e.gain.zstd_16, 3 * gain, 1e-9);
}

/* The guess of the start counts for nothing beside one; ten count alike; of a hundred the last ones more. */
static void the_first_samples_count_alike(void **state)
{
	(void)state;
	learn(1);
	assert_known(1);
	learn(3);
	assert_known(2);
	for (int i = 0; i < 8; i++)
		learn(i % 2 ? 1 : 3);
	assert_known(2);
	learn(12);
	assert_known(3);
	for (int i = 0; i < 100; i++)
		learn(1);
	assert_true(e.gain.lz4 < 1.001);
}

/* While samples come nothing is tried; without them once in 64 decisions, as if nothing were known. */
static void no_codec_is_tried_while_samples_come(void **state)
{
	uint32_t tried = 0;

	(void)state;
	for (e.decisions = 0; e.decisions < 1000; e.decisions++) {
		const struct codec_sample none = { 1, 1, 1 };

		if (e.decisions % 50 == 0)
			orders_learn_gain(&e, &none);
		assert_int_equal(orders_codec(&e, 0.5, NULL).codec, CODEC_NONE);
		assert_int_equal(orders_codec(&e, 1, NULL).codec, CODEC_NONE);
	}
	for (; e.decisions < 1000 + 640; e.decisions++)
		tried += orders_codec(&e, 0.5, NULL).codec == CODEC_LZ4;
	assert_true(tried >= 9 && tried <= 10);
}

/* Of a volume that begins to hold what does not shrink: after one sample more, and by results of appends. */
static void the_weight_of_a_sample_changes_the_outcome(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++)
		learn(3);
	learn(1);
	assert_known(2.8);
	e.c.tuning.codec.gain_weight = 0.5;
	learn(1);
	assert_known(1.9);
	/* the first count alike, so many as weigh as much */
	e.gain_samples = 0;
	learn(1);
	learn(3);
	assert_known(2);
	learn(4);
	assert_known(3);
}

/* Tried so often, where no samples come. */
static void another_try_comes_when_it_is_said(void **state)
{
	static const uint32_t again[2] = { 64, 16 };

	(void)state;
	for (int often = 0; often < 2; often++) {
		const struct codec_sample none = { 1, 1, 1 };
		uint32_t tried = 0;

		e.c.tuning.codec.try_again = again[often];
		e.decisions = 0;
		orders_learn_gain(&e, &none);
		for (e.decisions = 0; e.decisions < 640; e.decisions++)
			tried += orders_codec(&e, 0.5, NULL).codec == CODEC_LZ4;
		assert_int_equal(tried, 640 / again[often] - 1);
		new_engine(state);
	}
}

/* One order waits for a sample. */
static void one_waits(void)
{
	e.gains[0] = (struct gain_wait){ .state = GAIN_ASKED, .choice.view.region = 5 };
	e.gains_waiting = 1;
	e.stats.samples = 1;
}

static void what_could_not_be_read_teaches_nothing(void **state)
{
	(void)state;
	learn(2);
	one_waits();
	answer = (struct port_gain){ .region = 5, .error = -EIO };
	gains_tick(&e);
	assert_int_equal(e.gains[0].state, GAIN_THERE);
	assert_false(e.gains[0].known);
	assert_known(2);
	/* Nor what comes when nobody waits for it. */
	answer = (struct port_gain){ .region = 6, .lz4 = 4, .zstd_4 = 8, .zstd_16 = 12 };
	gains_tick(&e);
	assert_known(2);
	one_waits();
	answer.region = 5;
	gains_tick(&e);
	assert_true(e.gains[0].known);
	assert_known(3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_first_samples_count_alike, new_engine),
		cmocka_unit_test_setup(no_codec_is_tried_while_samples_come, new_engine),
		cmocka_unit_test_setup(the_weight_of_a_sample_changes_the_outcome, new_engine),
		cmocka_unit_test_setup(another_try_comes_when_it_is_said, new_engine),
		cmocka_unit_test_setup(what_could_not_be_read_teaches_nothing, new_engine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
