// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Damages the metadata of a volume that is not in use, one structure of it, and
 * reads volumes that were damaged.
 *
 *	scribble raw SEED DEVICE	some bytes become others: what a checksum notices
 *	scribble sealed SEED DEVICE	fields become other numbers, and every checksum is
 *					right again, of the structure, of its parents up
 *					to the superblock, and of the journal behind it
 *	scribble shelf raw|sealed SEED DEVICE	the same to a tier of shelves: to a pack's header, an
 *					owner block or a table of owners; raw: or to a payload
 *	scribble label BYTE VALUE DEVICE	the 32-bit number at that byte of the label
 *	scribble beyond DEVICE		the journal's last record discards more than there is
 *	scribble nowhere TYPE DEVICE	the journal's last record becomes one of that type (of
 *					MAP and CLEAN) that names a tier that is not there
 *	scribble ahead DEVICE		the map has a record that the journal does not reach
 *	scribble read DEVICE [FILE]	each block can be read or cannot; what can is as
 *					in FILE
 *
 * DEVICE has the primary metadata; there must be no mirror. Says what it has done.
 *
 * Exit status: 0, 1 a block is another one than in FILE, 2 trouble.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "chance.h"
#include "structures.h"

#define AT_ONCE		64u		/* blocks in one read */

static u8 label_block[TERRACE_BLOCK_BYTES];

/* ---- what there is ------------------------------------------------------------ */

static void open_label(int fd)
{
	if (pread(fd, label_block, sizeof(label_block), 0) != sizeof(label_block) || tr_label_decode(&label, label_block))
		trouble("no label");
}

static void open_meta(int fd)
{
	open_label(fd);
	meta = calloc(label.meta_blocks, TERRACE_BLOCK_BYTES);
	if (!meta || pread(fd, meta, label.meta_blocks * TERRACE_BLOCK_BYTES, label.meta_start * TERRACE_BLOCK_BYTES) !=
		     (ssize_t)(label.meta_blocks * TERRACE_BLOCK_BYTES))
		trouble("reading the metadata");
	if (!find_structures())
		trouble("no superblock");
}

/* ---- damage ---------------------------------------------------------------------- */

static u64 number(void)
{
	switch (below(8)) {
	case 0: return 0;
	case 1: return ~0ull >> below(64);
	case 2: return 1ull << below(64);
	case 3: return super.virtual_blocks + below(3) - 1;
	case 4: return super.meta_blocks + below(3) - 1;
	case 5: return below(300);
	case 6: return below(super.meta_blocks);
	default: return any();
	}
}

/* Fields in [from, to) of @block, most of them among the first ones. */
static void spoil(u8 *block, u32 from, u32 to, bool raw)
{
	for (u64 nr = 1 + below(3); nr; nr--) {
		u32 width = raw ? 1 : 1u << below(4);
		u32 reach = below(2) ? to : from + 256 < to ? from + 256 : to;
		u32 place = from + below((reach - from) / width) * width;
		u64 value = raw ? block[place] ^ (1 + below(255)) : number();

		printf(" %u+%u=%#llx", place, width, (unsigned long long)value);
		memcpy(block + place, &value, width);
	}
}

static void damage_page(bool raw)
{
	struct node *n = &node[below(nr_nodes)];
	u32 first = raw ? 0 : below(8) ? sizeof(struct terrace_page_disk) : 8;

	printf("page at meta block %llu, level %u:", (unsigned long long)n->block, n->level);
	spoil(at(n->block), first, n->blocks * TERRACE_BLOCK_BYTES, raw);
	if (!raw)
		seal_node(n);
}

static void damage_super(bool raw)
{
	printf("superblock:");
	spoil((u8 *)super_disk(), raw ? 0 : 32, 256 + 128 * super.nr_tiers, raw);
	if (!raw)
		seal_super();
}

static void damage_journal(bool raw)
{
	u64 nr = journal_length(), seq = super.tail_block_seq + below(nr);

	if (!nr) {
		damage_page(raw);
		return;
	}
	printf("journal block %llu:", (unsigned long long)seq);
	spoil((u8 *)ring(seq), raw ? 0 : below(4) ? 64 : 44, 64 + 40 * __le16_to_cpu(ring(seq)->nr_records), raw);
	if (!raw)
		seal_journal(seq);
}

/* Instead of the journal's last one. */
static void last_record(const struct tr_record *record)
{
	u64 nr = journal_length(), seq = super.tail_block_seq + nr - 1;
	u32 records = nr ? tr_jblock_nr(ring(seq)) : 0;

	if (!records)
		trouble("no record in the journal");
	ring(seq)->nr_records = __cpu_to_le16(records - 1);
	tr_jblock_append(ring(seq), record);
	seal_journal(seq);
}

static void discard_beyond(void)
{
	last_record(&(struct tr_record){ .type = TERRACE_RECORD_DISCARD, .new = 1 << 20 });
}

static void nowhere(u8 type)
{
	bool clean = type == TERRACE_RECORD_CLEAN;

	last_record(&(struct tr_record){
		.type = type, .nr = 1, .aux = clean ? TERRACE_CLEAN_KEPT : 0,
		.new = tr_place(TERRACE_MAX_TIERS - 1, 5), .old = clean ? 1 : TERRACE_NO_PLACE,
	});
}

static void map_ahead(void)
{
	u64 nr = journal_length(), seq = super.tail_block_seq + nr - 1;
	u64 newest = nr ? tr_jblock_first_record(ring(seq)) + tr_jblock_nr(ring(seq)) - 1 : super.tail_record_seq;

	super_disk()->map_root.seq = __cpu_to_le64(newest + 1);
	seal_super();
}

static void damage_bitmap(bool raw)
{
	u64 block = super.bitmap_start[super.generation & 1] + below(super.bitmap_blocks);

	printf("meta bitmap at %llu:", (unsigned long long)block);
	spoil(at(block), raw ? 0 : 64, TERRACE_BLOCK_BYTES, raw);
	if (!raw)
		tr_page_seal(at(block));
}

static void write_label(int fd, bool raw)
{
	struct terrace_label_disk *disk = (void *)label_block;

	if (!raw)
		reseal(disk, sizeof(*disk), offsetof(struct terrace_label_disk, crc));
	for (u32 copy = 0; copy < TERRACE_LABEL_COPIES; copy++)
		if (pwrite(fd, label_block, sizeof(label_block), copy * TERRACE_BLOCK_BYTES) != sizeof(label_block))
			trouble("writing the label");
}

static void damage_label(int fd, bool raw)
{
	printf("label:");
	spoil(label_block, raw ? 0 : 48, 200, raw);
	write_label(fd, raw);
}

static int change_label(u32 byte, u32 value, const char *device)
{
	__le32 number = __cpu_to_le32(value);
	int fd = open(device, O_RDWR);

	if (fd < 0)
		trouble(device);
	open_label(fd);
	memcpy(label_block + byte % (TERRACE_BLOCK_BYTES - sizeof(number)), &number, sizeof(number));
	write_label(fd, false);
	return 0;
}

static int write_meta(int fd)
{
	if (pwrite(fd, meta, label.meta_blocks * TERRACE_BLOCK_BYTES, label.meta_start * TERRACE_BLOCK_BYTES) !=
	    (ssize_t)(label.meta_blocks * TERRACE_BLOCK_BYTES) || fsync(fd))
		trouble("writing the metadata");
	return 0;
}

/* @what of beyond, ahead, or the type of a record that leads nowhere. */
static int wrong_numbers(const char *what, const char *device)
{
	int fd = open(device, O_RDWR);

	if (fd < 0)
		trouble(device);
	open_meta(fd);
	if (!strcmp(what, "beyond"))
		discard_beyond();
	else if (!strcmp(what, "ahead"))
		map_ahead();
	else
		nowhere(strtoul(what, NULL, 0));
	return write_meta(fd);
}

static int damage(const char *device, bool raw)
{
	int fd = open(device, O_RDWR);

	if (fd < 0)
		trouble(device);
	open_meta(fd);
	switch (below(10)) {
	case 0: damage_label(fd, raw); break;
	case 1: case 2: damage_super(raw); break;
	case 3: damage_bitmap(raw); break;
	case 4: case 5: damage_journal(raw); break;
	default: damage_page(raw);
	}
	putchar('\n');
	return write_meta(fd);
}

/* ---- shelves ----------------------------------------------------------------------- */

enum { PACK, OWNERS, TABLE, KINDS };

#define SHELF_CRC_AT	offsetof(struct terrace_pack_disk, crc)	/* in all of them */

/* What stands at @block; how long it is to *@bytes. KINDS: user data. */
static u32 kind_of(const u8 *block, const u8 *end, u32 *bytes)
{
	const struct terrace_pack_disk *pack = (const void *)block;
	u32 kind;

	*bytes = TERRACE_BLOCK_BYTES;
	switch (__le32_to_cpu(pack->magic)) {
	case TERRACE_PACK_MAGIC:
		kind = PACK;
		*bytes = __le32_to_cpu(pack->bytes);
		break;
	case TERRACE_OWNER_MAGIC: kind = OWNERS; break;
	case TERRACE_TABLE_MAGIC: kind = TABLE; break;
	default: return KINDS;
	}
	if (*bytes < sizeof(*pack) || *bytes > TERRACE_PACK_HEADER_BLOCKS * TERRACE_BLOCK_BYTES || block + *bytes > end ||
	    __le32_to_cpu(pack->crc) != tr_block_crc(block, *bytes, SHELF_CRC_AT))
		return KINDS;
	return kind;
}

/* Any of the structures of @kind in [@from, @end), or NULL. */
static u8 *any_of(u32 kind, u8 *from, const u8 *end)
{
	u8 *chosen = NULL;
	u64 nr = 0;
	u32 bytes;

	for (u8 *block = from; block < end; block += TERRACE_BLOCK_BYTES)
		if (kind_of(block, end, &bytes) == kind && !below(++nr))
			chosen = block;
	return chosen;
}

static void damage_structure(u8 *block, u32 kind, u32 bytes, bool raw)
{
	static const char *const name[KINDS] = { "pack", "owner block", "table of owners" };
	struct terrace_pack_disk *pack = (void *)block;
	u32 payload = __le32_to_cpu(pack->payload_bytes), header = (bytes + TERRACE_BLOCK_BYTES - 1) & -TERRACE_BLOCK_BYTES;

	printf("%s, place %#llx:", name[kind], (unsigned long long)__le64_to_cpu(kind == PACK ? pack->place : pack->id));
	if (kind == PACK && raw && payload && below(2)) {
		spoil(block, header, header + payload, true);
		return;
	}
	spoil(block, raw ? 0 : 24, bytes, raw);
	if (raw)
		return;
	/* As long as it says now, if it can be. */
	if (kind == PACK && __le32_to_cpu(pack->bytes) >= sizeof(*pack) && __le32_to_cpu(pack->bytes) <= header)
		bytes = __le32_to_cpu(pack->bytes);
	reseal(block, bytes, SHELF_CRC_AT);
}

static int damage_shelf(const char *device, bool raw)
{
	int fd = open(device, O_RDWR);
	off_t length = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	u8 *drive = length <= 0 ? MAP_FAILED : mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	u32 first = below(KINDS), kind = first, bytes;
	u8 *block = NULL;

	if (drive == MAP_FAILED)
		trouble(device);
	for (u32 k = 0; k < KINDS && !block; k++) {
		kind = (first + k) % KINDS;
		block = any_of(kind, drive, drive + length);
	}
	if (!block)
		trouble("no pack and no owners");
	kind_of(block, drive + length, &bytes);
	damage_structure(block, kind, bytes, raw);
	putchar('\n');
	if (msync(drive, length, MS_SYNC) || fsync(fd))
		trouble("writing the shelf");
	return 0;
}

/* ---- reading --------------------------------------------------------------------------- */

static u64 unread, wrong, first_wrong;

static void judge(u64 block, u32 nr, const u8 *got, const u8 *wanted)
{
	for (u32 k = 0; k < nr; k++) {
		if (!memcmp(got + k * TERRACE_BLOCK_BYTES, wanted + k * TERRACE_BLOCK_BYTES, TERRACE_BLOCK_BYTES))
			continue;
		if (!wrong++)
			first_wrong = block + k;
	}
}

static int read_all(const char *device, const char *file)
{
	int fd = open(device, O_RDONLY | O_DIRECT), known = file ? open(file, O_RDONLY) : -1;
	u64 blocks = fd < 0 ? 0 : lseek(fd, 0, SEEK_END) / TERRACE_BLOCK_BYTES;
	u8 *got = aligned_alloc(TERRACE_BLOCK_BYTES, AT_ONCE * TERRACE_BLOCK_BYTES);
	u8 *wanted = calloc(AT_ONCE, TERRACE_BLOCK_BYTES);

	if (fd < 0 || (file && known < 0) || !got || !wanted)
		trouble(device);
	for (u64 block = 0; block < blocks; block += AT_ONCE) {
		u32 nr = blocks - block < AT_ONCE ? blocks - block : AT_ONCE, step = nr;

		if (file && pread(known, wanted, nr * TERRACE_BLOCK_BYTES, block * TERRACE_BLOCK_BYTES) < 0)
			trouble(file);
		if (pread(fd, got, nr * TERRACE_BLOCK_BYTES, block * TERRACE_BLOCK_BYTES) != (ssize_t)(nr * TERRACE_BLOCK_BYTES))
			step = 1;
		for (u32 k = 0; k < nr; k += step) {
			if (step == 1 && pread(fd, got, TERRACE_BLOCK_BYTES, (block + k) * TERRACE_BLOCK_BYTES) != TERRACE_BLOCK_BYTES)
				unread++;
			else if (file)
				judge(block + k, step, got, wanted + k * TERRACE_BLOCK_BYTES);
		}
	}
	printf("%llu blocks, %llu cannot be read", (unsigned long long)blocks, (unsigned long long)unread);
	if (wrong)
		printf(", %llu are WRONG, the first is %llu", (unsigned long long)wrong, (unsigned long long)first_wrong);
	putchar('\n');
	return wrong ? 1 : 0;
}

int main(int argc, char **argv)
{
	if (argc >= 3 && !strcmp(argv[1], "read"))
		return read_all(argv[2], argv[3]);
	if (argc == 3 && (!strcmp(argv[1], "beyond") || !strcmp(argv[1], "ahead")))
		return wrong_numbers(argv[1], argv[2]);
	if (argc == 4 && !strcmp(argv[1], "nowhere"))
		return wrong_numbers(argv[2], argv[3]);
	if (argc == 5 && !strcmp(argv[1], "label"))
		return change_label(strtoul(argv[2], NULL, 0), strtoul(argv[3], NULL, 0), argv[4]);
	if (argc == 5 && !strcmp(argv[1], "shelf") && (!strcmp(argv[2], "raw") || !strcmp(argv[2], "sealed"))) {
		chance = strtoull(argv[3], NULL, 0);
		return damage_shelf(argv[4], !strcmp(argv[2], "raw"));
	}
	if (argc != 4 || (strcmp(argv[1], "raw") && strcmp(argv[1], "sealed"))) {
		fputs("usage: scribble [shelf] raw|sealed SEED DEVICE, label BYTE VALUE DEVICE, beyond DEVICE, nowhere TYPE DEVICE, ahead DEVICE, or read DEVICE [FILE]\n", stderr);
		return 2;
	}
	chance = strtoull(argv[2], NULL, 0);
	return damage(argv[3], !strcmp(argv[1], "raw"));
}
