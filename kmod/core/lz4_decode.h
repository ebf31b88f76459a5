/* SPDX-License-Identifier: GPL-2.0 */
/* Decompression of LZ4 blocks, which continue each other in one buffer. */
#ifndef TERRACE_CORE_LZ4_DECODE_H
#define TERRACE_CORE_LZ4_DECODE_H

#include <linux/types.h>

/*
 * Decodes the block @from, @length bytes long, to @base + @at: exactly @bytes.
 * What it repeats may lie anywhere from @base on. -EBADMSG: it is no such block;
 * nothing outside of [@base + @at, + @bytes) is written, whatever it says.
 */
int tr_lz4_decode(const u8 *from, u32 length, u8 *base, u32 at, u32 bytes);

#endif
