/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the fuzzers of kmod/core share. An input is a list of patches, three
 * bytes each (offset, value), over a valid image, which is then sealed again:
 * so the fuzzer gets past magic and CRC and to the numbers at once. The very
 * same bytes are tried as they are, too.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/bitops.h>
#include <asm/byteorder.h>

#include "format.h"
#include "journal_block.h"
#include "leaf.h"
#include "replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const u8 fuzz_uuid[TERRACE_UUID_BYTES] = "volume-uuid-0123";

/* Stops the fuzzer with a crash that says what does not hold. */
#define hold(cond)								\
	do {									\
		if (!(cond)) {							\
			fflush(stdout);						\
			fprintf(stderr, "%s:%d: %s does not hold\n",		\
				__FILE__, __LINE__, #cond);			\
			abort();						\
		}								\
	} while (0)

static inline void patch(void *image, size_t bytes, const uint8_t *data, size_t size)
{
	for (; size >= 3; data += 3, size -= 3)
		((u8 *)image)[(data[0] | data[1] << 8) % bytes] = data[2];
}

static inline void raw(void *image, size_t bytes, const uint8_t *data, size_t size)
{
	memset(image, 0, bytes);
	memcpy(image, data, size < bytes ? size : bytes);
}

static inline void seal(void *image, u32 bytes, u32 crc_at)
{
	__le32 crc = cpu_to_le32(tr_block_crc(image, bytes, crc_at));

	memcpy((u8 *)image + crc_at, &crc, sizeof(crc));
}

#endif
