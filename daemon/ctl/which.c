// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl which: where the blocks of a file or of a volume are right now.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "control.h"
#include "names.h"

#define REGION_BLOCKS	(TERRACE_REGION_WORDS * 64)
#define EXTENTS		64	/* asked for at a time */

enum where { NOWHERE, FAST, BOTH, PACKED, LOOSE, NR_WHERE };

static const char *const where_word[] = { "nowhere", "fast", "fast+packed", "packed", "shelf" };
static const char *const where_text[] = {
	"nowhere (reads as zeros)", "fast", "fast, with its packed original", "packed", "on a shelf as it is",
};

struct which {
	int fd;
	u64 volume_blocks;
	struct json_object *runs;	/* NULL: as text */
	u64 count[NR_WHERE];
	struct terrace_region region;	/* the one asked for last */
	bool have_region;
	/* the run that is being put together */
	u64 first, nr, file_block;
	enum where where;
	bool of_file;
};

/* ---- one block ------------------------------------------------------------------------- */

static bool has(const __u64 *map, u32 bit)
{
	return map[bit / 64] >> bit % 64 & 1;
}

static enum where where_of(const struct terrace_region *region, u32 bit)
{
	if (has(region->present, bit)) {
		if (!has(region->fast, bit))
			return LOOSE;
		return has(region->packed, bit) ? BOTH : FAST;
	}
	return has(region->packed, bit) ? PACKED : NOWHERE;
}

static int load_region(struct which *w, u64 number)
{
	int r;

	if (w->have_region && w->region.region == number)
		return 0;
	r = control_regions(w->fd, number, 1, &w->region);
	if (!r && w->region.status) {
		r = (int)w->region.status;
		ctl_error("region %llu (blocks from %llu on): its map cannot be read: %s",
			  (unsigned long long)number, (unsigned long long)number * REGION_BLOCKS,
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
		       (unsigned long long)(w->first + w->nr - 1), where_text[w->where]);
	} else {
		o = json_object_new_object();
		if (w->of_file)
			json_object_object_add(o, "file_block", json_object_new_uint64(w->file_block));
		json_object_object_add(o, "block", json_object_new_uint64(w->first));
		json_object_object_add(o, "blocks", json_object_new_uint64(w->nr));
		json_object_object_add(o, "where", json_object_new_string(where_word[w->where]));
		json_object_array_add(w->runs, o);
	}
	w->nr = 0;
}

/* Blocks [first, first + nr) of the volume; of a file, those from @file_block on. */
static int show_range(struct which *w, u64 first, u64 nr, u64 file_block)
{
	for (u64 k = 0; k < nr; k++) {
		u64 block = first + k;
		enum where where;
		int r = load_region(w, block / REGION_BLOCKS);

		if (r)
			return r;
		where = where_of(&w->region, block % REGION_BLOCKS);
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

/* ---- files ------------------------------------------------------------------------------ */

static int show_extents(struct which *w, int file, const char *name)
{
	struct fiemap *map = ctl_alloc(sizeof(*map) + EXTENTS * sizeof(struct fiemap_extent));
	bool last = false;
	u64 at = 0;
	int r = 0;

	while (!last && !r) {
		memset(map, 0, sizeof(*map));
		map->fm_start = at;
		map->fm_length = FIEMAP_MAX_OFFSET - at;
		map->fm_flags = FIEMAP_FLAG_SYNC;
		map->fm_extent_count = EXTENTS;
		if (ioctl(file, FS_IOC_FIEMAP, map)) {
			ctl_error("%s: its filesystem does not tell where files are: %s", name, strerror(errno));
			r = -errno;
			break;
		}
		last = !map->fm_mapped_extents;
		for (u32 i = 0; i < map->fm_mapped_extents && !r; i++) {
			const struct fiemap_extent *e = &map->fm_extents[i];

			at = e->fe_logical + e->fe_length;
			last = e->fe_flags & FIEMAP_EXTENT_LAST;
			if (e->fe_flags & (FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DATA_INLINE |
					   FIEMAP_EXTENT_NOT_ALIGNED))
				continue;
			r = show_range(w, e->fe_physical / TERRACE_BLOCK_BYTES,
				       (e->fe_length + TERRACE_BLOCK_BYTES - 1) / TERRACE_BLOCK_BYTES,
				       e->fe_logical / TERRACE_BLOCK_BYTES);
		}
	}
	end_run(w);
	free(map);
	return r;
}

static const struct dm_volume *volume_of_file(const struct dm_volume *list, u32 nr, int file,
					      const char *name)
{
	struct stat st;

	if (fstat(file, &st)) {
		ctl_error("%s: %s", name, strerror(errno));
		return NULL;
	}
	if (!S_ISREG(st.st_mode)) {
		ctl_error("%s is not a file", name);
		return NULL;
	}
	for (u32 i = 0; i < nr; i++)
		if (list[i].major == major(st.st_dev) && list[i].minor == minor(st.st_dev))
			return &list[i];
	ctl_error("%s is not on an active volume: its filesystem is on device %u:%u", name,
		  major(st.st_dev), minor(st.st_dev));
	return NULL;
}

/* ---- the command ------------------------------------------------------------------------ */

static int start(struct which *w, const struct dm_volume *v)
{
	struct terrace_hello hello;

	w->fd = control_open(v, &hello);
	if (w->fd < 0)
		return w->fd;
	w->volume_blocks = hello.virtual_blocks;
	return 0;
}

static void print_sums(struct which *w, const char *what)
{
	printf("%s:", what);
	for (u32 k = 0, n = 0; k < NR_WHERE; k++)
		if (w->count[k])
			printf("%s %llu %s", n++ ? "," : "", (unsigned long long)w->count[k], where_text[k]);
	putchar('\n');
}

static int show_file(struct which *w, const struct dm_volume *list, u32 nr, const char *name)
{
	int file = open(name, O_RDONLY | O_CLOEXEC);
	const struct dm_volume *v;
	int r;

	if (file < 0) {
		ctl_error("%s: %s", name, strerror(errno));
		return -errno;
	}
	v = volume_of_file(list, nr, file, name);
	r = v ? start(w, v) : -ENODEV;
	if (!r) {
		w->of_file = true;
		r = show_extents(w, file, name);
		close(w->fd);
	}
	close(file);
	return r;
}

/* "5", "5-9"; the whole volume when there is none */
static int parse_range(const char *text, u64 *first, u64 *last)
{
	char *end;

	if (!text || *text < '0' || *text > '9')
		return -EINVAL;
	*first = *last = strtoull(text, &end, 10);
	if (*end == '-' && end[1] >= '0' && end[1] <= '9')
		*last = strtoull(end + 1, &end, 10);
	return *end || *last < *first ? -EINVAL : 0;
}

static int show_blocks(struct which *w, const struct dm_volume *list, u32 nr, const char *name,
		       const char *range)
{
	const struct dm_volume *v = dm_find(list, nr, name);
	u64 first = 0, last = 0;
	int r;

	if (!v)
		return -ENODEV;
	r = start(w, v);
	if (r)
		return r;
	if (!range)
		last = w->volume_blocks - 1;
	else
		parse_range(range, &first, &last);
	if (last >= w->volume_blocks) {
		ctl_error("block %llu: volume '%s' has blocks 0 to %llu", (unsigned long long)last, v->name,
			  (unsigned long long)w->volume_blocks - 1);
		r = -ERANGE;
	} else {
		r = show_range(w, first, last - first + 1, 0);
		end_run(w);
	}
	close(w->fd);
	return r;
}

static const char which_help[] =
"usage: terracectl which [--json] FILE\n"
"       terracectl which [--json] NAME [BLOCK[-LAST]]\n"
"\n"
"Where the blocks of a file, or of a volume (all of them, or some), are right\n"
"now: on a fast tier, packed, both (the fast copy can be dropped without I/O),\n"
"on a shelf as they are, or nowhere. A file is a path with a '/' in it; its\n"
"filesystem must stand directly on the volume. Blocks have 4 KiB.\n"
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
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct which w = { 0 };
	struct dm_volume *list;
	const char *what, *range;
	u64 first, last;
	int opt, r;
	u32 nr;

	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (opt == 'h')
			return ctl_help(cmd);
		if (opt == '?')
			return ctl_usage(cmd, "wrong option");
		if (!w.runs)
			w.runs = json_object_new_array();
	}
	what = argv[optind];
	range = what ? argv[optind + 1] : NULL;
	if (!what)
		return ctl_usage(cmd, "no file and no volume given");
	if (range && (argc - optind > 2 || strchr(what, '/')))
		return ctl_usage(cmd, "one file, or one range of blocks, at a time");
	if (range && parse_range(range, &first, &last))
		return ctl_usage(cmd, "'%s' is no range of blocks: like 5 or 5-9", range);
	if (dm_volumes(&list, &nr))
		return CTL_PROBLEM;
	r = strchr(what, '/') ? show_file(&w, list, nr, what) : show_blocks(&w, list, nr, what, range);
	free(list);
	if (w.runs && !r)
		ctl_json_print(w.runs);
	else if (w.runs)
		json_object_put(w.runs);
	else if (!r)
		print_sums(&w, what);
	return r ? CTL_PROBLEM : CTL_OK;
}

const struct ctl_command ctl_which_command = {
	.name = "which",
	.summary = "where the blocks of a file or a volume are",
	.help = which_help,
	.run = which_run,
};
