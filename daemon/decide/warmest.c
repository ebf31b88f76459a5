// SPDX-License-Identifier: GPL-2.0-or-later
/* The warmest of each cluster; see warmest.h. */
#include "decide/warmest.h"

#include <string.h>

#define MOST	16	/* blocks of a cluster */

static void mark(struct upmask *warm, const uint16_t *block, uint32_t nr, const int8_t *level)
{
	int8_t highest = level[block[0]], lowest = highest;

	for (uint32_t k = 1; k < nr; k++) {
		int8_t l = level[block[k]];

		highest = l > highest ? l : highest;
		lowest = l < lowest ? l : lowest;
	}
	for (uint32_t k = 0; k < nr && highest > lowest; k++)
		if (level[block[k]] == highest)
			upmask_set(warm, block[k]);
}

void warmest(struct upmask *warm, const struct upmask *packed, const int8_t level[REGION_BLOCKS], uint32_t cluster)
{
	uint16_t block[MOST];
	uint32_t nr = 0;

	memset(warm, 0, sizeof(*warm));
	if (cluster > MOST)
		cluster = MOST;
	for (uint32_t i = 0; i < REGION_BLOCKS && cluster > 1; i++) {
		if (!upmask_test(packed, i))
			continue;
		block[nr++] = (uint16_t)i;
		if (nr < cluster)
			continue;
		mark(warm, block, nr, level);
		nr = 0;
	}
	if (nr)
		mark(warm, block, nr, level);
}
