// SPDX-License-Identifier: GPL-2.0
/*
 * LZ4 blocks, decoded. A block is a row of sequences: a token (four bits of length
 * each for literals and for a match, 15: further bytes are added), the literals, the
 * distance of the match in two bytes. The last one ends behind its literals.
 *
 * Why not the kernel's: it copies 8 bytes at a time, however long a run is. Blocks of
 * databases and of files have long ones of both kinds, and then memcpy() and memset()
 * cost a fifth (Documentation/decisions/0016-lz4-decoder.md).
 *
 * The output may be a page that a program writes to meanwhile: lengths and distances
 * come from the input alone, and from where we are, never from what was decoded.
 */
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "lz4_decode.h"

#define LONGER		15	/* of a length: bytes follow */
#define MIN_MATCH	4
#define SHORT		64	/* copied word by word up to here, if there is room behind */

struct stream {
	const u8 *in, *in_end;
	u8 *out, *out_end;
};

static bool read_length(struct stream *s, u32 *length)
{
	u8 more;

	do {
		if (s->in == s->in_end)
			return false;
		more = *s->in++;
		*length += more;	/* at most 255 * the input's length */
	} while (more == 255);
	return true;
}

/* Up to 7 bytes more than @n. */
static void copy_words(u8 *to, const u8 *from, u32 n)
{
	u8 *end = to + n;

	do {
		memcpy(to, from, 8);
		to += 8;
		from += 8;
	} while (to < end);
}

static bool copy_literals(struct stream *s, u32 n)
{
	if (n > s->in_end - s->in || n > s->out_end - s->out)
		return false;
	if (n && n <= SHORT && s->in_end - s->in >= n + 7 && s->out_end - s->out >= n + 7)
		copy_words(s->out, s->in, n);
	else
		memcpy(s->out, s->in, n);
	s->in += n;
	s->out += n;
	return true;
}

/* Longer than its distance: @n bytes, again and again the @distance ones before. */
static void repeat(u8 *out, u32 distance, u32 n)
{
	u32 done = 0, part;

	if (distance == 1) {
		memset(out, out[-1], n);
		return;
	}
	/* What there is doubles; it begins with a whole period each time. */
	for (; done < n; done += part) {
		part = min(n - done, distance + done);
		memcpy(out + done, out - distance, part);
	}
}

static bool copy_match(struct stream *s, const u8 *base, u32 distance, u32 n)
{
	if (!distance || distance > s->out - base || n > s->out_end - s->out)
		return false;
	if (n <= SHORT && distance >= 8 && s->out_end - s->out >= n + 7)
		copy_words(s->out, s->out - distance, n);
	else if (distance >= n)
		memcpy(s->out, s->out - distance, n);
	else
		repeat(s->out, distance, n);
	s->out += n;
	return true;
}

int tr_lz4_decode(const u8 *from, u32 length, u8 *base, u32 at, u32 bytes)
{
	struct stream s = {
		.in = from, .in_end = from + length, .out = base + at, .out_end = base + at + bytes,
	};
	u32 token, n, distance;

	while (s.in < s.in_end) {
		token = *s.in++;
		n = token >> 4;
		if ((n == LONGER && !read_length(&s, &n)) || !copy_literals(&s, n))
			return -EBADMSG;
		if (s.in == s.in_end)
			return s.out == s.out_end ? 0 : -EBADMSG;
		if (s.in_end - s.in < 2)
			return -EBADMSG;
		distance = s.in[0] | s.in[1] << 8;
		s.in += 2;
		n = token & 15;
		if ((n == LONGER && !read_length(&s, &n)) ||
		    !copy_match(&s, base, distance, n + MIN_MATCH))
			return -EBADMSG;
	}
	return -EBADMSG;
}
