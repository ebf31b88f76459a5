// SPDX-License-Identifier: GPL-2.0-or-later
/* May this block hold what was found in it? And if not, what is wrong? */
#include <stdio.h>
#include <string.h>

#include "judge.h"
#include "stamp.h"

static void list_allowed(const struct ledger *l, uint32_t block, bool crash, char *text, size_t size)
{
	uint64_t values[6];
	char name[40];
	uint32_t nr, k;
	size_t used;

	nr = crash ? ledger_survivors(l, block, values, 6) : ledger_now(l, block, values, 6);
	used = snprintf(text, size, "allowed:");
	for (k = 0; k < nr && k < 6 && used < size; k++)
		used += snprintf(text + used, size - used, " %s", stamp_name(values[k], name));
	if (nr > 6 && used < size)
		snprintf(text + used, size - used, " and %u more", nr - 6);
}

static const char *what_is_wrong(const struct stamp_found *found)
{
	switch (found->verdict) {
	case STAMP_ZEROS:
		return "lost: zeros";
	case STAMP_WHOLE:
		return "stale or lost: an older value";
	case STAMP_FOREIGN:
		return "foreign: another block's data";
	case STAMP_TORN:
		return "torn: a mix of values";
	case STAMP_ALIEN:
		return "alien: data of an earlier test";
	default:
		return "garbage";
	}
}

const char *judge(const struct ledger *l, uint32_t block, const void *data, bool crash, uint64_t began, uint64_t *value)
{
	static _Thread_local char text[640];
	struct stamp_found found;
	char may[256], name[40];
	bool fine;

	stamp_read(data, ledger_salt(l), block, &found);
	*value = found.version;
	if (found.verdict == STAMP_WHOLE || found.verdict == STAMP_ZEROS) {
		fine = crash ? ledger_may_survive(l, block, found.version) : ledger_may_read(l, block, found.version, began);
		if (fine)
			return NULL;
	}
	list_allowed(l, block, crash, may, sizeof(may));
	snprintf(text, sizeof(text), "block %u (region %u + %u): %s: found %s; %s", block, block / 1024, block % 1024,
		 what_is_wrong(&found), found.verdict == STAMP_WHOLE ? stamp_name(found.version, name) : found.text, may);
	return text;
}

/* Who but a test stamps? What has its stamp for this block was on its way there. */
const char *judge_older(const struct ledger *l, uint32_t block, const void *data, uint64_t *value)
{
	static char text[320];
	struct stamp_found found;

	stamp_read(data, ledger_salt(l), block, &found);
	*value = found.version;
	if (found.verdict == STAMP_WHOLE || found.verdict == STAMP_ZEROS)
		return NULL;
	snprintf(text, sizeof(text), "block %u (region %u + %u): %s: found %s; allowed: any value of this block", block, block / 1024, block % 1024,
		 what_is_wrong(&found), found.text);
	return text;
}
