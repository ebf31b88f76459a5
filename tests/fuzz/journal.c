// SPDX-License-Identifier: GPL-2.0-or-later
/* Journal blocks: records that are accepted can be replayed, whatever they say. */
#include "fuzz.h"

static const struct tr_journal_link tail = { .block_seq = 9, .record_seq = 100, .nonce = 4 };

static u8 block[TERRACE_BLOCK_BYTES] __aligned(8);

static void on_space(u32 tier, u64 index, u32 n, bool used, void *ctx)
{
	(void)used;
	(void)ctx;
	hold(tier < TERRACE_MAX_TIERS && n && n <= TERRACE_PACK_MAX_BLOCKS);
	hold(index + n - 1 <= TERRACE_MAX_PLACE_INDEX);
	hold(index / TERRACE_CHUNK_BLOCKS == (index + n - 1) / TERRACE_CHUNK_BLOCKS);
}

static void replay_one(struct tr_delta *delta, const struct tr_record *record, u64 seq)
{
	bool high;
	int decided;

	hold(tr_delta_room(delta, record, &high) <= TERRACE_REGION_BLOCKS);
	decided = tr_delta_apply(delta, record, seq);
	hold(decided >= 0 || decided == -EOPNOTSUPP || decided == -EUCLEAN);
	tr_record_space(record, on_space, NULL);
}

/* No block is live in two packs. */
static void check_live(const struct tr_packs *packs)
{
	u32 i, n, pack;

	for (i = 0; i < TERRACE_REGION_BLOCKS; i += n) {
		n = tr_packs_run(packs, i, TERRACE_REGION_BLOCKS - i, &pack);
		hold(n && tr_packs_find(packs, i) == pack);
	}
	for (i = 0; i < packs->nr; i++)
		for (pack = 0; pack < i; pack++)
			for (n = 0; n < TR_LEAF_WORDS; n++)
				hold(!(packs->pack[i].live[n] & packs->pack[pack].live[n]));
}

/* All into one region: tr_record_check() has promised that each fits one. */
static void replay(const struct tr_journal_link *link)
{
	static u32 low[2][TERRACE_REGION_BLOCKS];
	static u8 high_bytes[2][TERRACE_REGION_BLOCKS];
	static struct tr_delta_pack delta_packs[TERRACE_RECORDS_PER_BLOCK];
	static u8 list[sizeof(struct tr_packs) + TERRACE_PACK_SLOTS * sizeof(struct tr_pack)]
		__aligned(8);
	struct tr_packs *packs = (void *)list;
	struct tr_delta delta = { .packs = delta_packs, .cap_packs = TERRACE_RECORDS_PER_BLOCK,
				  .leaf = { .cap = TERRACE_REGION_BLOCKS, .low = low[0],
					    .high = high_bytes[0] } };
	struct tr_leaf leaf = { .cap = TERRACE_REGION_BLOCKS, .low = low[1],
				.high = high_bytes[1] };
	struct tr_record record;
	bool high;
	u32 i, nr = tr_jblock_nr(block);

	for (i = nr; i-- > 0;) {
		tr_jblock_record(block, i, &record);
		replay_one(&delta, &record, link->record_seq - nr + i);
	}
	hold(tr_delta_overlay_room(&delta, &leaf, &high) <= TERRACE_REGION_BLOCKS);
	tr_packs_init(packs, TERRACE_PACK_SLOTS);
	if (tr_delta_overlay(&delta, &leaf, packs))
		return;
	check_live(packs);
	for (i = 0; i < TERRACE_REGION_BLOCKS; i++)
		hold(tr_leaf_get(&leaf, i) == tr_leaf_get(&delta.leaf, i));
}

static void decode(void)
{
	struct tr_journal_link link = tail;
	int err = tr_jblock_check(block, &link, fuzz_uuid);

	hold(!err || err == -ENODATA || err == -EUCLEAN);
	if (err)
		return;
	hold(link.block_seq == 10 && link.record_seq == 100 + tr_jblock_nr(block));
	replay(&link);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tr_journal_link link = tail;
	struct tr_record record;
	size_t at;

	raw(block, sizeof(block), data, size);
	decode();

	/* records as they come: the first half of the input; then patches over the block */
	tr_jblock_start(block, &link, size ? data[0] : 4, fuzz_uuid);
	for (at = 0; at + 12 <= size / 2 && tr_jblock_nr(block) < TERRACE_RECORDS_PER_BLOCK; at += 12) {
		const uint8_t *d = data + at;

		record.type = d[0] % 15;
		record.nr = d[1] | d[2] % 5 << 8;
		record.aux = d[3];
		record.block = d[4] | (d[5] & 3) << 8;
		record.new = d[6] | (u64)d[7] << 8 | (u64)d[8] << 32;
		record.old = d[9] == 255 ? TERRACE_NO_PLACE : d[9] | (u64)d[10] << 8 | (u64)d[11] << 32;
		if (tr_record_check(&record) && d[3] < 250)
			continue;
		tr_jblock_append(block, &record);
	}
	patch(block, sizeof(block), data + at, size - at > 30 ? 30 : size - at);
	seal(block, sizeof(block), offsetof(struct terrace_journal_disk, crc));
	decode();
	return 0;
}
