// SPDX-License-Identifier: GPL-2.0-or-later
/* Which devices are older copies: every cut while labels get a stamp, devices that were away, copies put back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "core/format.h"

#define DEVICES	4	/* three tiers and a metadata device */

static struct tr_label label[DEVICES];

static u32 nr_old(void)
{
	struct tr_stamps stamps = { 0 };
	u32 old = 0;

	for (u32 i = 0; i < DEVICES; i++)
		tr_stamps_add(&stamps, &label[i]);
	for (u32 i = 0; i < DEVICES; i++)
		old += tr_stamp_is_old(&stamps, &label[i]);
	return old;
}

/* As kmod/stamp.c does it, with the devices in @there, for @steps labels. Returns how many it wrote. */
static u32 activate(u32 there, u32 steps)
{
	struct tr_stamps stamps = { 0 };
	u32 done = 0;
	u64 number;

	for (u32 i = 0; i < DEVICES; i++)
		if (there >> i & 1)
			tr_stamps_add(&stamps, &label[i]);
	number = stamps.most + 1;
	for (u32 i = 0; i < DEVICES; i++) {
		if (!(there >> i & 1) || done == steps)
			continue;
		label[i].stamp = number;
		stamps.last[tr_stamp_slot(&label[i])] = number;
		done++;
	}
	for (u32 i = 0; i < DEVICES; i++) {
		if (!(there >> i & 1) || done == steps)
			continue;
		memcpy(label[i].stamps, stamps.last, sizeof(stamps.last));
		done++;
	}
	return done;
}

static void begin(void)
{
	memset(label, 0, sizeof(label));
	for (u32 i = 0; i < DEVICES; i++)
		label[i].tier_index = i < DEVICES - 1 ? i : TERRACE_META_DEVICE;
}

static void no_cut_makes_a_device_old(void **state)
{
	(void)state;
	for (u32 first = 0; first <= 2 * DEVICES; first++) {
		for (u32 second = 0; second <= 2 * DEVICES; second++) {
			begin();
			activate(0xf, ~0u);
			activate(0xf, first);
			assert_int_equal(nr_old(), 0);
			activate(0xf, second);
			assert_int_equal(nr_old(), 0);
			activate(0xf, ~0u);
			assert_int_equal(nr_old(), 0);
		}
	}
}

static void every_copy_put_back_is_old(void **state)
{
	struct tr_label before;

	(void)state;
	for (u32 i = 0; i < DEVICES; i++) {
		for (u32 cut = 0; cut <= 2 * DEVICES; cut++) {
			begin();
			activate(0xf, ~0u);
			activate(0xf, cut);	/* the copy is of what a cut left */
			before = label[i];
			activate(0xf, ~0u);
			label[i] = before;
			assert_int_equal(nr_old(), 1);
		}
	}
}

static void who_was_away_is_not_old(void **state)
{
	(void)state;
	for (u32 there = 1; there < 0xf; there++) {
		begin();
		activate(0xf, ~0u);
		activate(there, ~0u);
		activate(there, 3);
		assert_int_equal(nr_old(), 0);
		activate(0xf, ~0u);
		assert_int_equal(nr_old(), 0);
	}
}

static void without_a_stamp_it_is_taken(void **state)
{
	(void)state;
	begin();
	activate(0xf, ~0u);
	label[1].stamp = 0;
	memset(label[1].stamps, 0, sizeof(label[1].stamps));
	assert_int_equal(nr_old(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_cut_makes_a_device_old),
		cmocka_unit_test(every_copy_put_back_is_old),
		cmocka_unit_test(who_was_away_is_not_old),
		cmocka_unit_test(without_a_stamp_it_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
