// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Places that something is wrong with. Who lives there is asked of the map a
 * second time, and only if there are any: a sound volume costs one walk.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"

struct suspect *check_suspect(struct check *c, u64 place, bool twice)
{
	struct suspect *s;

	if (c->nr_suspects == c->room_suspects) {
		c->room_suspects = 2 * c->room_suspects + 64;
		c->suspects = ctl_realloc(c->suspects, c->room_suspects * sizeof(*c->suspects));
	}
	s = &c->suspects[c->nr_suspects++];
	memset(s, 0, sizeof(*s));
	s->place = place;
	s->twice = twice;
	s->run = 1;
	return s;
}

static int compare_places(const void *a, const void *b)
{
	const struct suspect *x = a, *y = b;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	return (int)x->twice - (int)y->twice;
}

/* A place used three times is one suspect, not two. */
static void sort_suspects(struct check *c)
{
	u64 to = 0;

	qsort(c->suspects, c->nr_suspects, sizeof(*c->suspects), compare_places);
	for (u64 i = 0; i < c->nr_suspects; i++)
		if (!to || compare_places(&c->suspects[to - 1], &c->suspects[i]))
			c->suspects[to++] = c->suspects[i];
	c->nr_suspects = to;
}

/* Is this one of the places that somebody is looked for? */
void check_suspects_user(struct check *c, u64 block, u64 place)
{
	u64 from = 0, to = c->nr_suspects;

	while (from < to) {
		u64 middle = from + (to - from) / 2;

		if (c->suspects[middle].place < place)
			from = middle + 1;
		else
			to = middle;
	}
	for (; from < c->nr_suspects && c->suspects[from].place == place; from++) {
		struct suspect *s = &c->suspects[from];

		if (s->users < 2)
			s->user[s->users] = block;
		s->users++;
	}
}

static bool continues(const struct suspect *a, const struct suspect *b, u64 n)
{
	return a->twice && b->twice && b->place == tr_place_add(a->place, n) &&
	       b->users == a->users && b->user[0] == a->user[0] + n && b->user[1] == a->user[1] + n;
}

/* "block 17", or "pack 5": what lives somewhere. */
static const char *user_text(u64 user)
{
	return where(user & CHECK_PACK ? "pack %llu" : "block %llu", user & ~CHECK_PACK);
}

static void print_twice(struct check *c, const struct suspect *s, u64 run)
{
	u32 tier = tr_place_tier(s->place);
	u64 index = tr_place_index(s->place);

	problem(&c->findings, where("%s: tier %u places %llu-%llu", volume_tier_name(&c->vol, tier),
				    tier, index, index + run - 1),
		"%u blocks live there: %s and %s%s", s->users, user_text(s->user[0]),
		user_text(s->user[1]), s->users > 2 ? " and others" : "");
}

static void print_unmarked(struct check *c, const struct suspect *s)
{
	u32 tier = tr_place_tier(s->place);
	u64 index = tr_place_index(s->place);

	problem(&c->findings, where("%s: tier %u places %llu-%llu", volume_tier_name(&c->vol, tier),
				    tier, index, index + s->run - 1),
		"%s and what follows live there, but chunk %llu says they are free",
		user_text(s->user[0]), index / TERRACE_CHUNK_BLOCKS);
}

void check_suspects(struct check *c)
{
	u64 run;

	if (!c->nr_suspects)
		return;
	sort_suspects(c);
	check_map_again(c, CHECK_SUSPECTS);
	for (u64 i = 0; i < c->nr_suspects; i += run) {
		const struct suspect *s = &c->suspects[i];

		for (run = 1; i + run < c->nr_suspects && continues(s, s + run, run); run++)
			;
		if (s->twice)
			print_twice(c, s, run);
		else
			print_unmarked(c, s);
	}
}
