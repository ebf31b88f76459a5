/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recency: a bounded LRU list as a heat source, for comparison with clock and RALT.
 *
 * Every access moves a block to the front; the last one leaves when the list is
 * full.  Level 3 is the most recent quarter by age, 0 the oldest.
 *
 * Memory is the caller's (recency_bytes()): 24 bytes an entry plus its hash slots.
 */
#ifndef DECIDE_RECENCY_H
#define DECIDE_RECENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECENCY_NO_LEVEL	(-1)
#define RECENCY_LIMIT_MAX	(1u << 30)

struct recency_entry {
	uint64_t block;
	uint64_t stamp;		/* touch counter at its last access */
	uint32_t newer;
	uint32_t older;
};

struct recency {
	struct recency_entry *entries;
	uint32_t *slots;	/* hash table of entry numbers + 1 */
	uint32_t mask;
	uint32_t limit;
	uint32_t count;
	uint32_t newest;
	uint32_t oldest;
	uint64_t touches;
};

size_t recency_bytes(uint32_t limit);

/* @mem as for tracker_init().  -EINVAL, -ENOMEM. */
int recency_init(struct recency *r, uint32_t limit, void *mem, size_t bytes);

/* Records an access; true if the block was in the list. */
bool recency_touch(struct recency *r, uint64_t block);
bool recency_forget(struct recency *r, uint64_t block);

/* Forgets them all at once. */
void recency_empty(struct recency *r);

/* 0..3, or RECENCY_NO_LEVEL when not in the list. */
int recency_level(const struct recency *r, uint64_t block);

#endif
