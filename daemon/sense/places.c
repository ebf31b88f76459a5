// SPDX-License-Identifier: GPL-2.0-or-later
/* See places.h. */
#include "sense/places.h"

#include <stdlib.h>
#include <string.h>

#define PROBES	16u

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

/* Where all places of its chain are taken, the first goes: it is the longest there. */
void places_keep(struct places *ps, const struct file_id *id, const struct extent *extent, uint32_t nr)
{
	struct place *p = places_find(ps, id);

	for (uint32_t i = 0; !p && i < PROBES; i++)
		if (!place_at(ps, id, i)->nr)
			p = place_at(ps, id, i);
	if (!p) {
		p = place_at(ps, id, 0);
		ps->forgotten++;
	}
	places_drop(ps, p);
	if (ps->nr + nr > PLACES_EXTENTS && nr > EXTENTS_FIRST)
		nr = EXTENTS_FIRST;
	p->extent = malloc(nr * sizeof(*extent));
	if (!p->extent)
		return;
	memcpy(p->extent, extent, nr * sizeof(*extent));
	p->id = *id;
	p->nr = nr;
	ps->nr += nr;
}

void places_exit(struct places *ps)
{
	for (uint32_t i = 0; i < PLACES; i++)
		free(ps->place[i].extent);
}
