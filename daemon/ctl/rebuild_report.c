// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ranges of blocks that are alike.
 */
#include <string.h>

#include "rebuild.h"

const char *rb_state_word(enum rb_state state)
{
	static const char *const words[] = {
		[RB_CERTAIN] = "certain", [RB_OLDER] = "possibly older",
		[RB_DOUBTFUL] = "doubtful", [RB_LOST] = "lost",
	};

	return words[state];
}

const char *rb_source_text(enum rb_source source)
{
	static const char *const texts[] = {
		[RB_NONE] = "nothing says where they are",
		[RB_MAP] = "from the map",
		[RB_OLD_PAGE] = "from an outdated page of the map",
		[RB_JOURNAL] = "from the journal",
		[RB_SHELF] = "from owner blocks of shelves",
		[RB_TABLE] = "from owner tables of shelves",
		[RB_TWICE] = "other blocks claim the same places",
		[RB_NO_SUCH] = "the places do not exist",
		[RB_REUSED] = "the places belong to other blocks by now",
		[RB_PACK] = "from packs on shelves, by their headers",
		[RB_PACK_HEADER] = "their pack is not there, or its header is damaged",
		[RB_PACK_BYTES] = "their bytes in the pack are damaged",
		[RB_PACK_ROOM] = "the region has more packs than a map can name",
	};

	return texts[source];
}

void rb_count(const struct rebuild *rb, u64 *count)
{
	memset(count, 0, RB_NR_STATES * sizeof(*count));
	for (u64 r = 0; r < rb->nr_regions; r++) {
		for (u32 i = 0; rb->region[r] && i < TERRACE_REGION_BLOCKS; i++) {
			u64 at = rb->region[r]->at[i];

			if (rb_somewhere(at) || rb_state(at) == RB_LOST)
				count[rb_state(at)]++;
		}
	}
}

static bool is_empty(u64 at)
{
	return rb_state(at) != RB_LOST && !rb_somewhere(at);
}

/* With @by_place a run is also consecutive on its tier, or in one pack. */
static bool continues(u64 first, u64 at, u64 n, bool by_place)
{
	if (rb_state(first) != rb_state(at) || rb_source(first) != rb_source(at))
		return false;
	if (!by_place)
		return rb_somewhere(first) == rb_somewhere(at);
	return rb_pack(at) == rb_pack(first) && rb_place(at) == tr_place_add(rb_place(first), n);
}

void rb_runs(const struct rebuild *rb, bool by_place, rb_run_fn fn, void *ctx)
{
	u64 from = 0, nr = 0, first = 0;

	for (u64 b = 0; b < rb->virtual_blocks; b++) {
		u64 at;

		if (!rb->region[b / TERRACE_REGION_BLOCKS]) {
			if (nr)
				fn(ctx, from, nr, first);
			nr = 0;
			b |= TERRACE_REGION_BLOCKS - 1;
			continue;
		}
		at = rb_at(rb, b);
		if (nr && (is_empty(at) || !continues(first, at, nr, by_place) ||
			   (rb_pack(at) && b % TERRACE_REGION_BLOCKS == 0))) {
			fn(ctx, from, nr, first);
			nr = 0;
		}
		if (is_empty(at))
			continue;
		if (!nr) {
			from = b;
			first = at;
		}
		nr++;
	}
	if (nr)
		fn(ctx, from, nr, first);
}
