// SPDX-License-Identifier: GPL-2.0-or-later
/* Hints while a cold stream is written; see streams.h. */
#include "act/streams.h"

#include <string.h>

#include "act/device.h"

static void end(struct streams *s, struct stream *one)
{
	for (uint32_t i = 0; i < one->nr; i++)
		device_mark(s->fd, TERRACE_RANGE_CLEAR, one->range[i].block, one->range[i].nr);
	memset(one, 0, sizeof(*one));
}

static struct stream *place(struct streams *s)
{
	struct stream *oldest = &s->stream[0];

	for (uint32_t i = 0; i < STREAMS_MAX; i++)
		if (s->stream[i].serial < oldest->serial)
			oldest = &s->stream[i];
	if (oldest->serial)
		end(s, oldest);
	return oldest;
}

void streams_hint(struct streams *s, const struct stream_key *key, const struct stream_range *range, uint32_t nr)
{
	struct stream *one;

	s->counts.unplaced += !nr;
	s->counts.scattered += nr > STREAM_RANGES;
	if (!nr || nr > STREAM_RANGES)
		return;
	one = place(s);
	one->key = *key;
	one->serial = ++s->serial;
	for (; one->nr < nr; one->nr++) {
		const struct stream_range *r = &range[one->nr];

		if (device_mark(s->fd, TERRACE_RANGE_HINT_COLD, r->block, r->nr)) {
			s->counts.scattered++;
			end(s, one);
			return;
		}
		one->range[one->nr] = *r;
	}
	s->counts.hinted++;
	for (uint32_t i = 0; i < nr; i++)
		s->counts.blocks += range[i].nr;
}

void streams_end(struct streams *s, const struct stream_key *key)
{
	for (uint32_t i = 0; i < STREAMS_MAX; i++)
		if (s->stream[i].serial && s->stream[i].key.inode == key->inode && s->stream[i].key.of == key->of)
			end(s, &s->stream[i]);
}

void streams_end_all(struct streams *s)
{
	for (uint32_t i = 0; i < STREAMS_MAX; i++)
		if (s->stream[i].serial)
			end(s, &s->stream[i]);
}
