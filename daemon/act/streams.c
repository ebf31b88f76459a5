// SPDX-License-Identifier: GPL-2.0-or-later
/* Hints while a file is written; see streams.h. */
#include "act/streams.h"

#include <errno.h>
#include <string.h>

#include "act/device.h"

static int tell(struct streams *s, uint32_t what, const struct stream_range *r)
{
	int err = device_mark(s->fd, what, r->block, r->nr);

	if (!err && s->told)
		s->told(s->ctx, r, what != TERRACE_RANGE_CLEAR);
	return err;
}

static void clear(struct streams *s, const struct stream_range *r)
{
	tell(s, TERRACE_RANGE_CLEAR, r);
}

static void end(struct streams *s, struct stream *one)
{
	for (uint32_t i = 0; i < one->nr; i++)
		clear(s, &one->range[i]);
	s->nr--;
	memset(one, 0, sizeof(*one));
}

static struct stream *find(struct streams *s, const struct stream_key *key)
{
	for (uint32_t i = 0; i < STREAMS_MAX; i++)
		if (s->stream[i].serial && s->stream[i].key.inode == key->inode && s->stream[i].key.of == key->of)
			return &s->stream[i];
	return NULL;
}

static struct stream *place(struct streams *s)
{
	struct stream *oldest = NULL, *free = NULL;

	for (uint32_t i = 0; i < STREAMS_MAX; i++) {
		struct stream *one = &s->stream[i];

		if (!one->serial)
			free = one;
		else if (!oldest || one->serial < oldest->serial)
			oldest = one;
	}
	if (s->nr < (s->most ?: STREAMS_MAX))
		return free;
	end(s, oldest);
	return oldest;
}

/* What it had before and has no longer; a range that it has only a part of is hinted anew. */
static void let_go(struct streams *s, const struct stream *was, const struct stream *now)
{
	for (uint32_t i = 0; i < was->nr; i++) {
		const struct stream_range *a = &was->range[i];
		bool same = false;

		for (uint32_t k = 0; k < now->nr && !same; k++)
			same = a->block >= now->range[k].block && a->block + a->nr <= now->range[k].block + now->range[k].nr;
		if (same)
			continue;
		clear(s, a);
		for (uint32_t k = 0; k < now->nr; k++)
			if (a->block < now->range[k].block + now->range[k].nr && now->range[k].block < a->block + a->nr)
				tell(s, s->what, &now->range[k]);
	}
}

static uint64_t blocks_of(const struct stream *one)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < one->nr; i++)
		n += one->range[i].nr;
	return n;
}

void streams_hint(struct streams *s, const struct stream_key *key, const struct stream_range *range, uint32_t nr)
{
	struct stream *one, was = { 0 };
	int err = 0;

	s->counts.unplaced += !nr;
	s->counts.scattered += nr > STREAM_RANGES;
	if (!nr || nr > STREAM_RANGES)
		return;
	one = find(s, key);
	if (one)
		was = *one;
	else
		s->nr += !!(one = place(s));
	*one = (struct stream){ .key = *key, .serial = ++s->serial };
	for (; one->nr < nr && !err; one->nr += !err) {
		one->range[one->nr] = range[one->nr];
		err = tell(s, s->what, &range[one->nr]);
	}
	let_go(s, &was, one);
	if (err) {
		s->counts.refused += err == -EINVAL;
		s->counts.scattered += err != -EINVAL;
		end(s, one);
		return;
	}
	s->counts.hinted += !was.serial;
	s->counts.blocks += blocks_of(one) > blocks_of(&was) ? blocks_of(one) - blocks_of(&was) : 0;
}

void streams_end(struct streams *s, const struct stream_key *key)
{
	struct stream *one = find(s, key);

	if (one)
		end(s, one);
}

void streams_end_all(struct streams *s)
{
	for (uint32_t i = 0; i < STREAMS_MAX; i++)
		if (s->stream[i].serial)
			end(s, &s->stream[i]);
}
