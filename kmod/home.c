// SPDX-License-Identifier: GPL-2.0
/*
 * Homes, on drives that compress inside: block b of the volume has place b of
 * the tier, and no other there. So a home is not searched for, it is free or it
 * is not; and one that is free is trimmed, or it would cost room in the drive.
 * Crashes are gone through in Documentation/decisions/0007-homes.md.
 *
 * A home is taken by setting its bit in `used` of its chunk, which tr_space_*()
 * clear again as they do for slots: after the commit that frees it, the grace
 * period, and (apply.c) the trim. Whoever comes earlier does not get it.
 */
#include "terrace.h"

#define HIGH_PERMILLE	900	/* of the room inside: nothing is brought here any more */
#define LOW_PERMILLE	850	/* the janitor stops taking away */
#define SWEEP_BLOCKS	TERRACE_REGION_BLOCKS	/* trimmed, and out of reach, at a time */

/* --- room inside -------------------------------------------------------------------- */

bool tr_home_full(const struct tr_tier *tier)
{
	u64 limit = READ_ONCE(tier->physical_limit);

	return limit && READ_ONCE(tier->physical_used) >= mul_u64_u64_div_u64(limit, HIGH_PERMILLE, 1000);
}

u64 tr_home_surplus(const struct tr_tier *tier)
{
	u64 used = READ_ONCE(tier->physical_used), blocks = tr_space_used(tier);
	u64 low = mul_u64_u64_div_u64(READ_ONCE(tier->physical_limit), LOW_PERMILLE, 1000);

	if (!READ_ONCE(tier->physical_limit) || used <= low)
		return 0;
	/* What a block takes inside is known on average only. */
	return max_t(u64, mul_u64_u64_div_u64(blocks, used - low, used), 1);
}

/* Until the drive's next report: what is left takes as much as it did. */
void tr_home_moved_away(struct tr_tier *tier, u64 moved)
{
	u64 used = READ_ONCE(tier->physical_used), blocks = tr_space_used(tier) + moved;

	if (blocks)
		WRITE_ONCE(tier->physical_used, used - mul_u64_u64_div_u64(used, min(moved, blocks), blocks));
}

/* Message physical <tier> <used> <limit>. */
int tr_home_report(struct terrace *tr, const char *number, const char *used, const char *limit)
{
	u64 in_use, all;
	struct tr_tier *tier;
	u32 t;

	if (kstrtou32(number, 10, &t) || t >= tr->nr_tiers || kstrtou64(used, 10, &in_use) ||
	    kstrtou64(limit, 10, &all) || in_use > TERRACE_MAX_PLACE_INDEX ||
	    all > TERRACE_MAX_PLACE_INDEX) {
		DMERR("%s: physical: not <tier> <used blocks> <limit in blocks>: %s %s %s", tr->name,
		      number, used, limit);
		return -EINVAL;
	}
	tier = &tr->tier[t];
	if (tier->kind != TERRACE_KIND_HOME) {
		DMERR("%s: physical: tier %u is not of kind home", tr->name, t);
		return -EINVAL;
	}
	WRITE_ONCE(tier->physical_limit, all);
	WRITE_ONCE(tier->physical_used, in_use);
	tr_throttle_update(tr);
	tr_janitor_kick(tr);
	tr_room_made(tr);
	return 0;
}

/* --- taking ---------------------------------------------------------------------------- */

/* Homes free from @i of the chunk on, up to @n; they are used then. */
static u32 take__f(struct tr_tier *tier, struct tr_chunk *chunk, u32 i, u32 n)
{
	u32 got;

	lockdep_assert_held(&tier->lock);
	for (got = 0; got < n && !(chunk->used[(i + got) / 64] >> ((i + got) % 64) & 1); got++)
		chunk->used[(i + got) / 64] |= 1ull << ((i + got) % 64);
	tier->chunks[chunk->number].used += got;
	tier->free_blocks -= got;
	return got;
}

/* Of [@block, +@n): those that have a home, in one chunk. */
static u32 with_homes(const struct tr_tier *tier, u64 block, u32 n)
{
	u64 blocks = READ_ONCE(tier->data_blocks);

	if (block >= blocks)
		return 0;
	n = min_t(u64, n, blocks - block);
	return min_t(u32, n, TERRACE_CHUNK_BLOCKS - block % TERRACE_CHUNK_BLOCKS);
}

u32 tr_home_get(struct terrace *tr, struct tr_tier *tier, u64 block, u32 n)
{
	struct tr_chunk *chunk;
	unsigned long flags;
	u32 got = 0;

	n = with_homes(tier, block, n);
	if (!n || tr_home_full(tier))
		return 0;
	spin_lock_irqsave(&tier->lock, flags);
	chunk = tier->chunks[block >> TERRACE_CHUNK_SHIFT].chunk;
	if (chunk)
		got = take__f(tier, chunk, block % TERRACE_CHUNK_BLOCKS, n);
	else
		tier->wanted_chunk = (block >> TERRACE_CHUNK_SHIFT) + 1;
	spin_unlock_irqrestore(&tier->lock, flags);
	return got;
}

/*
 * May the home of @block be free on any tier? While its chunk is not in memory, it may: what
 * wanted_chunk says is about the last writer that missed one.
 */
bool tr_home_may_be_free(struct terrace *tr, u64 block)
{
	u32 i = block % TERRACE_CHUNK_BLOCKS, open = tr_space_open(tr), t;
	const struct tr_chunk *chunk;
	unsigned long flags;
	bool may = false;

	for (t = 0; t < tr->nr_tiers && !may; t++) {
		struct tr_tier *tier = &tr->tier[t];

		if (tier->kind != TERRACE_KIND_HOME || tier->missing || tr_home_full(tier) ||
		    !with_homes(tier, block, 1) || !(open >> t & 1))
			continue;
		spin_lock_irqsave(&tier->lock, flags);
		chunk = tier->chunks[block >> TERRACE_CHUNK_SHIFT].chunk;
		may = !chunk || !(chunk->used[i / 64] >> (i % 64) & 1);
		spin_unlock_irqrestore(&tier->lock, flags);
	}
	return may;
}

void tr_home_want(struct terrace *tr, u64 block)
{
	struct tr_tier *tier;
	unsigned long flags;
	u32 t;

	if (READ_ONCE(tr->journal.starved) || !tr_home_may_be_free(tr, block))
		return;
	for (t = 0; t < tr->nr_tiers; t++) {
		tier = &tr->tier[t];
		if (tier->kind != TERRACE_KIND_HOME || tier->missing || !with_homes(tier, block, 1))
			continue;
		spin_lock_irqsave(&tier->lock, flags);
		tier->wanted_chunk = (block >> TERRACE_CHUNK_SHIFT) + 1;
		spin_unlock_irqrestore(&tier->lock, flags);
	}
}

/* open_mutex: what is only being swept is waited for. */
u32 tr_home_get_wait(struct terrace *tr, struct tr_tier *tier, u64 block, u32 n)
{
	struct tr_chunk *chunk;
	u32 got;

	n = with_homes(tier, block, n);
	if (!n)
		return 0;
	chunk = tr_chunk_get(tr, tier, block >> TERRACE_CHUNK_SHIFT);
	if (IS_ERR(chunk))
		return 0;
	mutex_lock(&tier->open_mutex);
	spin_lock_irq(&tier->lock);
	got = take__f(tier, chunk, block % TERRACE_CHUNK_BLOCKS, n);
	spin_unlock_irq(&tier->lock);
	mutex_unlock(&tier->open_mutex);
	tr_chunk_put(chunk);		/* what is used keeps it in memory */
	return got;
}

/* The chunk that a writer missed. true: it is there now. Refill worker. */
bool tr_home_refill(struct terrace *tr, struct tr_tier *tier)
{
	struct tr_chunk *chunk;
	u32 wanted;

	spin_lock_irq(&tier->lock);
	wanted = tier->wanted_chunk;
	tier->wanted_chunk = 0;
	spin_unlock_irq(&tier->lock);
	if (!wanted)
		return false;
	chunk = tr_chunk_get(tr, tier, wanted - 1);
	if (IS_ERR(chunk))
		return false;
	tr_chunk_put(chunk);
	return true;
}

/* --- trimming ---------------------------------------------------------------------------- */

void tr_home_put(struct terrace *tr, struct tr_tier *tier, u64 index, u32 n)
{
	struct tr_burst burst;

	tr_burst_begin(&burst);
	tr_trim(tier, index, n, &burst);
	tr_burst_wait(&burst);		/* not trimmed, it only costs room */
	tr_space_put(tr, tier, index, n);
}

/* --- stale homes ------------------------------------------------------------------------- */

/* The next free homes at or behind *@i of the chunk, taken. */
static u32 take_run(struct tr_tier *tier, struct tr_chunk *chunk, u32 *i)
{
	u32 n = 0;

	spin_lock_irq(&tier->lock);
	*i = find_next_zero_bit((unsigned long *)chunk->used, TERRACE_CHUNK_BLOCKS, *i);
	if (*i < TERRACE_CHUNK_BLOCKS)
		n = take__f(tier, chunk, *i, min_t(u32, SWEEP_BLOCKS, TERRACE_CHUNK_BLOCKS - *i));
	spin_unlock_irq(&tier->lock);
	return n;
}

static void sweep_chunk(struct terrace *tr, struct tr_tier *tier, u32 number)
{
	struct tr_chunk *chunk = tr_chunk_get(tr, tier, number);
	u32 i = 0, n = 1;

	if (IS_ERR(chunk))
		return;
	while (n && !READ_ONCE(tr->stopping)) {
		mutex_lock(&tier->open_mutex);
		n = take_run(tier, chunk, &i);
		if (n)
			tr_home_put(tr, tier, ((u64)number << TERRACE_CHUNK_SHIFT) + i, n);
		mutex_unlock(&tier->open_mutex);
		i += n;
		cond_resched();
	}
	tr_chunk_put(chunk);
}

static void sweep_fn(struct work_struct *work)
{
	struct terrace *tr = container_of(work, struct terrace, sweep_work);
	u32 t;

	for (t = 0; t < tr->nr_tiers; t++) {
		struct tr_tier *tier = &tr->tier[t];

		if (tier->kind != TERRACE_KIND_HOME || tier->missing)
			continue;
		while (tr_writable(tr) && READ_ONCE(tier->sweep) < tier->nr_chunks) {
			u32 number = READ_ONCE(tier->sweep);

			sweep_chunk(tr, tier, number);
			if (READ_ONCE(tr->stopping))
				return;		/* goes on there after the resume */
			/* Unless the message began anew meanwhile. */
			cmpxchg(&tier->sweep, number, number + 1);
			if (tr_room_is_waited_for(tr))
				tr_room_made(tr);
		}
	}
}

void tr_homes_init(struct terrace *tr)
{
	INIT_WORK(&tr->sweep_work, sweep_fn);
}

void tr_homes_kick(struct terrace *tr)
{
	queue_work(tr->meta_wq, &tr->sweep_work);
}

void tr_homes_sweep(struct terrace *tr)
{
	u32 t;

	for (t = 0; t < tr->nr_tiers; t++)
		WRITE_ONCE(tr->tier[t].sweep, 0);
	tr_homes_kick(tr);
}
