/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ORACLE_JUDGE_H
#define ORACLE_JUDGE_H

#include "ledger.h"

/* The answer of a checked block: NULL, or what is wrong, in words. */
const char *judge(const struct ledger *l, uint32_t block, const void *data, bool crash, uint64_t began, uint64_t *value);

/* Likewise, where any value will do that was ever written to this block, or zeros. */
const char *judge_older(const struct ledger *l, uint32_t block, const void *data, uint64_t *value);

#endif
