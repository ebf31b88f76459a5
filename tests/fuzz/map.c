// SPDX-License-Identifier: GPL-2.0-or-later
/* Map pages: a leaf that is accepted is sound, and says the same written and read again. */
#include "fuzz.h"

#define BYTES	(TERRACE_MAP_MAX_BLOCKS * TERRACE_BLOCK_BYTES)

static const u64 data_blocks[3] = { 1 << 20, 1ull << 36, 77 };
static const struct tr_page_id id = {
	.magic = TERRACE_MAP_MAGIC, .index = 77, .tree = TERRACE_TREE_MAP,
};

/* a page of its own, so that ASan sees a step past its end */
static u8 *page;

static void check_packs(const struct tr_packs *packs)
{
	u32 k, w, other;

	for (k = 0; k < packs->nr; k++) {
		const struct tr_pack *pack = &packs->pack[k];

		hold(pack->blocks && tr_place_tier(pack->place) < 3);
		hold(tr_place_index(pack->place) + pack->blocks <=
		     data_blocks[tr_place_tier(pack->place)]);
		for (other = 0; other < k; other++)
			for (w = 0; w < TR_LEAF_WORDS; w++)
				hold(!(pack->live[w] & packs->pack[other].live[w]));
	}
}

static void check_leaf(const struct tr_leaf *leaf, const struct tr_packs *packs)
{
	static u8 again[BYTES] __aligned(8);
	u32 i, nr, nr_packs, seen = 0;
	bool high;
	u64 place;

	for (i = 0; i < TERRACE_REGION_BLOCKS; i++) {
		place = tr_leaf_get(leaf, i);
		hold((place != TR_NO_PLACE) == tr_leaf_has(leaf, i));
		if (place == TR_NO_PLACE)
			continue;
		seen++;
		hold(tr_place_tier(place) < 3 && tr_place_index(place) < data_blocks[tr_place_tier(place)]);
	}
	hold(seen == leaf->nr);
	tr_page_start(again, &id, tr_map_page_blocks(leaf, packs), 1, 1, fuzz_uuid);
	tr_map_encode(again, leaf, packs, 0);
	hold(!tr_map_room(again, tr_map_page_blocks(leaf, packs) * TERRACE_BLOCK_BYTES, &nr, &high,
			  &nr_packs));
	hold(nr_packs == packs->nr && nr == leaf->nr && high == tr_leaf_needs_high(leaf));
}

static void decode(u32 bytes)
{
	struct tr_entry entry = { .blocks = 1 };
	struct tr_packs *packs;
	struct tr_leaf leaf;
	u32 nr, nr_packs;
	bool high;
	u8 age;

	(void)tr_page_check(page, bytes, &id, &entry, fuzz_uuid);
	(void)tr_page_check(page, bytes, &id, NULL, fuzz_uuid);
	if (tr_map_room(page, bytes, &nr, &high, &nr_packs))
		return;
	hold(nr <= TERRACE_REGION_BLOCKS && nr_packs <= TERRACE_PACK_SLOTS);
	packs = malloc(tr_packs_bytes(nr_packs));
	tr_packs_init(packs, nr_packs);
	tr_leaf_init(&leaf);
	leaf.cap = nr;
	leaf.low = malloc(nr * sizeof(u32));
	leaf.high = high ? malloc(nr) : NULL;
	if (!tr_map_decode(page, bytes, &leaf, packs, &age, data_blocks, 3)) {
		check_packs(packs);
		check_leaf(&leaf, packs);
	}
	free(packs);
	free(leaf.low);
	free(leaf.high);
}

static void write_good(u32 step)
{
	struct tr_packs *packs = malloc(tr_packs_bytes(3));
	struct tr_leaf leaf;
	u32 i;

	tr_packs_init(packs, 3);
	for (i = 0; i < step % 4; i++) {
		struct tr_pack pack = {
			.id = 100 - i, .place = tr_place(i, i), .blocks = 2 + i,
			.index_place = TR_NO_PLACE, .live = { 1ull << i },
		};

		hold(!tr_packs_add(packs, &pack));
	}
	tr_leaf_init(&leaf);
	leaf.cap = TERRACE_REGION_BLOCKS;
	leaf.low = malloc(leaf.cap * sizeof(u32));
	for (i = 0; i < TERRACE_REGION_BLOCKS; i += step)
		hold(!tr_leaf_set(&leaf, i, 1, tr_place(i % 2, 5 * i)));
	tr_page_start(page, &id, tr_map_page_blocks(&leaf, packs), 1, 1, fuzz_uuid);
	tr_map_encode(page, &leaf, packs, 9);
	free(packs);
	free(leaf.low);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u32 blocks = 1 + (size ? data[0] % TERRACE_MAP_MAX_BLOCKS : 0);
	u32 bytes = blocks * TERRACE_BLOCK_BYTES;

	page = malloc(bytes);
	raw(page, bytes, data, size);
	decode(bytes);
	if (size > 1) {
		write_good(blocks == 1 ? 3 + data[1] % 100 : 1 + data[1] % 100);
		patch(page, bytes < 300 ? bytes : 300, data + 2, size - 2);
		seal(page, bytes, offsetof(struct terrace_page_disk, crc));
		decode(bytes);
	}
	free(page);
	return 0;
}
