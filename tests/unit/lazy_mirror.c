// SPDX-License-Identifier: GPL-2.0-or-later
/* The lazy mirror of the metadata: complete at any time, never called clean when the volume has gone on, and mended when it is out of step. */
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
static void fill(u8 *data, const struct where *where)
{
	memset(data, 0x5a, TERRACE_BLOCK_BYTES);
	memcpy(data, where, sizeof(*where));
}

static int newest_super(image of, struct tr_super *super)
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

static bool says_clean(image of, u32 place)
{
	struct tr_super super;

	return !tr_super_decode(&super, of[place]) && super.flags & TERRACE_SUPER_CLEAN && super.generation > noted;
}

static void judge_clean(image of)
{
	for (u32 place = 0; place < 2; place++)
		if (went_on && says_clean(of, place))
			fail_msg("superblock %u of the mirror says CLEAN, and the volume went on", place);
}

/* Of which generation is the mirror, as the drive might have it? 0: of none. */
static u64 judge(image of)
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
static void after_cut(u32 which)
{
	memcpy(cut_image, safe, sizeof(safe));
	for (u32 k = 0; k < nr_unsafe; k++)
		if (which == 1 || (which && random_below(&chance, 2)))
			memcpy(cut_image[unsafe[k].block], unsafe[k].data, TERRACE_BLOCK_BYTES);
}

static void look(void)
{
	for (u32 which = 0; which < 3; which++) {
		after_cut(which);
		if (!judge(cut_image) && had_one && !stopping && !tr->lazy.failed)
			fail_msg("the mirror was complete, and is no more");
	}
}

/* A superblock is torn by the power cut: the mirror may be lost by it, but not be believed. */
static void look_at_torn(u64 block, const u8 *data)
{
	if (block >= 2)
		return;
	after_cut(0);
	memcpy(cut_image[block], data, TERRACE_BLOCK_BYTES / 8);
	judge_clean(cut_image);
}

static void flush(void)
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

static void write_page(u32 k, u64 generation)
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
static void checkpoint(bool clean)
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
static void commit(void)
{
	tr_lazy_unclean(tr);
	went_on = true;
	look();
}

/* The end of tr_checkpoint(tr, true). 0, or that there was no memory: what stops goes on. */
static int stop(bool no_memory)
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

static void start(void)
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

static void end(void)
{
	tr_lazy_exit(tr);
	tr_metaspace_exit(tr);
	kfree(tr->pages->lazy_block);
	kfree(tr->pages->batch->arena);
	kfree(tr->pages->batch);
	kfree(tr->pages);
	kfree(tr);
}

static void cut(void)
{
	after_cut(2);
	memcpy(safe, cut_image, sizeof(safe));
	nr_unsafe = 0;
	end();
	start();
}

/* The worker has copied what there is to copy. */
static void copy(void)
{
	kernel_work_run();
	had_one |= !tr_lazy_lost(tr);
	look();
}

static u64 mirror(void)
{
	after_cut(1);
	return judge(cut_image);
}

static int setup(void **state)
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

static int teardown(void **state)
{
	end();
	return 0;
}

/* ---- one thing at a time --------------------------------------------------------------- */

static void it_follows(void **state)
{
	assert_true(tr_lazy_lost(tr));
	copy();
	assert_false(tr_lazy_lost(tr));
	assert_int_equal(mirror(), tr->super.generation);
	checkpoint(false);
	copy();
	assert_int_equal(mirror(), tr->super.generation);
	copies = 0;
	copy();
	assert_int_equal(copies, 0);	/* nobody asked */
}

/* After a cut only what has changed since is copied again. */
static void what_it_has_is_not_copied_again(void **state)
{
	copy();
	checkpoint(false);		/* its superblock says that the mirror is in step */
	copy();
	cut();
	assert_false(tr_lazy_lost(tr));
	assert_int_equal(bitmap_weight(tr->pages->space.lazy_stale, META), 0);
	checkpoint(false);
	cut();
	assert_true(bitmap_weight(tr->pages->space.lazy_stale, META) <= 5);
}

/*
 * Out of step, it is copied as a whole. Crash scenario: the mirror has generation 5, whose pages
 * were used again by the primary while the mirror was away. Halfway through the new copy
 * the primary is lost: were the superblock of generation 5 still there, its map would
 * show blocks of others.
 */
static void what_is_out_of_step_is_mended(void **state)
{
	copy();
	assert_int_equal(mirror(), tr->super.generation);
	tr->lazy.failed = true;		/* its drive goes away */
	for (u32 k = 0; k < 40; k++) {
		commit();
		checkpoint(false);
	}
	cut();
	assert_true(tr_lazy_lost(tr));
	assert_int_equal(mirror(), 0);
	checkpoint(false);
	copy();
	assert_false(tr_lazy_lost(tr));
	assert_int_equal(mirror(), tr->super.generation);
	checkpoint(false);		/* the superblock that says so */
	copy();
	cut();
	assert_false(tr_lazy_lost(tr));
}

/* A stop that goes well leaves it clean; the first record takes that away, and no copy brings it back. */
static void it_is_clean_until_the_volume_goes_on(void **state)
{
	struct tr_super super;

	for (u32 k = 0; k < 2; k++) {	/* each of its two places */
		assert_int_equal(stop(false), 0);
		assert_int_equal(tr_super_read(tr, TR_COPY_LAZY, &super), 0);
		assert_int_equal(super.generation, tr->super.generation);
		assert_true(super.flags & TERRACE_SUPER_CLEAN);
		commit();
		assert_int_equal(tr_super_read(tr, TR_COPY_LAZY, &super), 0);
		assert_false(super.flags & TERRACE_SUPER_CLEAN);
		assert_int_equal(mirror(), tr->super.generation);
		checkpoint(false);
		copy();
		checkpoint(false);
	}
}

/*
 * Crash scenario: a clean mirror of generation 7. The volume is suspended, nothing has been
 * written; there is no memory to copy generation 8, and the suspension goes on without.
 * Resumed, the first commit takes the mark away, of the generation that the mirror has, in
 * its place. If that is not known any more the mark is taken off the other place; the fast
 * drive dies, and the mirror is believed to be the volume's last state.
 */
static void a_stop_without_memory_leaves_nothing_that_is_believed(void **state)
{
	for (u32 k = 0; k < 2; k++) {
		assert_int_equal(stop(false), 0);
		assert_int_equal(stop(true), -ENOMEM);
		assert_false(tr_lazy_lost(tr));
		commit();
		assert_true(mirror() > 0);
		checkpoint(false);
		copy();
		checkpoint(false);
		copy();
		assert_true(mirror() >= tr->super.generation - 1);
		checkpoint(false);
	}
}

/* In the place of the mirror's newer superblock: nothing, a torn one, the older, one of another volume. */
static void damage_newer(u32 how)
{
	u32 place = tr->pages->lazy_super.generation & 1;
	struct tr_super super;

	if (!how) {
		bad_sectors = 1u << place;
	} else if (how == 1) {
		safe[place][100] ^= 1;
	} else if (how == 2) {
		memcpy(safe[place], safe[!place], TERRACE_BLOCK_BYTES);
	} else {
		assert_int_equal(tr_super_decode(&super, safe[!place]), 0);
		super.generation--;
		super.volume_uuid[0] ^= 1;
		tr_super_encode(safe[place], &super);
	}
}

/*
 * Crash scenario: the mirror has generations 4 and 5, and the primary has used blocks again that only 4
 * needed. The power fails, and the superblock of 5 cannot be read. 4 is still there with its
 * bitmap; what the primary wrote since into blocks that are in it has never been copied.
 */
static void an_older_generation_does_not_say_what_is_the_same(void **state)
{
	for (u32 how = 0; how < 4; how++) {
		for (u32 k = 0; k < 4; k++) {
			copy();
			checkpoint(false);
		}
		copy();
		for (u32 k = 0; k < 8; k++)
			checkpoint(false);
		flush();
		damage_newer(how);
		cut();
		assert_true(tr_lazy_lost(tr));
		for (u32 k = 0; k < 3; k++) {
			checkpoint(false);
			copy();
		}
		assert_true(mirror() + 1 >= tr->super.generation);
	}
}

/* Has the primary written into blocks since that only this generation of the mirror needed? */
static bool uses_again(u64 generation)
{
	for (u32 k = 0; k < PAGES; k++)
		for (u32 q = 0; q < PAGES; q++)
			if (page[k].at == page_of[generation][q].at && page[k].generation > generation)
				return true;
	return false;
}

/*
 * Crash scenario: as in the one before; the mirror is made void, the place of the superblock of 5 first,
 * and the power fails before that of 4 is zeroed. At the next start 4 stands beside zeros.
 */
static void made_void_by_half_it_is_not_believed(void **state)
{
	for (u32 how = 0; how < 4; how++) {
		for (u32 k = 0; k < 4; k++) {
			copy();
			checkpoint(false);
		}
		do {
			copy();
			checkpoint(false);
			copy();
		} while (!memcmp(page_of[tr->super.generation], page_of[tr->super.generation - 1], sizeof(page)));
		for (u32 k = 0; k < 500 && !uses_again(tr->pages->lazy_super.generation - 1); k++)
			checkpoint(false);
		assert_true(uses_again(tr->pages->lazy_super.generation - 1));
		flush();
		damage_newer(how);
		zeroed = 0;
		cut();			/* activation makes the mirror void … */
		assert_int_equal(zeroed, 2);
		memcpy(safe, zeroed_once, sizeof(safe));	/* … and power fails between its two writes */
		nr_unsafe = 0;
		end();
		start();
		for (u32 k = 0; k < 3; k++) {
			checkpoint(false);
			copy();
		}
		assert_true(mirror() + 1 >= tr->super.generation);
	}
}

/*
 * Crash scenario: the newer superblock could not be read, so that its mark was taken off with the whole of it;
 * then the power failed.
 */
static void zeros_may_have_been_the_newer_one(void **state)
{
	for (u32 k = 0; k < 4; k++) {
		copy();
		checkpoint(false);
	}
	copy();
	for (u32 k = 0; k < 500 && !uses_again(tr->pages->lazy_super.generation - 1); k++)
		checkpoint(false);
	flush();
	memset(safe[tr->pages->lazy_super.generation & 1], 0, TERRACE_BLOCK_BYTES);
	cut();
	assert_true(tr_lazy_lost(tr));
	checkpoint(false);
	copy();
	assert_int_equal(mirror(), tr->super.generation);
}

/* Made void by half, the mirror does not have the older superblock any more. */
static void the_older_goes_first(void **state)
{
	struct tr_super super;

	for (u32 how = 0; how < 5; how++) {
		u64 newest;

		for (u32 k = 0; k < 4; k++) {
			copy();
			checkpoint(false);
		}
		flush();
		newest = tr->pages->lazy_super.generation;
		if (how < 4)
			damage_newer(how);
		else
			tr->lazy.failed = true;	/* its drive goes away */
		checkpoint(false);
		zeroed = 0;
		cut();
		assert_int_equal(zeroed, 2);
		if (how < 4)
			assert_int_not_equal(newest_super(zeroed_once, &super) ?: super.generation, newest - 1);
		else
			assert_int_equal(newest_super(zeroed_once, &super) ?: super.generation, newest);
	}
}

/*
 * Crash scenario: two clean stops without a record between them leave a superblock that says
 * CLEAN in both places of the mirror. The volume goes on, and the mark is taken off the newer one
 * alone. The mirror gets out of step, and the next activation zeroes its superblocks, the one at
 * block 0 first. If that is the newer, and the power fails before the other is zeroed, the mirror
 * says CLEAN of a generation after which the volume went on; with the primary gone it is believed.
 * A bad sector in the newer one comes to the same, any day.
 */
static void neither_of_its_places_says_clean_when_the_volume_has_gone_on(void **state)
{
	copy();
	for (u32 k = 0; k < 2; k++) {
		assert_int_equal(stop(false), 0);
		assert_int_equal(stop(false), 0);
		commit();
		tr->lazy.failed = true;
		checkpoint(false);
		checkpoint(false);
		cut();			/* the next activation invalidates it */
		checkpoint(false);
		copy();
		checkpoint(false);
		if (k == 0)
			checkpoint(false);
		copy();
	}
}

/*
 * Crash scenario: the mirror is clean. There is no memory to copy the generation of another clean
 * stop; the worker copies it later, beside the clean one and without its mark. The volume goes on, and
 * the newest of the mirror does not say CLEAN; the older one does.
 */
static void a_generation_beside_a_clean_one_hides_nothing(void **state)
{
	assert_int_equal(stop(false), 0);
	assert_int_equal(stop(true), -ENOMEM);
	copy();
	assert_int_equal(mirror(), tr->super.generation);
	commit();
}

static void say_clean(u32 place)
{
	struct tr_super super;

	flush();
	assert_int_equal(tr_super_decode(&super, safe[place]), 0);
	super.flags |= TERRACE_SUPER_CLEAN;
	tr_super_encode(safe[place], &super);
}

/* What format, and modules before this one, leave in the older place. The mark that the newer one has stays until a record comes. */
static void an_old_mark_goes_with_the_first_record(void **state)
{
	copy();
	for (u32 k = 0; k < 2; k++) {
		checkpoint(false);
		copy();
		went_on = false;
		say_clean(!(tr->super.generation & 1));
		cut();
		assert_true(says_clean(safe, !(tr->super.generation & 1)));
		commit();
	}
}

/*
 * A place that cannot be written: the older one is hidden by the newer, whose mark goes all the
 * same. The other drives take note of it, and it is tried again until it is gone.
 */
static void a_mark_that_stays_is_noted_and_tried_again(void **state)
{
	static const struct { u32 first, more; } refused[] = { { 1, 0 }, { 2, 0 }, { 1, 1 }, { 1, 3 }, { 2, 2 } };

	for (u32 k = 0; k < ARRAY_SIZE(refused); k++) {
		teardown(NULL);
		setup(NULL);
		copy();
		assert_int_equal(stop(false), 0);
		assert_int_equal(stop(false), 0);
		refuse_write = refused[k].first;
		refuse_writes = refused[k].more;
		commit();
		assert_true(tr->lazy.failed);
		refuse_write = refuse_writes = 0;
		kernel_jiffies += 2 * HZ;
		commit();
		noted = 0;
		look();
		checkpoint(false);
		cut();
		checkpoint(false);
		copy();
		assert_int_equal(mirror(), tr->super.generation);
	}
}

/* A 32-bit kernel begins to count shortly before its jiffies wrap around. */
static void a_mark_goes_right_after_boot_as_well(void **state)
{
	struct tr_super super;

	copy();
	assert_int_equal(stop(false), 0);
	kernel_jiffies = -300ul * HZ;
	cut();
	commit();
	assert_int_equal(tr_super_read(tr, TR_COPY_LAZY, &super), 0);
	assert_false(super.flags & TERRACE_SUPER_CLEAN);
}

/* The drive says that the superblock of a clean stop failed, and has it all the same. */
static void a_mark_may_have_arrived_with_an_error(void **state)
{
	copy();
	for (u32 write = 1; write < 12; write++) {
		teardown(NULL);
		setup(NULL);
		copy();
		refuse_write = write;
		refused_arrives = true;
		stop(false);
		refuse_write = 0;
		commit();
	}
}

/* A superblock that cannot be read may be a clean one. */
static void a_bad_sector_hides_no_mark(void **state)
{
	for (u32 bad = 1; bad < 4; bad++) {
		teardown(NULL);
		setup(NULL);
		copy();
		assert_int_equal(stop(false), 0);
		assert_int_equal(stop(false), 0);
		bad_sectors = bad;
		had_one = false;	/* until it is written again */
		commit();
		assert_int_equal(mirror(), tr->super.generation);
	}
}

/* A generation that would go over the only complete one is left out. */
static void it_never_goes_over_the_one_that_it_has(void **state)
{
	copy();
	checkpoint(false);
	checkpoint(false);
	copies = 0;
	copy();
	assert_int_equal(copies, 0);
	checkpoint(false);
	copy();
	assert_int_equal(mirror(), tr->super.generation);
}

/* ---- anything, in any order --------------------------------------------------------------- */

static void anything(u64 seed)
{
	chance = seed;
	busy = 3 + random_below(&chance, 40);
	for (u32 step = 0; step < 60; step++) {
		switch (random_below(&chance, 12)) {
		case 0: case 1: case 2:
			commit();
			checkpoint(false);
			break;
		case 3: case 4: case 5:
			copy();
			break;
		case 6:
			commit();
			break;
		case 7:
			stop(false);
			break;
		case 8:
			stop(true);
			break;
		case 9:
			cut();
			break;
		case 10:
			if (!random_below(&chance, 4))
				refuse_write = 1 + random_below(&chance, 10);
			break;
		default:
			kernel_jiffies += HZ;
		}
	}
	refuse_write = busy = 0;
	cut();
	checkpoint(false);
	copy();
	checkpoint(false);
	copy();
	assert_false(tr_lazy_lost(tr));
	assert_true(mirror() + 1 >= tr->super.generation);
}

static void whatever_happens(void **state)
{
	for (u64 seed = 1; seed <= 40; seed++) {
		print_message("seed %llu\n", (unsigned long long)seed);
		anything(seed * 0x9e3779b97f4a7c15ull);
		teardown(NULL);
		setup(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_follows, setup, teardown),
		cmocka_unit_test_setup_teardown(what_it_has_is_not_copied_again, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_out_of_step_is_mended, setup, teardown),
		cmocka_unit_test_setup_teardown(it_is_clean_until_the_volume_goes_on, setup, teardown),
		cmocka_unit_test_setup_teardown(a_stop_without_memory_leaves_nothing_that_is_believed, setup, teardown),
		cmocka_unit_test_setup_teardown(an_older_generation_does_not_say_what_is_the_same, setup, teardown),
		cmocka_unit_test_setup_teardown(made_void_by_half_it_is_not_believed, setup, teardown),
		cmocka_unit_test_setup_teardown(zeros_may_have_been_the_newer_one, setup, teardown),
		cmocka_unit_test_setup_teardown(the_older_goes_first, setup, teardown),
		cmocka_unit_test_setup_teardown(neither_of_its_places_says_clean_when_the_volume_has_gone_on, setup, teardown),
		cmocka_unit_test_setup_teardown(a_generation_beside_a_clean_one_hides_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(an_old_mark_goes_with_the_first_record, setup, teardown),
		cmocka_unit_test_setup_teardown(a_mark_that_stays_is_noted_and_tried_again, setup, teardown),
		cmocka_unit_test_setup_teardown(a_mark_goes_right_after_boot_as_well, setup, teardown),
		cmocka_unit_test_setup_teardown(a_mark_may_have_arrived_with_an_error, setup, teardown),
		cmocka_unit_test_setup_teardown(a_bad_sector_hides_no_mark, setup, teardown),
		cmocka_unit_test_setup_teardown(it_never_goes_over_the_one_that_it_has, setup, teardown),
		cmocka_unit_test_setup_teardown(whatever_happens, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
