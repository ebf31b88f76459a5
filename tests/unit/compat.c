// SPDX-License-Identifier: GPL-2.0-or-later
/* The stand-ins for kernel headers give what the kernel's own give. */
#include <stdarg.h>
#include <setjmp.h>
#include <errno.h>
#include <stdlib.h>
#include <linux/kernel.h>
#include <linux/bitmap.h>
#include <linux/build_bug.h>
#include <linux/crc32c.h>
#include <linux/errno.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/overflow.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <asm/unaligned.h>
#include <cmocka.h>

static_assert(sizeof(u64) == 8);
static_assert(sizeof_field(struct { u32 a; u8 b; }, b) == 1, "with a message too");

static void crc32c_matches_published_values(void **state)
{
	u8 zeros[32] = { 0 }, ones[32];

	(void)state;
	memset(ones, 0xff, sizeof(ones));
	/* RFC 3720 B.4, which inverts before and after */
	assert_int_equal(~crc32c(~0U, zeros, 32), 0x8a9136aa);
	assert_int_equal(~crc32c(~0U, ones, 32), 0x62a8ab43);
	assert_int_equal(~crc32c(~0U, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c(0, zeros, 32), 0);
}

static void crc32c_is_the_same_by_instruction_and_by_table(void **state)
{
	u8 buf[300];
	size_t i, start, len;

	(void)state;
	for (i = 0; i < sizeof(buf); i++)
		buf[i] = i * 7 + 3;
	for (start = 0; start < 9; start++)
		for (len = 0; len < 290 - start; len++)
			assert_int_equal(crc32c(len, buf + start, len), __terrace_crc32c_plain(len, buf + start, len));
	/* in two pieces as in one */
	assert_int_equal(crc32c(crc32c(~0U, buf, 100), buf + 100, 200), crc32c(~0U, buf, 300));
}

static void bitmaps_find_and_count(void **state)
{
	DECLARE_BITMAP(map, 1024);
	unsigned long bit, seen = 0;

	(void)state;
	bitmap_zero(map, 1024);
	assert_true(bitmap_empty(map, 1024));
	for (bit = 0; bit < 1024; bit += 63)
		__set_bit(bit, map);
	for_each_set_bit(bit, map, 1024) {
		assert_int_equal(bit, seen * 63);
		seen++;
	}
	assert_int_equal(seen, 17);
	assert_int_equal(bitmap_weight(map, 1024), 17);
	assert_int_equal(bitmap_weight(map, 64), 2);
	assert_int_equal(bitmap_weight(map, 63), 1);
	assert_int_equal(find_next_zero_bit(map, 1024, 63), 64);
	assert_int_equal(find_next_bit(map, 1024, 1009), 1024);
	assert_int_equal(find_next_bit(map, 100, 64), 100);
	bitmap_fill(map, 1024);
	assert_true(bitmap_full(map, 1024));
	bitmap_clear(map, 1000, 24);
	assert_int_equal(find_first_zero_bit(map, 1024), 1000);
	assert_true(__test_and_clear_bit(5, map));
	assert_false(__test_and_set_bit(5, map));
}

static void arithmetic_rounds_as_the_kernel_does(void **state)
{
	u32 rem, sum;

	(void)state;
	assert_int_equal(DIV_ROUND_UP(9, 4), 3);
	assert_int_equal(round_up(4097U, 4096U), 8192);
	assert_int_equal(round_down(4097U, 4096U), 4096);
	assert_int_equal(ALIGN(1ULL << 40 | 1, 4096), (1ULL << 40) + 4096);
	assert_int_equal(min_t(u32, 3, 5), 3);
	assert_int_equal(clamp(7U, 1U, 5U), 5);
	assert_int_equal(div_u64_rem(1000, 7, &rem), 142);
	assert_int_equal(rem, 6);
	assert_int_equal(mul_u64_u64_div_u64(1ULL << 40, 1ULL << 40, 1ULL << 30), 1ULL << 50);
	assert_true(check_add_overflow(0xffffffffU, 1U, &sum));
	assert_int_equal(ilog2(4096), 12);
	assert_int_equal(order_base_2(4097UL), 13);
	assert_int_equal(roundup_pow_of_two(1025), 2048);
	assert_int_equal(fls(0) + fls(1) + fls64(1ULL << 40), 42);
	assert_int_equal(hweight64(~0ULL), 64);
	assert_int_equal(-EINVAL, -22);
}

static void unaligned_values_are_little_endian(void **state)
{
	u8 buf[16] = { 0 };
	__le64 v = cpu_to_le64(5);

	(void)state;
	put_unaligned_le32(0x01020304, buf + 1);
	assert_int_equal(buf[1], 4);
	assert_int_equal(buf[4], 1);
	put_unaligned_le64(0x0102030405060708ULL, buf + 3);
	assert_int_equal(get_unaligned_le64(buf + 3), 0x0102030405060708ULL);
	assert_int_equal(get_unaligned_le16(buf + 3), 0x0708);
	le64_add_cpu(&v, 7);
	assert_int_equal(le64_to_cpu(v), 12);
	assert_ptr_equal(memchr_inv(buf + 11, 0, 5), NULL);
	assert_ptr_equal(memchr_inv(buf, 0, 16), buf + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc32c_matches_published_values),
		cmocka_unit_test(crc32c_is_the_same_by_instruction_and_by_table),
		cmocka_unit_test(bitmaps_find_and_count),
		cmocka_unit_test(arithmetic_rounds_as_the_kernel_does),
		cmocka_unit_test(unaligned_values_are_little_endian),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
