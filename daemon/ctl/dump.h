/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * terracectl dump: what stands on the disks, item by item. Each item is made
 * once, as a JSON object; in text it is a line "KIND key=value …", with lists
 * below it.
 *
 *   dump.c          the command line, printing items
 *   dump_super.c    labels and superblocks
 *   dump_journal.c  journal blocks and their records
 *   dump_trees.c    map and space: directories and pages
 *   dump_packs.c    headers of packs
 *   dump_owners.c   owner blocks and tables of shelves
 *   dump_all.c      everything that restore needs, by shape.c
 */
#ifndef TERRACE_CTL_DUMP_H
#define TERRACE_CTL_DUMP_H

#include "volume.h"

struct dump {
	struct volume vol;
	struct findings findings;	/* on stderr */
	struct json_object *items;	/* with --json; else printed at once */
	bool all;
	u64 nr_items;			/* so far */
	u64 first, last;		/* regions, chunks or journal blocks asked for */
};

/* Prints or keeps @item, a "KIND"; takes it over. */
void dump_item(struct dump *d, const char *kind, struct json_object *item);

static inline bool dump_wanted(const struct dump *d, u64 number)
{
	return number >= d->first && number <= d->last;
}

void dump_labels(struct dump *d);
void dump_supers(struct dump *d);
void dump_journal(struct dump *d);
void dump_map(struct dump *d);
void dump_space(struct dump *d);
void dump_packs(struct dump *d);
void dump_owners(struct dump *d);
void dump_all(struct dump *d);

/* Shorthands. */
void add_u64(struct json_object *o, const char *key, u64 value);
void add_hex(struct json_object *o, const char *key, u64 value);
void add_text(struct json_object *o, const char *key, const char *value);
void add_bool(struct json_object *o, const char *key, bool value);
/* "tier" and "place", or nothing for TR_NO_PLACE; @prefix: "old_" or "". */
void add_place(struct json_object *o, const char *prefix, u64 place);
/* @n bits as a list of runs of ones: "3-7", "9". */
void add_runs(struct json_object *o, const char *key, const u64 *bits, u64 n, u64 first);

#endif
