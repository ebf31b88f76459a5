/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What status tells beyond counters: how well packs compress, what is still to be
 * done, and why nothing is.
 */
#ifndef TERRACE_CTL_STATUS_WORK_H
#define TERRACE_CTL_STATUS_WORK_H

#include "dm.h"

struct status_work {
	u64 looked_at, regions;		/* of so many: all, or a sample of a large volume */
	u64 packed, run_blocks;		/* blocks live in packs; what their runs take */
	u64 dirty_regions, not_durable;
};

void status_work_take(struct status_work *w, const struct dm_volume *v);

/* @terraced: what it says of the volume; NULL: it does not drive it. */
void status_work_print(const struct status_work *w, struct json_object *terraced);
struct json_object *status_work_json(const struct status_work *w);

#endif
