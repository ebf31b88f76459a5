/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The on-disk format of a Terrace volume. Structs only; what they mean and
 * how they hang together is in Documentation/format.md.
 *
 * Everything is little-endian. The unit of addressing is the block, 4096
 * bytes. Offsets of fields stand in comments and are kept true by the static
 * assertions in kmod/core/selfcheck.c. Bytes not named are written as zero
 * and ignored when read. A CRC is CRC32C with seed ~0 over the whole
 * structure (label, superblock, journal block: 4096 bytes; pages: their
 * length in blocks) with the crc field itself read as zero.
 *
 *   tier device     label | label copy | metadata area (some tiers) | data
 *   metadata area   superblock 0 | superblock 1 | journal | meta bitmap 0 |
 *                   meta bitmap 1 | pages (allocated by the meta bitmap)
 *
 * Three kinds of number, never mixed: a *block* counts from the start of the
 * virtual volume, a *place* from the start of a tier's data area (with the
 * tier in its low bits), a *meta block* from the start of the metadata area.
 */
#ifndef _UAPI_TERRACE_FORMAT_H
#define _UAPI_TERRACE_FORMAT_H

#include <linux/types.h>

#define TERRACE_BLOCK_SHIFT		12
#define TERRACE_BLOCK_BYTES		4096u
#define TERRACE_BLOCK_SECTORS		8u
#define TERRACE_REGION_SHIFT		10	/* blocks of a region, log2 */
#define TERRACE_REGION_BLOCKS		1024u
#define TERRACE_CHUNK_SHIFT		14	/* blocks of a chunk (a shelf), log2 */
#define TERRACE_CHUNK_BLOCKS		16384u	/* 64 MiB */
#define TERRACE_MAX_TIERS		8
#define TERRACE_MAX_PACKS		4	/* of one region, when no move runs */
#define TERRACE_PACK_SLOTS		8	/* of one region: crashes may leave some more */
#define TERRACE_UUID_BYTES		16
#define TERRACE_NAME_BYTES		64

#define TERRACE_FORMAT_VERSION		1

/* Feature words: unknown compat bits are ignored, unknown compat_ro bits
 * allow a read-only open, unknown incompat bits refuse the volume.
 */
#define TERRACE_COMPAT_KNOWN		0ull
#define TERRACE_COMPAT_RO_KNOWN		0ull
#define TERRACE_INCOMPAT_KNOWN		0ull

/* A place: tier in bits 0-2, tier-relative block in bits 3-39. */
#define TERRACE_PLACE_BITS		40
#define TERRACE_PLACE_TIER_BITS		3
#define TERRACE_NO_PLACE		((1ull << TERRACE_PLACE_BITS) - 1)
#define TERRACE_MAX_PLACE_INDEX		((1ull << 37) - 2)

enum terrace_class {
	TERRACE_CLASS_OPTANE	= 1,
	TERRACE_CLASS_NVME	= 2,
	TERRACE_CLASS_QLC	= 3,
	TERRACE_CLASS_HDD	= 4,
	TERRACE_CLASS_CSD	= 5,
	TERRACE_CLASS_NET	= 6,
	TERRACE_CLASS_META	= 7,	/* a metadata device, not a tier */
};

enum terrace_kind {
	TERRACE_KIND_SLOTS	= 1,
	TERRACE_KIND_SHELVES	= 2,
	TERRACE_KIND_HOME	= 3,
	TERRACE_KIND_NONE	= 4,	/* the metadata device */
};

/* --- label: block 0 of every device, copied in block 1 ------------------- */

#define TERRACE_LABEL_MAGIC		"TERRACE\x1a"
#define TERRACE_LABEL_COPIES		2
#define TERRACE_META_DEVICE		255	/* tier index of a metadata device */

/* label flags */
#define TERRACE_LABEL_ATOMIC		(1u << 0) /* writes atomic_bytes whole or not at all */
#define TERRACE_LABEL_META		(1u << 1) /* holds the metadata (primary) */
#define TERRACE_LABEL_META_SYNC		(1u << 2) /* holds the synchronous mirror */
#define TERRACE_LABEL_META_LAZY		(1u << 3) /* holds the lazy mirror */

struct terrace_label_disk {
	__u8	magic[8];			/*   0 */
	__le32	version;			/*   8 */
	__le32	crc;				/*  12 */
	__u8	volume_uuid[TERRACE_UUID_BYTES]; /* 16 */
	__u8	tier_uuid[TERRACE_UUID_BYTES];	/*  32 */
	__le64	generation;			/*  48: newest of the copies wins */
	__le32	tier_index;			/*  56 */
	__le32	class;				/*  60 */
	__le32	kind;				/*  64 */
	__le32	flags;				/*  68 */
	__le32	atomic_bytes;			/*  72 */
	__le32	align_blocks;			/*  76: physical block or indirection unit */
	__le64	device_blocks;			/*  80 */
	__le64	data_start;			/*  88: in blocks of the device */
	__le64	data_blocks;			/*  96 */
	__le64	meta_start;			/* 104 */
	__le64	meta_blocks;			/* 112: 0 where there is no metadata */
	__u8	name[TERRACE_NAME_BYTES];	/* 120: of the volume, NUL padded */
	__le64	stale_until[3];			/* 184: metadata copies that are out of date */
	__u8	unused[3888];			/* 208 */
};						/* 4096 */

/* --- page entry: how a parent names a child page ------------------------- */

/* addr: meta block in bits 0-39 (0: no child), length in blocks in bits
 * 40-43, age in bits 48-55 (map pages: see age in the map page).
 */
#define TERRACE_ENTRY_BLOCK_MASK	((1ull << 40) - 1)
#define TERRACE_ENTRY_LEN_SHIFT		40
#define TERRACE_ENTRY_LEN_MASK		0xfull
#define TERRACE_ENTRY_AGE_SHIFT		48

struct terrace_entry_disk {
	__le64	addr;				/*   0 */
	__le32	crc;				/*   8: of the child page */
	__le32	count;				/*  12: blocks on slots, or allocated; sums above */
	__le64	seq;				/*  16: records up to this one are contained */
};						/*  24 */

/* --- superblock: meta blocks 0 and 1, by generation parity --------------- */

#define TERRACE_SUPER_MAGIC		"TERRSUP\x1a"

/* superblock flags */
#define TERRACE_SUPER_CLEAN		(1u << 0) /* journal empty, nothing newer than the pages */
#define TERRACE_SUPER_LAZY		(1u << 1) /* this is a lazy mirror's copy */
#define TERRACE_SUPER_ALONE		(1u << 2) /* written without the synchronous mirror: that is stale */
#define TERRACE_SUPER_LAZY_LOST		(1u << 3) /* the lazy mirror was given up: copy it anew, whole */

struct terrace_super_tier_disk {
	__u8	tier_uuid[TERRACE_UUID_BYTES];	/*   0 */
	__le32	class;				/*  16 */
	__le32	kind;				/*  20 */
	__le64	data_blocks;			/*  24 */
	__le64	reserve_blocks;			/*  32: kept free for moves */
	struct terrace_entry_disk space_root;	/*  40 */
	__u8	unused[64];			/*  64 */
};						/* 128 */

struct terrace_super_disk {
	__u8	magic[8];			/*   0 */
	__le32	version;			/*   8 */
	__le32	crc;				/*  12 */
	__u8	volume_uuid[TERRACE_UUID_BYTES]; /* 16 */
	__le64	generation;			/*  32: checkpoint; parity picks the copy */
	__le64	compat;				/*  40 */
	__le64	compat_ro;			/*  48 */
	__le64	incompat;			/*  56 */
	__le32	flags;				/*  64 */
	__le32	nr_tiers;			/*  68 */
	__le32	region_shift;			/*  72 */
	__le32	chunk_shift;			/*  76 */
	__le64	virtual_blocks;			/*  80 */
	__le64	meta_blocks;			/*  88 */
	__le64	journal_start;			/*  96: meta block */
	__le64	journal_blocks;			/* 104 */
	__le64	bitmap_start[2];		/* 112: one range per parity, behind the journal */
	__le64	bitmap_blocks;			/* 128: of one parity */
	__le64	tail_block_seq;			/* 136: first journal block to replay */
	__le64	tail_nonce;			/* 144: activation of the block before the tail */
	__le32	tail_prev_crc;			/* 152: CRC of the block before the tail */
	__le32	map_depth;			/* 156: directory levels above the map pages */
	__le64	tail_record_seq;		/* 160: up to it all are in the pages */
	__le64	next_id;			/* 168: packs and shelf runs, never reused */
	__le64	activations;			/* 176 */
	struct terrace_entry_disk map_root;	/* 184 */
	__le64	overcommit_blocks;		/* 208: virtual blocks beyond raw room */
	__u8	unused0[40];			/* 216 */
	struct terrace_super_tier_disk tiers[TERRACE_MAX_TIERS]; /* 256 */
	__u8	unused1[2816];			/* 1280 */
};						/* 4096 */

/* --- pages --------------------------------------------------------------- */

/* Every page starts with this header; its length is a whole number of blocks
 * and stands in the parent's entry as well.
 */
struct terrace_page_disk {
	__le32	magic;				/*   0 */
	__le32	crc;				/*   4 */
	__le64	index;				/*   8: region or chunk; directory: the first it reaches */
	__le64	seq;				/*  16: records up to this one are contained */
	__le64	generation;			/*  24: checkpoint that wrote it */
	__le16	blocks;				/*  32: length */
	__u8	level;				/*  34: directory: 1 = above leaves; leaves: 0 */
	__u8	tier;				/*  35: space pages and their directories */
	__u8	tree;				/*  36: enum terrace_tree */
	__u8	unused[11];			/*  37 */
	__u8	volume_uuid[TERRACE_UUID_BYTES]; /* 48 */
};						/*  64 */

enum terrace_tree { TERRACE_TREE_MAP = 1, TERRACE_TREE_SPACE = 2 };

#define TERRACE_DIR_MAGIC		0x52494454u	/* "TDIR" */
#define TERRACE_DIR_SHIFT		7
#define TERRACE_DIR_ENTRIES		128u

struct terrace_dir_disk {
	struct terrace_page_disk head;		/*   0 */
	struct terrace_entry_disk entry[TERRACE_DIR_ENTRIES]; /* 64 */
	__u8	unused[960];			/* 3136 */
};						/* 4096 */

/* Space page: which blocks of one chunk are in use. */
#define TERRACE_SPACE_MAGIC		0x43505354u	/* "TSPC" */

struct terrace_space_disk {
	struct terrace_page_disk head;		/*   0 */
	__le32	used;				/*  64: population of the bitmap */
	__u8	unused0[60];			/*  68 */
	__le64	bitmap[TERRACE_CHUNK_BLOCKS / 64]; /* 128 */
	__u8	unused1[1920];			/* 2176 */
};						/* 4096 */

/* Map page: where the blocks of one region live. After the header a list of
 * sections, each starting at a multiple of 8 bytes; a reader that meets an
 * unknown section type refuses the page.
 *   PLACES  presence bitmap (128 bytes), then 5 bytes per present block, in
 *           block order: its place. In a slot, or loose on a shelf.
 *   HOME    bitmap (128 bytes) per home tier: the block is at its home there.
 *   PACKS   struct terrace_pack_ref_disk, newest (highest id) first.
 *   GONE    bitmap (128 bytes): blocks that a range discard took. They read as
 *           zeros; where they were is still theirs, until UNMAP records free it.
 * A block that is live in a pack and has a place too is a clean slot.
 */
#define TERRACE_MAP_MAGIC		0x50414d54u	/* "TMAP" */
#define TERRACE_MAP_MAX_BLOCKS		3u

enum terrace_section {
	TERRACE_SECTION_PLACES	= 1,
	TERRACE_SECTION_HOME	= 2,
	TERRACE_SECTION_PACKS	= 3,
	TERRACE_SECTION_GONE	= 4,
};

struct terrace_section_disk {
	__le16	type;				/*   0 */
	__le16	aux;				/*   2: HOME: tier; else number of items */
	__le32	bytes;				/*   4: of the payload, without padding */
};						/*   8 */

/* Of all packs of a region at most one has a block live. A pack holds the
 * value of its live blocks; what else it contains is garbage.
 */
struct terrace_pack_ref_disk {
	__le64	id;				/*   0 */
	__le64	place;				/*   8: first block of the run */
	__le64	index_place;			/*  16: of the index copy, or TERRACE_NO_PLACE */
	__le16	blocks;				/*  24: of the run */
	__le16	index_blocks;			/*  26: of the index copy, 0: none */
	__le32	header_crc;			/*  28 */
	__le64	live[TERRACE_REGION_BLOCKS / 64]; /* 32 */
};						/* 160 */

struct terrace_map_disk {
	struct terrace_page_disk head;		/*   0 */
	__le32	bytes;				/*  64: of all sections */
	__le16	sections;			/*  68 */
	__u8	age;				/*  70: tick of last use, modulo 256 */
	__u8	unused;				/*  71 */
	__u8	payload[];			/*  72 */
};

/* Meta bitmap: which meta blocks the checkpoint of this parity uses. */
#define TERRACE_MBIT_MAGIC		0x54494254u	/* "TBIT" */
#define TERRACE_MBIT_WORDS		504u
#define TERRACE_MBIT_BITS		32256u

struct terrace_mbit_disk {
	struct terrace_page_disk head;		/*   0: index: first meta block; seq unused */
	__le64	bitmap[TERRACE_MBIT_WORDS];	/*  64 */
};						/* 4096 */

/* --- journal ------------------------------------------------------------- */

#define TERRACE_JOURNAL_MAGIC		0x4c4e4a54u	/* "TJNL" */
#define TERRACE_RECORDS_PER_BLOCK	126u
#define TERRACE_JOURNAL_FIRST		(1u << 0) /* first block of an activation */

/* Records are physical and idempotent; place + i means the place with its
 * block number raised by i. `old` is what the blocks held before, so that a
 * skipped record leaks nothing; TERRACE_NO_PLACE stands for "nothing". The
 * blocks of a record lie in one region; a DISCARD counts in regions, and the
 * places that it takes away are freed by later UNMAP records. Its `old` is 0,
 * or the number of the DISCARD that it repeats and is as old as.
 */
enum terrace_record {
	TERRACE_RECORD_MAP	= 1,	/* block+i is at new+i (before: old+i or nothing) */
	TERRACE_RECORD_UNMAP	= 2,	/* block+i is nowhere (before: old+i) */
	TERRACE_RECORD_DISCARD	= 3,	/* regions block .. block+new-1 are empty */
	TERRACE_RECORD_RESIZE	= 4,	/* virtual_blocks is new */
	TERRACE_RECORD_PACK_ADD	= 5,	/* region block: pack id in `old`, run in new, header CRC in aux */
	TERRACE_RECORD_PACK_DROP = 6,	/* region block: pack id in `old`, run in new; no block is live in it */
	TERRACE_RECORD_HOME_SET	= 7,	/* block+i is at home on tier aux (before: old+i) */
	TERRACE_RECORD_HOME_CLEAR = 8,
	TERRACE_RECORD_CLEAN	= 9,	/* block+i is live in pack id `old`, new+i is a copy of it */
	TERRACE_RECORD_PACKED	= 10,	/* block+i is live in pack id `new`, and nowhere else (before: old+i) */
	TERRACE_RECORD_PACKED_MASK = 11, /* the same for blocks block+b, b the bits of `old`; they had no place */
	TERRACE_RECORD_INDEX_ADD = 12,	/* region block: pack id in `old`, copy of its index in new */
	TERRACE_RECORD_INDEX_DROP = 13,	/* the same, gone */
};

/* aux of a CLEAN record */
#define TERRACE_CLEAN_KEPT		(1u << 0) /* the blocks were at new+i before: no room is taken */

struct terrace_record_disk {
	__u8	type;				/*   0 */
	__u8	flags;				/*   1 */
	__le16	nr;				/*   2: blocks, 1 .. 1024; runs of packs: .. 2048 */
	__le32	aux;				/*   4 */
	__le64	block;				/*   8 */
	__le64	new;				/*  16 */
	__le64	old;				/*  24 */
};						/*  32 */

struct terrace_journal_disk {
	__le32	magic;				/*   0 */
	__le32	crc;				/*   4 */
	__le64	block_seq;			/*   8: stands at block_seq % journal_blocks */
	__le64	first_record_seq;		/*  16 */
	__le64	nonce;				/*  24: of this activation */
	__le64	prev_nonce;			/*  32: FIRST: of the block before; else = nonce */
	__le32	prev_crc;			/*  40: of the block before */
	__le16	nr_records;			/*  44 */
	__u8	flags;				/*  46 */
	__u8	lag;				/*  47: blocks before block_seq + 1 - lag were durable; 0: unknown */
	__u8	volume_uuid[TERRACE_UUID_BYTES]; /* 48 */
	struct terrace_record_disk record[TERRACE_RECORDS_PER_BLOCK]; /* 64 */
};						/* 4096 */

/* --- shelves ------------------------------------------------------------- */

/* Owner block: written behind loose blocks, before the commit that makes
 * them part of the map. It names blocks of its own shelf, anywhere before it.
 */
#define TERRACE_OWNER_MAGIC		0x4e574f54u	/* "TOWN" */
#define TERRACE_OWNERS_PER_BLOCK	250u
#define TERRACE_NO_OWNER		(~0ull)

struct terrace_owner_disk {
	__le64	block;				/*   0: virtual block, or TERRACE_NO_OWNER */
	__le32	offset;				/*   8: in the shelf */
	__le32	crc;				/*  12: of the data, 0: not kept */
};						/*  16 */

struct terrace_owners_disk {
	__le32	magic;				/*   0 */
	__le32	crc;				/*   4 */
	__u8	volume_uuid[TERRACE_UUID_BYTES]; /*  8 */
	__le64	place;				/*  24: of this very block */
	__le64	record_seq;			/*  32: no older than its blocks' records */
	__le64	shelf_id;			/*  40: never reused, one per opening of a shelf */
	__le16	nr;				/*  48 */
	__le16	flags;				/*  50 */
	__le32	prev_offset;			/*  52: the shelf's owner block before, ~0: none */
	__u8	unused[40];			/*  56 */
	struct terrace_owner_disk owner[TERRACE_OWNERS_PER_BLOCK]; /* 96 */
};						/* 4096 */

/* Owner table: the last TERRACE_TABLE_BLOCKS blocks of a closed shelf. */
#define TERRACE_TABLE_MAGIC		0x4c425454u	/* "TTBL" */
#define TERRACE_TABLE_OWNERS		504u
#define TERRACE_TABLE_BLOCKS		33u	/* 33 * 504 >= 16384 */

struct terrace_table_disk {
	__le32	magic;				/*   0 */
	__le32	crc;				/*   4 */
	__u8	volume_uuid[TERRACE_UUID_BYTES]; /*  8 */
	__le64	place;				/*  24: of this very block */
	__le64	record_seq;			/*  32 */
	__le64	shelf_id;			/*  40 */
	__le32	first_offset;			/*  48 */
	__le16	nr;				/*  52 */
	__u8	unused[10];			/*  54 */
	__le64	owner[TERRACE_TABLE_OWNERS];	/*  64 */
};						/* 4096 */

/* --- packs --------------------------------------------------------------- */

/* A pack: a run of blocks on a shelf that holds compressed blocks of one
 * region. First the header, as long as it needs to be, padded to a block, then
 * the payload, cluster after cluster without gaps, then padding.
 *
 * Slots number the blocks of a pack: cluster c holds slots c << shift to
 * (c + 1) << shift, the last cluster perhaps fewer. A cluster is compressed in
 * segments, each on top of the ones before it: slot 0 | slots 1-3 | 4-15. So
 * its first blocks are read, checked and decoded without the others.
 *
 * Behind the fixed part, C = clusters, S = shift / 2 + 1 segments in each:
 *   __le32 offset[(C + 15) / 16]  in the payload, of every 16th cluster
 *   __le32 crc[C * S]             of the segment's bytes as stored
 *   __le16 length[C * S]          of the segment as stored; 0 in all segments
 *                                 of a cluster: stored raw (and where the
 *                                 last cluster has no blocks for a segment)
 *   __le16 slot[nr_blocks]        of each block, in block order; not there if
 *                                 shift is 0: then slot = rank
 * The CRC is over the first `bytes` bytes. They are also the index that is
 * kept in memory and on the fastest tier.
 */
#define TERRACE_PACK_MAGIC		0x4b415054u	/* "TPAK" */
#define TERRACE_PACK_VERSION		1
#define TERRACE_PACK_MAX_BLOCKS		2048u	/* of a run, padding included */
#define TERRACE_PACK_HEADER_BLOCKS	2u	/* at most */
#define TERRACE_PACK_MAX_SHIFT		4	/* of a cluster: 0, 2 or 4 */
#define TERRACE_PACK_MAX_SEGMENTS	3u
#define TERRACE_PACK_GROUP		16u	/* clusters per offset */

enum terrace_codec {
	TERRACE_CODEC_NONE	= 0,
	TERRACE_CODEC_LZ4	= 1,	/* linked LZ4 blocks, one a segment */
	TERRACE_CODEC_ZSTD	= 2,	/* one frame a cluster, flushed behind each segment */
};

struct terrace_pack_disk {
	__le32	magic;				/*   0 */
	__le32	crc;				/*   4 */
	__u8	volume_uuid[TERRACE_UUID_BYTES]; /*  8 */
	__le64	id;				/*  24: never reused */
	__le64	place;				/*  32: of this very block */
	__le64	region;				/*  40 */
	__le64	record_seq;			/*  48: no newer than its PACK_ADD record */
	__le32	bytes;				/*  56: of the header, tables included */
	__le32	payload_bytes;			/*  60 */
	__le16	blocks;				/*  64: of the run: header, payload, padding */
	__le16	nr_blocks;			/*  66: packed in it */
	__le16	nr_clusters;			/*  68 */
	__le16	version;			/*  70 */
	__u8	codec;				/*  72: enum terrace_codec */
	__u8	level;				/*  73: as ordered, for information */
	__u8	shift;				/*  74: blocks of a cluster, log2 */
	__u8	unused[53];			/*  75 */
	__le64	bitmap[TERRACE_REGION_BLOCKS / 64]; /* 128: blocks of the region that are in it */
	__u8	tables[];			/* 256 */
};

#endif
