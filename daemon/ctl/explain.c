// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl explain: why a block is where it is. Its place and its region's
 * state come from the kernel, decisions and scores from terraced.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "args.h"
#include "ask.h"
#include "names.h"
#include "orders.h"
#include "runs.h"
#include "sysfs.h"
#include "tiers.h"

struct story {
	u64 block;
	u32 bit;
	const struct dm_volume *volume;
	struct terrace_region region;
	struct terrace_summary summary;
	bool have_summary, asked;
	u64 age_s;
	struct json_object *decisions;	/* of terraced, all; NULL: it does not run */
	bool drives;			/* terraced drives this volume */
	const char *idle;		/* why nothing moves, or NULL */
	struct json_object *status;
};

/* ---- gathering ----------------------------------------------------------------------------- */

static int next_order(void *ctx, struct terrace_move *move)
{
	const struct story *s = ctx;
	u64 region = s->block / RUNS_REGION_BLOCKS;

	if (s->asked)
		return 0;
	((struct story *)ctx)->asked = true;
	*move = (struct terrace_move){
		.region = region, .mode = TERRACE_MOVE_RAISE, .flags = TERRACE_MOVE_ADVISE,
	};
	return 1;
}

static void order_ended(void *ctx, const struct terrace_result *result)
{
	(void)ctx;
	(void)result;
}

/* An order, even one that is to do nothing, brings its region's summary up to date. */
static void read_summary(struct story *s, struct orders *orders)
{
	u64 bytes = orders->hello.summary_bytes;
	const struct terrace_summary *all;

	if (!(orders->hello.features & TERRACE_FEATURE_SUMMARY) || !bytes)
		return;
	all = mmap(NULL, bytes, PROT_READ, MAP_SHARED, orders->fd, TERRACE_MAP_SUMMARY);
	if (all == MAP_FAILED)
		return;
	if (!orders_run(orders, next_order, order_ended, s)) {
		s->summary = all[s->block / RUNS_REGION_BLOCKS];
		s->have_summary = true;
	}
	munmap((void *)all, bytes);
}

static int ask_kernel(struct story *s)
{
	struct orders orders;
	int r = orders_open(&orders, s->volume);

	if (r)
		return r;
	r = control_regions(orders.fd, s->block / RUNS_REGION_BLOCKS, 1, &s->region);
	if (!r && !s->region.status)
		read_summary(s, &orders);
	orders_close(&orders);
	s->age_s = sysfs_number(60, VOLUME_FOLDER "/tune/age_s", s->volume->minor);
	return r;
}

static const char *text_of(struct json_object *o, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(o, key, &value) ? json_object_get_string(value) : NULL;
}

static void find_driver(struct story *s, const char *name)
{
	struct json_object *o = ask_volume(s->status, name);

	s->drives = o;
	s->idle = o ? text_of(o, "nothing_moves_because") : NULL;
}

static void ask_terraced(struct story *s, const char *socket_path)
{
	char *name = sysfs_line(VOLUME_FOLDER "/name", s->volume->minor);
	char *question = ctl_text("explain %s %llu\n", name ? name : s->volume->name,
				  (unsigned long long)s->block);

	s->status = ask_daemon(socket_path, "status\n");
	if (s->status)
		s->decisions = ask_daemon(socket_path, question);
	find_driver(s, name ? name : s->volume->name);
	free(question);
	free(name);
}

/* The decisions about the block's region, newest first; an array to be put. */
static struct json_object *of_region(const struct story *s)
{
	struct json_object *mine = json_object_new_array(), *list, *number;

	if (!s->decisions || !json_object_object_get_ex(s->decisions, "decisions", &list))
		return mine;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *o = json_object_array_get_idx(list, i);

		if (json_object_object_get_ex(o, "region", &number) &&
		    json_object_get_uint64(number) == s->region.region)
			json_object_array_add(mine, json_object_get(o));
	}
	return mine;
}

/* ---- telling --------------------------------------------------------------------------------- */

static const char *codec_name(u8 codec)
{
	static const char *const names[] = { "none", "lz4", "zstd" };

	return codec < 3 ? names[codec] : "not in memory";
}

static u32 count(const __u64 *a, const __u64 *b)
{
	u32 n = 0;

	for (u32 w = 0; w < TERRACE_REGION_WORDS; w++)
		n += (u32)__builtin_popcountll(a[w] & b[w]);
	return n;
}

static void tell_region(const struct story *s)
{
	const struct terrace_region *r = &s->region;
	const struct terrace_summary *sum = &s->summary;

	printf("  region %llu, blocks %llu-%llu: %u fast, %u packed (%u of them fast as well), %u on shelves as they are\n",
	       (unsigned long long)r->region, (unsigned long long)r->region * RUNS_REGION_BLOCKS,
	       (unsigned long long)(r->region + 1) * RUNS_REGION_BLOCKS - 1, count(r->present, r->fast),
	       count(r->packed, r->packed), count(r->present, r->packed),
	       count(r->present, r->present) - count(r->present, r->fast));
	for (u32 k = 0; k < r->nr_packs && k < 8; k++)
		printf("  pack %llu: codec %s, %u live blocks in %u blocks of a shelf\n",
		       (unsigned long long)r->pack_id[k], codec_name(r->pack_codec[k]), r->pack_live[k],
		       r->pack_blocks[k]);
	if (!s->have_summary)
		return;
	if (sum->age == 255)
		printf("  heat of the region, for the kernel: not used for %llu s or more\n",
		       (unsigned long long)(255 * s->age_s));
	else
		printf("  heat of the region, for the kernel: last used within %llu s\n",
		       (unsigned long long)((sum->age + 1) * s->age_s));
	if (sum->flags & TERRACE_SUMMARY_MOVING)
		puts("  an order moves it right now");
	if (sum->flags & TERRACE_SUMMARY_PINNED)
		puts("  pins lie over blocks of it");
}

/* What terraced knows of this one block; NULL: nothing. */
static struct json_object *heat_of(const struct story *s)
{
	struct json_object *heat = NULL;

	if (s->decisions)
		json_object_object_get_ex(s->decisions, "heat", &heat);
	return heat;
}

static void tell_heat(const struct story *s)
{
	static const char *const levels[] = { "coldest", "cool", "warm", "hottest" };
	struct json_object *heat = heat_of(s), *hot, *level, *nr;
	int at;

	if (!heat) {
		if (s->drives)
			puts("  heat of the block: terraced senses no single blocks here");
		return;
	}
	if (!json_object_object_get_ex(heat, "hot", &hot) || !json_object_object_get_ex(heat, "level", &level) ||
	    !json_object_object_get_ex(heat, "hot_blocks_of_region", &nr))
		return;
	at = json_object_get_int(level);
	printf("  heat of the block, for terraced (%s, sensed by %s): %s, %s; %llu blocks of the region are hot\n",
	       text_of(heat, "kind"), text_of(heat, "sense"), json_object_get_boolean(hot) ? "hot" : "not hot",
	       at < 0 || at > 3 ? "not accessed lately" : levels[at],
	       (unsigned long long)json_object_get_uint64(nr));
}

static void tell_decisions(const struct story *s)
{
	struct json_object *mine = of_region(s);
	size_t nr = json_object_array_length(mine);

	if (!s->status)
		puts("  terraced does not run, or its socket may not be read: the kernel's janitor makes room by age");
	else if (!s->drives)
		puts("  terraced runs, but does not drive this volume");
	else if (!nr)
		puts("  terraced: none of its last decisions was about this region");
	for (size_t i = 0; i < nr; i++)
		printf("  terraced: %s\n", text_of(json_object_array_get_idx(mine, i), "text"));
	if (s->idle)
		printf("  terraced moves nothing now: %s\n", s->idle);
	json_object_put(mine);
}

static struct json_object *story_json(const struct story *s)
{
	struct json_object *o = json_object_new_object(), *packs = json_object_new_array();
	const struct terrace_region *r = &s->region;

	json_object_object_add(o, "volume", json_object_new_string(s->volume->name));
	json_object_object_add(o, "block", json_object_new_uint64(s->block));
	json_object_object_add(o, "where", json_object_new_string(block_where_word[block_where(r, s->bit)]));
	json_object_object_add(o, "region", json_object_new_uint64(r->region));
	for (u32 k = 0; k < r->nr_packs && k < 8; k++) {
		struct json_object *p = json_object_new_object();

		json_object_object_add(p, "id", json_object_new_uint64(r->pack_id[k]));
		json_object_object_add(p, "codec", json_object_new_string(codec_name(r->pack_codec[k])));
		json_object_object_add(p, "live_blocks", json_object_new_uint64(r->pack_live[k]));
		json_object_object_add(p, "shelf_blocks", json_object_new_uint64(r->pack_blocks[k]));
		json_object_array_add(packs, p);
	}
	json_object_object_add(o, "packs", packs);
	if (s->have_summary) {
		json_object_object_add(o, "age_ticks", json_object_new_uint64(s->summary.age));
		json_object_object_add(o, "pinned", json_object_new_boolean(s->summary.flags & TERRACE_SUMMARY_PINNED));
		json_object_object_add(o, "moving", json_object_new_boolean(s->summary.flags & TERRACE_SUMMARY_MOVING));
	}
	json_object_object_add(o, "heat", json_object_get(heat_of(s)));
	json_object_object_add(o, "driven_by_terraced", json_object_new_boolean(s->drives));
	json_object_object_add(o, "nothing_moves_because", s->idle ? json_object_new_string(s->idle) : NULL);
	json_object_object_add(o, "decisions", of_region(s));
	return o;
}

static int tell(struct story *s, bool json)
{
	if (s->region.status) {
		ctl_error("region %llu: its map cannot be read: %s: its blocks read as errors",
			  (unsigned long long)s->region.region, strerror(-(int)s->region.status));
		return CTL_PROBLEM;
	}
	if (json) {
		ctl_json_print(story_json(s));
		return CTL_OK;
	}
	printf("block %llu of volume '%s': %s\n", (unsigned long long)s->block, s->volume->name,
	       block_where_text[block_where(&s->region, s->bit)]);
	tell_region(s);
	tell_heat(s);
	tell_decisions(s);
	return CTL_OK;
}

/* ---- the command ------------------------------------------------------------------------------- */

static const char explain_help[] =
"usage: terracectl explain [OPTION]... NAME BLOCK\n"
"       terracectl explain [OPTION]... FILE [OFFSET]\n"
"\n"
"Why is this block where it is? Its place; its region's packs, heat and pins; and\n"
"what terraced, when it runs, has decided about the region lately, with the\n"
"score. OFFSET is in bytes (or like 4K, 1G); default: the file's first block.\n"
"\n"
"  --socket PATH  of terraced, default " ASK_SOCKET "\n"
"  --json         as JSON\n"
"  --help         this text\n"
"\n"
"Exit status: 0 done, 1 cannot be told, 2 wrong usage.\n"
"\n"
"Examples:\n"
"  terracectl explain db 34816\n"
"  terracectl explain /var/lib/mysql/ibdata1 16M\n";

static int explain(struct runs *runs, u64 file_block, const char *socket_path, bool json)
{
	struct story s = { .volume = &runs->volume, .block = ~0ull };
	int r;

	for (u32 i = 0; i < runs->nr; i++)
		if (file_block >= runs->run[i].file_block && file_block - runs->run[i].file_block < runs->run[i].nr)
			s.block = runs->run[i].first + file_block - runs->run[i].file_block;
	if (s.block == ~0ull) {
		ctl_error("the file has no block there: it reads as zeros without the volume");
		return CTL_PROBLEM;
	}
	s.bit = s.block % RUNS_REGION_BLOCKS;
	r = ask_kernel(&s);
	if (r)
		return CTL_PROBLEM;
	ask_terraced(&s, socket_path);
	r = tell(&s, json);
	json_object_put(s.decisions);
	json_object_put(s.status);
	return r;
}

/* Bytes, rounded down to the block. */
static int parse_offset(const char *text, u64 *block)
{
	u64 first, last;
	int r;

	if (!runs_parse_range(text, &first, &last) && first == last) {
		*block = first / TERRACE_BLOCK_BYTES;
		return 0;
	}
	r = size_parse(text, block);
	return r;
}

static int explain_words(const struct ctl_command *cmd, char **word, int nr, const char *socket_path,
			 bool json)
{
	bool file = nr && strchr(word[0], '/');
	u64 block = 0, last;
	struct runs runs;
	int r;

	if (nr != 2 && !(file && nr == 1))
		return ctl_usage(cmd, "name a volume and a block of it, or a file and an offset in it");
	if (file && nr == 2 && parse_offset(word[1], &block))
		return ctl_usage(cmd, "'%s' is no offset in a file: like 16384 or 16M", word[1]);
	if (!file && (runs_parse_range(word[1], &block, &last) || block != last))
		return ctl_usage(cmd, "'%s' is no block: a number", word[1]);
	r = runs_of(&runs, word[0], file ? NULL : word[1]) ? CTL_PROBLEM : CTL_OK;
	if (!r)
		r = explain(&runs, file ? block : 0, socket_path, json);
	runs_free(&runs);
	return r;
}

static int explain_run(const struct ctl_command *cmd, int argc, char **argv)
{
	const char *socket_path = ASK_SOCKET;
	bool json = false;
	const struct args_option options[] = {
		{ .name = "socket", .text = &socket_path }, { .name = "json", .flag = &json },
		{ .name = NULL },
	};
	int r = args_parse(cmd, argc, argv, options);

	return r != ARGS_GO_ON ? r :
	       explain_words(cmd, argv + optind, argc - optind, socket_path, json);
}

const struct ctl_command ctl_explain_command = {
	.name = "explain",
	.summary = "why a block is where it is",
	.help = explain_help,
	.run = explain_run,
};
