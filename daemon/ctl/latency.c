// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Histograms of latency, by tier. See latency.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "latency.h"

static const char *const words[] = { "read", "write" };

/* ---- reading --------------------------------------------------------------------------------- */

static struct json_object *child(struct json_object *o, const char *key)
{
	struct json_object *value = NULL;

	if (o)
		json_object_object_get_ex(o, key, &value);
	return value;
}

/* { "8": 120, "16": 7, "more": 1 } */
static void read_buckets(struct json_object *o, u64 *count)
{
	if (!o)
		return;
	json_object_object_foreach(o, key, value) {
		unsigned long long us = strtoull(key, NULL, 10);
		u32 b = us ? (u32)__builtin_ctzll(us) : LATENCY_BUCKETS - 1;

		if (b < LATENCY_BUCKETS)
			count[b] = json_object_get_uint64(value);
	}
}

void latency_read(struct json_object *status, const char *volume, struct latency *out)
{
	struct json_object *heat = child(ask_volume(status, volume), "heat"), *sense = child(heat, "sense");
	struct json_object *tiers = child(child(heat, "sensed"), "tiers");

	memset(out, 0, sizeof(*out));
	if (sense)
		snprintf(out->sense, sizeof(out->sense), "%s", json_object_get_string(sense));
	for (u32 t = 0; tiers && t < json_object_array_length(tiers) && t < TERRACE_MAX_TIERS; t++) {
		struct json_object *tier = json_object_array_get_idx(tiers, t);

		read_buckets(child(tier, "read_us"), out->count[t][0]);
		read_buckets(child(tier, "write_us"), out->count[t][1]);
		out->nr_tiers = t + 1;
	}
}

void latency_between(const struct latency *a, const struct latency *b, struct latency *out)
{
	bool goes_on = true;

	*out = *b;
	for (u32 i = 0; i < TERRACE_MAX_TIERS * 2 * LATENCY_BUCKETS; i++)
		goes_on &= (&a->count[0][0][0])[i] <= (&b->count[0][0][0])[i];
	for (u32 i = 0; goes_on && i < TERRACE_MAX_TIERS * 2 * LATENCY_BUCKETS; i++)
		(&out->count[0][0][0])[i] -= (&a->count[0][0][0])[i];
}

/* ---- telling --------------------------------------------------------------------------------- */

static u64 sum_of(const u64 *count)
{
	u64 sum = 0;

	for (u32 b = 0; b < LATENCY_BUCKETS; b++)
		sum += count[b];
	return sum;
}

/* The upper end of the bucket in which that share of the requests has ended. */
static u64 quantile_us(const u64 *count, double share)
{
	double left = (double)sum_of(count) * share;
	u32 b = 0;

	while (b < LATENCY_BUCKETS - 1 && (left -= (double)count[b]) > 0)
		b++;
	return 1ull << b;
}

static const char *time_text(u64 us)
{
	static char text[4][24];
	static u32 next;
	char *t = text[++next % 4];

	if (us < 1000)
		snprintf(t, sizeof(text[0]), "%llu us", (unsigned long long)us);
	else if (us < 1000000)
		snprintf(t, sizeof(text[0]), "%.1f ms", (double)us / 1e3);
	else
		snprintf(t, sizeof(text[0]), "%.1f s", (double)us / 1e6);
	return t;
}

static void print_histogram(FILE *out, u32 tier, u32 direction, const u64 *count)
{
	static const char shade[] = " .:-=+*#%@";
	u64 most = 0;

	for (u32 b = 0; b < LATENCY_BUCKETS; b++)
		most = count[b] > most ? count[b] : most;
	fprintf(out, "  tier %u %-5s |", tier, words[direction]);
	for (u32 b = 0; b < LATENCY_BUCKETS; b++)
		fputc(shade[count[b] ? 1 + count[b] * 8 / most : 0], out);
	fprintf(out, "|  half in %s, 99 %% in %s\n", time_text(quantile_us(count, 0.5)),
	       time_text(quantile_us(count, 0.99)));
}

void latency_print(FILE *out, const struct latency *l)
{
	bool any = false;

	for (u32 i = 0; i < l->nr_tiers * 2; i++)
		any |= sum_of(l->count[i / 2][i % 2]) > 0;
	if (!any && *l->sense)
		fprintf(out, "  by tier   no request was counted (terraced senses by %s; bpf counts a sample)\n", l->sense);
	if (!any)
		return;
	fputs("  by tier      |1us      1ms       1s   |  of the drives, one in 16 counted\n", out);
	for (u32 i = 0; i < l->nr_tiers * 2; i++)
		if (sum_of(l->count[i / 2][i % 2]))
			print_histogram(out, i / 2, i % 2, l->count[i / 2][i % 2]);
}

struct json_object *latency_json(const struct latency *l)
{
	struct json_object *list = json_object_new_array();

	for (u32 t = 0; t < l->nr_tiers; t++) {
		struct json_object *tier = json_object_new_object();

		for (u32 d = 0; d < 2; d++) {
			struct json_object *o = json_object_new_object();

			for (u32 b = 0; b < LATENCY_BUCKETS; b++) {
				char name[24];

				snprintf(name, sizeof(name), b < LATENCY_BUCKETS - 1 ? "%llu" : "more", 1ull << b);
				if (l->count[t][d][b])
					json_object_object_add(o, name, json_object_new_uint64(l->count[t][d][b]));
			}
			json_object_object_add(tier, d ? "write_us" : "read_us", o);
		}
		json_object_array_add(list, tier);
	}
	return list;
}
