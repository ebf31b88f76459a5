// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fills freshly formatted image files with a volume in mid-life, so that the
 * offline tools can be tested without the kernel module.
 *
 *	image [--seed N] [--before N] [--between N] [--after N] [--clean]
 *	      [--packs N] [--packing PERCENT] [--generation N] [--break WHAT] [--blocks FILE] TIER0 TIER1... [METADATA]
 *
 * A model does random operations as the module would: --before of them, then
 * the journal's tail is set; --between more, then pages are written (some of
 * them older, where a range discard is pending); --after more, which are in
 * the journal only. --packs gives regions 0 to N-1 a pack each, every other one
 * in the journal only (with no other operations). With --packing that share of
 * the operations is about packs: see image_packs.c. --break makes one structure wrong, with a right CRC.
 * --blocks writes data (each block its number and that of its record) and, to
 * FILE, a line "BLOCK TIER PLACE RECORD" for each block that is mapped.
 *
 * Prints where each structure is ("map-page REGION META_BLOCK", …, "run REGION ID
 * BLOCK BLOCKS LIVE_BLOCKS INDEX_BLOCK" for packs) and what a check must count
 * ("mapped N", "discarded N").
 */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <asm/byteorder.h>

#include "image.h"

/* ---- writing ------------------------------------------------------------------- */

void write_block(int file, u64 block, const void *data, u32 nr)
{
	if (pwrite(file, data, nr * TERRACE_BLOCK_BYTES, block * TERRACE_BLOCK_BYTES) !=
	    (ssize_t)(nr * TERRACE_BLOCK_BYTES))
		die("pwrite");
}

static void write_meta(u64 block, const void *data, u32 nr)
{
	write_block(fd[primary], label[primary].meta_start + block, data, nr);
	if (mirror != ~0u)
		write_block(fd[mirror], label[mirror].meta_start + block, data, nr);
}

/* ---- packs ------------------------------------------------------------------------ */

#define PACK_BLOCKS	40u	/* of each region: the first ones */
#define PACK_LEFT_OUT	7u	/* in the pack, but overwritten since */
#define PACK_CLEAN	9u	/* has a clean slot as well */

/* Not LZ4 at all: nobody decodes it. */
static int quarter(void *context, const u8 *cluster, u32 from, u32 bytes, bool last, u8 *to, u32 room)
{
	(void)context;
	(void)last;
	if (room < bytes / 4)
		return 0;
	memcpy(to, cluster + from, bytes / 4);
	return bytes / 4;
}

static u32 write_run(struct tr_pack *pack, u64 region, bool index)
{
	static const struct tr_codec_ops ops = { .compress = quarter };
	static u64 image[64 * 512];
	static struct tr_pack_build build;
	u8 cluster[16 * TERRACE_BLOCK_BYTES];
	u32 tier = tr_place_tier(pack->place), n;
	u16 block[16];

	build.head = (struct tr_pack_head){
		.id = pack->id, .place = pack->place, .region = region, .record_seq = nr_records,
		.nr_blocks = PACK_BLOCKS, .codec = TERRACE_CODEC_LZ4, .shift = 4,
	};
	if (tr_pack_start(&build, image, sizeof(image), super.volume_uuid))
		abort();
	for (u32 at = 0; at < PACK_BLOCKS; at += n) {
		n = PACK_BLOCKS - at < 16 ? PACK_BLOCKS - at : 16;
		for (u32 k = 0; k < n; k++)
			block[k] = PACK_BLOCKS - 1 - at - k;
		for (u32 k = 0; k < sizeof(cluster); k++)
			cluster[k] = rnd(256);
		if (tr_pack_add(&build, block, n, cluster, &ops, NULL))
			abort();
	}
	if (tr_pack_finish(&build, 1, &pack->header_crc) || build.head.blocks > pack->blocks)
		abort();
	pack->blocks = build.head.blocks;
	write_block(fd[tier], label[tier].data_start + tr_place_index(pack->place), image,
		    pack->blocks);
	tier = tr_place_tier(pack->index_place);
	if (index)
		write_block(fd[tier], label[tier].data_start + tr_place_index(pack->index_place),
			    image, 1);
	return build.payload_at;
}

/* The first blocks of @region, put on tier 0 and then into a pack on tier 1. */
static void pack_region(u64 region)
{
	u64 first = region * TERRACE_REGION_BLOCKS;
	struct tr_pack pack = { .id = super.next_id++, .place = allocate(1, 16), .blocks = 16,
				.index_place = TR_NO_PLACE };
	u32 payload;

	put(first, PACK_BLOCKS, allocate(0, PACK_BLOCKS));
	if (region % 4 == 0) {
		pack.index_place = allocate(0, 1);
		pack.index_blocks = 1;
		set_used(pack.index_place, true);
	}
	payload = write_run(&pack, region, pack.index_blocks);
	for (u32 i = 0; i < pack.blocks; i++)
		set_used(tr_place_add(pack.place, i), true);
	record(TERRACE_RECORD_PACK_ADD, region, pack.blocks, pack.place, pack.id);
	records[nr_records - 1].aux = pack.header_crc;
	if (pack.index_blocks)
		record(TERRACE_RECORD_INDEX_ADD, region, 1, pack.index_place, pack.id);
	for (u32 i = 0; i < PACK_BLOCKS; i++) {
		if (i == PACK_LEFT_OUT)
			continue;
		pack.live[0] |= 1ull << i;
		if (i == PACK_CLEAN) {
			record(TERRACE_RECORD_CLEAN, first + i, 1, map[first + i], pack.id);
			records[nr_records - 1].aux = TERRACE_CLEAN_KEPT;
			continue;
		}
		record(TERRACE_RECORD_PACKED, first + i, 1, pack.id, map[first + i]);
		set_used(map[first + i], false);
		map[first + i] = TR_NO_PLACE;
	}
	add_pack(region, &pack);
	printf("pack %llu %llu %llu %u\n", region, pack.id,
	       label[tr_place_tier(pack.place)].data_start + tr_place_index(pack.place), payload);
}

static void pack_regions(u64 from, u64 nr)
{
	for (; from < nr; from += 2)
		pack_region(from);
}

static u64 next_page;
static u64 mbits[64][TERRACE_MBIT_WORDS];

static void set_mbit(u64 block, bool is)
{
	u64 bit = block % TERRACE_MBIT_BITS, *word = &mbits[block / TERRACE_MBIT_BITS][bit / 64];

	*word = is ? *word | 1ull << (bit % 64) : *word & ~(1ull << (bit % 64));
}

static u64 take_meta(u32 nr)
{
	u64 block = next_page + rnd(2);

	next_page = block + nr;
	if (next_page > super.meta_blocks) {
		fputs("metadata area full\n", stderr);
		exit(1);
	}
	for (u32 i = 0; i < nr; i++)
		set_mbit(block + i, true);
	return block;
}

static struct tr_entry write_page(void *page, const struct tr_page_id *id, u32 nr, u64 seq,
				  u32 count, u8 age)
{
	struct tr_entry entry = {
		.block = take_meta(nr), .blocks = nr, .age = age, .count = count, .seq = seq,
	};

	(void)id;
	entry.crc = tr_page_seal(page);
	write_meta(entry.block, page, nr);
	return entry;
}

static struct tr_leaf leaf_of(const u64 *places, u64 region)
{
	static u32 low[TERRACE_REGION_BLOCKS];
	static u8 high[TERRACE_REGION_BLOCKS];
	struct tr_leaf leaf;

	tr_leaf_init(&leaf);
	leaf.low = low;
	leaf.high = high;
	leaf.cap = TERRACE_REGION_BLOCKS;
	for (u32 i = 0; i < TERRACE_REGION_BLOCKS; i++) {
		u64 place = places[region * TERRACE_REGION_BLOCKS + i];

		if (place != TR_NO_PLACE && tr_leaf_set(&leaf, i, 1, place))
			abort();
	}
	return leaf;
}

static u32 count_slots(const struct tr_leaf *leaf)
{
	u32 nr = 0;

	for (u32 i = 0; i < leaf->nr; i++)
		nr += super.tier[tr_place_tier(tr_leaf_at(leaf, i))].kind == TERRACE_KIND_SLOTS;
	return nr;
}

/* What is broken inside the first map page that is written. */
static void break_leaf(struct tr_leaf *leaf)
{
	u32 second = tr_leaf_next(leaf, tr_leaf_next(leaf, 0) + 1);

	if (breaks("double"))
		tr_leaf_set(leaf, second, 1, tr_leaf_at(leaf, 0));
	if (breaks("beyond-place"))
		tr_leaf_set(leaf, second, 1, tr_place(0, super.tier[0].data_blocks));
	if (breaks("no-tier"))
		tr_leaf_set(leaf, second, 1, tr_place(TERRACE_MAX_TIERS - 1, 5));
}

static struct tr_entry map_page(u64 region, u64 seq, bool first)
{
	static u64 page[TERRACE_MAP_MAX_BLOCKS * 512];
	struct tr_page_id id = {
		.magic = TERRACE_MAP_MAGIC, .index = region, .tree = TERRACE_TREE_MAP,
	};
	bool older = pending_seq[region];
	struct tr_leaf leaf = leaf_of(older ? old_map : map, region);
	struct tr_entry none = { 0 }, entry;
	u8 uuid[TERRACE_UUID_BYTES];
	u8 age = rnd(256);
	u32 nr;
	const struct tr_packs *list = older ? old_packs[region] : packs[region];

	if (older)
		seq = super.tail_record_seq;
	if (!leaf.nr && (!list || !list->nr))
		return none;
	memcpy(uuid, super.volume_uuid, sizeof(uuid));
	if (first) {
		break_leaf(&leaf);
		uuid[0] ^= breaks("uuid");
		id.index += breaks("index");
		seq += breaks("newest") ? 1000000 : 0;
	}
	nr = tr_map_page_blocks(&leaf, list);
	tr_page_start(page, &id, nr, seq, super.generation, uuid);
	tr_map_encode(page, &leaf, list, age);
	if (first && breaks("section"))
		((struct terrace_section_disk *)((struct terrace_map_disk *)page)->payload)->type =
			__cpu_to_le16(77);
	entry = write_page(page, &id, nr, seq, count_slots(&leaf), age);
	if (first) {
		entry.count += breaks("count");
		entry.seq -= breaks("stale");
		entry.age += breaks("age");
	}
	printf("map-page %llu %llu\n", region, entry.block);
	return entry;
}

static struct tr_entry space_page(u32 tier, u64 chunk, u64 seq)
{
	static u64 page[512];
	const struct tr_page_id id = {
		.magic = TERRACE_SPACE_MAGIC, .index = chunk, .tier = tier,
		.tree = TERRACE_TREE_SPACE,
	};
	u64 bits[TERRACE_CHUNK_BLOCKS / 64] = { 0 }, first = chunk * TERRACE_CHUNK_BLOCKS;
	struct tr_entry none = { 0 }, entry;
	u64 free_at = NO_BLOCK, used_at = NO_BLOCK;
	u32 count = 0;

	for (u64 i = 0; i < TERRACE_CHUNK_BLOCKS && first + i < super.tier[tier].data_blocks; i++) {
		if (used[tier][first + i]) {
			bits[i / 64] |= 1ull << (i % 64);
			used_at = i;
			count++;
		} else {
			free_at = i;
		}
	}
	if (!count)
		return none;
	if (breaks("leak")) {
		bits[free_at / 64] |= 1ull << (free_at % 64);
		count++;
	}
	if (breaks("unmarked")) {
		bits[used_at / 64] &= ~(1ull << (used_at % 64));
		count--;
	}
	if (breaks("leak") || breaks("unmarked"))
		broken = "";
	tr_page_start(page, &id, 1, seq, super.generation, super.volume_uuid);
	tr_space_encode(page, bits);
	if (breaks("counter"))
		((struct terrace_space_disk *)page)->used = __cpu_to_le32(count + 1);
	entry = write_page(page, &id, 1, seq, count, 0);
	printf("space-page %u %llu %llu\n", tier, chunk, entry.block);
	return entry;
}

/* One level of directories above @nr entries, in place. */
static u64 write_level(struct tr_entry *entry, u64 nr, u32 level, u32 tier, u32 tree, u64 seq)
{
	static u64 page[512];
	u64 to = 0;

	for (u64 first = 0; first < nr; first += TERRACE_DIR_ENTRIES) {
		struct tr_page_id id = {
			.magic = TERRACE_DIR_MAGIC, .level = level, .tier = tier, .tree = tree,
			.index = first << ((level - 1) * TERRACE_DIR_SHIFT),
		};
		struct terrace_dir_disk *dir = (void *)page;
		struct tr_entry up = { 0 };
		u32 sum = 0, children = 0;

		tr_page_start(page, &id, 1, seq, super.generation, super.volume_uuid);
		for (u32 i = 0; i < TERRACE_DIR_ENTRIES && first + i < nr; i++) {
			tr_entry_encode(&dir->entry[i], &entry[first + i]);
			children += entry[first + i].block != 0;
			sum += entry[first + i].count;
		}
		if (children) {
			up = write_page(page, &id, 1, seq, sum, 0);
			printf("%s-directory %u %llu %llu\n",
			       tree == TERRACE_TREE_MAP ? "map" : "space", level, id.index, up.block);
		}
		entry[to++] = up;
	}
	return to;
}

static struct tr_entry write_tree(struct tr_entry *entry, u64 nr, u32 depth, u32 tier, u32 tree,
				  u64 seq)
{
	for (u32 level = 1; level <= depth; level++)
		nr = write_level(entry, nr, level, tier, tree, seq);
	return entry[0];
}

static void write_maps(u64 seq)
{
	struct tr_entry *entry = calloc(regions, sizeof(*entry));
	u64 first = NO_BLOCK;

	for (u64 r = 0; r < regions; r++) {
		entry[r] = map_page(r, seq, first == NO_BLOCK);
		if (entry[r].block && first == NO_BLOCK)
			first = r;
		else if (entry[r].block && breaks("page-twice"))
			entry[r].block = entry[first].block;
	}
	if (breaks("impossible-entry"))
		entry[first].block = 1;
	super.map_root = write_tree(entry, regions, super.map_depth, 0, TERRACE_TREE_MAP, seq);
	super.map_root.count += breaks("sum");
	free(entry);
}

static void write_spaces(u32 tier, u64 seq)
{
	u64 chunks = tr_chunks(super.tier[tier].data_blocks);
	struct tr_entry *entry = calloc(chunks, sizeof(*entry));

	for (u64 k = 0; k < chunks; k++)
		entry[k] = space_page(tier, k, seq);
	super.tier[tier].space_root = write_tree(entry, chunks, tr_dir_depth(chunks), tier,
						 TERRACE_TREE_SPACE, seq);
	free(entry);
}

#define AHEAD		1000000u	/* records that only the lazy mirror says it has */
#define LAPS_BEHIND	4u		/* of the ring, that the lazy mirror is */

/* The module does so before the first record. */
static void unmark_older(u32 place)
{
	static u64 block[512];
	struct tr_super older;

	if (pread(fd[mirror], block, sizeof(block), (label[mirror].meta_start + place) * sizeof(block)) != sizeof(block) ||
	    tr_super_decode(&older, block))
		die("the lazy mirror's older superblock");
	older.flags &= ~TERRACE_SUPER_CLEAN;
	older.tail_record_seq += breaks("lazy-older-ahead") ? AHEAD : 0;
	tr_super_encode(block, &older);
	write_block(fd[mirror], label[mirror].meta_start + place, block, 1);
}

static void write_super(void)
{
	static u64 block[512];
	u32 parity = super.generation & 1;
	bool cut = breaks("lazy-cut");	/* the lazy mirror was to become this one, but got only its bitmap */
	u64 ahead = breaks("lazy-ahead") ? AHEAD : 0;
	u64 laps = breaks("lazy-laps") ? LAPS_BEHIND * super.journal_blocks : 0;

	super.generation += cut ? 2 : 0;
	for (u64 i = 0; i < tr_first_page(&super); i++)
		set_mbit(i, true);
	set_mbit(super.meta_blocks - 1, breaks("meta-leak"));
	if (breaks("meta-missing"))
		set_mbit(super.map_root.block, false);
	for (u64 i = 0; i < super.bitmap_blocks; i++) {
		tr_mbit_encode(block, mbits[i], i * TERRACE_MBIT_BITS, super.generation,
			       super.volume_uuid);
		write_meta(super.bitmap_start[parity] + i, block, 1);
		printf("meta-bitmap %llu\n", super.bitmap_start[parity] + i);
	}
	if (breaks("next-id"))
		super.next_id = 1;
	tr_super_encode(block, &super);
	write_block(fd[primary], label[primary].meta_start + parity, block, 1);
	if (mirror != ~0u) {
		if (label[mirror].flags & TERRACE_LABEL_META_LAZY) {
			super.flags |= TERRACE_SUPER_LAZY;
			if (!breaks("lazy-older-clean"))	/* as of a module that took the mark off the newer alone */
				unmark_older(!parity);
		}
		if (cut)
			super.flags &= ~TERRACE_SUPER_CLEAN;
		super.generation -= cut ? 2 : 0;
		super.tail_record_seq += ahead;
		super.generation -= laps ? 2 : 0;
		super.tail_block_seq -= laps;
		tr_super_encode(block, &super);
		write_block(fd[mirror], label[mirror].meta_start + parity, block, 1);
		super.tail_record_seq -= ahead;
		super.generation += laps ? 2 : 0;
		super.tail_block_seq += laps;
	}
	printf("superblock %u\n", parity);
}

/* What the mirror has instead: the activation that wrote the tail discarded everything, in @nr
 * blocks that nobody was told of. The one behind it went by the primary, which had none of them.
 */
static void write_unacknowledged(u64 nr)
{
	struct tr_journal_link link = {
		.block_seq = super.tail_block_seq, .record_seq = super.tail_record_seq + 1,
		.nonce = super.tail_nonce, .crc = super.tail_prev_crc,
	};
	const struct tr_record all = { .type = TERRACE_RECORD_DISCARD, .new = regions };
	static u64 block[512];

	for (; nr; nr--) {
		u64 at = super.journal_start + link.block_seq % super.journal_blocks;

		tr_jblock_start(block, &link, link.nonce, super.volume_uuid);
		tr_jblock_append(block, &all);
		tr_jblock_seal(block, &link);
		write_block(fd[mirror], label[mirror].meta_start + at, block, 1);
	}
}

/* Records from the tail on, in blocks of random fill, over several activations. */
static void write_journal(void)
{
	struct tr_journal_link link = {
		.block_seq = super.tail_block_seq, .record_seq = super.tail_record_seq + 1,
		.nonce = super.tail_nonce, .crc = super.tail_prev_crc,
	};
	u64 next = super.tail_record_seq, nonce = rnd(~0ull), last = nr_records;
	struct tr_record *newest_map = records + last;
	static u64 block[512];

	if (breaks("gap"))
		link.record_seq += 5;
	while (newest_map > records && newest_map->type != TERRACE_RECORD_MAP)
		newest_map--;
	if (breaks("impossible-record"))
		newest_map->type = 99;
	if (breaks("record-place"))
		newest_map->new = tr_place(1, super.tier[1].data_blocks + 3);
	if (breaks("record-region"))
		newest_map->block += regions * TERRACE_REGION_BLOCKS;
	while (next < last) {
		u32 nr = 1 + rnd(TERRACE_RECORDS_PER_BLOCK);
		u64 at = super.journal_start + link.block_seq % super.journal_blocks;

		if (link.block_seq - super.tail_block_seq == super.journal_blocks) {
			fputs("journal full\n", stderr);
			exit(1);
		}
		if (!rnd(5))
			nonce = rnd(~0ull);
		tr_jblock_start(block, &link, nonce, super.volume_uuid);
		for (; nr && next < last; nr--)
			tr_jblock_append(block, &records[next++]);
		printf("journal %llu %llu\n", link.block_seq, at);
		tr_jblock_seal(block, &link);
		write_meta(at, block, 1);
	}
	if (breaks("parted"))
		write_unacknowledged(link.block_seq - super.tail_block_seq + 1);
}

static void write_data(u32 tier)
{
	static u64 block[512];

	for (u64 at = 0; at < super.tier[tier].data_blocks; at++) {
		if (owner_of[tier][at] == NO_BLOCK)
			continue;
		block[0] = owner_of[tier][at];
		block[1] = written_at[tier][at];
		write_block(fd[tier], label[tier].data_start + at, block, 1);
	}
}

/* Of one that is only packed: the run. */
static u64 place_of(u64 block)
{
	const struct tr_packs *list = packs[block / TERRACE_REGION_BLOCKS];

	return map[block] != TR_NO_PLACE ? map[block] :
	       list->pack[tr_packs_find(list, block % TERRACE_REGION_BLOCKS)].place;
}

static void write_blocks(const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f)
		die(path);
	for (u32 i = 0; i < super.nr_tiers; i++)
		write_data(i);
	for (u64 b = 0; b < super.virtual_blocks; b++)
		if (somewhere(b) && !pending[b])
			fprintf(f, "%llu %u %llu %llu\n", b, tr_place_tier(place_of(b)),
				tr_place_index(place_of(b)), value_of[b]);
	fclose(f);
}

/* What a checkpoint that a crash cut off has left: a page with records that nobody has. */
static void write_cut_page(void)
{
	static u64 page[512];
	const struct tr_page_id id = { .magic = TERRACE_MAP_MAGIC, .tree = TERRACE_TREE_MAP };
	struct tr_leaf leaf;

	tr_leaf_init(&leaf);
	tr_page_start(page, &id, 1, nr_records + 5, super.generation + 1, super.volume_uuid);
	tr_map_encode(page, &leaf, NULL, 0);
	write_page(page, &id, 1, nr_records + 5, 0, 0);
}

/* ---- the whole ------------------------------------------------------------------- */

static void open_tier(u32 nr, const char *path)
{
	static u64 block[512];

	fd[nr] = open(path, O_RDWR);
	if (fd[nr] < 0 || pread(fd[nr], block, sizeof(block), 0) != sizeof(block))
		die(path);
	if (tr_label_decode(&label[nr], block) || (label[nr].tier_index != nr && label[nr].tier_index != TERRACE_META_DEVICE))
		die("not this tier's label");
	if (label[nr].flags & TERRACE_LABEL_META)
		primary = nr;
	if (label[nr].flags & (TERRACE_LABEL_META_SYNC | TERRACE_LABEL_META_LAZY))
		mirror = nr;
}

static void set_up_tier(u32 i)
{
	u64 nr = super.tier[i].data_blocks;

	used[i] = calloc(nr, 1);
	owner_of[i] = malloc(nr * sizeof(u64));
	memset(owner_of[i], 0xff, nr * sizeof(u64));
	written_at[i] = calloc(nr, sizeof(u64));
}

static void set_up(void)
{
	static u64 block[512];

	if (pread(fd[primary], block, sizeof(block), label[primary].meta_start * TERRACE_BLOCK_BYTES) !=
	    sizeof(block) || tr_super_decode(&super, block))
		die("superblock");
	regions = super.virtual_blocks / TERRACE_REGION_BLOCKS;
	map = malloc(super.virtual_blocks * sizeof(*map));
	old_map = malloc(super.virtual_blocks * sizeof(*map));
	pending = calloc(super.virtual_blocks, sizeof(*pending));
	pending_seq = calloc(regions, sizeof(*pending_seq));
	packs = calloc(regions, sizeof(*packs));
	old_packs = calloc(regions, sizeof(*old_packs));
	value_of = calloc(super.virtual_blocks, sizeof(*value_of));
	records = calloc(MAX_RECORDS + 1, sizeof(*records));
	memset(map, 0xff, super.virtual_blocks * sizeof(*map));
	for (u64 b = 0; b < super.virtual_blocks; b++)
		map[b] = TR_NO_PLACE;
	for (u32 i = 0; i < super.nr_tiers; i++)
		set_up_tier(i);
	next_page = tr_first_page(&super);
}

static void set_tail(u64 generation)
{
	u64 laps = breaks("lazy-laps") ? LAPS_BEHIND : 0;

	for (u64 r = 0; r < regions; r++)
		load(r);
	memcpy(old_map, map, super.virtual_blocks * sizeof(*map));
	for (u64 r = 0; r < regions; r++) {
		if (!packs[r])
			continue;
		old_packs[r] = calloc(1, tr_packs_bytes(TERRACE_PACK_SLOTS));
		tr_packs_init(old_packs[r], TERRACE_PACK_SLOTS);
		tr_packs_copy(old_packs[r], packs[r]);
	}
	super.generation = generation ? generation : super.generation + 1;
	super.activations++;
	super.tail_record_seq = nr_records;
	super.tail_block_seq = (3 + laps) * super.journal_blocks - 2;	/* wraps soon */
	super.tail_nonce = rnd(~0ull);
	super.tail_prev_crc = rnd(1ull << 32);
}

/* Blocks of the devices. */
static void print_run(u64 region, const struct tr_pack *pack)
{
	u64 index = pack->index_blocks ? label[0].data_start + tr_place_index(pack->index_place) : 0;

	printf("run %llu %llu %llu %u %u %llu\n", region, pack->id,
	       label[tr_place_tier(pack->place)].data_start + tr_place_index(pack->place),
	       pack->blocks, tr_pack_live(pack), index);
}

static void print_counts(void)
{
	u64 live = 0, discarded = 0, packed = 0, clean = 0;

	for (u64 r = 0; r < regions; r++)
		for (u32 k = 0; packs[r] && k < packs[r]->nr; k++)
			print_run(r, &packs[r]->pack[k]);
	for (u64 b = 0; b < super.virtual_blocks; b++) {
		packed += map[b] == TR_NO_PLACE && somewhere(b) && !pending[b];
		clean += map[b] != TR_NO_PLACE && !pending[b] &&
			 tr_packs_find(packs[b / TERRACE_REGION_BLOCKS], b % TERRACE_REGION_BLOCKS) != TR_NO_PACK;
		live += map[b] != TR_NO_PLACE && !pending[b];
		discarded += map[b] != TR_NO_PLACE && pending[b];
	}
	printf("packed-blocks %llu\nclean-slots %llu\n", packed, clean);
	printf("mapped %llu\ndiscarded %llu\nrecords %llu\nmeta-start %llu\n", live, discarded,
	       nr_records - super.tail_record_seq, label[primary].meta_start);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", 1, NULL, 's' }, { "before", 1, NULL, 'b' }, { "between", 1, NULL, 'm' },
		{ "after", 1, NULL, 'a' }, { "packs", 1, NULL, 'p' },
		{ "packing", 1, NULL, 'P' }, { "clean", 0, NULL, 'c' }, { "break", 1, NULL, 'x' },
		{ "blocks", 1, NULL, 'd' }, { "generation", 1, NULL, 'g' },
		{ NULL, 0, NULL, 0 },
	};
	u64 before = 300, between = 20, after = 100, nr_packs = 0, generation = 0;
	const char *blocks = NULL;
	bool clean = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 's':
			random_state = 0x9e3779b97f4a7c15ull * (strtoull(optarg, NULL, 0) + 1);
			break;
		case 'b':
			before = strtoull(optarg, NULL, 0);
			break;
		case 'm':
			between = strtoull(optarg, NULL, 0);
			break;
		case 'a':
			after = strtoull(optarg, NULL, 0);
			break;
		case 'c':
			clean = true;
			break;
		case 'p':
			nr_packs = strtoull(optarg, NULL, 0);
			before = between = after = 0;
			break;
		case 'P':
			packing = strtoul(optarg, NULL, 0);
			break;
		case 'x':
			broken = optarg;
			break;
		case 'd':
			blocks = optarg;
			break;
		case 'g':
			generation = strtoull(optarg, NULL, 0);
			break;
		default:
			return 2;
		}
	}
	for (int i = optind; i < argc; i++)
		open_tier(i - optind, argv[i]);
	set_up();
	while (before--)
		operate();
	set_tail(generation);
	while (between--)
		operate();
	pack_regions(0, nr_packs);
	for (u32 i = 0; i < super.nr_tiers; i++)
		write_spaces(i, nr_records);
	write_maps(nr_records);
	while (after--)
		operate();
	pack_regions(1, nr_packs);
	for (u32 i = 0; i < super.nr_tiers; i++)
		if (super.tier[i].kind == TERRACE_KIND_SHELVES)
			write_shelves(i);
	if (blocks)
		write_blocks(blocks);
	super.flags = clean ? TERRACE_SUPER_CLEAN : 0;
	write_super();
	write_journal();
	if (breaks("cut-checkpoint"))
		write_cut_page();
	print_counts();
	return 0;
}
