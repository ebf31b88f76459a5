// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Heat, warmth and wear of a volume that terraced drives. See status_heat.h.
 */
#include <stdio.h>

#include "names.h"
#include "status_heat.h"

#define WARM	0.9	/* of what a cache would hit: the policy has found most of what is hot */

static double real(struct json_object *o, const char *name)
{
	struct json_object *value;

	return json_object_object_get_ex(o, name, &value) ? json_object_get_double(value) : 0;
}

static const char *word(struct json_object *o, const char *name)
{
	struct json_object *value;

	return json_object_object_get_ex(o, name, &value) ? json_object_get_string(value) : "?";
}

static struct json_object *part(struct json_object *o, const char *name)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(o, name, &value);
	return value;
}

static const char *bytes_text(double bytes)
{
	return size_text((u64)(bytes / TERRACE_BLOCK_BYTES));
}

/* Of the reads, as many as a cache of the fast tier's size would have kept from the rest? */
static void print_warmth(struct json_object *terraced, struct json_object *heat)
{
	double hits = real(terraced, "fast_read_rate");
	double cache = real(part(heat, "lru_hit_rate_if_fast_were"), "now");

	if (cache <= 0)
		puts("; cold: too few accesses seen to tell");
	else
		printf("; %s: %.1f %% of reads hit the fast tiers, of a cache (LRU) as large %.1f %% would\n",
		       hits >= WARM * cache ? "warm" : "warming up", 100 * hits, 100 * cache);
}

static void print_heat(struct json_object *terraced)
{
	struct json_object *heat = part(terraced, "heat");

	printf("  heat: %s, sensed by %s", word(heat, "kind"), word(heat, "sense"));
	if (part(heat, "hot_blocks")) {
		printf(": %s hot of ", size_text((u64)real(heat, "hot_blocks")));
		printf("%s tracked", size_text((u64)real(heat, "tracked_blocks")));
	}
	print_warmth(terraced, heat);
}

static void print_tier(size_t t, struct json_object *tier)
{
	printf("%s tier %zu: moves wrote %s", t ? ";" : "", t, bytes_text(real(tier, "written_by_moves_bytes")));
	if (part(tier, "drive_percent_used")) {
		printf(", its drive %s in its life, ", bytes_text(real(tier, "drive_written_bytes")));
		printf("%.0f %% worn", real(tier, "drive_percent_used"));
	}
}

static void print_wear(struct json_object *tiers)
{
	if (!json_object_is_type(tiers, json_type_array))
		return;
	fputs("  wear:", stdout);
	for (size_t t = 0; t < json_object_array_length(tiers); t++)
		print_tier(t, json_object_array_get_idx(tiers, t));
	putchar('\n');
}

void status_heat_print(struct json_object *terraced)
{
	if (!terraced) {
		puts("  heat: not known, terraced does not drive it");
		return;
	}
	print_heat(terraced);
	print_wear(part(terraced, "tiers"));
}
