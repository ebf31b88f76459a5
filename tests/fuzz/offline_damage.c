// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What an input does to the volume: patches, each of a structure, an offset in it, a length and
 * bytes. Checksums are made right again, up to the superblock and along the journal, or stay
 * wrong. And inputs that make sense, for libFuzzer.
 */
#include <unistd.h>

#include "fuzz/offline.h"
#include "core/pack.h"
#include "faults/chance.h"
#include "faults/structures.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed);

static u32 always;		/* is put back after every input: the first ones that are noted */
static u32 mirrored;		/* of them those at first in which the mirror is the same */
static struct image *area;	/* has the metadata that are damaged … */
static struct image *mirror;	/* … and a copy that is always the same, NULL: there is none */
static u64 mirror_start;
static struct tr_label places[MOST_IMAGES];
static u64 journal_blocks;
static u8 mostly;		/* LEFT_OUT_BITS of most inputs: the copy is of use without the primary */

/* ---- what can be damaged --------------------------------------------------------- */

enum kind { LABEL, SUPER, OTHER_SUPER, JOURNAL, BITMAP, PAGE, OWNERS, TABLE, PACK };

struct target {
	enum kind kind;
	struct image *image;
	u64 block;		/* of the image */
	u32 blocks, reach;	/* bytes that can be damaged: those that say something, and a few more */
	u64 seq;		/* JOURNAL */
	struct node *node;	/* PAGE */
	bool hit;
};

static struct target target[256];	/* of an input one byte */
static u32 nr_targets;

static u8 *bytes_of(const struct target *t) { return t->image->is + t->block * TERRACE_BLOCK_BYTES; }

static struct target *add_target(enum kind kind, struct image *img, u64 block, u32 blocks)
{
	struct target *t = &target[nr_targets++];
	u32 all = blocks * TERRACE_BLOCK_BYTES;

	hold(nr_targets <= ARRAY_SIZE(target) && block + blocks <= img->blocks);
	*t = (struct target){ .kind = kind, .image = img, .block = block, .blocks = blocks, .reach = all };
	while (t->reach > 64 && !bytes_of(t)[t->reach - 1])
		t->reach--;
	t->reach = t->reach + 64 < all ? t->reach + 64 : all;
	return t;
}

static void add_meta(void)
{
	struct image *img = area;
	u64 newest = super.generation & 1, start = label.meta_start;

	for (u32 i = 0; i < nr_images; i++)
		add_target(LABEL, &image[i], 0, 1);
	add_target(SUPER, img, start + newest, 1);
	add_target(OTHER_SUPER, img, start + !newest, 1);
	for (u64 k = 0; k <= journal_blocks; k++)	/* and the block behind it */
		add_target(JOURNAL, img, start + super.journal_start + (super.tail_block_seq + k) % super.journal_blocks,
			   1)->seq = super.tail_block_seq + k;
	for (u64 k = 0; k < super.bitmap_blocks; k++)
		add_target(BITMAP, img, start + super.bitmap_start[newest] + k, 1);
	for (u32 k = 0; k < nr_nodes; k++)
		add_target(PAGE, img, start + node[k].block, node[k].blocks)->node = &node[k];
	for (u32 k = 0; k < nr_targets; k++)
		change(target[k].image, target[k].block, target[k].kind == LABEL ? TERRACE_LABEL_COPIES : target[k].blocks);
	mirrored = nr_changed;
	for (u32 k = 0; k < mirrored && mirror; k++)
		if (changed[k].image == img && changed[k].block >= start)
			change(mirror, changed[k].block - start + mirror_start, 1);
	always = nr_changed;
}

/* A shelf's tables are many, and most of them name nobody. */
static bool names_somebody(const struct terrace_table_disk *table)
{
	u32 k = 0;

	while (k < TERRACE_TABLE_OWNERS && table->owner[k] == __cpu_to_le64(TERRACE_NO_OWNER))
		k++;
	return k < TERRACE_TABLE_OWNERS;
}

/* What the shelves say, and copies of headers of packs on slots. */
static void add_shelves(struct image *img, int fd, u64 first)
{
	for (u64 block = first; block < img->blocks; block++) {
		off_t data = lseek(fd, block * TERRACE_BLOCK_BYTES, SEEK_DATA);
		const struct terrace_pack_disk *pack;
		struct target *t;

		if (data < 0)
			return;
		block = data / TERRACE_BLOCK_BYTES;
		pack = (const void *)(img->was + block * TERRACE_BLOCK_BYTES);
		switch (__le32_to_cpu(pack->magic)) {
		case TERRACE_OWNER_MAGIC:
			add_target(OWNERS, img, block, 1);
			break;
		case TERRACE_TABLE_MAGIC:
			if (names_somebody((const void *)pack))
				add_target(TABLE, img, block, 1);
			break;
		case TERRACE_PACK_MAGIC:	/* and a little of what is in it */
			t = add_target(PACK, img, block, __le16_to_cpu(pack->blocks));
			t->reach = __le32_to_cpu(pack->bytes) + 512;
		}
	}
}

/* ---- right checksums ------------------------------------------------------------- */

/* The map and the journal have it, too. */
static void change_number(u8 *block, u32 bytes, u32 from, u32 to)
{
	for (u32 k = 0; k + sizeof(u32) <= bytes; k += sizeof(u32))
		if (!memcmp(block + k, &from, sizeof(from)))
			memcpy(block + k, &to, sizeof(to));
}

static void seal_pack(const struct target *t)
{
	struct terrace_pack_disk *pack = (void *)bytes_of(t);
	u32 most = t->blocks * TERRACE_BLOCK_BYTES, bytes = __le32_to_cpu(pack->bytes);
	u32 from = pack->crc;

	reseal(pack, bytes < 256 || bytes > most ? 256 : bytes, offsetof(struct terrace_pack_disk, crc));
	for (u32 k = 0; k < nr_targets; k++) {
		struct target *in = &target[k];

		if (in->kind != JOURNAL && in->kind != PAGE)
			continue;
		change_number(bytes_of(in), in->blocks * TERRACE_BLOCK_BYTES, from, pack->crc);
		in->hit = true;
	}
}

static void seal_target(const struct target *t)
{
	void *block = bytes_of(t);

	switch (t->kind) {
	case LABEL:
		reseal(block, TERRACE_BLOCK_BYTES, offsetof(struct terrace_label_disk, crc));
		break;
	case SUPER:
	case OTHER_SUPER:
		reseal(block, TERRACE_BLOCK_BYTES, offsetof(struct terrace_super_disk, crc));
		break;
	case JOURNAL:
		seal_journal(t->seq);
		break;
	case BITMAP:
		reseal(block, TERRACE_BLOCK_BYTES, offsetof(struct terrace_page_disk, crc));
		break;
	case PAGE:
		seal_node(t->node);
		break;
	case OWNERS:
	case TABLE:
		reseal(block, TERRACE_BLOCK_BYTES, offsetof(struct terrace_owners_disk, crc));
		break;
	case PACK:
		seal_pack(t);
	}
}

/* Packs first: they change others. Superblocks by themselves only if a page has not done it. */
static void seal_all(void)
{
	for (int kind = PACK; kind >= LABEL; kind--)
		for (u32 k = 0; k < nr_targets; k++)
			if (target[k].kind == (enum kind)kind && target[k].hit)
				seal_target(&target[k]);
}

static void copy_block(struct image *to, u64 block, const struct image *from, u64 other)
{
	memcpy(to->is + block * TERRACE_BLOCK_BYTES, from->is + other * TERRACE_BLOCK_BYTES, TERRACE_BLOCK_BYTES);
}

void damage(const uint8_t *data, size_t size, u8 how)
{
	u32 bytes;

	for (u32 k = 0; k < nr_targets; k++)
		target[k].hit = false;
	for (; size >= 5; data += 4 + bytes, size -= 4 + bytes) {
		struct target *t = &target[data[0] % nr_targets];
		u32 from = (data[1] | data[2] << 8) % t->reach;

		bytes = 1 + data[3] % 8;
		if (bytes > size - 4)
			bytes = size - 4;
		if (from + bytes > t->blocks * TERRACE_BLOCK_BYTES)
			continue;
		if (t->kind >= OWNERS)
			change(t->image, t->block, t->blocks);
		memcpy(bytes_of(t) + from, data + 4, bytes);
		t->hit = true;
	}
	if (!(how & RAW))
		seal_all();
	for (u32 k = 0; k < always - mirrored && how & BOTH; k++)
		copy_block(mirror, changed[mirrored + k].block, area, changed[mirrored + k].block - mirror_start + label.meta_start);
	for (u32 i = 0; i < nr_images && !(how & ONE_LABEL); i++)
		copy_block(&image[i], 1, &image[i], 0);
}

void undo_damage(void)
{
	put_back(always);
}

bool read_only(void)
{
	return ((struct terrace_super_disk *)at(0))->compat_ro || ((struct terrace_super_disk *)at(1))->compat_ro;
}

static bool hit(enum kind from, enum kind to)
{
	for (u32 k = 0; k < nr_targets; k++)
		if (target[k].kind >= from && target[k].kind <= to && target[k].hit)
			return true;
	return false;
}

bool label_hit(void) { return hit(LABEL, LABEL); }

bool journal_end_hit(void)
{
	u64 end = super.tail_block_seq + journal_blocks;

	for (u32 k = 0; k < nr_targets; k++)
		if (target[k].kind == JOURNAL && target[k].hit && target[k].seq + 1 >= end)
			return true;
	return false;
}

bool devices_as_before(void)
{
	struct tr_label now;

	for (u32 i = 0; i < nr_images; i++)
		if (!label_of(&image[i], &now) || now.tier_index != places[i].tier_index || now.flags != places[i].flags ||
		    now.meta_start != places[i].meta_start || now.meta_blocks != places[i].meta_blocks)
			return false;
	return true;
}

/* One at the other's place is not read by anybody. */
u64 newest_generation(void)
{
	struct tr_super copy;
	u64 newest = 0;

	for (u32 i = 0; i < nr_images; i++)
		for (u32 k = 0; places[i].meta_blocks && k < 2; k++)
			if (!tr_super_decode(&copy, image[i].is + (places[i].meta_start + k) * TERRACE_BLOCK_BYTES) &&
			    (copy.generation & 1) == k && copy.generation > newest)
				newest = copy.generation;
	return newest;
}

void wipe(void)
{
	for (u32 i = 0; i < nr_images; i++) {
		change(&image[i], 0, TERRACE_LABEL_COPIES);
		memset(image[i].is, 0xa5, TERRACE_LABEL_COPIES * TERRACE_BLOCK_BYTES);
		if (!places[i].meta_blocks)
			continue;
		change(&image[i], places[i].meta_start, places[i].meta_blocks);
		memset(image[i].is + places[i].meta_start * TERRACE_BLOCK_BYTES, 0xa5, places[i].meta_blocks * TERRACE_BLOCK_BYTES);
	}
}

void find_targets(void)
{
	bool copy = getenv("MIRROR");
	struct tr_label *of = places;

	for (u32 i = 0; i < nr_images; i++) {
		hold(!tr_label_decode(&of[i], image[i].is));
		if (copy && of[i].flags & TERRACE_LABEL_META)
			mostly = (i + 1) << 3;
		if (of[i].flags & (copy ? TERRACE_LABEL_META_SYNC | TERRACE_LABEL_META_LAZY : TERRACE_LABEL_META)) {
			area = &image[i];
			label = of[i];
		} else if (of[i].flags & TERRACE_LABEL_META_SYNC) {
			mirror = &image[i];
			mirror_start = of[i].meta_start;
		}
	}
	hold(area);
	meta = area->is + label.meta_start * TERRACE_BLOCK_BYTES;
	hold(find_structures());
	journal_blocks = journal_length();
	add_meta();
	for (u32 i = 0; i < nr_images; i++)
		if (of[i].data_blocks)
			add_shelves(&image[i], image[i].fd, of[i].data_start);
}

/* ---- inputs that make sense ------------------------------------------------------ */

/* Those at limits are where mistakes are. */
static u64 number(const u8 *field, u32 width)
{
	const struct tr_super_tier *tier = &super.tier[below(super.nr_tiers)];
	u64 was = 0;

	memcpy(&was, field, width);
	const u64 limit[] = {
		0, ~0ull >> below(64), 1ull << below(64), was ^ 1ull << below(64), was + below(5) - 2,
		super.virtual_blocks + below(3) - 1, super.meta_blocks + below(3) - 1,
		tr_place(tier - super.tier, tier->data_blocks + below(3) - 1),
	};

	return limit[below(ARRAY_SIZE(limit))];
}

/* Kinds are as likely as each other, however many there are of one, and fields that say something likelier. */
static size_t add_patch(uint8_t *data, size_t size, size_t most)
{
	u32 k = below(nr_targets), from, width = 1u << below(4);
	enum kind kind = below(PACK + 1);
	u64 value;

	for (u32 left = nr_targets; left && target[k].kind != kind; left--)
		k = (k + 1) % nr_targets;
	for (u32 left = 4; left; left--) {
		from = below(target[k].reach / width) * width;
		if (bytes_of(&target[k])[from])
			break;
	}
	value = number(bytes_of(&target[k]) + from, width);
	if (size + 4 + width > most)
		return size;
	data[size] = k;
	data[size + 1] = from;
	data[size + 2] = from >> 8;
	data[size + 3] = width - 1;
	memcpy(data + size + 4, &value, width);
	return size + 4 + width;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
	chance = seed;
	if (most < 16 || below(3) == 0)
		return LLVMFuzzerMutate(data, size, most);
	if (getenv("RESTORE"))
		return change_of_dump(data, size, most, any());
	if (size < 2 || below(2))
		size = 2;	/* begins anew */
	if (size == 2 || !below(4)) {
		data[0] = any();
		data[1] = below(8) ? any() & ~RAW : any();
		if (below(4))
			data[1] = (data[1] & ~LEFT_OUT_BITS) | mostly;
	}
	return add_patch(data, size, most);
}

