/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What I/O costs a tier's drive: hits are weighed against moves by it.
 *
 * By the tier's class, from published figures, unless a tunable says what a drive really does.  It needs to be right only in
 * order of magnitude: what is asked is whether reads of a disk that were saved were worth writes to a flash drive.
 */
#ifndef DECIDE_PRICE_H
#define DECIDE_PRICE_H

#include "decide/tunable.h"

struct price_tunables {
	double read_us;
	double bytes_per_us;
};

extern const struct tunable_table price_tunable_table;

/* One 4 KiB read. */
double price_read_us(const struct price_tunables *t, const char *class);

/* Long runs. */
double price_bytes_per_us(const struct price_tunables *t, const char *class);

/* To another place: 0 where no head has to move. */
double price_seek_us(const struct price_tunables *t, const char *class);

#endif
