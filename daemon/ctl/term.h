/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The person in front of it: questions, progress and colour, each only on a
 * terminal; NO_COLOR is honoured.
 */
#ifndef TERRACE_CTL_TERM_H
#define TERRACE_CTL_TERM_H

#include <stdbool.h>

#include "core/place.h"

/*
 * Asks on the terminal. false: the answer was not "yes", or there is nobody
 * to ask, and then a message says that --yes is needed.
 */
bool term_confirm(const char *question);

/* @text in the colour of a warning or as it is; in one of a few static buffers. */
const char *term_alarm(const char *text);

/* @text on a cleared terminal, cut to its width and height. */
void term_show(const char *text);

/* "what  42 %  12 s left" on one line of the terminal, at most ten times a second.
 * @done == @total ends the line. Nothing at all when stderr is no terminal.
 */
void term_progress(const char *what, u64 done, u64 total);

#endif
