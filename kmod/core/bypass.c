// SPDX-License-Identifier: GPL-2.0
/* Which clusters are hot; see bypass.h. */
#include <linux/math64.h>
#include <linux/minmax.h>

#include "bypass.h"

#define ONE		16	/* a hit: halving must not round away what the sums still have */
#define MAX_HITS	(1023 * ONE)

void tr_bypass_init(struct tr_bypass *bypass)
{
	*bypass = (struct tr_bypass){ .k = TR_BYPASS_K_START };
}

/* The halvings that the entry has missed. The sums have had theirs. */
static void catch_up(const struct tr_bypass *bypass, struct tr_heat *heat)
{
	u16 missed = bypass->epoch - heat->epoch;

	heat->hits >>= min_t(u16, missed, 15);
	heat->epoch = bypass->epoch;
}

void tr_bypass_add(struct tr_bypass *bypass, struct tr_heat *heat)
{
	*heat = (struct tr_heat){ .epoch = bypass->epoch };
	bypass->nr++;
}

void tr_bypass_remove(struct tr_bypass *bypass, struct tr_heat *heat)
{
	u64 hits;

	catch_up(bypass, heat);
	hits = heat->hits;
	bypass->nr--;
	/* Halving rounds: the sums may have a little less. */
	bypass->sum -= min(bypass->sum, hits);
	bypass->squares -= min(bypass->squares, hits * hits);
}

/* hits > mean + k * sigma, without roots and fractions: both sides times nr,
 * squared.
 */
static bool is_hot(const struct tr_bypass *bypass, u64 hits)
{
	u64 n = bypass->nr, far, var;

	if (hits * n <= bypass->sum)
		return false;
	far = (hits * n - bypass->sum) / ONE;
	var = n * bypass->squares;
	var = (var - min(var, bypass->sum * bypass->sum)) / (ONE * ONE);
	var = min_t(u64, var, 1ull << 51);
	return far * far * 16 > (u64)bypass->k * bypass->k * var;
}

bool tr_bypass_hit(struct tr_bypass *bypass, struct tr_heat *heat)
{
	catch_up(bypass, heat);
	bypass->looked++;
	if (heat->hits < MAX_HITS) {
		bypass->sum += ONE;
		bypass->squares += (2 * heat->hits + ONE) * ONE;
		heat->hits += ONE;
	}
	return heat->hits > ONE && is_hot(bypass, heat->hits);
}

bool tr_bypass_turn(struct tr_bypass *bypass)
{
	if (bypass->looked < 4 * bypass->nr + 1024)
		return false;
	bypass->looked = 0;
	bypass->epoch++;
	bypass->sum /= 2;
	bypass->squares /= 4;
	return true;
}

void tr_bypass_tune(struct tr_bypass *bypass, const struct tr_bypass_epoch *epoch)
{
	u64 plain, stored;

	if (!epoch->full || !epoch->plain_bytes) {
		/* Room costs nothing, or nothing is hot enough: back to the start. */
		bypass->k -= bypass->k > TR_BYPASS_K_START;
		return;
	}
	plain = div64_u64(epoch->plain_hits * epoch->decode_ns, max_t(u64, epoch->plain_bytes >> 10, 1));
	stored = div64_u64(epoch->stored_hits * epoch->read_ns, max_t(u64, epoch->stored_bytes >> 10, 1));
	if (plain > stored)
		bypass->k -= bypass->k > TR_BYPASS_K_MIN;
	else
		bypass->k += bypass->k < TR_BYPASS_K_MAX;
}
