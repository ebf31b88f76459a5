/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The steps of terracectl create, for those that make a volume on the way.
 */
#ifndef TERRACE_CTL_CREATE_H
#define TERRACE_CTL_CREATE_H

#include "format.h"

struct format *create_begin(void);
void create_end(struct format *f);

/* Refuses what cannot be done; classes, plan. CTL_OK, or an exit status after a message. */
int create_prepare(struct format *f);

/* Writes it and activates it; the devices are closed then. CTL_OK or CTL_PROBLEM. */
int create_make(struct format *f);

#endif
