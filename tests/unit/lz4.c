// SPDX-License-Identifier: GPL-2.0-or-later
/* What liblz4 compresses is decoded, in one block or several that continue each other; anything else harms nothing. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <lz4.h>

#include "lz4_decode.h"

#define MOST	65536
#define GUARD	64

static u8 data[MOST], stored[2 * MOST], out[GUARD + MOST + GUARD];
static u64 seed = 88172645463325252ull;

static u32 rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed >> 20;
}

/* Runs of every length, at every distance: noise, repeated bytes, copies of what was before. */
static void fill(u32 bytes, u32 longest)
{
	u32 at = 0, n, from, k;

	while (at < bytes) {
		n = rnd() % (rnd() % 4 ? 20 : longest) + 1;
		if (n > bytes - at)
			n = bytes - at;
		from = at && rnd() % 3 ? at - 1 - rnd() % (at < 40 || rnd() % 2 ? at : 40) : at;
		for (k = 0; k < n; k++)
			data[at + k] = from < at ? data[from + k] : rnd();
		at += n;
	}
}

static void guarded(void)
{
	memset(out, 0x5a, sizeof(out));
}

static void check_guards(u32 bytes)
{
	u32 k;

	for (k = 0; k < GUARD; k++) {
		assert_int_equal(out[k], 0x5a);
		assert_int_equal(out[GUARD + bytes + k], 0x5a);
	}
}

static void one_block(void **state)
{
	u32 turn, bytes, n;

	(void)state;
	for (turn = 0; turn < 3000; turn++) {
		bytes = turn % 3 ? rnd() % 5000 + 1 : 4096;
		fill(bytes, turn % 2 ? 50 : 3000);
		n = LZ4_compress_default((char *)data, (char *)stored, bytes, sizeof(stored));
		guarded();
		assert_int_equal(tr_lz4_decode(stored, n, out + GUARD, 0, bytes), 0);
		assert_memory_equal(out + GUARD, data, bytes);
		check_guards(bytes);
		/* exactly so long */
		assert_int_equal(tr_lz4_decode(stored, n, out + GUARD, 0, bytes + 1), -EBADMSG);
		guarded();
		assert_int_equal(tr_lz4_decode(stored, n, out + GUARD, 0, bytes - 1), -EBADMSG);
		check_guards(bytes - 1);
		assert_int_equal(tr_lz4_decode(stored, n - 1, out + GUARD, 0, bytes), -EBADMSG);
	}
}

static void blocks_that_continue(void **state)
{
	static const u32 end[] = { 4096, 16384, 65536 };
	u32 turn, k, from, n;
	LZ4_stream_t lz4;

	(void)state;
	for (turn = 0; turn < 100; turn++) {
		fill(MOST, 4000);
		LZ4_initStream(&lz4, sizeof(lz4));
		guarded();
		for (k = from = 0; k < 3; from = end[k++]) {
			n = LZ4_compress_fast_continue(&lz4, (char *)data + from, (char *)stored, end[k] - from,
						       sizeof(stored), 1);
			assert_int_equal(tr_lz4_decode(stored, n, out + GUARD, from, end[k] - from), 0);
			assert_memory_equal(out + GUARD, data, end[k]);
		}
		check_guards(MOST);
	}
}

/* Damage is told, or decodes to something; nothing outside is touched. */
static void damaged(void **state)
{
	u32 turn, n, bytes = 4096;

	(void)state;
	for (turn = 0; turn < 5000; turn++) {
		if (turn % 100 == 0)
			fill(bytes, 600);
		n = LZ4_compress_default((char *)data, (char *)stored, bytes, sizeof(stored));
		stored[rnd() % n] ^= 1 << rnd() % 8;
		if (turn % 2)
			stored[rnd() % n] = 255;
		guarded();
		tr_lz4_decode(stored, n, out + GUARD, 0, bytes);
		check_guards(bytes);
	}
	assert_int_equal(tr_lz4_decode(stored, 0, out + GUARD, 0, bytes), -EBADMSG);
	assert_int_equal(tr_lz4_decode((const u8 *)"\x10x\x00\x00\x00", 5, out + GUARD, 0, 5), -EBADMSG);	/* distance 0 */
	assert_int_equal(tr_lz4_decode((const u8 *)"\x10x\x02\x00\x00", 5, out + GUARD, 0, 5), -EBADMSG);	/* before the start */
	assert_int_equal(tr_lz4_decode((const u8 *)"\x10x\x01\x00\x00", 5, out + GUARD, 0, 5), 0);
	assert_memory_equal(out + GUARD, "xxxxx", 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_block),
		cmocka_unit_test(blocks_that_continue),
		cmocka_unit_test(damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
