// SPDX-License-Identifier: GPL-2.0-or-later
/* Encoding and checking the manifest; see manifest.h. */
#include "ralt/manifest.h"

#include <errno.h>
#include <string.h>

#include "ralt/bytes.h"

#define HEADER_BYTES	112u
#define RUN_BYTES	16u
#define RANGE_BYTES	24u

size_t manifest_bytes(uint32_t runs, size_t ranges)
{
	return HEADER_BYTES + runs * RUN_BYTES + ranges * RANGE_BYTES + 8;
}

static void encode_header(const struct manifest *m, const struct forget *f, uint8_t *to)
{
	put_le64(to, RALT_MANIFEST_MAGIC);
	put_le32(to + 8, RALT_MANIFEST_VERSION);
	put_le32(to + 12, (uint32_t)manifest_bytes(m->runs, f->count));
	put_le64(to + 16, m->store);
	put_le64(to + 24, m->volume);
	put_le64(to + 32, m->accesses);
	put_le64(to + 40, m->next_run);
	put_le64(to + 48, m->hot_limit);
	put_le64(to + 56, m->tuned_period);
	put_double(to + 64, m->hot.score);
	put_le32(to + 72, m->hot.tick);
	put_le32(to + 76, m->hot.set ? 1u + m->hot.rank : 0);
	put_le32(to + 80, m->generation);
	put_le32(to + 84, m->runs);
	put_le32(to + 88, (uint32_t)f->count);
	put_le64(to + 96, m->fast_blocks);
	put_le64(to + 104, m->tick_accesses);
}

void manifest_encode(const struct manifest *m, const struct forget *f, uint8_t *to)
{
	size_t bytes = manifest_bytes(m->runs, f->count);
	uint8_t *at = to + HEADER_BYTES;

	memset(to, 0, bytes);
	encode_header(m, f, to);
	for (uint32_t i = 0; i < m->runs; i++, at += RUN_BYTES) {
		put_le64(at, m->run[i].id);
		put_le32(at + 8, m->run[i].level);
	}
	for (size_t i = 0; i < f->count; i++, at += RANGE_BYTES) {
		put_le64(at, f->ranges[i].first);
		put_le64(at + 8, f->ranges[i].end);
		put_le32(at + 16, f->ranges[i].generation);
	}
	put_le64(at, ralt_checksum(RALT_MANIFEST_MAGIC, to, bytes - 8));
}

static void decode_header(struct manifest *m, const uint8_t *from)
{
	uint32_t rank = get_le32(from + 76);

	m->store = get_le64(from + 16);
	m->volume = get_le64(from + 24);
	m->accesses = get_le64(from + 32);
	m->next_run = get_le64(from + 40);
	m->hot_limit = get_le64(from + 48);
	m->tuned_period = get_le64(from + 56);
	m->hot.score = get_double(from + 64);
	m->hot.tick = get_le32(from + 72);
	m->hot.since = m->hot.tick;
	m->hot.set = rank > 0;
	m->hot.rank = rank ? (uint8_t)(rank - 1) : 0;
	m->generation = get_le32(from + 80);
	m->fast_blocks = get_le64(from + 96);
	m->tick_accesses = get_le64(from + 104);
}

static int check(const uint8_t *from, size_t bytes)
{
	if (bytes < HEADER_BYTES + 8 || bytes % 8 || get_le64(from) != RALT_MANIFEST_MAGIC ||
	    get_le32(from + 12) != bytes ||
	    get_le64(from + bytes - 8) != ralt_checksum(RALT_MANIFEST_MAGIC, from, bytes - 8))
		return -EBADMSG;
	if (get_le32(from + 8) != RALT_MANIFEST_VERSION)
		return -EPROTONOSUPPORT;
	if (get_le32(from + 84) > RALT_RUNS_MAX ||
	    manifest_bytes(get_le32(from + 84), get_le32(from + 88)) != bytes)
		return -EBADMSG;
	return 0;
}

int manifest_decode(struct manifest *m, struct forget *f, const uint8_t *from, size_t bytes)
{
	const uint8_t *at = from + HEADER_BYTES;
	int err = check(from, bytes);

	if (err)
		return err;
	if (get_le32(from + 88) > f->limit)
		return -ENOSPC;
	memset(m, 0, sizeof(*m));
	decode_header(m, from);
	m->runs = get_le32(from + 84);
	for (uint32_t i = 0; i < m->runs; i++, at += RUN_BYTES) {
		m->run[i].id = get_le64(at);
		m->run[i].level = get_le32(at + 8);
		if (m->run[i].level >= RALT_LEVELS_MAX)
			return -EBADMSG;
	}
	f->count = get_le32(from + 88);
	for (size_t i = 0; i < f->count; i++, at += RANGE_BYTES)
		f->ranges[i] = (struct forget_range){ get_le64(at), get_le64(at + 8),
						      get_le32(at + 16) };
	return 0;
}
