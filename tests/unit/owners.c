// SPDX-License-Identifier: GPL-2.0-or-later
/* Owner blocks and tables: true only where they were written, whole and possible. */
#include "core_lib.h"

static const u8 uuid[TERRACE_UUID_BYTES] = "volume-uuid-0123";
static const u8 other_uuid[TERRACE_UUID_BYTES] = "volume-uuid-0124";

static u8 block[TERRACE_BLOCK_BYTES] __aligned(8);
static struct tr_owner owner[TERRACE_OWNERS_PER_BLOCK];
static u64 table_owner[TERRACE_TABLE_OWNERS];

/* on tier 1, in the third shelf, its block 300 */
#define PLACE	tr_place(1, 2 * TERRACE_CHUNK_BLOCKS + 300)

static const struct tr_owners good = {
	.record_seq = 77, .shelf_id = 5, .prev_offset = 40, .nr = 250,
};

static const struct tr_table good_table = {
	.record_seq = 78, .shelf_id = 5, .first_offset = 504, .nr = 504,
};

static void encode_owners(struct tr_owners *head)
{
	u32 i;

	for (i = 0; i < TERRACE_OWNERS_PER_BLOCK; i++) {
		owner[i].block = i % 7 ? 1000ull * i : TERRACE_NO_OWNER;
		owner[i].offset = 299 - i;
		owner[i].crc = i * 3;
	}
	memset(block, 0xee, sizeof(block));
	tr_owners_encode(block, head, owner, uuid);
}

static void owners_survive_the_round_trip(void **state)
{
	struct tr_owners out, in = good;
	struct tr_owner one;
	u32 i;

	(void)state;
	in.place = PLACE;
	encode_owners(&in);
	assert_int_equal(tr_owners_decode(block, &out, PLACE, uuid), 0);
	assert_int_equal(out.place, in.place);
	assert_int_equal(out.record_seq, in.record_seq);
	assert_int_equal(out.shelf_id, in.shelf_id);
	assert_int_equal(out.prev_offset, in.prev_offset);
	assert_int_equal(out.nr, in.nr);
	for (i = 0; i < in.nr; i++) {
		tr_owners_get(block, i, &one);
		assert_int_equal(one.block, owner[i].block);
		assert_int_equal(one.offset, owner[i].offset);
		assert_int_equal(one.crc, owner[i].crc);
	}
}

static void a_copy_elsewhere_is_no_owner_block(void **state)
{
	struct tr_owners out, in = good;
	struct tr_table table_out, table = good_table;

	(void)state;
	in.place = PLACE;
	encode_owners(&in);
	assert_int_equal(tr_owners_decode(block, &out, tr_place_add(PLACE, 1), uuid), -ESTALE);
	assert_int_equal(tr_owners_decode(block, &out, PLACE + 1, uuid), -ESTALE);
	assert_int_equal(tr_owners_decode(block, &out, PLACE, other_uuid), -ESTALE);
	assert_int_equal(tr_table_decode(block, &table_out, table_owner, PLACE, uuid), -ENODATA);
	table.place = PLACE;
	tr_table_encode(block, &table, table_owner, uuid);
	assert_int_equal(tr_table_decode(block, &table_out, table_owner, PLACE + 8, uuid), -ESTALE);
	assert_int_equal(tr_table_decode(block, &table_out, table_owner, PLACE, other_uuid), -ESTALE);
	assert_int_equal(tr_owners_decode(block, &out, PLACE, uuid), -ENODATA);
}

static void every_flipped_byte_is_seen(void **state)
{
	struct tr_owners out, in = good;
	struct tr_table table_out, table = good_table;
	u32 i;

	(void)state;
	in.place = PLACE;
	table.place = PLACE;
	encode_owners(&in);
	for (i = 0; i < sizeof(block); i++) {
		block[i] ^= 1 << i % 8;
		assert_int_equal(tr_owners_decode(block, &out, PLACE, uuid), i < 4 ? -ENODATA : -EBADMSG);
		block[i] ^= 1 << i % 8;
	}
	tr_table_encode(block, &table, table_owner, uuid);
	for (i = 0; i < sizeof(block); i++) {
		block[i] ^= 1 << i % 8;
		assert_int_equal(tr_table_decode(block, &table_out, table_owner, PLACE, uuid),
				 i < 4 ? -ENODATA : -EBADMSG);
		block[i] ^= 1 << i % 8;
	}
}

static int decode_changed(u32 at, u32 bytes, u64 value, bool is_table)
{
	struct tr_owners out, in = good;
	struct tr_table table_out, table = good_table;
	__le64 le = cpu_to_le64(value);
	__le32 crc;

	in.place = PLACE;
	table.place = PLACE;
	if (is_table)
		tr_table_encode(block, &table, table_owner, uuid);
	else
		encode_owners(&in);
	memcpy(block + at, &le, bytes);
	crc = cpu_to_le32(tr_block_crc(block, sizeof(block), 4));
	memcpy(block + 4, &crc, sizeof(crc));
	return is_table ? tr_table_decode(block, &table_out, table_owner, PLACE, uuid) :
			  tr_owners_decode(block, &out, PLACE, uuid);
}

static void impossible_numbers_are_refused(void **state)
{
	(void)state;
	assert_int_equal(decode_changed(52, 4, 299, false), 0);
	assert_int_equal(decode_changed(52, 4, ~0ull, false), 0); /* no owner block before */
	assert_int_equal(decode_changed(52, 4, 300, false), -EUCLEAN); /* itself */
	assert_int_equal(decode_changed(48, 2, 251, false), -EUCLEAN);
	assert_int_equal(decode_changed(48, 2, 0xffff, false), -EUCLEAN);
	assert_int_equal(decode_changed(96 + 8, 4, 299, false), 0);
	assert_int_equal(decode_changed(96 + 8, 4, 300, false), -EUCLEAN); /* not before it */
	assert_int_equal(decode_changed(96 + 249 * 16 + 8, 4, ~0ull, false), -EUCLEAN);
	assert_int_equal(decode_changed(52, 2, 505, true), -EUCLEAN);
	assert_int_equal(decode_changed(48, 4, TERRACE_CHUNK_BLOCKS - 504, true), 0);
	assert_int_equal(decode_changed(48, 4, TERRACE_CHUNK_BLOCKS - 503, true), -EUCLEAN);
	assert_int_equal(decode_changed(48, 4, ~0ull, true), -EUCLEAN);
}

static void tables_survive_the_round_trip(void **state)
{
	u64 in_owner[TERRACE_TABLE_OWNERS], *out_owner = room_for(504 * sizeof(u64));
	struct tr_table out, in = good_table;
	u32 i, nr;

	(void)state;
	in.place = PLACE;
	for (i = 0; i < TERRACE_TABLE_OWNERS; i++)
		in_owner[i] = i % 3 ? i : TERRACE_NO_OWNER;
	for (nr = 0; nr <= 504; nr += 252) {
		in.nr = nr;
		memset(block, 0xee, sizeof(block));
		tr_table_encode(block, &in, in_owner, uuid);
		assert_int_equal(tr_table_decode(block, &out, out_owner, PLACE, uuid), 0);
		assert_int_equal(out.place, in.place);
		assert_int_equal(out.record_seq, in.record_seq);
		assert_int_equal(out.shelf_id, in.shelf_id);
		assert_int_equal(out.first_offset, in.first_offset);
		assert_int_equal(out.nr, nr);
		assert_memory_equal(in_owner, out_owner, nr * sizeof(u64));
	}
	free(out_owner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owners_survive_the_round_trip),
		cmocka_unit_test(a_copy_elsewhere_is_no_owner_block),
		cmocka_unit_test(every_flipped_byte_is_seen),
		cmocka_unit_test(impossible_numbers_are_refused),
		cmocka_unit_test(tables_survive_the_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
