// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * LZ4: each segment is a block that continues the stream; decoding it takes
 * the cluster's bytes in front of it as dictionary. zstd: one frame for the
 * cluster, flushed behind each segment, so the decoder gives all of it out.
 * Neither frame headers nor checksums: the pack's header has both.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <lz4.h>
#include <zstd.h>

#include "pack_codec.h"

#define ZSTD_WINDOW_LOG	16	/* a cluster */
#define ZSTD_LEVEL	3

struct pack_codec {
	u32 level;
	LZ4_stream_t lz4;
	ZSTD_CCtx *compress;
	ZSTD_DCtx *decompress;
};

struct pack_codec *pack_codec_create(u32 level)
{
	struct pack_codec *codec = calloc(1, sizeof(*codec));

	if (!codec)
		return NULL;
	codec->level = level;
	codec->compress = ZSTD_createCCtx();
	codec->decompress = ZSTD_createDCtx();
	if (!codec->compress || !codec->decompress) {
		pack_codec_destroy(codec);
		return NULL;
	}
	ZSTD_CCtx_setParameter(codec->compress, ZSTD_c_compressionLevel,
			       level ? (int)level : ZSTD_LEVEL);
	ZSTD_CCtx_setParameter(codec->compress, ZSTD_c_windowLog, ZSTD_WINDOW_LOG);
	ZSTD_CCtx_setParameter(codec->compress, ZSTD_c_contentSizeFlag, 0);
	ZSTD_CCtx_setParameter(codec->compress, ZSTD_c_checksumFlag, 0);
	ZSTD_DCtx_setParameter(codec->decompress, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG);
	return codec;
}

void pack_codec_destroy(struct pack_codec *codec)
{
	if (!codec)
		return;
	ZSTD_freeCCtx(codec->compress);
	ZSTD_freeDCtx(codec->decompress);
	free(codec);
}

/* ---- LZ4 -------------------------------------------------------------------- */

static int lz4_compress(void *context, const u8 *cluster, u32 from, u32 bytes, bool last, u8 *to,
			u32 room)
{
	struct pack_codec *codec = context;
	const char *data = (const char *)cluster + from;
	int acceleration = codec->level ? (int)codec->level : 1;

	if (!from && last) /* alone: hashed more finely than in a stream */
		return LZ4_compress_fast_extState(&codec->lz4, data, (char *)to, bytes, room,
						  acceleration);
	if (!from)
		LZ4_initStream(&codec->lz4, sizeof(codec->lz4));
	return LZ4_compress_fast_continue(&codec->lz4, data, (char *)to, bytes, room, acceleration);
}

static int lz4_decompress(void *context, const u8 *stored, u32 length, u8 *cluster, u32 from,
			  u32 bytes, bool last)
{
	int got;

	(void)context;
	(void)last;
	got = LZ4_decompress_safe_usingDict((const char *)stored, (char *)cluster + from, length,
					    bytes, (const char *)cluster, from);
	return got == (int)bytes ? 0 : -EBADMSG;
}

/* ---- zstd ------------------------------------------------------------------- */

static int zstd_compress(void *context, const u8 *cluster, u32 from, u32 bytes, bool last, u8 *to,
			 u32 room)
{
	struct pack_codec *codec = context;
	ZSTD_inBuffer in = { cluster + from, bytes, 0 };
	ZSTD_outBuffer out = { to, room, 0 };
	size_t left;

	if (!from)
		ZSTD_CCtx_reset(codec->compress, ZSTD_reset_session_only);
	left = ZSTD_compressStream2(codec->compress, &out, &in, last ? ZSTD_e_end : ZSTD_e_flush);
	if (ZSTD_isError(left))
		return -EIO;
	return left ? 0 : (int)out.pos; /* not all flushed: no room */
}

static int zstd_decompress(void *context, const u8 *stored, u32 length, u8 *cluster, u32 from,
			   u32 bytes, bool last)
{
	struct pack_codec *codec = context;
	ZSTD_inBuffer in = { stored, length, 0 };
	ZSTD_outBuffer out = { cluster + from, bytes, 0 };
	size_t left, in_before, out_before;

	if (!from)
		ZSTD_DCtx_reset(codec->decompress, ZSTD_reset_session_only);
	do {
		in_before = in.pos;
		out_before = out.pos;
		left = ZSTD_decompressStream(codec->decompress, &out, &in);
		if (ZSTD_isError(left))
			return -EBADMSG;
	} while (left && (in.pos != in_before || out.pos != out_before));
	if (in.pos != length || out.pos != bytes)
		return -EBADMSG;
	return last == !left ? 0 : -EBADMSG; /* the frame ends with the last segment */
}

const struct tr_codec_ops *pack_codec_ops(u32 codec)
{
	static const struct tr_codec_ops lz4 = { lz4_compress, lz4_decompress };
	static const struct tr_codec_ops zstd = { zstd_compress, zstd_decompress };

	return codec == TERRACE_CODEC_LZ4 ? &lz4 : codec == TERRACE_CODEC_ZSTD ? &zstd : NULL;
}
