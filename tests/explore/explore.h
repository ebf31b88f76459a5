/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * explore: what power cuts could have left, from a record of the drives.
 *
 *	main.c		the command line, the walk over the record, workers
 *	log.c		the record, from its file
 *	image.c		the drives: what is durable, what is not yet, one state of it
 *	choose.c	which of the writes that are not durable are there
 *	kinds.c		what writes are and which stage of a commit that is; the table
 *	promises.c	what the oracle's marks say was promised
 *	recover.c	a state against the product's own recovery, and the promises
 */
#ifndef EXPLORE_H
#define EXPLORE_H

#include <stdio.h>

#include "core/format.h"

#include "../drive/record.h"
#include "../oracle/ledger.h"
#include "../oracle/mark.h"
#include "../oracle/stamp.h"

#define SECTOR		512u
#define MAX_IMAGES	16u

/* ---- log.c ---- */

struct log {
	const u8 *bytes;
	size_t size;
	const struct drive_record **record;
	u32 nr;
	u64 **hash;		/* of each sector of a write's data; made when asked for */
};

/* Ends the program when the file is no whole record. */
void log_open(struct log *log, const char *path);
const u64 *log_hashes(struct log *log, u32 at);
static inline const void *log_data(const struct drive_record *r)
{
	return r + 1;
}

/* ---- image.c ---- */

struct image {
	char name[32];
	char path[32];		/* the product's code opens it by that */
	u32 number;
	int fd;
	u8 *bytes;
	u64 nr_sectors;
	u32 atom;		/* sectors that are written whole or not at all */
	u64 *hash;		/* of each sector, 0: zeros */
	u32 *since;		/* which record's write is durable there */
};

enum fate { FATE_LOST, FATE_WHOLE, FATE_TORN };

/* A write that a power cut may take away. */
struct pending {
	u32 at;			/* its record */
	u32 kind;		/* enum write_kind */
	u32 done_at;		/* record of its completion, 0: under way */
	enum fate fate;		/* in the state that is being looked at */
	u64 seed;		/* of a torn one */
};

struct flush {
	u64 id;
	u32 drive;
	u32 at;
};

struct undo {
	struct image *image;
	u64 sector, hash;
	u8 bytes[SECTOR];
};

struct world {
	struct log *log;
	struct image image[MAX_IMAGES];
	u32 nr_images;
	struct pending *pending;
	u32 nr_pending, room_pending;
	struct flush flush[256];
	u32 nr_flushes;
	u64 hash;		/* of all images */
	struct undo *undo;
	size_t nr_undo, room_undo;
};

void world_init(struct world *w, struct log *log);
/* Record @at happens. */
void world_step(struct world *w, u32 at, u32 kind);
/* Will record @at make something durable? */
bool world_settles(const struct world *w, u32 at);
/* The state that the pending writes' fates make; and back. */
void world_build(struct world *w);
void world_unbuild(struct world *w);

/* ---- choose.c ---- */

/* The fates of all pending writes in state @k of a moment: in words. */
const char *choose(struct world *w, u64 seed, u32 k);

/* ---- kinds.c ---- */

enum write_kind { W_OTHER, W_LABEL, W_SUPER, W_JOURNAL, W_BITMAP, W_PAGE, W_SLOT, W_SHELF, W_HOME, NR_WRITE_KINDS };
extern const char * const write_kind_names[NR_WRITE_KINDS];

enum stage {
	STAGE_DATA, STAGE_FLUSH, STAGE_FLUSHED, STAGE_LOST, STAGE_TORN, STAGE_THERE, STAGE_COMMITTED, STAGE_FREED,
	STAGE_PAGES, STAGE_SUPER, STAGE_TAIL, NR_STAGES
};

#define NR_TYPES	16u	/* of journal records; 0: none */
#define MAX_MODES	24u

struct layout {
	u64 data_start, meta_start, meta_blocks;	/* device blocks */
	u32 tier_kind;
	bool known;
};

struct kinds {
	struct layout layout[MAX_IMAGES];
	u64 journal_start, journal_blocks, bitmap_start[2], bitmap_blocks;
	u32 types;		/* mask: of the newest journal block */
	enum stage stage;
	char mode[MAX_MODES][16];
	u32 nr_modes, now;
};

struct counts {
	u64 moments, states, distinct, known, broken;
	u32 cell[NR_TYPES][MAX_MODES][NR_STAGES];
};

/* One state of each type, mode and stage: any is as likely as the others. */
struct picked {
	u32 nr, at, state;
};
struct picks {
	struct picked cell[NR_TYPES][MAX_MODES][NR_STAGES];
};

void kinds_init(struct kinds *k);
/* Counts of the records before; none if there is no such file. */
void kinds_load(struct kinds *k, struct counts *c, const char *path);
void kinds_save(const struct kinds *k, const struct counts *c, const char *path);
/* Reads the labels and superblocks as they stand. */
void kinds_layout(struct kinds *k, const struct world *w);
u32 kinds_of(const struct kinds *k, const struct drive_record *r);
/* Record @r, a write of @kind, happens. */
void kinds_step(struct kinds *k, const struct world *w, const struct drive_record *r, u32 kind);
/* Does something else begin with @r? */
bool kinds_turns(const struct kinds *k, const struct drive_record *r, u32 kind);
void kinds_mode(struct kinds *k, const char *name);
void kinds_count(const struct kinds *k, const struct world *w, struct counts *c);
bool kinds_enough(const struct kinds *k, const struct world *w, const struct counts *c);
/* Of what the state of the images is one of, it may become the one that is named. */
void kinds_pick(const struct kinds *k, const struct world *w, struct picks *picks, u64 random, struct picked state);
void kinds_print_picks(const struct kinds *k, const struct picks *picks);
/* How many states were counted of record type @name, @len bytes. */
u64 kinds_of_type(const struct counts *c, const char *name, size_t len);
void kinds_print(const struct kinds *k, const struct counts *c);

/* ---- promises.c ---- */

struct promises {
	struct ledger *ledger;		/* NULL: no mark yet */
	u32 *op;			/* of the ledger, by the mark's number */
	u64 *flush;
	u32 room;
	u64 sharpened;			/* how often more was promised */
	u64 size;			/* bytes that the volume has at least; 0: not told */
};

void promises_mark(struct promises *p, const struct mark *m);
void promises_cut(struct promises *p);

/* ---- recover.c ---- */

/* Is the state of the images sound? What is wrong goes to @out. */
bool recover(const struct world *w, const struct promises *p, FILE *out);

/* "terracectl check --full" of it, as printed. 0: sound. */
int recover_check(const struct world *w, FILE *out);

__attribute__((format(printf, 1, 2), noreturn)) void give_up(const char *format, ...);

#endif
