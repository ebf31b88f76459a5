/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TERRACE_COMPAT_LINUX_CRC32C_H
#define TERRACE_COMPAT_LINUX_CRC32C_H

#include <string.h>
#include <linux/types.h>

/* four bits at a time: small, and only for CPUs without the instruction */
static inline u32 __terrace_crc32c_plain(u32 crc, const u8 *p, size_t len)
{
	static const u32 nibble[16] = {
		0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
		0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
	};

	while (len--) {
		crc ^= *p++;
		crc = nibble[crc & 15] ^ (crc >> 4);
		crc = nibble[crc & 15] ^ (crc >> 4);
	}
	return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2")))
static inline u32 __terrace_crc32c_sse(u32 crc, const u8 *p, size_t len)
{
	u64 word, state = crc;

	for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		state = __builtin_ia32_crc32di(state, word);
	}
	for (crc = state; len; len--)
		crc = __builtin_ia32_crc32qi(crc, *p++);
	return crc;
}
#endif

/* The kernel's semantics: @crc is the raw register, inverted neither before nor after. */
static inline u32 crc32c(u32 crc, const void *address, unsigned int length)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2"))
		return __terrace_crc32c_sse(crc, address, length);
#endif
	return __terrace_crc32c_plain(crc, address, length);
}

#endif
