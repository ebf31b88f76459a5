/* SPDX-License-Identifier: GPL-2.0 */
#ifndef TERRACE_LOOSE_H
#define TERRACE_LOOSE_H

#include <linux/bio.h>

/* In front of the tr_io of the reader's bio, where others have a tr_cold. */
struct tr_loose {
	struct bio *to;			/* the reader's */
	struct tr_cached *entry;
	struct bio_vec vec;
	struct bio bio;
};

#endif
