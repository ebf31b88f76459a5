/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A lazy mirror on drives in memory, and what is asked of it at any time; for lazy_mirror.c and lazy_mark.c. */
#ifndef TERRACE_LAZY_LIB_H
#define TERRACE_LAZY_LIB_H

#include "core_lib.h"
#include "kernel.h"

#include "../../kmod/metaspace.c"
#include "../../kmod/lazy.c"

/*
 * lazy.c and metaspace.c whole, on drives in memory. Checkpoints are played here: pages are
 * written beside the old ones, then bitmap and superblock of the primary, which is
 * never damaged. The mirror's drive has a volatile cache. Before and after whatever is
 * written there, the power may fail and the primary be lost: then the mirror is all there is.
 *
 *  - What its newest superblock refers to is as it was in that generation, block for block,
 *    and there is one as soon as there has been one.
 *  - No superblock there says CLEAN when a record has followed. The newest would be believed
 *    as the volume's last state; so would the other, once the newest cannot be read.
 */
#define META		200u	/* blocks: of them */
#define FIRST		104u	/* is the first that pages use */
#define PAGES		24u	/* of the volume */
#define GENERATIONS	4096u
#define UNSAFE		512u	/* writes in the drive's cache */

typedef u8 image[META][TERRACE_BLOCK_BYTES];

static struct terrace *tr;
static struct block_device drives[2];
static struct workqueue_struct queue;
static u64 chance;

static image primary, safe;		/* of the mirror: what outlives a power cut … */
static struct unsafe {			/* … and what may, each by itself */
	u64 block;
	u8 data[TERRACE_BLOCK_BYTES];
} unsafe[UNSAFE];
static u32 nr_unsafe;
static image cut_image;

static struct where {
	u64 at, generation;		/* block, and since when */
} page[PAGES], page_of[GENERATIONS][PAGES];	/* now; in each generation */
static bool went_on;			/* records were committed since the last clean stop */
static bool had_one;			/* the mirror was complete, and has not been invalidated */
static bool stopping;			/* a clean stop's copy may go over the only complete one */
static u64 noted;			/* the labels say that it is out of date, up to this generation */
static u32 refuse_write, refuse_writes;	/* the how-manyeth fails, and so many behind it */
static bool refused_arrives;		/* … and is on the drive all the same */
static u32 bad_sectors;			/* superblocks that cannot be read, a bit each */
static u32 copies;
static u32 zeroed;			/* superblocks */
static image zeroed_once;		/* what is there after the first of them */
static u32 busy;			/* checkpoints in the middle of a copy: of so many writes one */

/* ---- what is on the drives -------------------------------------------------------- */

static const struct tr_super first_super = {
	.volume_uuid = "volume-uuid-0123",
	.nr_tiers = 1,
	.region_shift = TERRACE_REGION_SHIFT,
	.chunk_shift = TERRACE_CHUNK_SHIFT,
	.virtual_blocks = 1 << 10,
	.meta_blocks = META,
	.journal_start = 2,
	.journal_blocks = 100,
	.bitmap_start = { 102, 103 },
	.bitmap_blocks = 1,
	.tail_nonce = 1,
	.next_id = 1,
	.tier = { { .uuid = "tier-0", .class = TERRACE_CLASS_NVME, .kind = TERRACE_KIND_SLOTS,
		    .data_blocks = 20000, .reserve_blocks = 100 } },
};

/* No two writes of a page are alike. */
static inline void fill(u8 *data, const struct where *where)
{
	memset(data, 0x5a, TERRACE_BLOCK_BYTES);
	memcpy(data, where, sizeof(*where));
}

static inline int newest_super(image of, struct tr_super *super)
{
	struct tr_super slot;
	int found = -ENODATA;

	for (u32 parity = 0; parity < 2; parity++) {
		if (of != primary && bad_sectors >> parity & 1)
			continue;
		if (tr_super_decode(&slot, of[parity]) || (slot.generation & 1) != parity)
			continue;
		if (found || slot.generation > super->generation)
			*super = slot;
		found = 0;
	}
	return found;
}

static inline bool says_clean(image of, u32 place)
{
	struct tr_super super;

	return !tr_super_decode(&super, of[place]) && super.flags & TERRACE_SUPER_CLEAN && super.generation > noted;
}

static inline void judge_clean(image of)
{
	for (u32 place = 0; place < 2; place++)
		if (went_on && says_clean(of, place))
			fail_msg("superblock %u of the mirror says CLEAN, and the volume went on", place);
}

/* Of which generation is the mirror, as the drive might have it? 0: of none. */
static inline u64 judge(image of)
{
	u64 bits[TERRACE_MBIT_WORDS] = {};
	u8 wanted[TERRACE_BLOCK_BYTES];
	struct tr_super super;

	judge_clean(of);
	if (newest_super(of, &super))
		return 0;
	if (tr_mbit_decode(of[super.bitmap_start[super.generation & 1]], bits, 0, super.generation, super.volume_uuid))
		return 0;
	assert_true(super.generation < GENERATIONS);
	for (u32 k = 0; k < PAGES; k++) {
		const struct where *where = &page_of[super.generation][k];
		u64 at = where->at;

		fill(wanted, where);
		if (!(bits[at / 64] >> (at % 64) & 1) || memcmp(of[at], wanted, sizeof(wanted)))
			fail_msg("generation %llu of the mirror lacks page %u at %llu", (unsigned long long)super.generation, k,
				 (unsigned long long)at);
	}
	return super.generation;
}

/* One of the states that a power cut now may leave; the first two are nothing and all. */
static inline void after_cut(u32 which)
{
	memcpy(cut_image, safe, sizeof(safe));
	for (u32 k = 0; k < nr_unsafe; k++)
		if (which == 1 || (which && random_below(&chance, 2)))
			memcpy(cut_image[unsafe[k].block], unsafe[k].data, TERRACE_BLOCK_BYTES);
}

static inline void look(void)
{
	for (u32 which = 0; which < 3; which++) {
		after_cut(which);
		if (!judge(cut_image) && had_one && !stopping && !tr->lazy.failed)
			fail_msg("the mirror was complete, and is no more");
	}
}

/* A superblock is torn by the power cut: the mirror may be lost by it, but not be believed. */
static inline void look_at_torn(u64 block, const u8 *data)
{
	if (block >= 2)
		return;
	after_cut(0);
	memcpy(cut_image[block], data, TERRACE_BLOCK_BYTES / 8);
	judge_clean(cut_image);
}

static inline void flush(void)
{
	after_cut(1);
	memcpy(safe, cut_image, sizeof(safe));
	nr_unsafe = 0;
}

/* ---- the stages around it ----------------------------------------------------------- */

static void checkpoint(bool clean);

bool tr_meta_live(struct terrace *volume, u32 copy)
{
	return copy == TR_COPY_LAZY ? volume->lazy.bdev && !volume->lazy.failed : !copy;
}

void tr_meta_io_start(struct tr_meta_io *io) { memset(io, 0, sizeof(*io)); }
void tr_meta_wait(struct tr_meta_io *io) {}
int tr_meta_written(struct terrace *volume, struct tr_meta_io *io, const char *what) { return 0; }
void tr_credits_durable(struct terrace *volume, const struct tr_super *super, u64 blocks) {}
void tr_labels_note(struct terrace *volume) { if (volume->labels.to_note >> TR_COPY_LAZY & 1) noted = volume->super.generation; }

void tr_meta_submit(struct terrace *volume, struct tr_meta_io *io, u32 copy, blk_opf_t opf, u64 block, void *buf, u32 nr)
{
	assert_int_equal(copy, TR_COPY_LAZY);
	assert_true(block + nr <= META);
	if (refuse_write ? !--refuse_write : refuse_writes && refuse_writes--) {
		io->copy[copy].status = BLK_STS_IOERR;
		if (!refused_arrives)
			return;
	}
	if (busy && !stopping && volume->super.generation && !random_below(&chance, busy))
		checkpoint(false);
	assert_true(nr_unsafe + nr <= UNSAFE);
	for (u32 k = 0; k < nr; k++, block++) {
		unsafe[nr_unsafe].block = block;
		memcpy(unsafe[nr_unsafe++].data, (u8 *)buf + k * TERRACE_BLOCK_BYTES, TERRACE_BLOCK_BYTES);
		if (block < 2)
			bad_sectors &= ~(1u << block);	/* what is written can be read */
		if (opf & REQ_FUA) {
			look();
			look_at_torn(block, unsafe[nr_unsafe - 1].data);
			memcpy(safe[block], unsafe[--nr_unsafe].data, TERRACE_BLOCK_BYTES);
			for (u32 n = 0; n < nr_unsafe; n++)	/* what was written there before is no more */
				if (unsafe[n].block == block)
					unsafe[n--] = unsafe[--nr_unsafe];
			if (block < 2 && !memchr_inv(safe[block], 0, TERRACE_BLOCK_BYTES) && !zeroed++)
				memcpy(zeroed_once, safe, sizeof(safe));
		}
	}
	copies++;
	look();
}

struct bio *tr_meta_bio(struct terrace *volume, struct tr_meta_io *io, u32 copy, blk_opf_t opf, u64 block, u32 nr)
{
	static struct bio bio;

	assert_int_equal(copy, TR_COPY_LAZY);
	assert_int_equal(nr, 0);
	bio.bi_opf = opf;
	return &bio;
}

void submit_bio(struct bio *bio)
{
	assert_true(bio->bi_opf & REQ_PREFLUSH);
	flush();
	look();
}

void tr_meta_write(struct terrace *volume, struct tr_meta_io *io, blk_opf_t opf, u64 block, void *buf, u32 nr)
{
	memcpy(primary[block], buf, nr * TERRACE_BLOCK_BYTES);
}

int tr_meta_read(struct terrace *volume, u32 copy, u64 block, void *buf, u32 nr)
{
	if (copy == TR_COPY_LAZY && block < 2 && bad_sectors >> block & 1)
		return -EIO;
	after_cut(1);
	memcpy(buf, copy == TR_COPY_LAZY ? cut_image[block] : primary[block], nr * TERRACE_BLOCK_BYTES);
	return 0;
}

int tr_super_read(struct terrace *volume, u32 copy, struct tr_super *super)
{
	after_cut(1);
	return newest_super(copy == TR_COPY_LAZY ? cut_image : primary, super);
}

/* ---- a volume ----------------------------------------------------------------------- */

static inline void write_page(u32 k, u64 generation)
{
	mutex_lock(&tr->pages_mutex);
	if (page[k].at)
		tr_metaspace_put__f(tr, page[k].at, 1);
	page[k] = (struct where){ tr_metaspace_get__f(tr, 1), generation };
	mutex_unlock(&tr->pages_mutex);
	assert_true(page[k].at >= FIRST);
	fill(primary[page[k].at], &page[k]);
}

/* As checkpoint.c does it: pages, bitmap, superblock. */
static inline void checkpoint(bool clean)
{
	struct tr_super super = tr->super;
	u64 generation = ++super.generation;

	assert_true(generation < GENERATIONS);
	for (u32 nr = random_below(&chance, 6); nr; nr--)
		write_page(random_below(&chance, PAGES), generation);
	memcpy(page_of[generation], page, sizeof(page));
	mutex_lock(&tr->checkpoint_mutex);
	assert_int_equal(tr_metaspace_write(tr, generation), 0);
	mutex_unlock(&tr->checkpoint_mutex);
	super.flags = (clean ? TERRACE_SUPER_CLEAN : 0) | (tr_lazy_lost(tr) ? TERRACE_SUPER_LAZY_LOST : 0);
	tr_super_encode(primary[generation & 1], &super);
	tr_metaspace_durable(tr, &super);
	tr_lazy_kick(tr);
}

/* Before the first record of each commit. */
static inline void commit(void)
{
	tr_lazy_unclean(tr);
	went_on = true;
	look();
}

/* The end of tr_checkpoint(tr, true). 0, or that there was no memory: what stops goes on. */
static inline int stop(bool no_memory)
{
	int err;

	checkpoint(true);
	went_on = false;
	kernel_refuse = no_memory;
	stopping = true;
	err = tr_lazy_sync(tr);
	if (!err && tr_lazy_lost(tr) != !!(tr->super.flags & TERRACE_SUPER_LAZY_LOST)) {
		checkpoint(true);
		err = tr_lazy_sync(tr);
	}
	kernel_refuse = 0;
	stopping = false;
	had_one = !tr_lazy_lost(tr);
	return err;
}

static inline void start(void)
{
	struct tr_meta *m = kzalloc(sizeof(*m), GFP_KERNEL);
	struct tr_super super = first_super;

	tr = kzalloc(sizeof(*tr), GFP_KERNEL);
	tr->pages = m;
	m->tr = tr;
	m->batch = kzalloc(sizeof(*m->batch), GFP_KERNEL);
	m->batch->arena = kzalloc(TR_BATCH_BLOCKS * TERRACE_BLOCK_BYTES, GFP_KERNEL);
	m->lazy_block = kzalloc(TERRACE_BLOCK_BYTES, GFP_KERNEL);
	tr->meta[0].bdev = &drives[0];
	tr->lazy.bdev = &drives[1];
	tr_lazy_init(tr);
	newest_super(primary, &super);
	tr->super = super;
	assert_int_equal(tr_metaspace_init(tr), 0);
	if (super.generation)
		assert_int_equal(tr_metaspace_load(tr), 0);
	else
		bitmap_set(m->space.live, 0, FIRST);
	memcpy(page, page_of[super.generation], sizeof(page));
	assert_int_equal(m->space.first, FIRST);
	stopping = false;
	had_one = false;		/* it may be invalidated here */
	assert_int_equal(tr_lazy_open(tr), 0);
	had_one = !tr_lazy_lost(tr);
	look();
}

static inline void end(void)
{
	tr_lazy_exit(tr);
	tr_metaspace_exit(tr);
	kfree(tr->pages->lazy_block);
	kfree(tr->pages->batch->arena);
	kfree(tr->pages->batch);
	kfree(tr->pages);
	kfree(tr);
}

static inline void cut(void)
{
	after_cut(2);
	memcpy(safe, cut_image, sizeof(safe));
	nr_unsafe = 0;
	end();
	start();
}

/* The worker has copied what there is to copy. */
static inline void copy(void)
{
	kernel_work_run();
	had_one |= !tr_lazy_lost(tr);
	look();
}

static inline u64 mirror(void)
{
	after_cut(1);
	return judge(cut_image);
}

static inline int setup(void **state)
{
	memset(primary, 0, sizeof(primary));
	memset(safe, 0, sizeof(safe));
	memset(page_of, 0, sizeof(page_of));
	nr_unsafe = refuse_write = refuse_writes = bad_sectors = busy = copies = 0;
	went_on = refused_arrives = false;
	kernel_jiffies = 1000;
	noted = 0;
	chance = 88172645463325252ull;
	start();
	for (u32 k = 0; k < PAGES; k++)
		write_page(k, 1);
	checkpoint(false);
	return 0;
}

static inline int teardown(void **state)
{
	end();
	return 0;
}

#endif
