/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parameters of a terrace table line:
 *   META|- TIERS {DEVICE CLASS KIND}... [OPTIONS WORD...]
 */
#ifndef TERRACE_CTL_PARAMS_H
#define TERRACE_CTL_PARAMS_H

#include <sys/types.h>

#include "ctl.h"

u32 params_nr_tiers(const char *params);	/* 0: it is none */

/* With one tier more, behind the others; to be freed. NULL after a message. */
char *params_add_tier(const char *params, dev_t dev, u32 class, u32 kind);

/* With tier @tier (or the metadata device, TERRACE_META_DEVICE) on @dev; the same. */
char *params_with_device(const char *params, u32 tier, dev_t dev);

/* "253:2" of that tier, to be freed; NULL: there is none. */
char *params_device(const char *params, u32 tier);

#endif
