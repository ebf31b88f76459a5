/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What unit/fua_parked plays around defer.c and commit.c, which are here whole: a map that gives out
 * places, a journal of one record in a block, two drives with volatile caches. Each FUA write
 * that is acknowledged is looked for as after a power cut at that moment: every block's place is the
 * one that the last durable record names, and there is what was written.
 */
#ifndef TESTS_FUA_LIB_H
#define TESTS_FUA_LIB_H

#include "core_lib.h"
#include "kernel.h"

#include "../../kmod/defer.c"
#include "../../kmod/commit.c"

#define VOLUME		32u	/* blocks */
#define PLACES		65536u	/* of each tier; none is used twice */
#define TIERS		2u
#define DEEP		6u	/* writes at once */
#define LONGEST		4u	/* blocks of one */

struct place {
	u32 tier, index;	/* index 0: nowhere */
};

/* What the journal's block has: one record. */
struct record {
	u64 number, block;
	struct place place;
	bool durable;
};

struct write {
	struct tr_io io;	/* right before the bio, as dm_per_bio_data() has it */
	struct bio bio;
	u64 block, version;
	u32 nr;
	bool used, fua;
};
static_assert(offsetof(struct write, bio) == sizeof(struct tr_io));

static struct terrace *tr;
static struct tr_region region;
static struct workqueue_struct *io_wq, *commit_wq, *room_wq;
static struct block_device drive[TIERS], journal_drive;
static u64 chance;

static struct place place_of[VOLUME];		/* now */
static u64 last_record[VOLUME];
static struct record *record;			/* all there ever were, by number */
static u64 on_drive[TIERS][PLACES], in_cache[TIERS][PLACES];	/* versions */
static u32 next_place[TIERS];
static bool no_flush[TIERS];

static struct write slot[DEEP];
static struct bio *sent[DEEP * LONGEST];	/* pieces under way */
static u32 nr_sent;
static u64 next_version;
static u32 parked, acknowledged, failed, requeued;
static u32 refuses[TR_PAGES + 1];		/* so often in a hundred, by verdict */
static enum tr_verdict script[8];		/* what is said first */
static u32 nr_script, at_script;
static struct bio_list credit_waiters;

/* ---- drives ----------------------------------------------------------------------- */

static void drive_flush(u32 t) { memcpy(on_drive[t], in_cache[t], sizeof(on_drive[t])); }

static u32 tier_of(const struct block_device *dev)
{
	assert_true(dev == &drive[0] || dev == &drive[1]);
	return dev - drive;
}

static void journal_end(struct bio *bio) { kernel_bug("ended by the drive"); }

static struct bio *journal_bio;
static struct record *journal_has[TR_JOURNAL_IN_FLIGHT];
static u32 nr_journal;

void submit_bio(struct bio *bio)
{
	if (bio->bi_end_io == piece_end) {
		assert_true(nr_sent < ARRAY_SIZE(sent));
		sent[nr_sent++] = bio;
	} else if (bio->bi_end_io == journal_end) {
		if (bio->bi_opf & REQ_PREFLUSH)
			drive_flush(0);		/* it is the drive of tier 0 */
		for (u32 k = 0; k < nr_journal && bio->bi_opf & REQ_FUA; k++)
			journal_has[k]->durable = true;
		nr_journal = 0;
		kfree(bio);
		journal_bio = NULL;
	} else {
		u32 t = tier_of(bio->bi_bdev);

		assert_true(bio->bi_opf & REQ_PREFLUSH);
		if (!no_flush[t])
			drive_flush(t);
		bio->bi_status = no_flush[t] ? BLK_STS_IOERR : BLK_STS_OK;
		bio_endio(bio);
	}
}

/* One of the pieces under way reaches its drive, or fails there. */
static void piece_arrives(blk_status_t status)
{
	u32 k = random_below(&chance, nr_sent);
	struct bio *bio = sent[k];
	const struct tr_piece *piece = container_of(bio, struct tr_piece, bio);
	u64 version = container_of(piece->io.parent, struct write, io)->version;

	sent[k] = sent[--nr_sent];
	for (u32 n = 0; n < piece->io.nr && !status; n++) {
		in_cache[piece->io.tier][piece->io.index + n] = version;
		if (bio->bi_opf & REQ_FUA)
			on_drive[piece->io.tier][piece->io.index + n] = version;
	}
	bio->bi_status = status;
	bio_endio(bio);
}

/* ---- what is there after a power cut now ---------------------------------------------- */

static u64 version_after_cut(u64 block)
{
	for (u64 r = tr->journal.next_record - 1; r; r--)
		if (record[r].durable && record[r].block == block)
			return on_drive[record[r].place.tier][record[r].place.index];
	return 0;
}

static void write_end(struct bio *bio)
{
	struct write *write = container_of(bio, struct write, bio);

	write->used = false;
	acknowledged += !bio->bi_status;
	requeued += bio->bi_status == BLK_STS_DM_REQUEUE;
	failed += bio->bi_status && bio->bi_status != BLK_STS_DM_REQUEUE;
	if (bio->bi_status || !write->fua)
		return;
	for (u32 n = 0; n < write->nr; n++)
		if (version_after_cut(write->block + n) != write->version)
			fail_msg("block %u of a FUA write of %u blocks was acknowledged and is not durable", n, write->nr);
}

/* ---- the stages around it: the map ------------------------------------------------------ */

static bool refused(enum tr_verdict verdict) { return random_below(&chance, 100) < refuses[verdict]; }

/* As map.c has it. One block at a time, in whichever way. */
enum tr_verdict tr_route(struct terrace *volume, struct tr_io *io, u64 block, u32 *nr, u32 how, struct tr_pack_ref *ref)
{
	const struct place *there = &place_of[block];

	*nr = 1;
	io->nr = 1;
	io->i = block;
	assert_true(how & TR_HOW_DEFERRED);
	if (at_script < nr_script && script[at_script++] != TR_GO)
		return script[at_script - 1];
	if (refused(TR_LOAD))
		return TR_LOAD;
	if (there->index) {
		if (how & TR_HOW_FUA && last_record[block] > tr->journal.durable_record)
			io->commit = true;
		io->kind = TR_IO_PLACE;
		io->tier = there->tier;
		io->index = there->index;
		return TR_GO;
	}
	for (enum tr_verdict verdict = TR_ROOM; verdict <= TR_PAGES; verdict++)
		if (refused(verdict))
			return verdict;
	io->kind = TR_IO_NEW;
	io->tier = random_below(&chance, TIERS);
	io->index = ++next_place[io->tier];
	assert_true(io->index < PLACES);
	return TR_GO;
}

static void append(u64 block, struct place place)
{
	struct tr_journal *j = &tr->journal;
	struct tr_journal_block *b = kzalloc(sizeof(*b), GFP_KERNEL);
	u64 number = j->next_record++;

	record[number] = (struct record){ number, block, place, false };
	b->data = &record[number];
	b->block_seq = j->link.block_seq++;
	b->last_record = number;
	j->link.record_seq = j->next_record;
	list_add_tail(&b->list, &j->open);
	j->tiers |= BIT(place.tier);
	place_of[block] = place;
	last_record[block] = number;
}

void tr_io_end(struct tr_io *io, blk_status_t status)
{
	if (io->kind == TR_IO_NONE)
		return;
	tr->tier[io->tier].unflushed = true;
	if (io->kind == TR_IO_NEW && !status)
		append(io->i, (struct place){ io->tier, io->index });
	io->kind = TR_IO_NONE;
}

struct tr_region *tr_region_get(struct terrace *volume, u64 number, bool create) { return &region; }
void tr_region_put(struct tr_region *of) {}
void tr_region_grow(struct terrace *volume, struct tr_region *of, u32 n, bool high) {}
void tr_reserve_wait(struct terrace *volume) {}
bool tr_is_cold(struct terrace *volume, u64 block) { return false; }
void tr_discard(struct terrace *volume, struct bio *bio) { kernel_bug("a discard"); }
void tr_count_packed(struct terrace *volume, const struct tr_io *io) {}
bool tr_rescuable(const struct tr_io *io, const struct bio *bio, blk_status_t status) { return false; }
void tr_rescued(const struct tr_io *io) {}
bool tr_bio_failed(const struct bio *bio) { return true; }
int tr_unpack_bulk(struct terrace *volume, struct bio *bio, const struct tr_pack_ref *ref, u32 i, u32 n, u32 ahead) { return -EIO; }
int tr_unpack_bio(struct terrace *volume, struct bio *bio, const struct tr_pack_ref *ref, u32 i, u32 n, u32 ahead) { return -EIO; }

void tr_sense_hit(struct terrace *volume, struct bio *bio, u64 block, u32 count, u32 op, u32 where) {}
void tr_sense_rare(struct terrace *volume, struct bio *bio, u64 block, u32 count, u32 op, u32 where) {}

/* … room */

u64 tr_releases(struct terrace *volume) { return 0; }
bool tr_space_tight(struct terrace *volume) { return false; }
bool tr_hidden_room_none(struct terrace *volume) { return false; }
bool tr_home_may_be_free(struct terrace *volume, u64 block) { return false; }
bool tr_shelves_to_come(struct terrace *volume) { return false; }
bool tr_frees_pending(struct terrace *volume) { return false; }
bool tr_janitor_gave_up(struct terrace *volume) { return false; }
void tr_home_want(struct terrace *volume, u64 block) { parked++; }
u64 tr_credits_looked(struct terrace *volume) { return 0; }

void tr_credits_wait(struct terrace *volume, struct bio *bio)
{
	parked++;
	bio_list_add(&credit_waiters, bio);
}

struct bio_list tr_credits_waiters(struct terrace *volume)
{
	struct bio_list bios = credit_waiters;

	bio_list_init(&credit_waiters);
	return bios;
}

static void refill_fn(struct work_struct *work) { tr_room_made(tr); }

static void credits_come(void)
{
	struct bio_list bios = tr_credits_waiters(tr);
	struct bio *bio;

	while ((bio = bio_list_pop(&bios)))
		queue_work(tr->io_wq, &tr_io_of(bio)->work);
}

/* … the journal */

bool tr_meta_live(struct terrace *volume, u32 copy) { return !copy; }
u32 tr_meta_nr_live(struct terrace *volume) { return 1; }
void tr_meta_io_start(struct tr_meta_io *io) { memset(io, 0, sizeof(*io)); }
int tr_meta_written(struct terrace *volume, struct tr_meta_io *io, const char *what) { return 0; }

struct bio *tr_meta_bio(struct terrace *volume, struct tr_meta_io *io, u32 copy, blk_opf_t opf, u64 block, u32 nr)
{
	journal_bio = kzalloc(sizeof(*journal_bio), GFP_KERNEL);
	bio_init(journal_bio, &journal_drive, NULL, 0, opf);
	journal_bio->bi_end_io = journal_end;
	return journal_bio;
}

void tr_meta_add(struct bio *bio, void *data)
{
	assert_true(nr_journal < ARRAY_SIZE(journal_has));
	journal_has[nr_journal++] = data;
}

bool tr_commit_wanted(const struct tr_journal *j) { return !bio_list_empty(&j->fuas); }
bool tr_journal_may_seal(struct tr_journal *j) { return true; }
void tr_journal_lock_sealed(struct terrace *volume) { spin_lock_irq(&volume->journal.lock); }

void tr_journal_apply(struct terrace *volume, bool all)
{
	struct tr_journal_block *b, *next;

	list_for_each_entry_safe(b, next, &volume->journal.written, list) {
		list_del(&b->list);
		kfree(b);
	}
}

int tr_shelves_write_owners(struct terrace *volume, u64 record_seq) { return 0; }
void tr_lazy_unclean(struct terrace *volume) {}
void tr_appends_see(struct terrace *volume, const struct list_head *blocks) {}
void tr_checkpoint_poke(struct terrace *volume) {}
void tr_janitor_kick(struct terrace *volume) {}
int tr_apply_init(struct terrace *volume) { return 0; }
void tr_apply_exit(struct terrace *volume) {}

/* ---- a volume ---------------------------------------------------------------------------- */

static int setup(void **state)
{
	struct tr_journal *j;

	tr = kzalloc(sizeof(*tr), GFP_KERNEL);
	tr->io_wq = io_wq = kzalloc(sizeof(*io_wq), GFP_KERNEL);
	tr->commit_wq = commit_wq = kzalloc(sizeof(*commit_wq), GFP_KERNEL);
	tr->room_wq = room_wq = kzalloc(sizeof(*room_wq), GFP_KERNEL);
	tr->nr_tiers = TIERS;
	for (u32 t = 0; t < TIERS; t++) {
		tr->tier[t].number = t;
		tr->tier[t].bdev = &drive[t];
		drive[t].write_cache = true;
		no_flush[t] = false;
		next_place[t] = 0;
	}
	tr->super.journal_blocks = 1000;
	INIT_WORK(&tr->refill_work, refill_fn);
	j = &tr->journal;
	INIT_LIST_HEAD(&j->open);
	INIT_LIST_HEAD(&j->written);
	j->next_record = 1;
	record = kcalloc(TIERS * PLACES, sizeof(*record), GFP_KERNEL);
	assert_int_equal(tr_commit_init(tr), 0);
	assert_int_equal(tr_defer_init(tr), 0);
	memset(place_of, 0, sizeof(place_of));
	memset(last_record, 0, sizeof(last_record));
	memset(on_drive, 0, sizeof(on_drive));
	memset(in_cache, 0, sizeof(in_cache));
	memset(slot, 0, sizeof(slot));
	memset(refuses, 0, sizeof(refuses));
	bio_list_init(&credit_waiters);
	nr_script = at_script = nr_sent = parked = acknowledged = failed = requeued = 0;
	next_version = 0;
	chance = 88172645463325252ull;
	return 0;
}

static void free_volume(void)
{
	for (u32 t = 0; t < TIERS; t++)
		kfree(tr->journal.commit->bio[t]);
	kfree(tr->journal.commit);
	kfree(io_wq);
	kfree(commit_wq);
	kfree(room_wq);
	kfree(tr);
	tr = NULL;
}

static int teardown(void **state)
{
	struct tr_journal_block *b, *next;

	kernel_unlocked = NULL;
	if (tr) {
		kernel_work_run();
		list_for_each_entry_safe(b, next, &tr->journal.open, list)
			kfree(b);
		free_volume();
	}
	kfree(record);
	return 0;
}

static struct write *write_begin(u64 block, u32 nr, bool fua)
{
	struct write *write = NULL;

	for (u32 k = 0; k < DEEP; k++)
		if (!slot[k].used)
			write = &slot[k];
	assert_non_null(write);
	*write = (struct write){ .block = block, .nr = nr, .fua = fua, .used = true, .version = ++next_version };
	bio_init(&write->bio, NULL, NULL, 0, REQ_OP_WRITE | (fua ? REQ_FUA | REQ_SYNC : 0));
	write->bio.bi_end_io = write_end;
	write->bio.bi_iter = (struct bvec_iter){ block * TERRACE_BLOCK_SECTORS, nr * TERRACE_BLOCK_BYTES };
	tr_defer(tr, &write->bio);
	return write;
}

/* The walkers go as far as they can; nothing else runs. */
static void walk(struct write *write)
{
	cancel_work_sync(&write->io.work);
	walk_fn(&write->io.work);
}

/* Everything goes on until nothing is left to do. */
static void settle(void)
{
	while (nr_sent || !list_empty(&kernel_work)) {
		while (nr_sent)
			piece_arrives(BLK_STS_OK);
		kernel_work_run();
	}
}

#endif
