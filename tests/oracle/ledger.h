/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ledger: which values may a block hold? Pure bookkeeping, no I/O.
 *
 * Time is a counter that advances with every event. An operation (a write, a
 * discard) has a start and an end; its place in the order of things lies
 * somewhere between. So the older of two is overwritten for certain only if
 * it had ended before the newer one started:
 *
 *	read:	w may be returned unless some v has ended well before the
 *		read started, and w had ended before v started
 *	crash:	w may survive unless some durable v exists such that w had
 *		ended before v started
 *
 * v is durable when it has ended well and was FUA, or a flush that started
 * after its end has ended well. An operation that never ended, or failed, may
 * show or not. A discard, or a write of zeros, is a write of value 0.
 */
#ifndef ORACLE_LEDGER_H
#define ORACLE_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

struct ledger;

struct ledger *ledger_create(uint32_t blocks, uint64_t salt);
void ledger_destroy(struct ledger *l);
uint32_t ledger_blocks(const struct ledger *l);
uint64_t ledger_salt(const struct ledger *l);
/* How many runs were recorded here; the caller numbers its versions by it. */
uint32_t ledger_runs(const struct ledger *l);
void ledger_next_run(struct ledger *l);

/* A write of @version, 0: a discard. The result goes to ledger_end(). */
uint32_t ledger_begin(struct ledger *l, uint32_t first, uint32_t count, uint64_t version, bool fua);
void ledger_end(struct ledger *l, uint32_t op, bool well);
/* The result of the first goes to the second when the flush has ended well. */
uint64_t ledger_flush_begin(struct ledger *l);
void ledger_flush_end(struct ledger *l, uint64_t began);
/* Between the two nothing is forgotten that the read may still return. */
uint64_t ledger_read_begin(struct ledger *l);
void ledger_read_end(struct ledger *l, uint64_t began);
/* Is some operation under way on these blocks? */
bool ledger_busy(const struct ledger *l, uint32_t first, uint32_t count);

bool ledger_may_read(const struct ledger *l, uint32_t block, uint64_t value, uint64_t began);
bool ledger_may_survive(const struct ledger *l, uint32_t block, uint64_t value);
/* The values allowed now, at most @max are filled in; returns how many there are. */
uint32_t ledger_now(const struct ledger *l, uint32_t block, uint64_t *values, uint32_t max);
uint32_t ledger_survivors(const struct ledger *l, uint32_t block, uint64_t *values, uint32_t max);
/* Touched since it was last settled? */
bool ledger_touched(const struct ledger *l, uint32_t block);
/* After a restart @value was found: from now on it is there, and durable. */
void ledger_settle(struct ledger *l, uint32_t block, uint64_t value);

/* A crash: of what may survive, all may be there now, and one of it stays. */
void ledger_crash(struct ledger *l);

/* Both 0 or a negative errno. What has not ended counts as never ended. */
int ledger_save(const struct ledger *l, const char *path);
struct ledger *ledger_load(const char *path, int *error);

#endif
