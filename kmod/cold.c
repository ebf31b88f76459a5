// SPDX-License-Identifier: GPL-2.0
/*
 * A cold read, as most are: of one block, in a pack whose index is in memory.
 * map() asks the drive for the cluster's sectors at once. When they are there, their
 * CRC is checked and they are decoded, into the reader's page where that is possible:
 * by a softirq, if that is a matter of microseconds and no other cold read of the volume
 * is under way, else by a worker, which is woken only then. The softirq is the one behind
 * the drive's interrupt; where the drive answered within the system call, or the promotion
 * cache did, another CPU's. So no submitter decompresses, many reads at once are spread
 * over the CPUs, and a lone one costs no switch to a worker and back.
 *
 * Whatever is out of the ordinary goes the deferred way (defer.c, unpack.c): several
 * blocks, reads in order, an index that must be read, no memory right now, and every failure.
 * That way tries again, tells damage from a pack that was dropped meanwhile, and
 * says what is wrong where; here nothing is reported and nobody gets data that
 * failed their check.
 *
 * Until it is decoded, the bio counts in the epoch of the pack's tier.
 */
#include <linux/highmem.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/sched/isolation.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "io.h"
#include "loose.h"
#include "packing.h"

#define MOST_BYTES	(2 * TERRACE_BLOCK_BYTES)	/* a cluster of one block, on any sectors */

/* In front of the tr_io of the reader's bio: nothing to allocate but the sectors. */
struct tr_cold {
	struct work_struct work;
	struct terrace *tr;
	struct bio *to;			/* the reader's */
	struct tr_pack_ref ref;
	struct tr_pack_where where;
	struct tr_index *index;
	struct tr_cached *entry;	/* in the promotion cache already: no read, no sectors */
	bool hot;
	u32 i;
	u32 skip;			/* bytes in front of the cluster that are read as well */
	u64 began;
	struct bio_vec vec;
	struct bio bio;
	u8 *stored;			/* MOST_BYTES, aligned to pages: some drives copy block by block */
};

/* Of one bio only one of them is in use. */
static_assert(sizeof(struct tr_loose) <= sizeof(struct tr_cold));

const size_t tr_per_bio_bytes = sizeof(struct tr_cold) + sizeof(struct tr_io);

static struct kmem_cache *sectors;

/* Of each CPU: the read that its softirq decodes, or will. */
struct lone {
	struct tasklet_struct tasklet;
	struct tr_cold *cold;
	/* How a CPU is asked, by another and by itself: used by whoever put the read there. */
	call_single_data_t call;
	struct irq_work work;
	int asked;			/* the CPU that this one has asked last */
};

static DEFINE_PER_CPU(struct lone, lones);

static void cold_end(struct tr_cold *cold)
{
	bio_uninit(&cold->bio);
	atomic_dec(&cold->tr->cold_reads);
	if (cold->stored) {
		atomic64_sub(MOST_BYTES, &cold->tr->memory);
		kmem_cache_free(sectors, cold->stored);
	} else {
		tr_cached_put(cold->tr, cold->entry);
	}
	tr_index_put(cold->tr, cold->index);
}

/* A cache with a constructor is not cleared for each object: the drive overwrites what
 * is looked at.
 */
static void sectors_made(void *object)
{
}

/* --- decoding ---------------------------------------------------------------------- */

static const void *stored(const struct tr_cold *cold)
{
	return cold->entry ? tr_cached_data(cold->entry) : cold->stored + cold->skip;
}

/* One in eight is enough for a mean. */
static bool is_timed(const struct tr_cold *cold)
{
	return cold->i % 8 == 0;
}

static int decode_to(struct tr_cold *cold, void *to, const struct tr_codec_ops *ops, void *context)
{
	u64 began = is_timed(cold) ? ktime_get_ns() : 0;
	int err = tr_pack_decode(cold->index->data, &cold->where, stored(cold), to, ops, context);

	if (!err && began)
		tr_promotion_spent(cold->tr, true, ktime_get_ns() - began);
	return err;
}

/* Through a work area: what has neighbours in its cluster, needs a state, or is kept
 * decoded (the reader may write to its page meanwhile).
 */
static int decode_aside(struct tr_cold *cold, const struct tr_codec_ops *ops)
{
	struct tr_unpacker *unpacker = tr_unpacker_get(cold->tr);
	const void *data = unpacker->cluster + cold->where.slot * TERRACE_BLOCK_BYTES;
	u16 block = cold->i;
	int err = decode_to(cold, unpacker->cluster, ops, unpacker->codec);

	if (!err) {
		tr_unpack_copy(cold->to, data);
		if (cold->hot)
			tr_unpack_keep(cold->tr, &cold->ref, &block, 1, true, data, TERRACE_BLOCK_BYTES);
	}
	tr_unpacker_put(cold->tr, unpacker);
	return err;
}

static u32 codec_of(const struct tr_cold *cold)
{
	struct tr_pack_head head;

	tr_pack_head(cold->index->data, &head);
	return head.codec;
}

/* Straight to the reader's page, with nothing that is waited for. */
static bool is_quick(const struct tr_cold *cold, u32 codec)
{
	return cold->where.nr_slots == 1 && !cold->hot && codec != TERRACE_CODEC_ZSTD &&
	       bio_iovec(cold->to).bv_len >= TERRACE_BLOCK_BYTES;
}

static int decode(struct tr_cold *cold)
{
	struct bio_vec to = bio_iovec(cold->to);
	u32 codec = codec_of(cold);
	void *page;
	int err;

	if (!is_quick(cold, codec))
		return decode_aside(cold, tr_codec_ops(codec));
	page = kmap_local_page(to.bv_page);
	err = decode_to(cold, page + to.bv_offset, tr_codec_ops(codec), NULL);
	kunmap_local(page);
	flush_dcache_page(to.bv_page);
	return err;
}

/* As much of the cluster as was read. */
static void keep(struct tr_cold *cold)
{
	u16 block[1 << TERRACE_PACK_MAX_SHIFT] = { cold->i };
	u32 from, to;

	if (cold->entry || !tr_tune(cold->tr, TR_TUNE_CACHE_MB))
		return;
	tr_pack_filled(&cold->where, &from, &to);
	if (cold->where.nr_slots > 1)
		tr_pack_members(cold->index->data, cold->where.cluster, block);
	tr_unpack_keep(cold->tr, &cold->ref, cold->where.raw ? &block[from] : block, to - from, false,
		       stored(cold), cold->where.length);
}

/* It is decoded: what the reader wants is in his pages. */
static void deliver(struct tr_cold *cold)
{
	keep(cold);
	cold_end(cold);
}

static void cold_fn(struct work_struct *work)
{
	struct tr_cold *cold = container_of(work, struct tr_cold, work);
	struct terrace *tr = cold->tr;
	struct bio *bio = cold->to;

	if (!cold->bio.bi_status && !decode(cold)) {
		deliver(cold);
		bio_endio(bio);		/* leaves the epoch */
		return;
	}
	cold_end(cold);
	tr_io_end(tr_io_of(bio), BLK_STS_OK);
	tr_defer(tr, bio);
}

/* --- a lone one, in softirq -------------------------------------------------------- */

static void lone_fn(struct tasklet_struct *tasklet)
{
	struct lone *lone = from_tasklet(lone, tasklet, tasklet);
	struct tr_cold *cold = READ_ONCE(lone->cold);
	struct bio *bio = cold->to;

	if (decode(cold)) {
		WRITE_ONCE(lone->cold, NULL);
		queue_work(cold->tr->cold_wq, &cold->work);	/* says what is wrong */
		return;
	}
	deliver(cold);
	/* Before the end, behind which the reader may ask for his next. */
	WRITE_ONCE(lone->cold, NULL);
	bio_endio(bio);			/* leaves the epoch */
}

static void called(void *lone)
{
	tasklet_schedule(&((struct lone *)lone)->tasklet);
}

static void interrupted(struct irq_work *work)
{
	called(container_of(work, struct lone, work));
}

/* Another CPU than the submitter's, each in turn; his, where there is no other. */
static int whose_turn(void)
{
	const struct cpumask *mask = housekeeping_cpumask(HK_TYPE_DOMAIN);
	struct lone *lone = this_cpu_ptr(&lones);
	int own = smp_processor_id(), cpu;

	for_each_cpu_wrap(cpu, mask, lone->asked + 1) {
		if (cpu != own && cpu_online(cpu)) {
			lone->asked = cpu;
			return cpu;
		}
	}
	return own;
}

/* False: let a worker do it. */
static bool lone_ask(struct tr_cold *cold, int cpu)
{
	struct lone *lone = per_cpu_ptr(&lones, cpu);

	if (cmpxchg(&lone->cold, NULL, cold))
		return false;
	if (!in_task()) {
		tasklet_schedule(&lone->tasklet);
	} else if (cpu == smp_processor_id()) {
		irq_work_queue(&lone->work);
	} else if (smp_call_function_single_async(cpu, &lone->call)) {	/* it has left */
		WRITE_ONCE(lone->cold, NULL);
		return false;
	}
	return true;
}

static bool goes_alone(struct tr_cold *cold)
{
	bool asked;
	int cpu;

	if (atomic_read(&cold->tr->cold_reads) > 1 || !is_quick(cold, codec_of(cold)))
		return false;
	cpu = get_cpu();
	asked = lone_ask(cold, in_task() ? whose_turn() : cpu);
	put_cpu();
	return asked;
}

/* --- asking, in map() ------------------------------------------------------------- */

static void when_there(struct tr_cold *cold)
{
	if (cold->bio.bi_status || !goes_alone(cold))
		queue_work(cold->tr->cold_wq, &cold->work);
}

static void cold_end_io(struct bio *bio)
{
	struct tr_cold *cold = container_of(bio, struct tr_cold, bio);

	if (!bio->bi_status) {
		this_cpu_inc(cold->tr->stats->pack_reads);
		if (is_timed(cold))
			tr_promotion_spent(cold->tr, false, ktime_get_ns() - cold->began);
	}
	when_there(cold);
}

/* Adds the sectors that hold the cluster. They do not fit: false. */
static bool add_sectors(struct tr_cold *cold, const struct tr_tier *tier)
{
	u32 sector = bdev_logical_block_size(tier->bdev), end;

	end = min_t(u32, round_up(cold->where.offset + cold->where.length, sector),
		    cold->ref.blocks * TERRACE_BLOCK_BYTES);
	cold->skip = cold->where.offset % sector;
	end -= cold->where.offset - cold->skip;
	if (end > MOST_BYTES)
		return false;
	cold->bio.bi_iter.bi_sector = tier->data_sector +
		tr_place_index(cold->ref.place) * TERRACE_BLOCK_SECTORS +
		(cold->where.offset - cold->skip) / SECTOR_SIZE;
	__bio_add_page(&cold->bio, virt_to_page(cold->stored), end, offset_in_page(cold->stored));
	return true;
}

struct tr_cold *tr_cold_begin(struct terrace *tr, struct bio *bio, const struct tr_pack_ref *ref,
			      u32 i)
{
	struct tr_cold *cold = dm_per_bio_data(bio, tr_per_bio_bytes);

	if (atomic64_read(&tr->memory) + MOST_BYTES > tr_memory_limit(tr))
		return NULL;
	cold->index = tr_index_find(tr, ref->id);
	if (!cold->index)
		return NULL;
	cold->tr = tr;
	cold->to = bio;
	cold->ref = *ref;
	cold->i = i;
	cold->hot = false;
	cold->entry = NULL;
	cold->stored = NULL;
	INIT_WORK(&cold->work, cold_fn);
	if (!tr_pack_find(cold->index->data, i, &cold->where))
		goto no;
	/* All of a cluster is a matter for unpack.c, which knows how to do with less if it is damaged. */
	if (cold->where.nr_slots > 1 && !cold->where.raw && !tr_tune(tr, TR_TUNE_EARLY_TERMINATION))
		goto no;
	if (tr_promotion_bytes(tr, false))
		cold->entry = tr_promotion_find(tr, ref->id, i, false, cold->where.length, &cold->hot);
	if (cold->entry) {
		this_cpu_inc(tr->stats->cache_hits);
		return cold;
	}
	/* What will be wanted next is read along, by who may sleep. */
	if (!tr_io_of(bio)->ahead)
		cold->stored = kmem_cache_alloc(sectors, GFP_NOWAIT | __GFP_NOWARN);
	if (!cold->stored)
		goto no;
	atomic64_add(MOST_BYTES, &tr->memory);
	return cold;
no:
	tr_index_put(tr, cold->index);
	return NULL;
}

void tr_cold_send(struct tr_cold *cold)
{
	struct tr_tier *tier = &cold->tr->tier[tr_place_tier(cold->ref.place)];

	bio_init(&cold->bio, tier->bdev, &cold->vec, 1,
		 REQ_OP_READ | (cold->to->bi_opf & (REQ_SYNC | REQ_PRIO | REQ_NOWAIT)));
	atomic_inc(&cold->tr->cold_reads);
	if (!cold->entry && !add_sectors(cold, tier))
		cold->bio.bi_status = BLK_STS_RESOURCE;
	if (cold->entry || cold->bio.bi_status) {
		when_there(cold);
		return;
	}
	if (is_timed(cold))
		cold->began = ktime_get_ns();
	cold->bio.bi_ioprio = cold->to->bi_ioprio;
	cold->bio.bi_end_io = cold_end_io;
	submit_bio_noacct(&cold->bio);
}

/* --- lives ------------------------------------------------------------------------- */

int tr_cold_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct lone *lone = per_cpu_ptr(&lones, cpu);

		tasklet_setup(&lone->tasklet, lone_fn);
		INIT_CSD(&lone->call, called, lone);
		init_irq_work(&lone->work, interrupted);
		lone->asked = cpu;
	}
	sectors = kmem_cache_create("terrace_cold_sectors", MOST_BYTES, TERRACE_BLOCK_BYTES, 0,
				    sectors_made);
	return sectors ? 0 : -ENOMEM;
}

void tr_cold_exit(void)
{
	int cpu;

	/* A read that has ended may have its interrupt's and tasklet's last steps still to go. */
	for_each_possible_cpu(cpu) {
		irq_work_sync(&per_cpu(lones, cpu).work);
		tasklet_kill(&per_cpu(lones, cpu).tasklet);
	}
	kmem_cache_destroy(sectors);
}
