// SPDX-License-Identifier: GPL-2.0
/*
 * Where a bio goes. Three sentences: a block that has a place is read there
 * and, if the tier takes overwrites, written there; a block without one reads
 * as zeros and is written to a fresh place; what would have to sleep (region
 * not in memory, leaf full, no room, discards) is handed to defer.c.
 *
 * Nothing here sleeps or allocates. tr_route() runs under rcu_read_lock; it looks
 * which epoch it is before it looks for the place, and counts the bio into it, for its
 * tier, before it lets go of the lock: from then on neither a move nor a discard can
 * give the place to somebody else.
 */
#include "io.h"
#include "sense.h"

static void touch(struct terrace *tr, struct tr_region *region)
{
	u8 tick = READ_ONCE(tr->tick);

	if (READ_ONCE(region->age) != tick)
		WRITE_ONCE(region->age, tick);
}

/* Which epoch is it, of each tier? Before anything is read that tr_epoch_wait() is to wait for. */
static void look_at_epochs(const struct terrace *tr, struct tr_io *io)
{
	io->epoch = READ_ONCE(tr->epochs);
	smp_rmb();	/* pairs with smp_mb() in tr_epoch_wait() */
}

static enum tr_verdict go(struct tr_io *io, struct tr_tier *tier, u8 kind, u64 index)
{
	io->kind = kind;
	io->tier = tier->number;
	io->index = index;
	io->epoch = io->epoch >> tier->number & 1;
	this_cpu_inc(tier->epoch_cpu->count[io->epoch]);
	return TR_GO;
}

static enum tr_verdict route_packed(struct terrace *tr, struct tr_io *io, u64 place, u32 how)
{
	struct tr_tier *tier = &tr->tier[tr_place_tier(place)];

	if (!(how & (TR_HOW_DEFERRED | TR_HOW_ONE)))
		return TR_LOAD;
	if (unlikely(tier->missing))
		return TR_ERROR;
	go(io, tier, TR_IO_READ, tr_place_index(place));
	return TR_PACKED;
}

void tr_count_packed(struct terrace *tr, const struct tr_io *io)
{
	this_cpu_inc(tr->stats->packed_reads);
	this_cpu_inc(tr->stats->reads[io->tier]);
}

static enum tr_verdict route_read(struct terrace *tr, struct tr_io *io, u64 place, u32 how,
				  const struct tr_pack_ref *ref)
{
	struct tr_tier *tier;

	if (place == TR_NO_PLACE) {
		if (unlikely(ref->id))
			return route_packed(tr, io, ref->place, how);
		this_cpu_inc(tr->stats->read_zeros);
		return TR_ZERO;
	}
	tier = &tr->tier[tr_place_tier(place)];
	/* of a clean copy that is missing, or failed, the pack serves */
	if (unlikely(tier->missing || (how & TR_HOW_PACK))) {
		if (ref->id)
			return route_packed(tr, io, ref->place, how);
		if (tier->missing)
			return TR_ERROR;
	}
	this_cpu_inc(tr->stats->reads[tier->number]);
	return go(io, tier, TR_IO_READ, tr_place_index(place));
}

static u32 get_from(struct terrace *tr, struct tr_tier *tier, u64 block, u32 n, u64 *index)
{
	switch (tier->kind) {
	case TERRACE_KIND_SLOTS:
		return tr_space_get(tr, tier, n, index);
	case TERRACE_KIND_HOME:
		*index = block;
		return tr_home_get(tr, tier, block, n);
	default:
		return tr_shelf_get(tr, tier, TR_APPEND_WRITES, n, index);
	}
}

/* Where streams go, of @tiers (bits): to the first that is not of slots. */
static u32 stream_tier(const struct terrace *tr, u32 tiers)
{
	u32 k = tr->stream_tier;

	while (k < tr->nr_tiers && (!(tiers >> k & 1) || tr->tier[k].missing ||
				    tr->tier[k].kind == TERRACE_KIND_SLOTS))
		k++;
	return k;
}

static u32 get_from_tiers(struct terrace *tr, u32 tiers, u64 block, u32 n, bool stream, u8 *t,
			  u64 *index)
{
	u32 got, k = stream ? stream_tier(tr, tiers) : tr->nr_tiers;

	if (k < tr->nr_tiers) {
		*t = k;
		got = get_from(tr, &tr->tier[k], block, n, index);
		if (got)
			return got;
	}
	for (k = 0; k < tr->nr_tiers; k++) {
		struct tr_tier *tier = &tr->tier[k];

		if (tier->missing || !(tiers >> k & 1))
			continue;
		*t = k;
		got = get_from(tr, tier, block, n, index);
		if (got)
			return got;
	}
	return 0;
}

/*
 * Places for up to @n blocks from @block on: from the fastest tier that has some, for a
 * stream from the first that is not of slots. Returns how many. From those that are
 * avoided only when the others are full: none being ready there now is waited for.
 */
static u32 get_place(struct terrace *tr, u64 block, u32 n, u32 how, u8 *t, u64 *index)
{
	u32 avoid = tr_tune(tr, TR_TUNE_AVOID_TIERS);
	bool stream = how & TR_HOW_STREAM;
	u32 got;

	if (unlikely(how & TR_HOW_AHEAD))
		return get_from_tiers(tr, tr_append_tiers(tr) & ~avoid, block, n, false, t, index);
	got = get_from_tiers(tr, ~avoid, block, n, stream, t, index);
	if (likely(got || !avoid))
		return got;
	avoid &= tr_space_open(tr);
	return avoid ? get_from_tiers(tr, avoid, block, n, stream, t, index) : 0;
}

/* A running move leaves out what is written while it runs. */
static void mark_raced__f(struct tr_region *region, u32 i, u32 n)
{
	lockdep_assert_held(&region->lock);
	for (; n; i++, n--)
		region->move->raced[i / 64] |= 1ull << (i % 64);
}

static void unpromise(struct terrace *tr, struct tr_region *region, u32 n, u32 pins)
{
	unsigned long flags;

	spin_lock_irqsave(&region->lock, flags);
	region->reserved -= n;
	region->pins -= pins;
	tr_credit_settle__f(tr, region);
	spin_unlock_irqrestore(&region->lock, flags);
}

/*
 * To a fresh place. Everything that the publication will need is taken here,
 * before the data are written: room in the leaf and for the region's page, journal
 * records, the place.
 */
static enum tr_verdict route_new(struct terrace *tr, struct tr_io *io, struct tr_region *region,
				 u32 i, u32 *nr, u32 how)
{
	u32 n = *nr, got;
	unsigned long flags;
	u64 index;
	u8 t;

	if (unlikely(READ_ONCE(tr->throttle.us)) && !(how & TR_HOW_DEFERRED))
		return TR_SLOW;
	/* It ends with a commit, which is the deferred path's business. */
	if ((how & TR_HOW_FUA) && !(how & TR_HOW_DEFERRED))
		return TR_LOAD;
	spin_lock_irqsave(&region->lock, flags);
	if (region->flags & TR_REGION_DEAD) {
		spin_unlock_irqrestore(&region->lock, flags);
		return TR_LOAD;
	}
	if (unlikely(region->pins > U16_MAX / 2 || region->reserved > U16_MAX / 2)) {
		spin_unlock_irqrestore(&region->lock, flags);
		return TR_ROOM;		/* tens of thousands of writes to 4 MiB */
	}
	if (!tr_region_reserve__f(region, n, tr->high_places)) {
		spin_unlock_irqrestore(&region->lock, flags);
		return TR_GROW;
	}
	if (unlikely(!(region->flags & (TR_REGION_PAGED | TR_REGION_CREDIT))) &&
	    !tr_credit_take__f(tr, region)) {
		region->reserved -= n;
		spin_unlock_irqrestore(&region->lock, flags);
		return TR_PAGES;
	}
	region->pins++;
	if (region->flags & TR_REGION_MOVING)
		mark_raced__f(region, i, n);
	spin_unlock_irqrestore(&region->lock, flags);

	if (!tr_journal_reserve(tr, n)) {
		unpromise(tr, region, n, 1);
		return TR_BUSY;
	}
	got = get_place(tr, (region->number << TERRACE_REGION_SHIFT) + i, n, how, &t, &index);
	if (got < n) {
		tr_journal_unreserve(tr, n - got);
		unpromise(tr, region, n - got, !got);
		if (!got)
			return TR_ROOM;
	}
	*nr = got;
	io->region = region;
	io->i = i;
	io->nr = got;
	if (likely(!io->zeros)) {
		this_cpu_inc(tr->stats->new_writes);
		this_cpu_inc(tr->stats->writes[t]);
	}
	return go(io, &tr->tier[t], TR_IO_NEW, index);
}

static bool takes_overwrites(const struct tr_tier *tier)
{
	return tier->kind != TERRACE_KIND_SHELVES && tier->atomic && !tier->missing;
}

static enum tr_verdict route_write(struct terrace *tr, struct tr_io *io, struct tr_region *region,
				   u32 i, u32 *nr, u64 place, u16 rflags, u32 how,
				   struct tr_pack_ref *ref)
{
	struct tr_tier *tier;
	unsigned long flags;

	if (unlikely(!tr_writable(tr)))
		return TR_ERROR;
	if (unlikely(region == &tr->empty))
		return TR_LOAD;
	/* A clean slot stays what its pack says: it is not written in place. */
	if (place == TR_NO_PLACE || ref->id || !takes_overwrites(&tr->tier[tr_place_tier(place)]))
		return route_new(tr, io, region, i, nr, how);

	if (unlikely(rflags & TR_REGION_MOVING)) {
		/* The mark must stand before the write is submitted, and the
		 * place be looked up again: the move may just have ended.
		 */
		spin_lock_irqsave(&region->lock, flags);
		if (region->flags & TR_REGION_MOVING)
			mark_raced__f(region, i, *nr);
		*nr = tr_leaf_run(&region->leaf, i, *nr, &place);
		*nr = tr_region_find_pack(region, i, *nr, ref);
		spin_unlock_irqrestore(&region->lock, flags);
		if (place == TR_NO_PLACE || ref->id || !takes_overwrites(&tr->tier[tr_place_tier(place)]))
			return route_new(tr, io, region, i, nr, how);
	}
	/* Durable data at a place that no durable record names would be lost:
	 * such a FUA ends with the commit of its mapping.
	 */
	if ((how & TR_HOW_FUA) && READ_ONCE(region->last_seq) > READ_ONCE(tr->journal.durable_record)) {
		if (!(how & TR_HOW_DEFERRED))
			return TR_LOAD;
		io->commit = true;
	}
	tier = &tr->tier[tr_place_tier(place)];
	this_cpu_inc(tr->stats->writes[tier->number]);
	return go(io, tier, TR_IO_PLACE, tr_place_index(place));
}

enum tr_verdict tr_route(struct terrace *tr, struct tr_io *io, u64 block, u32 *nr, u32 how,
			 struct tr_pack_ref *ref)
{
	u32 i = block & (TERRACE_REGION_BLOCKS - 1);
	struct tr_region *region;
	unsigned int seq;
	u64 place;
	u16 flags;
	u32 n;

	look_at_epochs(tr, io);
	region = tr_region_find(tr, block >> TERRACE_REGION_SHIFT);
	if (unlikely(!region))
		return TR_LOAD;
	do {
		seq = read_seqcount_begin(&region->seq);
		n = tr_leaf_run(&region->leaf, i, *nr, &place);
		if (place == TR_NO_PLACE || (how & (TR_HOW_WRITE | TR_HOW_PACK)) ||
		    unlikely(tr->tier_missing))
			n = tr_region_find_pack(region, i, n, ref);
		flags = READ_ONCE(region->flags);
	} while (read_seqcount_retry(&region->seq, seq));
	if (unlikely(flags & TR_REGION_LOST))
		return TR_LOAD;		/* which finds out and says so */
	*nr = n;
	touch(tr, region);
	if (how & TR_HOW_WRITE)
		return route_write(tr, io, region, i, nr, place, flags, how, ref);
	return route_read(tr, io, place, how, ref);
}

enum tr_verdict tr_route_ahead(struct terrace *tr, struct tr_io *io, u64 block, u32 *nr)
{
	u32 i = block & (TERRACE_REGION_BLOCKS - 1);
	struct tr_region *region;
	struct tr_pack_ref ref;
	unsigned int seq;
	u64 place;
	u16 flags;
	u32 n;

	look_at_epochs(tr, io);
	region = tr_region_find(tr, block >> TERRACE_REGION_SHIFT);
	if (!region || region == &tr->empty)
		return TR_LOAD;
	do {
		seq = read_seqcount_begin(&region->seq);
		n = tr_leaf_run(&region->leaf, i, *nr, &place);
		n = tr_region_find_pack(region, i, n, &ref);
		flags = READ_ONCE(region->flags);
	} while (read_seqcount_retry(&region->seq, seq));
	if (place != TR_NO_PLACE || ref.id || flags & (TR_REGION_LOST | TR_REGION_MOVING))
		return TR_ERROR;
	*nr = n;
	return route_new(tr, io, region, i, nr, TR_HOW_WRITE | TR_HOW_DEFERRED | TR_HOW_AHEAD);
}

/* --- streams --------------------------------------------------------------------- */

#define SYNCED_BLOCKS	64	/* less than that from flush to flush: a log, no stream */

static void go_on(struct tr_stream *stream, u64 block, u32 nr, u32 flushes)
{
	if (stream->flushes != flushes) {
		if (stream->since < SYNCED_BLOCKS)
			stream->nr = 0;
		stream->flushes = flushes;
		stream->since = 0;
	}
	stream->next = block + nr;
	stream->nr += nr;
	stream->since += nr;
}

/*
 * How many blocks have come in order, with these? A few streams per CPU, each
 * remembered by the block that would continue it. What device-mapper brings
 * again, since only the front of a bio had one place, ends where the stream
 * does: it was counted, and belongs to what its front belonged to. @flushes so far.
 */
static u32 stream_blocks(struct tr_streams __percpu *all, u64 block, u32 nr, u32 flushes, bool *bulk)
{
	struct tr_streams *streams = get_cpu_ptr(all);
	u32 k, blocks = nr;

	*bulk = nr >= TR_BULK_BLOCKS;

	for (k = 0; k < TR_STREAMS; k++) {
		struct tr_stream *stream = &streams->stream[k];

		if (stream->next < block || stream->next > block + nr)
			continue;
		if (stream->next < block + nr)
			go_on(stream, stream->next, block + nr - stream->next, flushes);
		blocks = stream->nr;
		*bulk = stream->bulk |= *bulk;
		goto out;
	}
	streams->stream[streams->hand] = (struct tr_stream){
		.next = block + nr, .nr = nr, .flushes = flushes, .since = nr, .bulk = *bulk,
	};
	streams->hand = (streams->hand + 1) % TR_STREAMS;
out:
	put_cpu_ptr(all);
	return blocks;
}

/* Is this write part of a long sequential one? */
bool tr_is_stream(struct terrace *tr, u64 block, u32 nr)
{
	u32 threshold = tr_tune(tr, TR_TUNE_STREAM_KB) / (TERRACE_BLOCK_BYTES / 1024);
	bool bulk;

	return threshold && tr->stream_tier < tr->nr_tiers &&
	       stream_blocks(tr->streams, block, nr, READ_ONCE(tr->flushes), &bulk) >= threshold;
}

/*
 * Behind a read that goes on where others ended: twice what has been read in order. Others, and
 * not one, for device-mapper makes two of a read that goes beyond its region.
 */
static bool see_stream(struct terrace *tr, struct tr_io *io, u64 block, u32 nr)
{
	bool keeps = tr_tune(tr, TR_TUNE_CACHE_MB);
	u32 most, blocks;

	io->ahead = 0;
	io->bulk = false;
	if (nr == 1 && !keeps)
		return false;	/* whatever it belongs to, it is read alone */
	most = keeps ? tr_tune(tr, TR_TUNE_AHEAD_KB) / (TERRACE_BLOCK_BYTES / 1024) : 0;
	blocks = stream_blocks(tr->read_streams, block, nr, 0, &io->bulk);
	if (blocks <= 2 * nr)
		return false;
	io->ahead = min(2 * blocks, most);
	return true;
}

/* Hinted or pinned so that new writes go past the fast tiers. */
bool tr_is_cold(struct terrace *tr, u64 block)
{
	return unlikely(READ_ONCE(tr->ranges)) && tr_ranges_marks(tr, block) & TR_MARKS_COLD;
}

/* Does a write go past the fast tiers? What its range is marked as says so; the mark of what
 * died there is lifted.
 */
static bool marked_past(struct terrace *tr, u64 block, u32 nr, bool stream)
{
	u32 marks = tr_ranges_marks(tr, block);

	tr_ranges_written(tr, block, nr);
	return marks & TR_MARKS_COLD || (stream && !(marks & BIT(TERRACE_RANGE_PIN_FAST)));
}

/* --- the target's map method --------------------------------------------------------- */

static u32 how_of(struct terrace *tr, const struct bio *bio, u64 block, u32 nr)
{
	bool past;
	u32 how;

	if (bio_op(bio) != REQ_OP_WRITE)
		return nr == 1 ? TR_HOW_ONE : 0;
	how = TR_HOW_WRITE;
	if (bio->bi_opf & REQ_FUA)
		how |= TR_HOW_FUA;
	/* What each write of is waited for (FUA) is a log, and stays fast. */
	past = tr_is_stream(tr, block, nr) && !(how & TR_HOW_FUA);
	if (unlikely(READ_ONCE(tr->ranges)))
		past = marked_past(tr, block, nr, past);
	if (past)
		how |= TR_HOW_STREAM;
	return how;
}

/* A read of one packed block: from memory, if it is there decoded, or by cold.c. */
static bool packed(struct terrace *tr, struct bio *bio, const struct tr_pack_ref *ref, u64 block)
{
	u32 i = block & (TERRACE_REGION_BLOCKS - 1);
	bool cached = tr_promotion_bytes(tr, true) && tr_cached_bio(tr, bio, ref, i);
	struct tr_cold *cold = NULL;

	if (!cached)
		cold = tr_cold_begin(tr, bio, ref, i);
	if (!cached && !cold)
		return false;
	tr_count_packed(tr, tr_io_of(bio));
	tr_sense(tr, bio, block, 1, TERRACE_OP_READ,
		 tr_where(tr, tr_place_tier(ref->place)) | TERRACE_WHERE_PACKED | TERRACE_WHERE_SLOW);
	if (cached)
		bio_endio(bio);
	else
		tr_cold_send(cold);
	return true;
}

/* A read of one loose block of a disk: from memory, or so that it is there the next time. What is
 * read in order is not: it would drive all else out, and nobody comes back to it.
 */
static bool loose(struct terrace *tr, struct bio *bio, u64 block)
{
	struct tr_io *io = tr_io_of(bio);

	return !see_stream(tr, io, block, 1) && tr_loose_read(tr, bio);
}

int tr_map(struct terrace *tr, struct bio *bio)
{
	struct tr_io *io = tr_io_of(bio);
	enum tr_verdict verdict;
	struct tr_pack_ref ref;
	u64 block;
	u32 nr, all, how;

	io->kind = TR_IO_NONE;
	io->commit = false;
	io->rescue = false;
	io->timed = false;
	io->zeros = false;
	io->thread = 0;
	io->tr = tr;
	ref.id = 0;
	if (unlikely(bio->bi_opf & REQ_PREFLUSH)) {
		WRITE_ONCE(tr->flushes, READ_ONCE(tr->flushes) + 1);
		return tr_commit_flush(tr, io, bio) ? DM_MAPIO_REMAPPED : DM_MAPIO_SUBMITTED;
	}
	block = bio->bi_iter.bi_sector / TERRACE_BLOCK_SECTORS;
	nr = all = bio->bi_iter.bi_size / TERRACE_BLOCK_BYTES;
	if (unlikely(bio_op(bio) != REQ_OP_READ && bio_op(bio) != REQ_OP_WRITE)) {
		tr_defer(tr, bio);
		return DM_MAPIO_SUBMITTED;
	}
	how = how_of(tr, bio, block, nr);

	rcu_read_lock();
	verdict = tr_route(tr, io, block, &nr, how, &ref);
	rcu_read_unlock();
	switch (verdict) {
	case TR_GO:
		if (nr < all)
			dm_accept_partial_bio(bio, nr * TERRACE_BLOCK_SECTORS);
		tr_sense(tr, bio, block, nr, how & TR_HOW_WRITE ? TERRACE_OP_WRITE : TERRACE_OP_READ,
			 tr_where(tr, io->tier));
		if (!(how & TR_HOW_WRITE))
			io->iter = bio->bi_iter;
		bio_set_dev(bio, tr->tier[io->tier].bdev);
		bio->bi_iter.bi_sector = tr_io_sector(tr, io);
		if (how & TR_HOW_ONE && tr_loose_kept(&tr->tier[io->tier]) && loose(tr, bio, block))
			return DM_MAPIO_SUBMITTED;
		return DM_MAPIO_REMAPPED;
	case TR_ZERO:
		if (nr < all)
			dm_accept_partial_bio(bio, nr * TERRACE_BLOCK_SECTORS);
		tr_sense(tr, bio, block, nr, TERRACE_OP_READ, TERRACE_WHERE_NOWHERE);
		zero_fill_bio(bio);
		bio_endio(bio);
		return DM_MAPIO_SUBMITTED;
	case TR_ERROR:
		return DM_MAPIO_KILL;
	case TR_SLOW:
		io->stream = how & TR_HOW_STREAM;
		io->thread = tr_sense_who(tr);
		tr_throttle(tr, bio);
		return DM_MAPIO_SUBMITTED;
	case TR_PACKED:
		see_stream(tr, io, block, 1);
		if (packed(tr, bio, &ref, block))
			return DM_MAPIO_SUBMITTED;
		tr_io_end(io, BLK_STS_OK);
		fallthrough;
	default:
		this_cpu_inc(tr->stats->deferred);
		io->stream = how & TR_HOW_STREAM;
		if (!(how & TR_HOW_WRITE))
			see_stream(tr, io, block, all);
		io->thread = tr_sense_who(tr);
		tr_defer(tr, bio);
		return DM_MAPIO_SUBMITTED;
	}
}
