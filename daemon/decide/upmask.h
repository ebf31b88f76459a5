/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The `up` mask of a move order: which of a region's 1024 blocks belong on the fast
 * tier after it.  Retention, promotion by compaction and pins are all this mask.
 *
 *	up = (hot and fast)		retention
 *	   | (hot and packed, while there is room)
 *					promotion met in passing
 *	   | pins			the administrator's or metadata tails'
 *	   & ~banned			dead files' ranges, until written again
 */
#ifndef DECIDE_UPMASK_H
#define DECIDE_UPMASK_H

#include <stdbool.h>
#include <stdint.h>

#include "decide/region.h"

#define UPMASK_WORDS	(REGION_BLOCKS / 64)

struct upmask {
	uint64_t bits[UPMASK_WORDS];
};

struct upmask_input {
	struct upmask fast;	/* now on the fast tier, dirty or clean */
	struct upmask packed;	/* now below */
	struct upmask hot;
	struct upmask pins;
	struct upmask banned;	/* overrules hot and pins */
};

struct upmask_result {
	struct upmask up;
	uint32_t retained;
	uint32_t promoted;
	uint32_t demoted;
	uint32_t refused;	/* hot and packed, but no room */
};

static inline void upmask_set(struct upmask *m, uint32_t block)
{
	m->bits[block / 64] |= 1ull << (block % 64);
}

static inline bool upmask_test(const struct upmask *m, uint32_t block)
{
	return m->bits[block / 64] >> (block % 64) & 1;
}

uint32_t upmask_count(const struct upmask *m);

/*
 * The rest of each word of @up of which enough is hot: chance decides which of its blocks have
 * been read by now.  @known: what is hot; @share of what there is, @fast and @packed, must be.
 * Words with less than half their blocks mapped say too little.  How many were added, @room at most.
 */
uint32_t upmask_neighbours(struct upmask *up, const struct upmask *known, const struct upmask *fast,
			   const struct upmask *packed, double share, uint32_t room);

/*
 * @room: promotions that fit; pins come first and are not refused for lack of
 * room (the kernel's result is NO_ROOM then), lower block numbers next.
 */
void upmask_build(struct upmask_result *out, const struct upmask_input *in, uint32_t room);

#endif
