// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From what is typed to runs of blocks. See runs.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "runs.h"

#define EXTENTS	64	/* asked for at a time */

static void add_run(struct runs *runs, u64 first, u64 nr, u64 file_block)
{
	if (!(runs->nr & (runs->nr + 1)))
		runs->run = ctl_realloc(runs->run, (2 * (u64)runs->nr + 2) * sizeof(*runs->run));
	runs->run[runs->nr++] = (struct run){ .first = first, .nr = nr, .file_block = file_block };
}

/* ---- files ------------------------------------------------------------------------------ */

static int add_extents(struct runs *runs, int file, const char *name)
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
			r = -errno;
			ctl_error("%s: its filesystem does not tell where files are: %s", name, strerror(errno));
			break;
		}
		last = !map->fm_mapped_extents;
		for (u32 i = 0; i < map->fm_mapped_extents; i++) {
			const struct fiemap_extent *e = &map->fm_extents[i];

			at = e->fe_logical + e->fe_length;
			last = e->fe_flags & FIEMAP_EXTENT_LAST;
			if (e->fe_flags & (FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DATA_INLINE |
					   FIEMAP_EXTENT_NOT_ALIGNED))
				continue;
			add_run(runs, e->fe_physical / TERRACE_BLOCK_BYTES,
				(e->fe_length + TERRACE_BLOCK_BYTES - 1) / TERRACE_BLOCK_BYTES,
				e->fe_logical / TERRACE_BLOCK_BYTES);
		}
	}
	free(map);
	return r;
}

static int add_file(struct runs *runs, const char *name)
{
	int file = open(name, O_RDONLY | O_CLOEXEC), r;

	if (file < 0) {
		r = -errno;
		ctl_error("%s: %s", name, strerror(-r));
		return r;
	}
	r = add_extents(runs, file, name);
	close(file);
	return r;
}

static struct runs *walked;	/* nftw() has no context */

static int add_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)ftw;
	/* one that is deleted meanwhile is no problem of ours */
	if (type == FTW_F && S_ISREG(st->st_mode) && !access(path, F_OK))
		return add_file(walked, path) ? 1 : 0;
	return 0;
}

static int add_folder(struct runs *runs, const char *name)
{
	walked = runs;
	switch (nftw(name, add_entry, 32, FTW_MOUNT | FTW_PHYS)) {
	case 0:
		return 0;
	case 1:
		return -EIO;	/* there was a message */
	default:
		ctl_error("%s: %s", name, strerror(errno));
		return -EIO;
	}
}

static int find_volume(struct runs *runs, const struct dm_volume *list, u32 nr, const char *name,
		       const struct stat *st)
{
	for (u32 i = 0; i < nr; i++) {
		if (list[i].major != major(st->st_dev) || list[i].minor != minor(st->st_dev))
			continue;
		runs->volume = list[i];
		return 0;
	}
	ctl_error("%s is not on an active volume: its filesystem is on device %u:%u", name,
		  major(st->st_dev), minor(st->st_dev));
	return -ENODEV;
}

static int runs_of_path(struct runs *runs, const struct dm_volume *list, u32 nr, const char *name)
{
	struct stat st;
	int r;

	if (stat(name, &st)) {
		ctl_error("%s: %s", name, strerror(errno));
		return -ENOENT;
	}
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		ctl_error("%s is no file and no folder", name);
		return -EINVAL;
	}
	runs->of_files = true;
	r = find_volume(runs, list, nr, name, &st);
	if (r)
		return r;
	return S_ISDIR(st.st_mode) ? add_folder(runs, name) : add_file(runs, name);
}

/* ---- volumes and ranges --------------------------------------------------------------------- */

int runs_parse_range(const char *text, u64 *first, u64 *last)
{
	char *end;

	if (!text || *text < '0' || *text > '9')
		return -EINVAL;
	*first = *last = strtoull(text, &end, 10);
	if (*end == '-' && end[1] >= '0' && end[1] <= '9')
		*last = strtoull(end + 1, &end, 10);
	return *end || *last < *first ? -EINVAL : 0;
}

int runs_check_words(const struct ctl_command *cmd, int nr, char **word)
{
	u64 first, last;

	if (!nr)
		return ctl_usage(cmd, "no file and no volume given");
	if (nr > 2 || (nr == 2 && strchr(word[0], '/')))
		return ctl_usage(cmd, "one file, or one range of blocks, at a time");
	if (nr == 2 && runs_parse_range(word[1], &first, &last))
		return ctl_usage(cmd, "'%s' is no range of blocks: like 5 or 5-9", word[1]);
	return 0;
}

static int runs_of_volume(struct runs *runs, const struct dm_volume *list, u32 nr, const char *name,
			  const char *range)
{
	const struct dm_volume *v = dm_find(list, nr, name);
	u64 blocks, first = 0, last;

	if (!v)
		return -ENODEV;
	runs->volume = *v;
	blocks = v->sectors / TERRACE_BLOCK_SECTORS;
	last = blocks - 1;
	if (range)
		runs_parse_range(range, &first, &last);
	if (last >= blocks) {
		ctl_error("block %llu: volume '%s' has blocks 0 to %llu", (unsigned long long)last, v->name,
			  (unsigned long long)blocks - 1);
		return -ERANGE;
	}
	add_run(runs, first, last - first + 1, 0);
	return 0;
}

int runs_of(struct runs *runs, const char *what, const char *range)
{
	struct dm_volume *list;
	u32 nr;
	int r;

	memset(runs, 0, sizeof(*runs));
	r = dm_volumes(&list, &nr);
	if (r)
		return r;
	r = strchr(what, '/') ? runs_of_path(runs, list, nr, what) :
	    runs_of_volume(runs, list, nr, what, range);
	free(list);
	return r;
}

void runs_free(struct runs *runs)
{
	free(runs->run);
	runs->run = NULL;
	runs->nr = 0;
}

/* ---- sorted ---------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

/* Files can share blocks. */
void runs_sort(struct runs *runs)
{
	u32 n = 0;

	if (!runs->nr)
		return;
	qsort(runs->run, runs->nr, sizeof(*runs->run), compare);
	for (u32 i = 1; i < runs->nr; i++) {
		struct run *last = &runs->run[n], *next = &runs->run[i];

		if (next->first > last->first + last->nr)
			runs->run[++n] = *next;
		else if (next->first + next->nr > last->first + last->nr)
			last->nr = next->first + next->nr - last->first;
	}
	runs->nr = n + 1;
}

u64 runs_blocks(const struct runs *runs)
{
	u64 blocks = 0;

	for (u32 i = 0; i < runs->nr; i++)
		blocks += runs->run[i].nr;
	return blocks;
}

bool runs_next_region(struct runs_walk *walk, u64 *region, __u64 want[TERRACE_REGION_WORDS])
{
	bool any = false;

	memset(want, 0, TERRACE_REGION_WORDS * sizeof(*want));
	for (; walk->at < walk->runs->nr; walk->at++, walk->done = 0) {
		const struct run *run = &walk->runs->run[walk->at];

		for (; walk->done < run->nr; walk->done++) {
			u64 block = run->first + walk->done;
			u32 bit = block % RUNS_REGION_BLOCKS;

			if (any && block / RUNS_REGION_BLOCKS != *region)
				return true;
			*region = block / RUNS_REGION_BLOCKS;
			want[bit / 64] |= 1ull << bit % 64;
			any = true;
		}
	}
	return any;
}
