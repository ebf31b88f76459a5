/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the tests of kmod/core share: cmocka in the right order, random numbers, damage. */
#ifndef TESTS_CORE_LIB_H
#define TESTS_CORE_LIB_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/bitops.h>
#include <linux/kernel.h>
#include <asm/byteorder.h>
#include <cmocka.h>

#include "format.h"
#include "journal_block.h"
#include "leaf.h"
#include "replay.h"

static inline u64 random_bits(u64 *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed * 0x2545f4914f6cdd1dull;
}

static inline u32 random_below(u64 *seed, u32 n)
{
	return (random_bits(seed) >> 32) % n;
}

/* Memory of exactly @bytes, so that ASan sees every step past its end. */
static inline void *room_for(size_t bytes)
{
	void *p = malloc(bytes);

	assert_non_null(p);
	memset(p, 0xa5, bytes);
	return p;
}

/* A leaf that only the test uses, with arrays of exactly @cap places. */
static inline void leaf_room(struct tr_leaf *leaf, u32 cap, bool high)
{
	u32 *low = leaf->low;
	u8 *old = leaf->high;

	assert_int_equal(tr_leaf_replace(leaf, room_for(cap * sizeof(u32)),
					 high ? room_for(cap) : NULL, cap), 0);
	free(low);
	free(old);
}

static inline void leaf_free(struct tr_leaf *leaf)
{
	free(leaf->low);
	free(leaf->high);
	tr_leaf_init(leaf);
}

static inline void *read_whole(const char *path, size_t *bytes)
{
	FILE *f = fopen(path, "rb");
	char *text;

	if (!f)
		fail_msg("%s: %s", path, strerror(errno));
	fseek(f, 0, SEEK_END);
	*bytes = ftell(f);
	rewind(f);
	text = room_for(*bytes + 1);
	assert_int_equal(fread(text, 1, *bytes, f), *bytes);
	text[*bytes] = 0;
	fclose(f);
	return text;
}

#endif
