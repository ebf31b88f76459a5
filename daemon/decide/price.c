// SPDX-License-Identifier: GPL-2.0-or-later
/* A table by class; see price.h. */
#include "decide/price.h"

#include <stdbool.h>
#include <string.h>

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_DOUBLE, price_tunables, read_us, 0.0, 0.0, 1e7,
		"what one 4 KiB read takes, in microseconds; 0: by the tier's class"),
	TUNABLE(TUNABLE_DOUBLE, price_tunables, bytes_per_us, 0.0, 0.0, 1e6,
		"bytes a microsecond (MB/s) of long runs; 0: by the tier's class"),
};
TUNABLE_TABLE(price_tunable_table, "price", rows);

static const struct price {
	const char *class;
	double read_us;
	double bytes_per_us;
	bool head;
} prices[] = {
	{ "optane", 6, 2400, false },
	{ "nvme", 80, 3000, false },
	{ "csd", 120, 1500, false },
	{ "qlc", 391, 1000, false },
	{ "net", 2000, 100, false },
	{ "hdd", 6600, 150, true },
	{ NULL, 200, 500, false },
};

static const struct price *price_of(const char *class)
{
	const struct price *p = prices;

	while (p->class && strcmp(p->class, class))
		p++;
	return p;
}

double price_read_us(const struct price_tunables *t, const char *class)
{
	return t->read_us > 0 ? t->read_us : price_of(class)->read_us;
}

double price_bytes_per_us(const struct price_tunables *t, const char *class)
{
	return t->bytes_per_us > 0 ? t->bytes_per_us : price_of(class)->bytes_per_us;
}

double price_seek_us(const struct price_tunables *t, const char *class)
{
	return price_of(class)->head ? price_read_us(t, class) : 0;
}
