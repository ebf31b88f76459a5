/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The codecs of packs in user space: liblz4 and libzstd behind the callbacks
 * of core/pack.h. One context for each thread.
 */
#ifndef TERRACE_PACK_CODEC_H
#define TERRACE_PACK_CODEC_H

#include "core/pack.h"

struct pack_codec;

/* @level 0: the codec's default. NULL: no memory. */
struct pack_codec *pack_codec_create(u32 level);
void pack_codec_destroy(struct pack_codec *codec);

/* For enum terrace_codec @codec; NULL for NONE, which needs none. */
const struct tr_codec_ops *pack_codec_ops(u32 codec);

#endif
