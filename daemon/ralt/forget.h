/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Forgotten ranges: how the heat of discarded blocks dies at once, without
 * rewriting a single record.
 *
 * Each discard gets the next generation and is kept as a range.  A record whose
 * generation is below that of the range covering its block is dead: it is skipped
 * by queries and dropped when a merge meets it.  Accesses are recorded under the
 * generation current when they happened, so reused space starts cold.
 *
 * The list is sorted and disjoint; a newer range replaces what it overlaps.  Ranges
 * leave when every run has been rewritten since.
 */
#ifndef RALT_FORGET_H
#define RALT_FORGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct forget_range {
	uint64_t first;
	uint64_t end;		/* exclusive */
	uint32_t generation;
};

struct forget {
	struct forget_range *ranges;
	size_t count;
	size_t limit;
};

static inline void forget_init(struct forget *f, struct forget_range *mem, size_t limit)
{
	*f = (struct forget){ mem, 0, limit };
}

/* -ENOSPC when the list might overflow (nothing changed), -EINVAL for an empty range. */
int forget_add(struct forget *f, uint64_t first, uint64_t end, uint32_t generation);

/* The generation a block's records must have; 0 if it was never forgotten. */
uint32_t forget_generation(const struct forget *f, uint64_t block);

/* The first range that ends after @block; f->count: none does. */
size_t forget_find(const struct forget *f, uint64_t block);

/* Drops the ranges of generations up to @applied. */
void forget_purge(struct forget *f, uint32_t applied);

/*
 * A cursor for ascending blocks, as merges ask: no search per record.
 * Start with 0 and keep it between calls.
 */
static inline bool forget_covers(const struct forget *f, size_t *cursor, uint64_t block,
				 uint32_t generation)
{
	while (*cursor < f->count && f->ranges[*cursor].end <= block)
		++*cursor;
	return *cursor < f->count && f->ranges[*cursor].first <= block &&
	       f->ranges[*cursor].generation > generation;
}

#endif
