/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packs in the kernel: what packs.c, codec.c, pack_cache.c, unpack.c and
 * order.c share.
 */
#ifndef DM_TERRACE_PACKS_H
#define DM_TERRACE_PACKS_H

#include "core/pack.h"
#include "terrace.h"

/* What a reader needs of a pack, copied under RCU. */
struct tr_pack_ref {
	u64 id;			/* 0: none */
	u64 region;
	u64 place;
	u64 index_place;
	u32 header_crc;
	u16 blocks;
	u16 index_blocks;
};

/*
 * Of blocks @i .. @i + @n - 1, all at one place or at none: how many of the
 * first share the pack they are live in. *@ref names it. Under RCU, within
 * the sequence counter; or under region->lock.
 */
u32 tr_region_find_pack(const struct tr_region *region, u32 i, u32 n, struct tr_pack_ref *ref);

/* --- packs.c: changes of a region's packs, each with its record(s) --------- */

/* Under region->lock; return the credits they used. */
u32 tr_pack_add__f(struct terrace *tr, struct tr_region *region, const struct tr_pack *pack);
/* Drops every pack that has no live block. */
u32 tr_packs_drop_dead__f(struct terrace *tr, struct tr_region *region);
/* INDEX_DROP: the pack stays, and its index is read from its header. */
u32 tr_pack_drop_copy__f(struct terrace *tr, struct tr_region *region, const struct tr_pack *pack);
/* Blocks are live in pack @id and nowhere else; their places are given up. At
 * most @n credits.
 */
u32 tr_packed__f(struct terrace *tr, struct tr_region *region, u64 id, u32 i, u32 n);
/* The same for the blocks in @mask, which have no place: 16 credits at most. */
u32 tr_packed_mask__f(struct terrace *tr, struct tr_region *region, u64 id, const u64 *mask);
/* Blocks live in pack @id get clean copies at @place.. (@kept: are there). */
u32 tr_clean__f(struct terrace *tr, struct tr_region *region, u64 id, u32 i, u32 n, u64 place,
		bool kept);

/* Blocks @i .. @i + @n - 1 are live in no pack any more: nor in the promotion cache. */
void tr_packs_forgotten__f(struct terrace *tr, struct tr_region *region, u32 i, u32 n);

/* --- codec.c: LZ4 and zstd of the kernel ------------------------------------ */

struct tr_codec;

struct tr_codec *tr_codec_create(bool compress);	/* sleeps; NULL: no memory */
void tr_codec_destroy(struct tr_codec *codec);
int tr_codec_level(struct tr_codec *codec, u32 kind, u32 level);	/* before a pack is built */
#define TR_ZSTD_MAX_LEVEL	19
/* How long it left the CPU to others since then. */
u64 tr_codec_away_ns(const struct tr_codec *codec);
const struct tr_codec_ops *tr_codec_ops(u32 kind);	/* NULL for NONE */

/* --- pack_cache.c: indexes of packs in memory -------------------------------- */

struct tr_index {
	union {
		struct list_head lru;
		struct rcu_head rcu;	/* once nobody uses it */
	};
	refcount_t users;
	bool used;			/* since eviction last came by; written lock-free */
	bool pooled;		/* from reserve.index: not in the cache */
	bool copy_bad;		/* so it is from the shelf, and that has not been told yet */
	u64 id;
	u32 bytes;
	u8 data[] __aligned(8);	/* the header, parsed */
};

/* The index of @ref, read if need be. Sleeps; -EIO, -EBADMSG. */
struct tr_index *tr_index_get(struct terrace *tr, const struct tr_pack_ref *ref);
/* Is the pack's header as it was written, on its shelf, or its @copy? 0, -EIO, -EBADMSG …
 * Only the drive is asked.
 */
int tr_index_verify(struct terrace *tr, const struct tr_pack_ref *ref, bool copy);
/* The same if it is in memory, or NULL. Never sleeps. */
struct tr_index *tr_index_find(struct terrace *tr, u64 id);
void tr_index_put(struct terrace *tr, struct tr_index *index);
/* Blocks in pack @id, and its codec, if its index is in memory. */
bool tr_index_peek(struct terrace *tr, u64 id, u32 *nr_blocks, u8 *codec);
/* Puts a copy of @data, a good header, into the cache, if there is memory. */
void tr_index_store(struct terrace *tr, u64 id, const void *data, u32 bytes);
u64 tr_indexes_evict(struct terrace *tr, u64 bytes);

/* --- promotion.c: what was read from below ------------------------------------- */

struct tr_cached;

/* What has block @block of pack @id: decoded, or (not @plain) its cluster as it
 * was read, at least @bytes of it; then *@hot is set if it should be kept
 * decoded. The caller puts it.
 */
struct tr_cached *tr_promotion_find(struct terrace *tr, u64 id, u32 block, bool plain, u32 bytes,
				    bool *hot);
/* Is there anything of it? May be wrong a moment later. */
bool tr_promotion_peek(struct terrace *tr, u64 id, u32 block);
void tr_cached_put(struct terrace *tr, struct tr_cached *entry);
const void *tr_cached_data(const struct tr_cached *entry);
/* Keeps a copy, if it can. Whoever calls it looks then whether the blocks are
 * still live in the pack, and forgets them if not. In a softirq as well: there nothing
 * is kept while there is more than there may be, since much might have to go.
 */
bool tr_promotion_keep(struct terrace *tr, u64 id, const u16 *block, u32 nr, bool plain,
		       const void *data, u32 bytes);
/* They are no longer live in pack @id. After the map says so. Any context. */
void tr_promotion_forget(struct terrace *tr, u64 id, u32 i, u32 n);
/* How long one decoding, or one read of a cluster, took. */
void tr_promotion_spent(struct terrace *tr, bool decoded, u64 ns);
u64 tr_promotion_evict(struct terrace *tr, u64 bytes);
void tr_promotion_fit(struct terrace *tr);	/* to its limit, which may be lower now */
u64 tr_promotion_bytes(struct terrace *tr, bool plain);
/*
 * A loose block, by its place. Room for it to be read into, and there it stays: filled, it is
 * kept, or else put. While its reader is in the epoch of the place's tier; NULL: not now. Any
 * context, none of them sleeps.
 */
struct tr_cached *tr_promotion_loose_new(struct terrace *tr, u64 place);
void *tr_promotion_loose_room(struct tr_cached *entry);
void tr_promotion_loose_keep(struct terrace *tr, struct tr_cached *entry);
/* As the map names it. The caller puts it. */
struct tr_cached *tr_promotion_loose_find(struct terrace *tr, u64 place);
/* These places are about to be free: who read from them has left the epoch. */
void tr_promotion_loose_forget(struct terrace *tr, u64 place, u32 n);
u64 tr_promotion_loose_bytes(struct terrace *tr);
int tr_promotion_init(struct terrace *tr);
void tr_promotion_exit(struct terrace *tr);
int tr_promotion_slabs_init(void);		/* the module's */
void tr_promotion_slabs_exit(void);

/* --- unpack.c: reading -------------------------------------------------------- */

/* One of a fixed number of work areas; waits for one. */
struct tr_unpacker;

struct tr_unpacker *tr_unpacker_get(struct terrace *tr);
void tr_unpacker_put(struct terrace *tr, struct tr_unpacker *unpacker);

/* Gives out block @i of the region; data valid until it returns. */
typedef void (*tr_unpacked_fn)(void *context, u32 i, const void *data);

/*
 * Reads, checks and decodes the blocks in @mask, which @ref has, cluster by
 * cluster. The caller holds the tier's epoch, or the region. -EIO, -EBADMSG;
 * *@bad then gets the block. -ESTALE: it is not live in the pack any more, and a
 * checkpoint may have dropped that; only who holds no epoch need expect it.
 */
int tr_unpack(struct terrace *tr, const struct tr_pack_ref *ref, const u64 *mask,
	      struct tr_unpacker *unpacker, tr_unpacked_fn fn, void *context, u32 *bad);
/* The same without the promotion cache: is it readable? */
int tr_unpack_drive(struct terrace *tr, const struct tr_pack_ref *ref, const u64 *mask,
		    struct tr_unpacker *unpacker, tr_unpacked_fn fn, void *context, u32 *bad);
/* What it made the drive read, since it was got. */
u64 tr_unpacker_read_bytes(const struct tr_unpacker *unpacker);
/* … and how long it decoded. */
u64 tr_unpacker_decode_ns(const struct tr_unpacker *unpacker);
/* Its one block, if that is in memory decoded. Any context. */
bool tr_cached_bio(struct terrace *tr, struct bio *bio, const struct tr_pack_ref *ref, u32 i);
/* For a bio: its first @n blocks, from block @i of the region on. If the drive is asked, as
 * many of the next @ahead as it can give at once go into the promotion cache.
 */
int tr_unpack_bio(struct terrace *tr, struct bio *bio, const struct tr_pack_ref *ref, u32 i, u32 n,
		  u32 ahead);
/* The same for a large read, or one of a stream of such, by stretches. */
#define TR_BULK_BLOCKS	32u		/* from which on a read is large */
#define TR_BULK_MOST	256u		/* at once */
int tr_unpack_bulk(struct terrace *tr, struct bio *bio, const struct tr_pack_ref *ref, u32 i, u32 n,
		   u32 ahead);
u64 tr_stretches_forget(struct terrace *tr);	/* what nobody uses; bytes */
/* What large reads asked for ahead has come, and is forgotten. Nobody reads any more. */
void tr_stretches_quiesce(struct terrace *tr);

/* --- cold.c: one block whose index is in memory --------------------------------- */

struct tr_cold;

/* What a bio of the volume carries: a tr_cold, and behind it, next to the bio, a tr_io. */
extern const size_t tr_per_bio_bytes;

/* --- loose.c: reads of a loose block, that are kept ------------------------------ */

static inline bool tr_loose_kept(const struct tr_tier *tier)
{
	return tier->kind == TERRACE_KIND_SHELVES && tier->class == TERRACE_CLASS_HDD;
}

/* Of one block; counted in the epoch, and remapped. False: as it is, it can be sent. */
bool tr_loose_read(struct terrace *tr, struct bio *bio);

/* For block @i of the region, all that @bio asks for, which counts in the epoch. NULL:
 * not this way. Never sleeps. What was begun is sent, and ends the bio.
 */
struct tr_cold *tr_cold_begin(struct terrace *tr, struct bio *bio, const struct tr_pack_ref *ref,
			      u32 i);
void tr_cold_send(struct tr_cold *cold);
int tr_cold_init(void);
void tr_cold_exit(void);

#endif
