// SPDX-License-Identifier: GPL-2.0
/*
 * What a volume says of itself, in two tables: words of the volume and words
 * of each tier. The status line and the files in sysfs (sysfs.c) are two ways
 * to walk them, and tests/host/kmod-words.sh compares them with the table in
 * Documentation/target.md.
 *
 * The status line is name=value words, so that words can be added: a script
 * looks for the name it wants. Nothing here takes a lock or sleeps; counters
 * are summed while they change.
 */
#include "packs.h"

/* --- counters ------------------------------------------------------------ */

static u64 sum_stat(struct terrace *tr, size_t offset)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += *(u64 *)((char *)per_cpu_ptr(tr->stats, cpu) + offset);
	return sum;
}

#define STAT(tr, field)	sum_stat(tr, offsetof(struct tr_stats, field))

static u64 zeros(struct terrace *tr, struct tr_tier *tier)
{
	return STAT(tr, read_zeros);
}

static u64 new_writes(struct terrace *tr, struct tr_tier *tier)
{
	return STAT(tr, new_writes);
}

static u64 prepared(struct terrace *tr, struct tr_tier *tier)
{
	return STAT(tr, prepared);
}

static u64 packed_reads(struct terrace *tr, struct tr_tier *tier)
{
	return STAT(tr, packed_reads);
}

static u64 pack_reads(struct terrace *tr, struct tr_tier *tier)
{
	return STAT(tr, pack_reads);
}

static u64 index_reads(struct terrace *tr, struct tr_tier *tier)
{
	return STAT(tr, index_reads);
}

static u64 index_lookups(struct terrace *tr, struct tr_tier *tier)
{
	return STAT(tr, index_lookups);
}

static u64 cache_hits(struct terrace *tr, struct tr_tier *tier)
{
	return STAT(tr, cache_hits);
}

static u64 ahead(struct terrace *tr, struct tr_tier *tier)
{
	return STAT(tr, ahead);
}

static u64 rescued(struct terrace *tr, struct tr_tier *tier)
{
	return STAT(tr, rescued);
}

static u64 cache_stored(struct terrace *tr, struct tr_tier *tier)
{
	return tr_promotion_bytes(tr, false);
}

static u64 cache_plain(struct terrace *tr, struct tr_tier *tier)
{
	return tr_promotion_bytes(tr, true);
}

static u64 cache_loose(struct terrace *tr, struct tr_tier *tier)
{
	return tr_promotion_loose_bytes(tr);
}

static u64 throttled(struct terrace *tr, struct tr_tier *tier)
{
	return STAT(tr, throttled);
}

static u64 deferred(struct terrace *tr, struct tr_tier *tier)
{
	return STAT(tr, deferred);
}

static u64 moved(struct terrace *tr, struct tr_tier *tier)
{
	return STAT(tr, moved);
}

static u64 left_out(struct terrace *tr, struct tr_tier *tier)
{
	return STAT(tr, left_out);
}

/* --- the volume ---------------------------------------------------------- */

static const char *name(struct terrace *tr, struct tr_tier *tier)
{
	return tr->name;
}

static const char *mode(struct terrace *tr, struct tr_tier *tier)
{
	switch (READ_ONCE(tr->mode)) {
	case TR_MODE_WRITE:
		return "write";
	case TR_MODE_READ_ONLY:
		return "read-only";
	default:
		return "fail";
	}
}

static u64 virtual_blocks(struct terrace *tr, struct tr_tier *tier)
{
	return READ_ONCE(tr->virtual_blocks);
}

static u64 tiers(struct terrace *tr, struct tr_tier *tier)
{
	return tr->nr_tiers;
}

static u64 journal_used(struct terrace *tr, struct tr_tier *tier)
{
	return tr_journal_fill(tr);
}

static u64 journal_blocks(struct terrace *tr, struct tr_tier *tier)
{
	return tr->journal.ring_blocks;
}

static u64 records(struct terrace *tr, struct tr_tier *tier)
{
	return READ_ONCE(tr->journal.next_record) - 1;
}

static u64 durable(struct terrace *tr, struct tr_tier *tier)
{
	return READ_ONCE(tr->journal.durable_record);
}

static u64 dirty_regions(struct terrace *tr, struct tr_tier *tier)
{
	return READ_ONCE(tr->nr_dirty_regions);
}

static u64 memory(struct terrace *tr, struct tr_tier *tier)
{
	return max_t(s64, atomic64_read(&tr->memory), 0);
}

static u64 generation(struct terrace *tr, struct tr_tier *tier)
{
	return READ_ONCE(tr->super.generation);
}

static const char *mirror(struct terrace *tr, struct tr_tier *tier)
{
	return tr_mirror_state(tr);
}

/* Are all tiers able to take NOWAIT I/O? Device-mapper ANDs the flag, and
 * without it io_uring sends every I/O through a worker.
 */
static const char *nowait(struct terrace *tr, struct tr_tier *tier)
{
	u32 t;

	for (t = 0; t < tr->nr_tiers; t++)
		if (!tr->tier[t].missing && !bdev_nowait(tr->tier[t].bdev))
			return "no";
	return "yes";
}

/* --- a tier -------------------------------------------------------------- */

static const char *tier_class(struct terrace *tr, struct tr_tier *tier)
{
	return tr_class_name(tier->class);
}

static const char *tier_kind(struct terrace *tr, struct tr_tier *tier)
{
	return tr_kind_name(tier->kind);
}

static u64 tier_used(struct terrace *tr, struct tr_tier *tier)
{
	return tr_space_used(tier);
}

static u64 tier_blocks(struct terrace *tr, struct tr_tier *tier)
{
	return READ_ONCE(tier->data_blocks);
}

static u64 tier_reserve(struct terrace *tr, struct tr_tier *tier)
{
	return READ_ONCE(tier->reserve_blocks);
}

static u64 tier_reads(struct terrace *tr, struct tr_tier *tier)
{
	return sum_stat(tr, offsetof(struct tr_stats, reads) + tier->number * sizeof(u64));
}

static u64 tier_writes(struct terrace *tr, struct tr_tier *tier)
{
	return sum_stat(tr, offsetof(struct tr_stats, writes) + tier->number * sizeof(u64));
}

static const char *tier_missing(struct terrace *tr, struct tr_tier *tier)
{
	return tier->missing ? "yes" : "no";
}

static u64 tier_io_errors(struct terrace *tr, struct tr_tier *tier)
{
	return atomic64_read(&tier->io_errors);
}

static u64 tier_orders(struct terrace *tr, struct tr_tier *tier)
{
	return READ_ONCE(tier->orders);
}

static u64 tier_orders_most(struct terrace *tr, struct tr_tier *tier)
{
	return READ_ONCE(tier->orders_most);
}

static u64 tier_physical_used(struct terrace *tr, struct tr_tier *tier)
{
	return READ_ONCE(tier->physical_used);
}

static u64 tier_physical_limit(struct terrace *tr, struct tr_tier *tier)
{
	return READ_ONCE(tier->physical_limit);
}

static u64 tier_free_shelves(struct terrace *tr, struct tr_tier *tier)
{
	return READ_ONCE(tier->free_shelves);
}

static u64 tier_unit(struct terrace *tr, struct tr_tier *tier)
{
	return tier->unit;
}

static u64 tier_padding(struct terrace *tr, struct tr_tier *tier)
{
	return READ_ONCE(tier->padding);
}

static u64 tier_trimmed(struct terrace *tr, struct tr_tier *tier)
{
	return READ_ONCE(tier->trimmed);
}

/* --- the tables ---------------------------------------------------------- */

#define NUMBER(file, in_status, fn) \
	{ .attr = { .name = file, .mode = 0444 }, .before = in_status, .number = fn }
#define TEXT(file, in_status, fn) \
	{ .attr = { .name = file, .mode = 0444 }, .before = in_status, .text = fn }

/* The groups of the tiers follow the word that counts them. */
struct tr_word tr_volume_words[] = {
	TEXT("name", NULL, name),
	TEXT("mode", "mode=", mode),
	NUMBER("virtual_blocks", NULL, virtual_blocks),
	NUMBER("tiers", " tiers=", tiers),
	NUMBER("zeros", " zeros=", zeros),
	NUMBER("new", " new=", new_writes),
	NUMBER("prepared", NULL, prepared),
	NUMBER("deferred", " deferred=", deferred),
	NUMBER("throttled", " throttled=", throttled),
	NUMBER("packed_reads", " packed=", packed_reads),
	NUMBER("pack_reads", NULL, pack_reads),
	NUMBER("index_reads", NULL, index_reads),
	NUMBER("index_lookups", NULL, index_lookups),
	NUMBER("cache_hits", NULL, cache_hits),
	NUMBER("ahead", NULL, ahead),
	NUMBER("rescued", NULL, rescued),
	NUMBER("cache_stored", NULL, cache_stored),
	NUMBER("cache_plain", NULL, cache_plain),
	NUMBER("cache_loose", NULL, cache_loose),
	NUMBER("moved", " moved=", moved),
	NUMBER("left_out", " left_out=", left_out),
	NUMBER("journal_used", " journal=", journal_used),
	NUMBER("journal_blocks", "/", journal_blocks),
	NUMBER("records", " records=", records),
	NUMBER("durable", " durable=", durable),
	NUMBER("dirty_regions", " dirty_regions=", dirty_regions),
	NUMBER("memory", " memory=", memory),
	NUMBER("generation", " generation=", generation),
	TEXT("mirror", " mirror=", mirror),
	TEXT("nowait", " nowait=", nowait),
	{}
};

struct tr_word tr_tier_words[] = {
	TEXT("class", ":", tier_class),
	TEXT("kind", ":", tier_kind),
	NUMBER("used_blocks", " used=", tier_used),
	NUMBER("blocks", "/", tier_blocks),
	NUMBER("reserve_blocks", NULL, tier_reserve),
	NUMBER("reads", " reads=", tier_reads),
	NUMBER("writes", " writes=", tier_writes),
	TEXT("missing", " missing=", tier_missing),
	NUMBER("io_errors", " errors=", tier_io_errors),
	NUMBER("orders", NULL, tier_orders),
	NUMBER("orders_most", NULL, tier_orders_most),
	NUMBER("free_shelves", " free_shelves=", tier_free_shelves),
	NUMBER("unit_blocks", NULL, tier_unit),
	NUMBER("padding_blocks", " padding=", tier_padding),
	NUMBER("trimmed_blocks", " trimmed=", tier_trimmed),
	NUMBER("physical_used", " physical=", tier_physical_used),
	NUMBER("physical_limit", "/", tier_physical_limit),
	{}
};

bool tr_word_applies(const struct tr_word *word, const struct tr_tier *tier)
{
	if (word->number == tier_free_shelves || word->number == tier_unit ||
	    word->number == tier_padding)
		return tier->kind == TERRACE_KIND_SHELVES;
	if (word->number == tier_trimmed)
		return tier->kind != TERRACE_KIND_HOME;
	if (word->number == tier_physical_used || word->number == tier_physical_limit)
		return tier->kind == TERRACE_KIND_HOME;
	return true;
}

/* --- the status line ----------------------------------------------------- */

static unsigned int emit_word(struct terrace *tr, struct tr_tier *tier,
			      const struct tr_word *word, char *result, unsigned int maxlen)
{
	unsigned int sz = 0;

	if (!word->before || !tr_word_applies(word, tier))
		return 0;
	if (word->number)
		DMEMIT("%s%llu", word->before, word->number(tr, tier));
	else
		DMEMIT("%s%s", word->before, word->text(tr, tier));
	return sz;
}

static unsigned int emit_tiers(struct terrace *tr, char *result, unsigned int maxlen)
{
	const struct tr_word *word;
	unsigned int sz = 0;
	u32 t;

	for (t = 0; t < tr->nr_tiers; t++) {
		DMEMIT(" %u", t);
		for (word = tr_tier_words; word->attr.name; word++)
			sz += emit_word(tr, &tr->tier[t], word, result + sz, maxlen - sz);
	}
	return sz;
}

void tr_status(struct terrace *tr, char *result, unsigned int maxlen)
{
	const struct tr_word *word;
	unsigned int sz = 0;

	for (word = tr_volume_words; word->attr.name; word++) {
		sz += emit_word(tr, NULL, word, result + sz, maxlen - sz);
		if (word->number == tiers)
			sz += emit_tiers(tr, result + sz, maxlen - sz);
	}
}

/* --- messages ------------------------------------------------------------ */

static int checkpoint_now(struct terrace *tr)
{
	int err = tr_checkpoint(tr, false);

	if (err == -EBUSY)
		DMERR("%s: checkpoint: the volume is suspended", tr->name);
	return err;
}

int tr_message(struct terrace *tr, unsigned int argc, char **argv, char *result, unsigned int maxlen)
{
	if (argc == 1 && !strcmp(argv[0], "commit"))
		return tr_commit(tr);
	if (argc == 1 && !strcmp(argv[0], "checkpoint"))
		return checkpoint_now(tr);
	if (argc == 1 && !strcmp(argv[0], "evict")) {
		tr_regions_evict(tr, S64_MAX);
		tr_chunks_evict(tr, S64_MAX, 0);
		return 0;
	}
	if (argc == 1 && !strcmp(argv[0], "evict_indexes")) {
		tr_indexes_evict(tr, U64_MAX);
		return 0;
	}
	if (argc == 2 && !strcmp(argv[0], "set"))
		return tr_tune_change(tr, argv[1]);
	if (argc == 2 && !strcmp(argv[0], "resize"))
		return tr_resize(tr, argv[1]);
	if (argc == 2 && !strcmp(argv[0], "grow_tier"))
		return tr_grow_tier(tr, argv[1]);
	if (argc == 4 && !strcmp(argv[0], "physical"))
		return tr_home_report(tr, argv[1], argv[2], argv[3]);
	if (argc == 1 && !strcmp(argv[0], "trim_homes")) {
		tr_homes_sweep(tr);
		return 0;
	}
	if (argc == 1 && !strcmp(argv[0], "trim")) {
		tr_trim_all(tr);
		return 0;
	}
	DMERR("%s: unknown message %s; known: commit, checkpoint, evict, evict_indexes, set name=value, resize sectors, grow_tier n, physical n used limit, trim, trim_homes",
	      tr->name, argv[0]);
	return -EINVAL;
}
