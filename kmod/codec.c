// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's LZ4 and zstd behind the callbacks of core/pack.h. What they
 * write is what daemon/pack_codec.c reads: LZ4 blocks that continue each
 * other, one zstd frame for a cluster, flushed behind each segment.
 */
#include <linux/lz4.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/zstd.h>

#include "packs.h"

#define ZSTD_WINDOW_LOG		16	/* a cluster */
#define ZSTD_DEFAULT_LEVEL	3

struct tr_codec {
	u32 kind, level;
	u64 away_ns;
	LZ4_stream_t *lz4;		/* NULL: decompresses only */
	zstd_parameters params;
	void *c_work, *d_work;
	size_t c_size, d_size;
	zstd_cstream *c;
	zstd_dstream *d;
};

/* As zstd's own, but for what a cluster never needs. */
static zstd_parameters params_of(u32 level)
{
	zstd_parameters params = zstd_get_params(level ?: ZSTD_DEFAULT_LEVEL,
						 1u << ZSTD_WINDOW_LOG);

	params.cParams.windowLog = ZSTD_WINDOW_LOG;
	params.fParams.contentSizeFlag = 0;
	params.fParams.checksumFlag = 0;
	return params;
}

static void *work_area(size_t bytes)
{
	unsigned int noio = memalloc_noio_save();
	void *area = kvmalloc(bytes, GFP_KERNEL);

	memalloc_noio_restore(noio);
	return area;
}

struct tr_codec *tr_codec_create(bool compress)
{
	struct tr_codec *codec = work_area(sizeof(*codec));

	if (!codec)
		return NULL;
	memset(codec, 0, sizeof(*codec));
	codec->d_size = zstd_dstream_workspace_bound(1u << ZSTD_WINDOW_LOG);
	codec->d_work = work_area(codec->d_size);
	if (compress)
		codec->lz4 = work_area(sizeof(*codec->lz4));
	if (!codec->d_work || (compress && !codec->lz4)) {
		tr_codec_destroy(codec);
		return NULL;
	}
	if (compress)
		memset(codec->lz4, 0, sizeof(*codec->lz4));
	return codec;
}

void tr_codec_destroy(struct tr_codec *codec)
{
	if (!codec)
		return;
	kvfree(codec->c_work);
	kvfree(codec->d_work);
	kvfree(codec->lz4);
	kvfree(codec);
}

int tr_codec_level(struct tr_codec *codec, u32 kind, u32 level)
{
	size_t need;

	codec->kind = kind;
	codec->level = level;
	codec->away_ns = 0;
	if (kind != TERRACE_CODEC_ZSTD)
		return 0;
	if (level > TR_ZSTD_MAX_LEVEL)
		return -EINVAL;
	codec->params = params_of(level);
	need = zstd_cstream_workspace_bound(&codec->params.cParams);
	if (need > codec->c_size) {
		kvfree(codec->c_work);
		codec->c_size = 0;
		codec->c_work = work_area(need);
		if (!codec->c_work)
			return -ENOMEM;
		codec->c_size = need;
	}
	codec->c = zstd_init_cstream(&codec->params, 0, codec->c_work, codec->c_size);
	return codec->c ? 0 : -EINVAL;
}

u64 tr_codec_away_ns(const struct tr_codec *codec)
{
	return codec->away_ns;
}

static void give_way(struct tr_codec *codec)
{
	u64 began = ktime_get_ns();

	tr_give_way();
	codec->away_ns += ktime_get_ns() - began;
}

/* --- LZ4 ------------------------------------------------------------------------ */

/* A new cluster, without clearing 16 KiB of hash table for each: what the table has
 * of the ones before lies in front of a dictionary of 0 bytes, where LZ4 takes no
 * match from (LZ4_resetStream_fast() of its later versions).
 */
static void lz4_restart(LZ4_stream_t *lz4, const u8 *cluster)
{
	lz4->internal_donotuse.dictionary = cluster;
	lz4->internal_donotuse.dictSize = 0;
}

static int lz4_compress(void *context, const u8 *cluster, u32 from, u32 bytes, bool last,
			u8 *to, u32 room)
{
	struct tr_codec *codec = context;

	if (!from)
		lz4_restart(codec->lz4, cluster);
	else
		give_way(codec);
	return LZ4_compress_fast_continue(codec->lz4, (const char *)cluster + from, (char *)to,
					  bytes, room, codec->level ?: 1);
}

static int lz4_decompress(void *context, const u8 *stored, u32 length, u8 *cluster, u32 from,
			  u32 bytes, bool last)
{
	int got = LZ4_decompress_safe_usingDict((const char *)stored, (char *)cluster + from,
						length, bytes, (const char *)cluster, from);

	return got == (int)bytes ? 0 : -EBADMSG;
}

/* --- zstd ----------------------------------------------------------------------- */

static int zstd_compress(void *context, const u8 *cluster, u32 from, u32 bytes, bool last,
			 u8 *to, u32 room)
{
	struct tr_codec *codec = context;
	zstd_in_buffer in = { .src = cluster + from, .size = bytes };
	zstd_out_buffer out = { .dst = to, .size = room };
	size_t left;

	if (from)
		give_way(codec);
	if (!from && zstd_is_error(zstd_reset_cstream(codec->c, ZSTD_CONTENTSIZE_UNKNOWN)))
		return -EIO;
	while (in.pos < in.size) {
		size_t before = in.pos + out.pos;

		if (zstd_is_error(zstd_compress_stream(codec->c, &out, &in)))
			return -EIO;
		if (in.pos + out.pos == before)
			return 0;		/* no room */
	}
	left = last ? zstd_end_stream(codec->c, &out) : zstd_flush_stream(codec->c, &out);
	if (zstd_is_error(left))
		return -EIO;
	return left ? 0 : out.pos;
}

static int zstd_decompress(void *context, const u8 *stored, u32 length, u8 *cluster, u32 from,
			   u32 bytes, bool last)
{
	struct tr_codec *codec = context;
	zstd_in_buffer in = { .src = stored, .size = length };
	zstd_out_buffer out = { .dst = cluster + from, .size = bytes };
	size_t left, before;

	if (!from)
		codec->d = zstd_init_dstream(1u << ZSTD_WINDOW_LOG, codec->d_work, codec->d_size);
	if (!codec->d)
		return -EBADMSG;
	do {
		before = in.pos + out.pos;
		left = zstd_decompress_stream(codec->d, &out, &in);
		if (zstd_is_error(left))
			return -EBADMSG;
	} while (left && in.pos + out.pos != before);
	if (in.pos != length || out.pos != bytes)
		return -EBADMSG;
	return last == !left ? 0 : -EBADMSG;	/* the frame ends with the last segment */
}

const struct tr_codec_ops *tr_codec_ops(u32 kind)
{
	static const struct tr_codec_ops lz4 = { lz4_compress, lz4_decompress };
	static const struct tr_codec_ops zstd = { zstd_compress, zstd_decompress };

	switch (kind) {
	case TERRACE_CODEC_LZ4:
		return &lz4;
	case TERRACE_CODEC_ZSTD:
		return &zstd;
	}
	return NULL;
}
