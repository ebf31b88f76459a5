/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a test writes into a block, and what it makes of what it reads.
 *
 * Every 512-byte sector says which block it belongs to, which sector of it it
 * is, which version of the block, and in which test; the rest follows from
 * that, so one wrong bit shows. A version is never 0, which stands for zeros.
 */
#ifndef ORACLE_STAMP_H
#define ORACLE_STAMP_H

#include <stdint.h>

#define STAMP_BLOCK	4096u
#define STAMP_SECTOR	512u
#define STAMP_SECTORS	(STAMP_BLOCK / STAMP_SECTOR)

enum stamp_verdict {
	STAMP_ZEROS,		/* all zeros */
	STAMP_WHOLE,		/* one version of this block */
	STAMP_FOREIGN,		/* one version of another block */
	STAMP_TORN,		/* sectors of several values */
	STAMP_ALIEN,		/* stamped by another test */
	STAMP_GARBAGE,		/* some sector is no stamp and not zeros */
};

struct stamp_found {
	enum stamp_verdict verdict;
	uint64_t block;		/* WHOLE, FOREIGN */
	uint64_t version;	/* WHOLE, FOREIGN */
	char text[160];		/* what is there, in words */
};

uint64_t stamp_mix(uint64_t x);
void stamp_fill(void *data, uint64_t salt, uint64_t block, uint64_t version);
void stamp_read(const void *data, uint64_t salt, uint64_t block, struct stamp_found *found);
/* run:thread:number of a version, for people */
const char *stamp_name(uint64_t version, char text[static 40]);

#endif
