// SPDX-License-Identifier: GPL-2.0-or-later
/* See places.h. */
#include "sense/places.h"

#include <stdlib.h>
#include <string.h>

#define PROBES	64u

static struct place *place_at(struct places *ps, const struct file_id *id, uint32_t probe)
{
	return &ps->place[((uint32_t)((id->inode * 0x9e3779b97f4a7c15ull) >> 40) + probe) % PLACES];
}

struct place *places_find(struct places *ps, const struct file_id *id)
{
	for (uint32_t i = 0; i < PROBES; i++) {
		struct place *p = place_at(ps, id, i);

		if (p->nr && p->id.inode == id->inode && p->id.generation == id->generation && p->id.dev == id->dev)
			return p;
	}
	return NULL;
}

void places_drop(struct places *ps, struct place *p)
{
	ps->nr -= p->nr;
	free(p->extent);
	memset(p, 0, sizeof(*p));
}

static void forget(struct places *ps, struct place *p)
{
	ps->forgotten++;
	if (ps->forgets)
		ps->forgets(ps->ctx, p);
	places_drop(ps, p);
}

/* The one of @id, else a free one of its chain, else the oldest there. */
static struct place *room(struct places *ps, const struct file_id *id)
{
	struct place *oldest = place_at(ps, id, 0), *p = places_find(ps, id);

	if (p) {
		places_drop(ps, p);
		return p;
	}
	for (uint32_t i = 0; i < PROBES; i++) {
		p = place_at(ps, id, i);
		if (!p->nr)
			return p;
		if (p->serial < oldest->serial)
			oldest = p;
	}
	forget(ps, oldest);
	return oldest;
}

static void forget_oldest(struct places *ps)
{
	struct place *oldest = NULL;

	for (uint32_t i = 0; i < PLACES; i++)
		if (ps->place[i].nr && (!oldest || ps->place[i].serial < oldest->serial))
			oldest = &ps->place[i];
	if (oldest)
		forget(ps, oldest);
}

void places_keep(struct places *ps, const struct file_id *id, const struct extent *extent, uint32_t nr)
{
	struct place *p = room(ps, id);

	if (ps->nr + nr > PLACES_EXTENTS && nr > EXTENTS_FIRST)
		nr = EXTENTS_FIRST;
	while (ps->nr && ps->nr + nr > PLACES_EXTENTS)
		forget_oldest(ps);
	p->extent = malloc(nr * sizeof(*extent));
	if (!p->extent) {
		ps->forgotten++;
		return;
	}
	memcpy(p->extent, extent, nr * sizeof(*extent));
	p->id = *id;
	p->nr = nr;
	p->serial = ++ps->serial;
	ps->nr += nr;
}

void places_exit(struct places *ps)
{
	for (uint32_t i = 0; i < PLACES; i++)
		free(ps->place[i].extent);
}
