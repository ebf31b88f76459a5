/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From what sense/bequest.h tells to what loop/heirs.c wants to know. */
#ifndef TERRACE_DESCENT_H
#define TERRACE_DESCENT_H

#include "loop/engine.h"
#include "sense/bequest.h"

/* Passes the heat of the inputs on to the outputs that have not got it yet. */
void descent_tell(struct engine *e, const struct bequest *b);

/*
 * What share is in the hot set of what the next @bytes of output will be made of: the inputs that are being read, from
 * where they are read now.  Negative: that is not known.
 */
double descent_hot_share(struct engine *e, const struct bequest *b, uint64_t bytes);

#endif
