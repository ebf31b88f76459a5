/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the oracle writes into the record of the drives (--marks), so that
 * tests/explore knows what had begun and ended at each moment. A mark of a
 * begin comes before the operation is submitted, that of an end after it is
 * known to have ended. MARK_SEEN: after a crash that was found; the next flush
 * makes it durable like a write. Other programs' marks are text: "mode merge".
 */
#ifndef ORACLE_MARK_H
#define ORACLE_MARK_H

#include <stdint.h>

#define MARK_MAGIC	0x4d724f54u	/* "TOrM" */

enum mark_kind { MARK_BEGIN = 1, MARK_END, MARK_FLUSH, MARK_FLUSHED, MARK_NEW, MARK_SEEN };

struct mark {
	uint32_t magic;
	uint8_t kind;
	uint8_t fua, well;
	uint8_t thread;
	uint32_t id;			/* of the operation, or of the flush, in this run */
	uint32_t first, count;		/* MARK_NEW: count is the ledger's blocks */
	uint32_t unused;
	uint64_t version;		/* 0: a discard. MARK_NEW: the salt */
};

struct options;
struct ledger;

/* The file of --marks with MARK_NEW in it, or -1: then marks go nowhere. */
int mark_open(const struct options *o, const struct ledger *l);
void mark(int fd, struct mark m);
void mark_close(int fd);

#endif
