// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl which: where the blocks of a file or of a volume are right now.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "control.h"
#include "runs.h"

struct which {
	int fd;
	struct json_object *runs;	/* NULL: as text */
	u64 count[NR_BLOCK_WHERE];
	struct terrace_region region;	/* the one asked for last */
	bool have_region;
	/* the run that is being put together */
	u64 first, nr, file_block;
	enum block_where where;
	bool of_file;
};

/* ---- one block ------------------------------------------------------------------------- */

static int load_region(struct which *w, u64 number)
{
	int r;

	if (w->have_region && w->region.region == number)
		return 0;
	r = control_regions(w->fd, number, 1, &w->region);
	if (!r && w->region.status) {
		r = (int)w->region.status;
		ctl_error("region %llu (blocks from %llu on): its map cannot be read: %s",
			  (unsigned long long)number, (unsigned long long)number * RUNS_REGION_BLOCKS,
			  strerror(-r));
	}
	w->have_region = !r;
	return r;
}

/* ---- runs of blocks that are in the same kind of place --------------------------------- */

static void end_run(struct which *w)
{
	struct json_object *o;

	if (!w->nr)
		return;
	w->count[w->where] += w->nr;
	if (!w->runs) {
		if (w->of_file)
			printf("  at %-12llu", (unsigned long long)w->file_block * TERRACE_BLOCK_BYTES);
		printf("  blocks %llu-%llu: %s\n", (unsigned long long)w->first,
		       (unsigned long long)(w->first + w->nr - 1), block_where_text[w->where]);
	} else {
		o = json_object_new_object();
		if (w->of_file)
			json_object_object_add(o, "file_block", json_object_new_uint64(w->file_block));
		json_object_object_add(o, "block", json_object_new_uint64(w->first));
		json_object_object_add(o, "blocks", json_object_new_uint64(w->nr));
		json_object_object_add(o, "where", json_object_new_string(block_where_word[w->where]));
		json_object_array_add(w->runs, o);
	}
	w->nr = 0;
}

/* Blocks [first, first + nr) of the volume; of a file, those from @file_block on. */
static int show_range(struct which *w, u64 first, u64 nr, u64 file_block)
{
	for (u64 k = 0; k < nr; k++) {
		u64 block = first + k;
		enum block_where where;
		int r = load_region(w, block / RUNS_REGION_BLOCKS);

		if (r)
			return r;
		where = block_where(&w->region, block % RUNS_REGION_BLOCKS);
		if (w->nr && (w->where != where || w->first + w->nr != block ||
			      w->file_block + w->nr != file_block + k))
			end_run(w);
		if (!w->nr) {
			w->first = block;
			w->file_block = file_block + k;
			w->where = where;
		}
		w->nr++;
	}
	return 0;
}

/* ---- the command ------------------------------------------------------------------------ */

static void print_sums(struct which *w, const char *what)
{
	printf("%s:", what);
	for (u32 k = 0, n = 0; k < NR_BLOCK_WHERE; k++)
		if (w->count[k])
			printf("%s %llu %s", n++ ? "," : "", (unsigned long long)w->count[k], block_where_text[k]);
	putchar('\n');
}

static int show_runs(struct which *w, const struct runs *runs)
{
	struct terrace_hello hello;
	int r = 0;

	w->fd = control_open(&runs->volume, &hello);
	if (w->fd < 0)
		return w->fd;
	w->of_file = runs->of_files;
	for (u32 i = 0; i < runs->nr && !r; i++)
		r = show_range(w, runs->run[i].first, runs->run[i].nr, runs->run[i].file_block);
	end_run(w);
	close(w->fd);
	return r;
}

static const char which_help[] =
"usage: terracectl which [--json] FILE|FOLDER\n"
"       terracectl which [--json] NAME [BLOCK[-LAST]]\n"
"\n"
"Where the blocks of a file, or of a volume (all of them, or some), are right\n"
"now: on a fast tier, packed, both (the fast copy can be dropped without I/O),\n"
"on a shelf as they are, or nowhere. A file, or a folder with all files in it,\n"
"is a path with a '/' in it; its filesystem must stand directly on the volume.\n"
"Blocks have 4 KiB.\n"
"\n"
"  --json    as JSON\n"
"  --help    this text\n"
"\n"
"Exit status: 0 done, 1 not on a volume or cannot be told, 2 wrong usage.\n"
"\n"
"Examples:\n"
"  terracectl which /var/lib/mysql/ibdata1\n"
"  terracectl which db 0-1023\n";

static int which_run(const struct ctl_command *cmd, int argc, char **argv)
{
	struct which w = { 0 };
	struct runs runs;
	bool json = false;
	int r = args_plain(cmd, argc, argv, &json);

	if (r != ARGS_GO_ON)
		return r;
	r = runs_check_words(cmd, argc - optind, argv + optind);
	if (r)
		return r;
	if (json)
		w.runs = json_object_new_array();
	r = runs_of(&runs, argv[optind], argv[optind + 1]);
	if (!r)
		r = show_runs(&w, &runs);
	runs_free(&runs);
	if (w.runs && !r)
		ctl_json_print(w.runs);
	else if (w.runs)
		json_object_put(w.runs);
	else if (!r)
		print_sums(&w, argv[optind]);
	return r ? CTL_PROBLEM : CTL_OK;
}

const struct ctl_command ctl_which_command = {
	.name = "which",
	.summary = "where the blocks of a file or a volume are",
	.help = which_help,
	.run = which_run,
};
