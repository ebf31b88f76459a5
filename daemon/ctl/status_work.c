// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compression and pending work of an active volume. See status_work.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control.h"
#include "names.h"
#include "status_work.h"
#include "sysfs.h"

#define FOLDER "/sys/fs/terrace/dm-%u"

/* Where blocks are is asked of the map, of which it may have to read pages. */
#define AT_ONCE		256u
#define LOOKS		16u

static void add_region(struct status_work *w, const struct terrace_region *region)
{
	for (u32 k = 0; !region->status && k < region->nr_packs && k < TERRACE_PACK_SLOTS; k++) {
		w->packed += region->pack_live[k];
		w->run_blocks += region->pack_blocks[k];
	}
	w->looked_at++;
}

/* All regions of a volume up to 16 GiB, else as many, evenly spread: more would
 * push others out of memory.
 */
static void look_at_regions(struct status_work *w, int fd)
{
	struct terrace_region *list = ctl_alloc(AT_ONCE * sizeof(*list));
	u64 groups = (w->regions + AT_ONCE - 1) / AT_ONCE, looks = groups < LOOKS ? groups : LOOKS;

	for (u64 k = 0; k < looks; k++) {
		u64 first = k * groups / looks * AT_ONCE;
		u32 nr = w->regions - first < AT_ONCE ? (u32)(w->regions - first) : AT_ONCE;

		if (control_regions(fd, first, nr, list))
			break;
		for (u32 i = 0; i < nr; i++)
			add_region(w, &list[i]);
	}
	free(list);
}

void status_work_take(struct status_work *w, const struct dm_volume *v)
{
	struct terrace_hello hello;
	int fd;

	memset(w, 0, sizeof(*w));
	w->dirty_regions = sysfs_number(0, FOLDER "/dirty_regions", v->minor);
	w->not_durable = sysfs_number(0, FOLDER "/records", v->minor) -
			 sysfs_number(0, FOLDER "/durable", v->minor);
	fd = v->suspended ? -ENODEV : control_open(v, &hello);
	if (fd < 0)
		return;
	w->regions = hello.regions;
	look_at_regions(w, fd);
	close(fd);
}

static double ratio(const struct status_work *w)
{
	return w->run_blocks ? (double)w->packed / w->run_blocks : 0;
}

static void print_reason(const struct json_object *limits, const char *what)
{
	struct json_object *reason;

	if (json_object_object_get_ex(limits, what, &reason) && json_object_get_string(reason))
		printf("; %s: %s", what, json_object_get_string(reason));
}

static void print_terraced(struct json_object *terraced)
{
	struct json_object *o, *n;

	if (!terraced) {
		fputs("; terraced does not drive it: only the janitor moves, when room is short", stdout);
		return;
	}
	if (json_object_object_get_ex(terraced, "moves", &o) &&
	    json_object_object_get_ex(o, "under_way", &n))
		printf("; %lld orders of terraced under way", (long long)json_object_get_int64(n));
	if (json_object_object_get_ex(terraced, "limits", &o)) {
		print_reason(o, "promotions");
		print_reason(o, "demotions");
	}
	if (json_object_object_get_ex(terraced, "nothing_moves_because", &o) &&
	    json_object_get_string(o) && *json_object_get_string(o))
		printf("; nothing moves: %s", json_object_get_string(o));
}

void status_work_print(const struct status_work *w, struct json_object *terraced)
{
	if (w->packed)
		printf("  compressed: %s in packs take %s: %.2f to 1%s\n", size_text(w->packed),
		       size_text(w->run_blocks), ratio(w),
		       w->looked_at < w->regions ? " (in a sample of the regions)" : "");
	else if (w->looked_at)
		puts("  compressed: nothing is in packs");
	printf("  pending: %llu records to become durable (at the next commit), %llu regions to be written (at a checkpoint)",
	       w->not_durable, w->dirty_regions);
	print_terraced(terraced);
	putchar('\n');
}

struct json_object *status_work_json(const struct status_work *w)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "packed_blocks", json_object_new_uint64(w->packed));
	json_object_object_add(o, "packs_take_blocks", json_object_new_uint64(w->run_blocks));
	json_object_object_add(o, "ratio", w->run_blocks ? json_object_new_double(ratio(w)) : NULL);
	json_object_object_add(o, "regions", json_object_new_uint64(w->regions));
	json_object_object_add(o, "regions_looked_at", json_object_new_uint64(w->looked_at));
	return o;
}
