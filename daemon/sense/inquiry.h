/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which files are to be asked where they lie, and which are being asked.  Between the question and its answer something
 * may happen to a file: that is noted here, and the answer means the less.
 *
 * Fresh tables come first.  What is looked at again, or was found, is taken only while few wait: INQUIRIES_FEW.
 */
#ifndef TERRACE_SENSE_INQUIRY_H
#define TERRACE_SENSE_INQUIRY_H

#include "sense/asker.h"

#define INQUIRIES	1024u	/* that wait */
#define INQUIRIES_FEW	16u

struct found_file {
	struct file_id id;
	uint64_t parent, size;
	char name[TERRACE_FILE_NAME];
};

struct inquiry {
	struct found_file file;	/* but for its id, only if it was found */
	bool found;
	bool again;		/* it is known already: an event of it may have been lost */
	bool changed;		/* since it was asked: cut, shared, closed again */
	bool shared;		/* ... that */
	bool dead;		/* since it was asked */
	bool told;		/* its death, with its place */
};

struct inquiries {
	uint64_t first, end;	/* of those that wait */
	uint32_t nr_asked;
	struct inquiry waiting[INQUIRIES];
	struct inquiry asked[ASKER_PATIENT];	/* in that order */
};

static inline uint32_t inquiries_count(const struct inquiries *q)
{
	return (uint32_t)(q->end - q->first) + q->nr_asked;
}

/* False: too many wait. */
bool inquiries_add(struct inquiries *q, const struct inquiry *one);
/* The next one that waits; NULL: none, or too many are being asked. */
const struct inquiry *inquiries_next(const struct inquiries *q);
/* ... is being asked now. */
void inquiries_asked(struct inquiries *q);
/* The answer is here. False: nobody has asked. */
bool inquiries_answered(struct inquiries *q, const struct file_id *id, struct inquiry *out);
/* Whether it waits; or waits, or is being asked. */
bool inquiries_wait(const struct inquiries *q, const struct file_id *id);
bool inquiries_have(const struct inquiries *q, const struct file_id *id);
/* While it is being asked, it was changed; or has died, @told: with its place. Whether it is being asked. */
bool inquiries_changed(struct inquiries *q, const struct file_id *id, bool shared);
bool inquiries_dead(struct inquiries *q, const struct file_id *id, bool told);

#endif
