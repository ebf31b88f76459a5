/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bringing a volume up.
 */
#ifndef TERRACE_CTL_ACTIVATE_H
#define TERRACE_CTL_ACTIVATE_H

#include "find.h"

struct activate {
	bool read_only, degraded, force;
	bool automatic;			/* as at boot */
	bool json;			/* the result as JSON */
	const char *name;		/* of the device-mapper device; NULL: the volume's */
	const char *option[64];		/* of the table line */
	u32 nr_options;
};

/* Checks quickly, makes the table, creates the device. CTL_OK or CTL_PROBLEM
 * after a message.
 */
int activate_volume(struct found_volume *v, const struct activate *how);

/*
 * CTL_OK, also when it is not active; CTL_PROBLEM after a message. @force: also if what was last written to
 * it is lost with that.
 */
int deactivate_volume(const char *name, bool force);

#endif
