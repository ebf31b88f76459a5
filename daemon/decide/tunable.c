// SPDX-License-Identifier: GPL-2.0-or-later
/* Reading, writing and checking described constants; see tunable.h. */
#include "decide/tunable.h"

#include <errno.h>
#include <string.h>

static void put(const struct tunable *row, void *values, double value)
{
	char *at = (char *)values + row->offset;

	switch (row->type) {
	case TUNABLE_U32:
		*(uint32_t *)at = (uint32_t)value;
		break;
	case TUNABLE_U64:
		*(uint64_t *)at = (uint64_t)value;
		break;
	case TUNABLE_DOUBLE:
		*(double *)at = value;
		break;
	}
}

double tunable_get(const struct tunable *row, const void *values)
{
	const char *at = (const char *)values + row->offset;

	switch (row->type) {
	case TUNABLE_U32:
		return *(const uint32_t *)at;
	case TUNABLE_U64:
		return (double)*(const uint64_t *)at;
	case TUNABLE_DOUBLE:
		return *(const double *)at;
	}
	return 0;
}

/* Written so that NaN is out of range too. */
static int in_range(const struct tunable *row, double value)
{
	if (!(value >= row->min && value <= row->max))
		return 0;
	return row->type == TUNABLE_DOUBLE || value == (double)(uint64_t)value;
}

void tunable_defaults(const struct tunable_table *table, void *values)
{
	for (size_t i = 0; i < table->count; i++)
		put(&table->rows[i], values, table->rows[i].initial);
}

int tunable_set(const struct tunable_table *table, void *values,
		const char *name, double value)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct tunable *row = &table->rows[i];

		if (strcmp(row->name, name))
			continue;
		if (!in_range(row, value))
			return -ERANGE;
		put(row, values, value);
		return 0;
	}
	return -ENOENT;
}

int tunable_check(const struct tunable_table *table, const void *values,
		  const struct tunable **bad)
{
	for (size_t i = 0; i < table->count; i++) {
		if (in_range(&table->rows[i], tunable_get(&table->rows[i], values)))
			continue;
		if (bad)
			*bad = &table->rows[i];
		return -ERANGE;
	}
	return 0;
}
