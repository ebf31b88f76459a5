/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the policy tests share: cmocka in the right order, near-equality, shorthands. */
#ifndef TESTS_POLICY_LIB_H
#define TESTS_POLICY_LIB_H

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define assert_near(a, b, tolerance)						\
	do {									\
		double a_ = (a), b_ = (b);					\
		if (!(fabs(a_ - b_) <= (tolerance)))				\
			fail_msg("%s = %.9g, expected %.9g", #a, a_, b_);	\
	} while (0)

/* Every row: the default is in range, both ends are accepted, a step outside is not. */
#define assert_table_is_sound(table, values)					\
	do {									\
		for (size_t i_ = 0; i_ < (table)->count; i_++) {		\
			const struct tunable *r_ = &(table)->rows[i_];		\
			tunable_defaults(table, values);			\
			assert_int_equal(tunable_check(table, values, NULL), 0);\
			assert_near(tunable_get(r_, values), r_->initial, 0);	\
			assert_true(r_->what[0]);				\
			assert_int_equal(tunable_set(table, values, r_->name, r_->min), 0); \
			assert_int_equal(tunable_set(table, values, r_->name, r_->max), 0); \
			assert_int_equal(tunable_set(table, values, r_->name, r_->max * 2 + 1), -ERANGE); \
			assert_int_equal(tunable_set(table, values, r_->name, r_->min - 1), -ERANGE); \
			assert_int_equal(tunable_set(table, values, r_->name, (double)NAN), -ERANGE); \
			assert_near(tunable_get(r_, values), r_->max, 0);	\
		}								\
		assert_int_equal(tunable_set(table, values, "no such", 1), -ENOENT); \
		tunable_defaults(table, values);				\
	} while (0)

#endif
