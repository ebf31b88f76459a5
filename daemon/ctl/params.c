// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Words of a table line. See params.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "names.h"
#include "params.h"

#define FIRST_TIER	2	/* word */
#define TIER_WORDS	3

u32 params_nr_tiers(const char *params)
{
	u32 nr;

	return sscanf(params, "%*s %u", &nr) == 1 && nr <= TERRACE_MAX_TIERS ? nr : 0;
}

/* Where word @nr begins, or the end. */
static const char *word_at(const char *params, u32 nr)
{
	const char *at = params + strspn(params, " ");

	while (nr-- && *at) {
		at += strcspn(at, " ");
		at += strspn(at, " ");
	}
	return at;
}

static u32 word_of(u32 tier)
{
	return tier == TERRACE_META_DEVICE ? 0 : FIRST_TIER + tier * TIER_WORDS;
}

static char *not_ours(const char *params)
{
	ctl_error("'%s' is no table that terracectl understands", params);
	return NULL;
}

char *params_add_tier(const char *params, dev_t dev, u32 class, u32 kind)
{
	u32 nr = params_nr_tiers(params);
	const char *tiers = word_at(params, FIRST_TIER), *rest = word_at(params, word_of(nr));

	if (!nr)
		return not_ours(params);
	return ctl_text("%.*s %u %.*s%s%u:%u %s %s %s", (int)strcspn(params, " "), params, nr + 1,
			(int)(rest - tiers), tiers, rest[-1] == ' ' ? "" : " ", major(dev), minor(dev),
			class_name(class), kind_name(kind), *rest ? rest : "0");
}

char *params_with_device(const char *params, u32 tier, dev_t dev)
{
	const char *at = word_at(params, word_of(tier));

	if (!*at)
		return not_ours(params);
	return ctl_text("%.*s%u:%u%s", (int)(at - params), params, major(dev), minor(dev),
			at + strcspn(at, " "));
}

char *params_device(const char *params, u32 tier)
{
	const char *at = word_at(params, word_of(tier));

	return *at && *at != '-' ? ctl_text("%.*s", (int)strcspn(at, " "), at) : NULL;
}
