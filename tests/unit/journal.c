// SPDX-License-Identifier: GPL-2.0-or-later
/* The journal ends where a crash made it end, and nothing behind a hole comes back. */
#include "core_lib.h"

#define RING	16

static const u8 uuid[TERRACE_UUID_BYTES] = "volume-uuid-0123";
static const u8 other_uuid[TERRACE_UUID_BYTES] = "volume-uuid-0124";

static u8 ring[RING][TERRACE_BLOCK_BYTES] __aligned(8);
static u8 block[TERRACE_BLOCK_BYTES] __aligned(8);

static const struct tr_journal_link empty = { .block_seq = 5, .record_seq = 1, .nonce = 0 };

static const struct tr_record good_record = {
	.type = TERRACE_RECORD_MAP, .nr = 4, .aux = 9, .block = 1024, .new = 800, .old = 1600,
};

/* Writes the next block to the ring as activation @nonce would. */
static void write_block(struct tr_journal_link *link, u64 nonce, u32 nr)
{
	u8 *at = ring[link->block_seq % RING];
	struct tr_record record = good_record;
	u32 i;

	memset(at, 0xee, TERRACE_BLOCK_BYTES);
	tr_jblock_start(at, link, nonce, uuid);
	for (i = 0; i < nr; i++) {
		record.new = tr_place(1, link->record_seq + i);
		assert_int_equal(tr_jblock_append(at, &record), i + 1);
	}
	tr_jblock_seal(at, link);
}

/* Scans from @link on; moves it to the end. Returns the number of blocks. */
static u32 scan(struct tr_journal_link *link)
{
	u32 nr = 0;

	while (!tr_jblock_check(ring[link->block_seq % RING], link, uuid))
		nr++;
	return nr;
}

static int clear_ring(void **state)
{
	(void)state;
	memset(ring, 0, sizeof(ring));
	return 0;
}

static void blocks_hold_their_records(void **state)
{
	struct tr_journal_link link = { .block_seq = 3, .record_seq = 100, .nonce = 8, .crc = 9 };
	struct tr_journal_link at = link;
	struct tr_record record, in[TERRACE_RECORDS_PER_BLOCK];
	u64 rnd = 4;
	u32 i;

	(void)state;
	tr_jblock_start(block, &link, 8, uuid);
	for (i = 0; i < TERRACE_RECORDS_PER_BLOCK; i++) {
		in[i] = good_record;
		in[i].aux = random_bits(&rnd);
		in[i].nr = 1 + random_below(&rnd, 1024);
		in[i].new = tr_place(random_below(&rnd, 8), random_bits(&rnd) >> 30);
		tr_jblock_append(block, &in[i]);
	}
	tr_jblock_seal(block, &link);
	assert_int_equal(link.record_seq, 226);
	assert_int_equal(link.block_seq, 4);
	assert_int_equal(tr_jblock_nr(block), 126);
	assert_int_equal(tr_jblock_first_record(block), 100);
	assert_int_equal(tr_jblock_check(block, &at, uuid), 0);
	assert_int_equal(at.block_seq, link.block_seq);
	assert_int_equal(at.record_seq, link.record_seq);
	assert_int_equal(at.nonce, link.nonce);
	assert_int_equal(at.crc, link.crc);
	for (i = 0; i < TERRACE_RECORDS_PER_BLOCK; i++) {
		tr_jblock_record(block, i, &record);
		assert_int_equal(record.type, in[i].type);
		assert_int_equal(record.nr, in[i].nr);
		assert_int_equal(record.aux, in[i].aux);
		assert_int_equal(record.block, in[i].block);
		assert_int_equal(record.new, in[i].new);
		assert_int_equal(record.old, in[i].old);
	}
}

static void every_flipped_byte_ends_the_journal(void **state)
{
	struct tr_journal_link link = empty, at;
	u32 i;

	(void)state;
	write_block(&link, 1, 126);
	for (i = 0; i < TERRACE_BLOCK_BYTES; i++) {
		at = empty;
		ring[5][i] ^= 1 << i % 8;
		assert_int_equal(tr_jblock_check(ring[5], &at, uuid), -ENODATA);
		assert_int_equal(at.block_seq, empty.block_seq);
		ring[5][i] ^= 1 << i % 8;
	}
	at = empty;
	assert_int_equal(tr_jblock_check(ring[5], &at, other_uuid), -ENODATA);
	assert_int_equal(tr_jblock_check(ring[5], &at, uuid), 0);
}

static void the_chain_is_followed_around_the_ring(void **state)
{
	struct tr_journal_link link = empty, tail = empty, at;
	u32 i;

	(void)state;
	for (i = 0; i < 100; i++) {
		write_block(&link, 1, i % 4);
		if (i >= RING - 1) /* the oldest has just been overwritten by its successor */
			assert_int_equal(tr_jblock_check(ring[tail.block_seq % RING], &tail, uuid), 0);
		at = tail;
		assert_int_equal(scan(&at), i < RING - 1 ? i + 1 : RING - 1);
		assert_int_equal(at.block_seq, link.block_seq);
		assert_int_equal(at.record_seq, link.record_seq);
	}
}

/*
 * 11 and 12 in flight, power fails, 12 survives and 11 does not. The next
 * activation writes another 11: the old 12 must not follow it.
 */
static void nothing_behind_a_hole_becomes_valid_again(void **state)
{
	struct tr_journal_link link = empty, at = empty, after_10;
	u8 old_12[TERRACE_BLOCK_BYTES];

	(void)state;
	while (link.block_seq < 11)
		write_block(&link, 1, 3);
	after_10 = link;
	write_block(&link, 1, 3);
	write_block(&link, 1, 3);
	memcpy(old_12, ring[12], sizeof(old_12));
	memset(ring[11], 0, TERRACE_BLOCK_BYTES); /* never got there */

	assert_int_equal(scan(&at), 6);
	assert_int_equal(at.block_seq, 11);
	assert_memory_equal(&at, &after_10, sizeof(at));
	link = at;
	write_block(&link, 2, 3);
	at = empty;
	assert_int_equal(scan(&at), 7);
	assert_int_equal(at.block_seq, 12);
	assert_int_equal(at.nonce, 2);
}

/* The same with all luck against us: the new 11 even has the old one's CRC. */
static void the_rule_does_not_rest_on_the_crc(void **state)
{
	struct terrace_journal_disk *disk = (void *)block;
	struct tr_journal_link link, at;

	(void)state;
	link = (struct tr_journal_link){ .block_seq = 12, .record_seq = 40, .nonce = 1, .crc = 77 };
	tr_jblock_start(block, &link, 1, uuid);
	tr_jblock_append(block, &good_record);
	tr_jblock_seal(block, &link);
	assert_int_equal(disk->flags, 0);

	at = (struct tr_journal_link){ .block_seq = 12, .record_seq = 40, .nonce = 2, .crc = 77 };
	assert_int_equal(tr_jblock_check(block, &at, uuid), -ENODATA);
	at.nonce = 1;
	at.crc = 78; /* and behind another block 11 of the same activation neither */
	assert_int_equal(tr_jblock_check(block, &at, uuid), -ENODATA);
	at.crc = 77;
	at.block_seq = 13;
	assert_int_equal(tr_jblock_check(block, &at, uuid), -ENODATA);
	at.block_seq = 12;
	assert_int_equal(tr_jblock_check(block, &at, uuid), 0);
}

static void only_first_blocks_change_the_activation(void **state)
{
	struct terrace_journal_disk *disk = (void *)ring[6];
	struct tr_journal_link link = empty, at = empty, five;

	(void)state;
	write_block(&link, 1, 0);
	five = link;
	write_block(&link, 2, 0);
	assert_int_equal(disk->flags, TERRACE_JOURNAL_FIRST);
	assert_int_equal(le64_to_cpu(disk->prev_nonce), 1);
	assert_int_equal(scan(&at), 2);

	at = five;
	at.nonce = 3; /* FIRST, but of an activation that followed another one */
	assert_int_equal(tr_jblock_check(ring[6], &at, uuid), -ENODATA);
	at = five;
	disk->flags = 0; /* a new nonce without FIRST */
	disk->crc = cpu_to_le32(tr_block_crc(disk, 4096, 4));
	assert_int_equal(tr_jblock_check(ring[6], &at, uuid), -ENODATA);
	at = five;
	disk->flags = TERRACE_JOURNAL_FIRST | 2;
	disk->crc = cpu_to_le32(tr_block_crc(disk, 4096, 4));
	assert_int_equal(tr_jblock_check(ring[6], &at, uuid), -EUCLEAN);
}

/* Random crashes: after each, some of the blocks in flight are there, some not. */
static void whatever_survives_a_crash_a_prefix_is_found(void **state)
{
	struct tr_journal_link durable, end, at;
	u64 rnd = 11, nonce = 0;
	u32 round, inflight, k, prefix;
	u8 before[4][TERRACE_BLOCK_BYTES], written[TERRACE_BLOCK_BYTES];

	for (round = 0; round < 3000; round++) {
		if (round % 50 == 0) {
			clear_ring(state);
			durable = empty;
			nonce = 1000 * round + 1;
		}
		nonce++;
		end = durable;
		inflight = random_below(&rnd, 5);
		for (k = 0; k < inflight; k++) {
			memcpy(before[k], ring[end.block_seq % RING], TERRACE_BLOCK_BYTES);
			write_block(&end, nonce, random_below(&rnd, 127));
		}
		for (k = 0, prefix = ~0u; k < inflight; k++) {
			u8 *lost = ring[(durable.block_seq + k) % RING];
			u32 cut = 2048 * random_below(&rnd, 3); /* not at all, torn, whole */

			memcpy(written, lost, sizeof(written));
			memcpy(lost + cut, before[k] + cut, TERRACE_BLOCK_BYTES - cut);
			if (memcmp(written, lost, sizeof(written)))
				prefix = min(prefix, k);
		}
		prefix = min(prefix, inflight);
		at = durable;
		assert_int_equal(scan(&at), prefix);
		durable = at;
	}
}

/* Crashes, after each of which some of the blocks in flight are there: none of them proves
 * damage; nor do those of older crashes. A block that was durable does, once a later one says so.
 */
static void damage_is_told_from_a_crash(void **state)
{
	struct tr_journal_link durable = empty, end, at;
	u32 round, inflight, k, damaged = 0;
	u64 rnd = 12, i, old;

	clear_ring(state);
	for (round = 0; round < 3000; round++) {
		u64 nonce = 1 + round / 3;	/* as many rounds an activation */

		end = durable;
		inflight = 1 + random_below(&rnd, 4);
		for (k = 0; k < inflight; k++) {
			u8 *slot = ring[end.block_seq % RING];

			if (round % 3 == 2)
				memcpy(block, slot, sizeof(block));
			tr_jblock_start(slot, &end, nonce, uuid);
			tr_jblock_append(slot, &good_record);
			tr_jblock_follow(slot, durable.block_seq);
			tr_jblock_seal(slot, &end);
			if (round % 3 == 2 && random_below(&rnd, 2))
				memcpy(slot, block, sizeof(block));	/* did not arrive */
		}
		at = durable;
		scan(&at);
		for (i = 0; i < RING; i++)
			assert_false(tr_jblock_proves_more(ring[i], &at, uuid));
		/* the last block but one of those that were durable */
		if (durable.block_seq > 8 && at.block_seq > durable.block_seq) {
			old = durable.block_seq - 1;
			end = (struct tr_journal_link){ .block_seq = old };
			for (i = 0, k = 0; i < RING; i++)
				k += tr_jblock_proves_more(ring[i], &end, uuid);
			assert_true(k);
			assert_false(tr_jblock_proves_more(ring[i - 1], &end, other_uuid));
			damaged++;
		}
		durable = at;
	}
	assert_true(damaged > 1000);
}

/* More in flight than the byte can say, or nothing said: the most that may be in flight counts. */
static void what_a_block_does_not_say_is_bounded(void **state)
{
	struct tr_journal_link link = { .block_seq = 1000, .record_seq = 1, .nonce = 1 }, end = link, next;
	struct terrace_journal_disk *disk = (void *)block;
	u64 durable;

	(void)state;
	for (durable = 700; durable <= 1000; durable++) {
		u64 known = max(durable, 1000ull - TR_JOURNAL_IN_FLIGHT);

		tr_jblock_start(block, &link, 1, uuid);
		tr_jblock_follow(block, durable);
		next = link;
		tr_jblock_seal(block, &next);
		end.block_seq = known - 1;
		assert_true(tr_jblock_proves_more(block, &end, uuid));
		end.block_seq = known;
		assert_false(tr_jblock_proves_more(block, &end, uuid));
	}
	end.block_seq = 900;
	assert_true(tr_jblock_proves_more(block, &end, uuid));
	assert_int_equal(tr_jblock_number(block), 1000);
	disk->record[0].nr ^= 1;
	assert_false(tr_jblock_proves_more(block, &end, uuid));
	tr_jblock_start(block, &link, 2, uuid);		/* the first of an activation */
	tr_jblock_seal(block, &link);
	end.block_seq = 999;
	assert_true(tr_jblock_proves_more(block, &end, uuid));
}

static void a_block_started_early_is_moved_behind_its_predecessor(void **state)
{
	struct tr_journal_link link = empty, at = empty, guess;

	(void)state;
	guess = (struct tr_journal_link){ .block_seq = 1, .record_seq = 1, .nonce = 0 };
	tr_jblock_start(ring[6], &guess, 4, uuid);
	tr_jblock_append(ring[6], &good_record);
	write_block(&link, 4, 2);
	tr_jblock_relink(ring[6], &link);
	tr_jblock_seal(ring[6], &link);
	assert_int_equal(scan(&at), 2);
	assert_int_equal(at.record_seq, 4);
	assert_int_equal(at.crc, link.crc);
}

static void the_first_record_may_be_unknown(void **state)
{
	struct tr_journal_link link = { .block_seq = 5, .record_seq = 700 }, at = { .block_seq = 5 };

	(void)state;
	write_block(&link, 1, 3);
	write_block(&link, 1, 3);
	assert_int_equal(scan(&at), 2);
	assert_int_equal(at.record_seq, 706);
	at = (struct tr_journal_link){ .block_seq = 5, .record_seq = 699 };
	assert_int_equal(scan(&at), 0);
}

#define RECORD(good, change)							\
	do {									\
		struct tr_record r = good_record;				\
		change;								\
		assert_int_equal(tr_record_check(&r), (good) ? 0 : -EUCLEAN);	\
	} while (0)

static void impossible_records_are_refused(void **state)
{
	const u64 top = tr_place(7, TERRACE_MAX_PLACE_INDEX), none = TERRACE_NO_PLACE;
	u32 type;

	(void)state;
	RECORD(true, (void)0);
	RECORD(false, r.type = 0);
	for (type = TERRACE_RECORD_INDEX_DROP + 1; type < 256; type++)
		RECORD(false, r.type = type);
	RECORD(false, r.nr = 0);
	RECORD(true, r.nr = 1024);
	RECORD(false, r.nr = 1025);
	RECORD(false, r.block++; r.nr = 1024); /* into the next region */
	RECORD(false, r.block = ~0ull; r.nr = 1);
	RECORD(false, r.block = TR_MAX_BLOCKS);
	RECORD(true, r.old = none);
	RECORD(false, r.new = none);
	RECORD(true, r.new = top; r.nr = 1);
	RECORD(false, r.new = top; r.nr = 2);
	RECORD(false, r.new = none + 1);
	RECORD(false, r.new = ~0ull);
	RECORD(false, r.old = top);
	RECORD(false, r.old = ~0ull);
	RECORD(true, r.type = TERRACE_RECORD_UNMAP; r.new = none);
	RECORD(false, r.type = TERRACE_RECORD_UNMAP; r.old = top);
	RECORD(true, r.type = TERRACE_RECORD_DISCARD; r.new = 1; r.nr = 0);
	RECORD(false, r.type = TERRACE_RECORD_DISCARD; r.new = 0);
	RECORD(false, r.type = TERRACE_RECORD_DISCARD; r.new = ~0ull);
	RECORD(false, r.type = TERRACE_RECORD_DISCARD; r.block = ~0ull; r.new = 1);
	RECORD(true, r.type = TERRACE_RECORD_RESIZE; r.new = TR_MAX_BLOCKS);
	RECORD(false, r.type = TERRACE_RECORD_RESIZE; r.new = TR_MAX_BLOCKS + 1);
	RECORD(false, r.type = TERRACE_RECORD_RESIZE; r.new = 0);
	RECORD(true, r.type = TERRACE_RECORD_PACK_ADD; r.block = 3; r.old = ~0ull);
	RECORD(false, r.type = TERRACE_RECORD_PACK_ADD; r.new = none);
	RECORD(false, r.type = TERRACE_RECORD_PACK_DROP; r.nr = 0);
	RECORD(true, r.type = TERRACE_RECORD_PACK_DROP; r.nr = TERRACE_PACK_MAX_BLOCKS);
	RECORD(false, r.type = TERRACE_RECORD_PACK_DROP; r.nr = TERRACE_PACK_MAX_BLOCKS + 1);
	RECORD(false, r.type = TERRACE_RECORD_PACK_DROP; r.old = 0);
	RECORD(false, r.type = TERRACE_RECORD_PACK_DROP; r.block = TR_MAX_BLOCKS);
	RECORD(true, r.type = TERRACE_RECORD_HOME_SET; r.aux = 7);
	RECORD(false, r.type = TERRACE_RECORD_HOME_SET; r.aux = 8);
	RECORD(false, r.type = TERRACE_RECORD_HOME_CLEAR; r.aux = ~0u);
	RECORD(true, r.type = TERRACE_RECORD_CLEAN; r.aux = 0; r.old = ~0ull);
	RECORD(true, r.type = TERRACE_RECORD_CLEAN; r.aux = TERRACE_CLEAN_KEPT);
	RECORD(false, r.type = TERRACE_RECORD_CLEAN; r.new = none);
	RECORD(false, r.type = TERRACE_RECORD_CLEAN; r.old = 0);
	RECORD(false, r.type = TERRACE_RECORD_CLEAN; r.aux = 2);
	RECORD(true, r.type = TERRACE_RECORD_PACKED; r.new = ~0ull; r.old = none);
	RECORD(true, r.type = TERRACE_RECORD_PACKED; r.new = 1);
	RECORD(false, r.type = TERRACE_RECORD_PACKED; r.new = 0);
	RECORD(false, r.type = TERRACE_RECORD_PACKED; r.old = none + 1);
	RECORD(true, r.type = TERRACE_RECORD_PACKED_MASK; r.nr = 64; r.old = ~0ull);
	RECORD(true, r.type = TERRACE_RECORD_PACKED_MASK; r.nr = 3; r.old = 5);
	RECORD(false, r.type = TERRACE_RECORD_PACKED_MASK; r.nr = 3; r.old = 8);
	RECORD(false, r.type = TERRACE_RECORD_PACKED_MASK; r.nr = 65; r.old = 1);
	RECORD(false, r.type = TERRACE_RECORD_PACKED_MASK; r.nr = 64; r.old = 0);
	RECORD(true, r.type = TERRACE_RECORD_INDEX_ADD; r.nr = 2; r.old = 9);
	RECORD(false, r.type = TERRACE_RECORD_INDEX_ADD; r.nr = 3);
	RECORD(false, r.type = TERRACE_RECORD_INDEX_DROP; r.old = 0);
}

static void an_impossible_record_in_a_sealed_block_is_an_error(void **state)
{
	struct tr_journal_link link = empty, at = empty;
	struct terrace_journal_disk *disk = (void *)block;
	struct tr_record record = good_record;

	(void)state;
	record.nr = 2000;
	tr_jblock_start(block, &link, 1, uuid);
	tr_jblock_append(block, &good_record);
	tr_jblock_append(block, &record);
	tr_jblock_seal(block, &link);
	assert_int_equal(tr_jblock_check(block, &at, uuid), -EUCLEAN);
	assert_int_equal(at.block_seq, empty.block_seq);
	disk->nr_records = cpu_to_le16(127);
	disk->crc = cpu_to_le32(tr_block_crc(block, 4096, 4));
	assert_int_equal(tr_jblock_check(block, &at, uuid), -EUCLEAN);
	disk->nr_records = cpu_to_le16(0xffff);
	disk->crc = cpu_to_le32(tr_block_crc(block, 4096, 4));
	assert_int_equal(tr_jblock_check(block, &at, uuid), -EUCLEAN);
}

/* Activation 8 wrote three blocks; 9 went on behind the first of them. */
static void of_two_journals_the_one_with_a_new_activation_wins(void **state)
{
	static u8 old[2][TERRACE_BLOCK_BYTES] __aligned(8), new[TERRACE_BLOCK_BYTES] __aligned(8);
	struct tr_journal_link link = empty, behind;

	(void)state;
	write_block(&link, 8, 1);
	behind = link;
	write_block(&link, 8, 1);
	write_block(&link, 8, 1);
	memcpy(old[0], ring[6], TERRACE_BLOCK_BYTES);
	memcpy(old[1], ring[7], TERRACE_BLOCK_BYTES);
	write_block(&behind, 9, 1);
	memcpy(new, ring[6], TERRACE_BLOCK_BYTES);

	assert_true(tr_jblock_wins(new, 1, old[0], 2));
	assert_false(tr_jblock_wins(old[0], 2, new, 1));
	assert_true(tr_jblock_wins(old[0], 2, old[0], 1));
	assert_false(tr_jblock_wins(old[0], 2, old[0], 2));
	assert_true(tr_jblock_wins(old[1], 1, NULL, 0));
	assert_false(tr_jblock_wins(NULL, 0, new, 1));
	assert_false(tr_jblock_wins(NULL, 0, NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(blocks_hold_their_records, clear_ring),
		cmocka_unit_test_setup(every_flipped_byte_ends_the_journal, clear_ring),
		cmocka_unit_test_setup(the_chain_is_followed_around_the_ring, clear_ring),
		cmocka_unit_test_setup(nothing_behind_a_hole_becomes_valid_again, clear_ring),
		cmocka_unit_test_setup(the_rule_does_not_rest_on_the_crc, clear_ring),
		cmocka_unit_test_setup(only_first_blocks_change_the_activation, clear_ring),
		cmocka_unit_test_setup(whatever_survives_a_crash_a_prefix_is_found, clear_ring),
		cmocka_unit_test(damage_is_told_from_a_crash),
		cmocka_unit_test(what_a_block_does_not_say_is_bounded),
		cmocka_unit_test_setup(a_block_started_early_is_moved_behind_its_predecessor, clear_ring),
		cmocka_unit_test_setup(of_two_journals_the_one_with_a_new_activation_wins, clear_ring),
		cmocka_unit_test_setup(the_first_record_may_be_unknown, clear_ring),
		cmocka_unit_test_setup(impossible_records_are_refused, clear_ring),
		cmocka_unit_test_setup(an_impossible_record_in_a_sealed_block_is_an_error, clear_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
