// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl status and set: what an active volume says of itself. All words
 * come from its folder in /sys/fs/terrace, so that new ones appear in --json
 * without a change here; the text shows those that matter day by day.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "args.h"
#include "ask.h"
#include "dm.h"
#include "names.h"
#include "status_heat.h"
#include "status_work.h"
#include "sysfs.h"
#include "term.h"

#define FOLDER "/sys/fs/terrace/dm-%u"

/* ---- all of it, as JSON --------------------------------------------------------------- */

struct folder {
	char path[256];
	struct json_object *object, *tiers;
};

static struct json_object *value_json(const char *value)
{
	char *end;
	u64 number = strtoull(value, &end, 10);

	if (end != value && !*end && *value != '-')
		return json_object_new_uint64(number);
	return json_object_new_string(value);
}

static void add_entry(void *ctx, const char *name);

static void add_folder(struct folder *outer, const char *name)
{
	struct folder inner = { .object = json_object_new_object() };

	snprintf(inner.path, sizeof(inner.path), "%.180s/%.60s", outer->path, name);
	sysfs_each(inner.path, add_entry, &inner);
	if (outer->tiers && !strncmp(name, "tier", 4)) {
		json_object_array_add(outer->tiers, inner.object);
		return;
	}
	json_object_object_add(outer->object, name, inner.object);
}

static void add_entry(void *ctx, const char *name)
{
	struct folder *folder = ctx;
	char path[512], *value;
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", folder->path, name);
	if (!stat(path, &st) && S_ISDIR(st.st_mode)) {
		add_folder(folder, name);
		return;
	}
	value = sysfs_line("%s", path);
	if (value)
		json_object_object_add(folder->object, name, value_json(value));
	free(value);
}

static struct json_object *volume_json(const struct dm_volume *v)
{
	struct folder top = { .object = json_object_new_object(), .tiers = json_object_new_array() };
	struct json_object *o = top.object;
	struct status_work work;
	char path[DM_NAME_BYTES + 16];

	snprintf(path, sizeof(path), "/dev/mapper/%s", v->name);
	json_object_object_add(o, "device", json_object_new_string(path));
	json_object_object_add(o, "uuid", json_object_new_string(uuid_text(v->uuid)));
	json_object_object_add(o, "bytes", json_object_new_uint64(v->sectors * 512));
	json_object_object_add(o, "open_count", json_object_new_int(v->open_count));
	json_object_object_add(o, "suspended", json_object_new_boolean(v->suspended));
	json_object_object_add(o, "table", json_object_new_string(v->table));
	json_object_object_add(o, "status", json_object_new_string(v->status));
	snprintf(top.path, sizeof(top.path), FOLDER, v->minor);
	sysfs_each(top.path, add_entry, &top);
	json_object_object_add(o, "tier", top.tiers);
	status_work_take(&work, v);
	json_object_object_add(o, "packs", status_work_json(&work));
	return o;
}

/* ---- the text ----------------------------------------------------------------------------- */

static u64 number(const struct dm_volume *v, const char *word)
{
	return sysfs_number(0, FOLDER "/%s", v->minor, word);
}

static u64 tier_number(const struct dm_volume *v, u32 tier, const char *word)
{
	return sysfs_number(0, FOLDER "/tier%u/%s", v->minor, tier, word);
}

static void print_word(const struct dm_volume *v, const char *word, const char *good)
{
	char *value = sysfs_line(FOLDER "/%s", v->minor, word);

	fputs(!value ? "?" : strcmp(value, good) ? term_alarm(value) : value, stdout);
	free(value);
}

static void print_tier(const struct dm_volume *v, u32 t)
{
	char *class = sysfs_line(FOLDER "/tier%u/class", v->minor, t);
	char *kind = sysfs_line(FOLDER "/tier%u/kind", v->minor, t);
	char *missing = sysfs_line(FOLDER "/tier%u/missing", v->minor, t);
	u64 used = tier_number(v, t, "used_blocks"), blocks = tier_number(v, t, "blocks");

	printf("  tier %-2u %-6s %-8s %10s of %10s used (%.1f %%)  %llu reads, %llu writes", t,
	       class ? class : "?", kind ? kind : "?", size_text(used), size_text(blocks),
	       blocks ? 100.0 * used / blocks : 0.0, tier_number(v, t, "reads"),
	       tier_number(v, t, "writes"));
	if (kind && !strcmp(kind, "shelves"))
		printf(", %llu free shelves", tier_number(v, t, "free_shelves"));
	if (missing && !strcmp(missing, "yes"))
		printf(", %s", term_alarm("MISSING: its blocks read as errors"));
	if (sysfs_number(0, FOLDER "/tune/avoid_tiers", v->minor) >> t & 1)
		fputs(", to be left (avoid_tiers)", stdout);
	putchar('\n');
	free(class);
	free(kind);
	free(missing);
}

/* Of the reads that went to a drive, those of the fastest tier. */
static void print_hits(const struct dm_volume *v, u32 tiers)
{
	u64 all = 0, fast = tier_number(v, 0, "reads");

	for (u32 t = 0; t < tiers; t++)
		all += tier_number(v, t, "reads");
	if (all)
		printf("  %.1f %% of %llu reads since activation hit tier 0 (and %llu were of nothing)\n",
		       100.0 * fast / all, all, number(v, "zeros"));
	else
		puts("  no reads since activation: cold");
}

static const char *mirror_meaning(const char *word)
{
	if (!strcmp(word, "sync"))
		return "losing one drive loses the blocks on it, not the volume";
	if (!strcmp(word, "lazy"))
		return "losing the metadata's drive leaves an older copy to salvage from";
	if (!strcmp(word, "degraded"))
		return "a copy is out of step or lost";
	return "losing the metadata's drive loses the volume";
}

/* One look tells no pace; terraced looks all the time. */
static void print_forecast(const struct dm_volume *v, struct json_object *terraced)
{
	char *name = sysfs_line(FOLDER "/name", v->minor);
	struct json_object *o = ask_volume(terraced, name ? name : v->name), *growth, *days, *over;
	double seconds;

	free(name);
	if (!o || !json_object_object_get_ex(o, "growth", &growth) ||
	    !json_object_object_get_ex(growth, "days_until_full", &days) ||
	    !json_object_object_get_ex(growth, "over_seconds", &over)) {
		puts("  forecast: terraced does not drive it; terracectl top --every 60 tells from a minute");
		return;
	}
	seconds = json_object_get_double(over);
	if (days)
		printf("  forecast: full in %s at the pace of the last %s\n",
		       span_text(json_object_get_double(days) * 86400), span_text(seconds));
	else
		printf("  forecast: did not grow in the last %s\n", span_text(seconds));
}

static void print_work(const struct dm_volume *v, struct json_object *terraced)
{
	char *name = sysfs_line(FOLDER "/name", v->minor);
	struct json_object *said = ask_volume(terraced, name ? name : v->name);
	struct status_work work;

	free(name);
	status_work_take(&work, v);
	status_work_print(&work, said);
	status_heat_print(said);
}

static void print_volume(const struct dm_volume *v, struct json_object *terraced)
{
	u32 tiers = number(v, "tiers");
	char *mirror = sysfs_line(FOLDER "/mirror", v->minor);

	printf("volume '%s' (%s): %s on /dev/mapper/%s, mode ", v->name, uuid_text(v->uuid),
	       size_text(v->sectors / TERRACE_BLOCK_SECTORS), v->name);
	if (v->suspended)
		fputs(term_alarm("suspended"), stdout);
	else
		print_word(v, "mode", "write");
	printf("%s\n", v->open_count ? ", in use" : "");
	for (u32 t = 0; t < tiers; t++)
		print_tier(v, t);
	print_hits(v, tiers);
	if (mirror)
		printf("  metadata mirror: %s: %s\n", strcmp(mirror, "degraded") ? mirror :
		       term_alarm(mirror), mirror_meaning(mirror));
	free(mirror);
	printf("  journal %llu of %llu blocks; %llu records\n", number(v, "journal_used"),
	       number(v, "journal_blocks"), number(v, "records"));
	print_work(v, terraced);
	printf("  map in memory %s of %llu MiB; takes NOWAIT: ",
	       size_text(number(v, "memory") / TERRACE_BLOCK_BYTES), number(v, "tune/memory_mb"));
	print_word(v, "nowait", "yes");
	putchar('\n');
	print_forecast(v, terraced);
}

/* ---- the command ------------------------------------------------------------------------------ */

static void show(const struct dm_volume *v, struct json_object *list, struct json_object *terraced)
{
	struct json_object *o = list ? volume_json(v) : NULL, *said = list ? ask_volume(terraced, v->name) : NULL;

	if (said)
		json_object_object_add(o, "terraced", json_object_get(said));
	if (list)
		json_object_array_add(list, o);
	else
		print_volume(v, terraced);
}

static int show_volumes(const char *name, const char *socket_path, bool json)
{
	struct json_object *list = json ? json_object_new_array() : NULL, *terraced;
	struct dm_volume *active;
	u32 nr;
	int r = CTL_OK;

	if (dm_volumes(&active, &nr)) {
		json_object_put(list);
		return CTL_PROBLEM;
	}
	terraced = nr ? ask_daemon(socket_path, "status\n") : NULL;
	if (name) {
		const struct dm_volume *v = dm_find(active, nr, name);

		if (v)
			show(v, list, terraced);
		r = v ? CTL_OK : CTL_PROBLEM;
	}
	for (u32 i = 0; !name && i < nr; i++)
		show(&active[i], list, terraced);
	if (!nr && !name && !json)
		puts("no volume is active");
	if (list)
		ctl_json_print(list);
	json_object_put(terraced);
	free(active);
	return r;
}

static const char status_help[] =
"usage: terracectl status [OPTION]... [NAME]\n"
"\n"
"What an active volume, or each of them, says of itself: mode, room and I/O by\n"
"tier, hit rate, journal, mirror, how well packs compress, what is pending and why\n"
"nothing moves, what is hot, whether the fast tier is warm, what moves wore, days\n"
"until it is full. With --json everything, by the words of\n"
"/sys/fs/terrace, and what terraced says of it.\n"
"\n"
"  --socket PATH  of terraced, default " ASK_SOCKET "\n"
"  --json         as JSON\n"
"  --help         this text\n"
"\n"
"Exit status: 0 done, 1 there is none, 2 wrong usage.\n"
"\n"
"Examples:\n"
"  terracectl status db\n"
"  terracectl status --json | jq '.[].mode'\n";

static int status_run(const struct ctl_command *cmd, int argc, char **argv)
{
	const char *socket_path = ASK_SOCKET;
	bool json = false;
	const struct args_option options[] = {
		{ .name = "socket", .text = &socket_path }, { .name = "json", .flag = &json },
		{ .name = NULL },
	};
	int r = args_parse(cmd, argc, argv, options);

	if (r != ARGS_GO_ON)
		return r;
	if (argc - optind > 1)
		return ctl_usage(cmd, "'%s': one volume at a time", argv[optind + 1]);
	return show_volumes(argv[optind], socket_path, json);
}

const struct ctl_command ctl_status_command = {
	.name = "status",
	.summary = "what an active volume says of itself",
	.help = status_help,
	.run = status_run,
};
