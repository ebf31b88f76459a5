/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What watch.c and asking.c share: the state of one volume's files.  watch.c hears what happens to them, asking.c finds
 * out where they lie; only answers make a place fresh, and they are heard after all events of a tick.
 */
#ifndef TERRACE_SENSE_WATCHING_H
#define TERRACE_SENSE_WATCHING_H

#include "sense/asker.h"
#include "sense/bequest.h"
#include "sense/finder.h"
#include "sense/inquiry.h"
#include "sense/mounts.h"
#include "sense/places.h"
#include "sense/watch.h"

struct lsm_sense;

#define BEQUESTS	32	/* jobs that ended, and outputs that began to grow */
#define PATIENCE_NS	2000000ull	/* of a tick, with each thread that asks and reads */
#define MOST_EXTENTS	EXTENTS_MOST	/* told in a tick, of deaths, and of answers; one file more may have begun by then */

struct watch {
	struct watch_tell tell;
	struct watch_counts counts;
	struct lsm_sense *lsm;
	bool marks;
	struct mounts mounts;
	uint64_t now_ns;		/* of this tick */
	uint64_t dead_extents;		/* told in this tick */
	struct inquiries inquiries;
	struct waiting_bequest {
		struct bequest *b;
		uint64_t since_ns;
	} bequest[BEQUESTS];		/* until outputs have been asked for */
	uint32_t nr_bequests;
	struct growing {
		struct file_id id;
		struct bequest *b;	/* of an output */
		bool log;		/* neither: a table from memory, of which only its place is wanted */
		bool bottom, asked;
		bool dead;		/* since it was asked, and its place was not known */
	} growing[BEQUESTS];		/* what began to grow, until it is known where */
	uint32_t nr_growing;
	uint64_t lost;			/* events, as far as they have been made good */
	bool doubted;			/* all of them, in this tick */
	uint32_t looked;		/* places before this one are not to be looked at again ... */
	uint32_t looked_open;		/* ... nor files before this one that seem to be open; their number: all */
	struct finder *finder;
	uint32_t to_walk[MOUNTS];	/* filesystems */
	uint32_t nr_to_walk;
	bool walks_all;			/* when it is time for that */
	uint64_t walked_ns;		/* when that was */
	struct asker *asker;
	struct asker_answer answer;
	struct logs *logs;
	struct places places;
	struct files files;
};

/* To be asked where it lies, when its turn comes. */
void asking_later(struct watch *w, const struct inquiry *one);
/* The folders of a filesystem, to be read through for tables. */
void asking_walk(struct watch *w, uint32_t dev);
/* What is asked of its growing files is of no use any more. */
void asking_drops(struct watch *w, uint32_t dev);
/* It has begun to grow: its entry, or a fresh one, if there are fewer than @most; else NULL. */
struct growing *asking_grows(struct watch *w, const struct file_id *id, uint32_t most);
/* It has died; @told: with its place. */
void asking_died(struct watch *w, const struct file_id *id, bool told);
/* Asks and hears, as much as a tick has time for. */
void asking_tick(struct watch *w);

#endif
