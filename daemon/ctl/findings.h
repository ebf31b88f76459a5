/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a check finds: problems, each with its exact location, and notes,
 * which are unusual but explained (a write cut off by a crash).
 */
#ifndef TERRACE_CTL_FINDINGS_H
#define TERRACE_CTL_FINDINGS_H

#include <stdio.h>

#include "ctl.h"

struct findings {
	bool json;
	u64 limit;		/* lines that are printed; 0: all */
	u64 problems, notes, printed;
	FILE *out;		/* without json */
	struct json_object *list;	/* with json */
};

void findings_init(struct findings *f, bool json, u64 limit);

/* One line "problem: WHERE: WHAT" on stdout, or an object of the JSON list. */
void problem(struct findings *f, const char *where, const char *format, ...) CTL_PRINTF(3, 4);
void note(struct findings *f, const char *where, const char *format, ...) CTL_PRINTF(3, 4);

/* A location, in one of a few static buffers. */
const char *where(const char *format, ...) CTL_PRINTF(1, 2);

#endif
