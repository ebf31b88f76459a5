/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A volume on drive models that lose their power: see cuts.c. */
#ifndef ORACLE_CUTS_H
#define ORACLE_CUTS_H

#include "oracle.h"

struct cut_options {
	const char *volume, *table;	/* device-mapper name and table line */
	const char *drives;		/* of the drive models, the fastest first: a,b */
	const char *check;		/* shell command that judges the devices of a closed volume; NULL: none */
	const char *beside;		/* shell command that runs beside the work, with a $SEED of its own, until the power is off; NULL: none */
	uint64_t cuts, ops;
	bool suspend;			/* the pest suspends, too */
};

int cut_power(struct cut_options *c, struct options *o, struct ledger *l);

#endif
