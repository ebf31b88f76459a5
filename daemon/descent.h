/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From what sense/bequest.h tells to what loop/heirs.c wants to know. */
#ifndef TERRACE_DESCENT_H
#define TERRACE_DESCENT_H

#include "loop/engine.h"
#include "sense/bequest.h"

/* Passes the heat of the inputs on to the outputs. */
void descent_tell(struct engine *e, const struct bequest *b);

/* What share of the inputs' blocks is hot, by a sample of them; negative: none of them is known. */
double descent_hot_share(struct engine *e, const struct bequest *b);

#endif
