// SPDX-License-Identifier: GPL-2.0-or-later
/* A sampled, direct-mapped table of moved blocks; see repay.h. */
#include "decide/repay.h"

#include <errno.h>
#include <string.h>

#include "decide/prng.h"

/* No tunables: what fits a slot, and a number that makes a sample another one.  How long a read is held against a move is governor.regret_epochs. */
#define EPOCHS		8192u		/* what a slot can tell apart */
#define SALT	0x7265706179ull		/* samples other blocks than the ghost cache does */

size_t repay_bytes(uint32_t slots)
{
	return slots * sizeof(struct repay_slot);
}

int repay_init(struct repay *r, uint32_t slots, double rate, void *mem, size_t bytes)
{
	if (!slots || slots & (slots - 1) || !(rate > 0 && rate <= 1))
		return -EINVAL;
	if (!mem || bytes < repay_bytes(slots))
		return -ENOMEM;
	memset(mem, 0, repay_bytes(slots));
	*r = (struct repay){
		.slots = mem, .mask = slots - 1,
		.threshold = rate >= 1 ? UINT64_MAX : (uint64_t)(rate * 0x1p64),
	};
	return 0;
}

/* The block's slot, NULL when it is not in the sample. */
static struct repay_slot *slot_of(const struct repay *r, uint64_t block)
{
	uint64_t hash = mix64(block ^ SALT);

	return hash <= r->threshold ? &r->slots[mix64(hash) & r->mask] : NULL;
}

static double weight(const struct repay *r)
{
	return 0x1p64 / (double)r->threshold;
}

void repay_moved(struct repay *r, uint64_t block, enum repay_way way)
{
	struct repay_slot *s = slot_of(r, block);

	if (!s)
		return;
	*s = (struct repay_slot){ .block = block & ((1ull << 48) - 1), .way = way, .epoch = r->epoch };
	if (way == REPAY_UP)
		r->counts.up += weight(r);
	else
		r->counts.down += weight(r);
}

void repay_read(struct repay *r, uint64_t block, double stands_for, uint32_t lately)
{
	struct repay_slot *s = slot_of(r, block);

	if (!s || !s->way || s->block != block)
		return;
	if (s->way == REPAY_UP)
		r->counts.up_hits += weight(r);
	else if (!s->seen && (r->epoch - s->epoch) % EPOCHS < lately)
		r->counts.down_reads += weight(r) * stands_for;
	s->seen = 1;
}

struct repay_counts repay_take(struct repay *r)
{
	struct repay_counts counts = r->counts;

	r->counts = (struct repay_counts){ 0 };
	r->epoch = (r->epoch + 1) % EPOCHS;
	return counts;
}
