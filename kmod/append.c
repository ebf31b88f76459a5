// SPDX-License-Identifier: GPL-2.0
/*
 * Places ahead of appends. Who writes one new block after the other and syncs each, a log
 * for example, waits for two writes that must not overlap: of his data, and then of the
 * record that names their place. So the blocks that he will come to next get their places
 * beforehand, with zeros in them, which is what they read as anyway. Then an append is an
 * overwrite in place, one write, and its flush finds nothing to commit.
 *
 * Seen by the commit worker: commits that somebody waits for, of few records, where a block
 * that had no place follows one that had none either. After some of these blocks are
 * prepared, each time twice as many, append_kb at most. Overwrites in place leave no
 * record; therefore one block at three quarters of what is prepared is left out: when its
 * record comes, the next ones are prepared while the last quarter is being written.
 *
 * It is a write of zeros to fresh places, with the rules and in the order of any other:
 * data, flush, record. Power cut: each block reads as zeros before and after. A writer may
 * come in between: a block that has got a place meanwhile keeps it (endio.c), one that gets
 * it later replaces ours, and one that finds ours writes when the zeros are down, for they
 * are published only then.
 */
#include <linux/blkdev.h>
#include <linux/slab.h>

#include "io.h"
#include "meta.h"

#define STREAMS		8
#define SIGNS		4	/* appends in a row before something is done */
#define FEW		32	/* records of one commit */
#define LEAST		16u	/* blocks prepared at once */
#define PIECE		8u	/* of them written at once */
#define NOWHERE		(~0ull)

struct append {
	u64 from, to;		/* prepared, in vain or not; a record at to goes on with it */
	u64 wire;		/* the block that was left out */
	u32 signs;
	u32 asked;		/* blocks that were to be prepared last */
};

struct tr_appends {
	struct terrace *tr;
	struct append append[STREAMS];	/* commit worker only */
	u32 hand;
	struct work_struct work;
	bool busy;			/* what follows is the work's, until it takes it away */
	u64 first, wire;
	u64 reached;			/* how far the last one came */
	u32 nr;
};

/* --- preparing, in a worker -------------------------------------------------------- */

static bool takes_appends(const struct terrace *tr, u32 t)
{
	const struct tr_tier *tier = &tr->tier[t];

	/* Nobody is pushed out for what has not been written yet. */
	return tier->kind == TERRACE_KIND_SLOTS && tier->atomic && !tier->missing &&
	       READ_ONCE(tier->free_blocks) > tier->data_blocks / 16;
}

/* The tiers, as bits, that have places for zeros: more of them ready than writers need. */
u32 tr_append_tiers(const struct terrace *tr)
{
	u32 t, tiers = 0;

	for (t = 0; t < tr->nr_tiers; t++)
		if (takes_appends(tr, t) && !tr_ready_below(&tr->tier[t], 2))
			tiers |= 1u << t;
	return tiers;
}

/*
 * Written, not asked for: a drive that unmaps them would have to find room for the append.
 * A few at a time: who appends writes to the same drive, and waits behind what it was given.
 */
static int write_zeros(struct terrace *tr, const struct tr_io *io, u32 nr)
{
	sector_t sector = tr_io_sector(tr, io);
	int err = 0;
	u32 n;

	static_assert(PIECE <= TR_MOST_UNIT);	/* tr->zeros has no more */
	for (; nr && !err; nr -= n, sector += n * TERRACE_BLOCK_SECTORS) {
		n = min(nr, PIECE);
		err = tr_rw(tr->tier[io->tier].bdev, sector, tr->zeros, n * TERRACE_BLOCK_BYTES, REQ_OP_WRITE);
	}
	return err;
}

static enum tr_verdict route(struct terrace *tr, struct tr_io *io, u64 block, u32 *nr)
{
	enum tr_verdict verdict;

	rcu_read_lock();
	verdict = tr_route_ahead(tr, io, block, nr);
	rcu_read_unlock();
	return verdict;
}

static void grow(struct terrace *tr, u64 block, u32 nr)
{
	struct tr_region *region;

	tr_reserve_wait(tr);
	region = tr_region_get(tr, block >> TERRACE_REGION_SHIFT, false);
	if (IS_ERR_OR_NULL(region))
		return;
	tr_region_grow(tr, region, nr, tr->high_places);
	tr_region_put(region);
}

/* What can be had without waiting for somebody is made room for once: in the leaf, among the
 * slots that stand ready.
 */
static enum tr_verdict find_places(struct terrace *tr, struct tr_io *io, u64 block, u32 *nr)
{
	u32 all = *nr;
	enum tr_verdict verdict = route(tr, io, block, nr);

	if (verdict == TR_GROW)
		grow(tr, block, all);
	else if (verdict == TR_ROOM)
		flush_work(&tr->refill_work);	/* map() has asked for it */
	else
		return verdict;
	*nr = all;
	return route(tr, io, block, nr);
}

/* Up to the first block that has a place, or finds none. False: not all of them. */
static bool prepare(struct tr_appends *a, u64 block, u32 nr)
{
	struct terrace *tr = a->tr;
	int err = 0;
	u32 n;

	for (; nr && !READ_ONCE(tr->stopping); block += n, nr -= n) {
		struct tr_io io = { .tr = tr, .zeros = true };

		n = nr;
		if (find_places(tr, &io, block, &n) != TR_GO)
			break;
		err = write_zeros(tr, &io, n);
		tr_io_end(&io, errno_to_blk_status(err));
		if (err)
			break;
		this_cpu_add(tr->stats->prepared, n);
	}
	a->reached = block;
	return !nr;
}

static void append_fn(struct work_struct *work)
{
	struct tr_appends *a = container_of(work, struct tr_appends, work);

	if (prepare(a, a->first, a->wire - a->first))
		prepare(a, a->wire + 1, a->first + a->nr - a->wire - 1);
	tr_commit_kick(a->tr);
	smp_store_release(&a->busy, false);	/* pairs with is_busy() */
}

/* --- seeing, in the commit worker ---------------------------------------------------- */

static bool is_busy(struct tr_appends *a)
{
	return smp_load_acquire(&a->busy);	/* pairs with append_fn() */
}

/* The region's end is an end, too, and so is that of the volume as a start would find it. */
static void ask(struct tr_appends *a, struct append *append, u64 first, u32 nr)
{
	struct terrace *tr = a->tr;
	u64 end = min(round_up(first + 1, TERRACE_REGION_BLOCKS), READ_ONCE(tr->super.virtual_blocks));

	if (is_busy(a) || first >= end || tr_is_cold(tr, first))
		return;
	append->asked = nr;
	nr = min_t(u64, nr, end - first);
	append->to = first + nr;
	append->wire = first + nr - 1 - nr / 4;
	a->first = first;
	a->wire = append->wire;
	a->nr = nr;
	a->busy = true;
	queue_work(tr->meta_wq, &a->work);
}

/* It should have found a prepared place: it was quicker than we, or we did not come so far. */
static bool was_quicker(struct tr_appends *a, const struct append *append, u64 block)
{
	if (block == append->wire || block == append->to)
		return false;
	return is_busy(a) || append->to != a->first + a->nr || block < a->reached;
}

static void see(struct tr_appends *a, u64 block, u32 n, u32 most)
{
	struct append *append = a->append;

	while (append < a->append + STREAMS && (block < append->from || block > append->to))
		append++;
	if (append == a->append + STREAMS) {
		a->append[a->hand++ % STREAMS] = (struct append){
			.from = block + n, .to = block + n, .wire = NOWHERE,
		};
		return;
	}
	if (was_quicker(a, append, block))
		return;
	append->from = block + n;
	if (block != append->wire)
		append->to = block + n;		/* from here on nothing is prepared */
	append->wire = NOWHERE;
	if (++append->signs >= SIGNS)
		ask(a, append, append->to, clamp(2 * append->asked, min(LEAST, most), most));
}

void tr_appends_see(struct terrace *tr, const struct list_head *blocks)
{
	u32 most = tr_tune(tr, TR_TUNE_APPEND_KB) / (TERRACE_BLOCK_BYTES / 1024), k, nr;
	const struct tr_journal_block *block;
	struct tr_record record;

	if (!most || READ_ONCE(tr->stopping) || !list_is_singular(blocks))
		return;
	block = list_first_entry(blocks, struct tr_journal_block, list);
	nr = tr_jblock_nr(block->data);
	for (k = 0; k < nr && nr <= FEW; k++) {
		tr_jblock_record(block->data, k, &record);
		if (record.type == TERRACE_RECORD_MAP && record.old == TR_NO_PLACE &&
		    takes_appends(tr, tr_place_tier(record.new)))
			see(tr->appends, record.block, record.nr, most);
	}
}

/* --- set-up ------------------------------------------------------------------------------ */

void tr_appends_quiesce(struct terrace *tr)
{
	flush_work(&tr->appends->work);
}

int tr_appends_init(struct terrace *tr)
{
	struct append *append;

	tr->appends = kzalloc(sizeof(*tr->appends), GFP_KERNEL);
	if (!tr->appends)
		return -ENOMEM;
	tr->appends->tr = tr;
	INIT_WORK(&tr->appends->work, append_fn);
	for (append = tr->appends->append; append < tr->appends->append + STREAMS; append++)
		append->from = append->to = append->wire = NOWHERE;
	return 0;
}

void tr_appends_exit(struct terrace *tr)
{
	if (tr->appends)
		cancel_work_sync(&tr->appends->work);
	kfree(tr->appends);
	tr->appends = NULL;
}
