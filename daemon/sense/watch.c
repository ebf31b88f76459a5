// SPDX-License-Identifier: GPL-2.0-or-later
/* Filesystems, files and their places together; see watch.h. */
#include "sense/watch.h"

#include <errno.h>
#include <linux/fiemap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sense/asker.h"
#include "sense/bequest.h"
#include "sense/lsm.h"
#include "sense/mounts.h"
#include "sense/places.h"

#define WAITING		1024	/* tables closed since the last tick */
#define BEQUESTS	ASKER_QUESTIONS	/* jobs that ended since then */
#define PATIENCE_NS	2000000ull	/* of a tick, with a file that is being written */

struct watch {
	struct watch_tell tell;
	struct watch_counts counts;
	struct lsm_sense *lsm;
	bool marks;
	struct mounts mounts;
	struct file_id waiting[WAITING];
	uint32_t nr_waiting;
	struct bequest *bequest[BEQUESTS];	/* until outputs have been asked for */
	uint32_t nr_bequests;
	struct growing {
		struct file_id id;
		struct bequest *b;
		bool bottom, asked;
	} growing[BEQUESTS];		/* outputs that began to grow, until it is known where */
	uint32_t nr_growing;
	struct asker *asker;
	struct asker_answer answer;
	struct logs *logs;
	struct places places;
	struct files files;
};

/* ---- asking for extents ------------------------------------------------------------------- */

/* The folder of a table may be a database's.  A name that is not known any more ends in " (deleted)", and is none. */
static void note_folder(struct watch *w, const struct file *file, int fd)
{
	char link[32], path[LOGS_PATH], *end;
	ssize_t n;

	if (file->kind != FILE_TABLE || !file->parent || logs_used(w->logs, file->id.dev, file->parent))
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = 0;
	end = strrchr(path, '/');
	if (n < 2 || n == sizeof(path) - 1 || !end || end == path || strcmp(end + 1, file->name))
		return;
	*end = 0;
	logs_found(w->logs, file->id.dev, file->parent, path);
}

/* Into @extent, in memory of its own if there are any; their number, 0: it cannot be asked. */
static uint32_t extents_by_id(struct watch *w, const struct file_id *id, struct extent **extent)
{
	const struct file *file = files_find(&w->files, id);
	const struct mount *m = mounts_now(&w->mounts, id->dev);
	int fd = m ? asker_open_inode(m, id) : -1, nr = 0;

	if (fd >= 0) {
		nr = extents_all(fd, &m->stack, extent, &w->counts.extents);
		if (file)
			note_folder(w, file, fd);
		close(fd);
	}
	return nr > 0 ? (uint32_t)nr : 0;
}

static void ask(struct watch *w, const struct file_id *id)
{
	const struct file *file = files_find(&w->files, id);
	struct extent *extent = NULL;
	uint32_t nr = extents_by_id(w, id, &extent);
	struct place *before = places_find(&w->places, id);

	if (before && w->tell.moved)
		w->tell.moved(w->tell.ctx, before->extent, before->nr);
	if (!nr) {
		w->counts.unmapped++;
		if (before)
			places_drop(&w->places, before);
		if (w->tell.left)
			w->tell.left(w->tell.ctx, id);
		return;
	}
	w->counts.mapped++;
	places_keep(&w->places, id, extent, nr);
	if (w->tell.placed && file)
		w->tell.placed(w->tell.ctx, file, extent, nr);
	free(extent);
}

/* An output of a job that goes on: what it has of its inputs is known, and its hot part is wanted as soon as they die. */
static void pass_on(struct watch *w, const struct file_id *id)
{
	uint32_t number;
	const struct file_job *job = files_job_of_output(&w->files, id, &number);
	struct bequest *b = job && job->nr_inputs && w->tell.bequest ? bequest_of(job, &w->places) : NULL;

	if (!b)
		return;
	bequest_until(b, number + 1);
	bequest_outputs(b, &w->places);
	w->tell.bequest(w->tell.ctx, b);
	files_given(&w->files, id);
	bequest_free(b);
}

static void growing_drop(struct watch *w, uint32_t i)
{
	bequest_free(w->growing[i].b);
	w->growing[i] = w->growing[--w->nr_growing];
}

static void ask_growing(struct watch *w)
{
	for (uint32_t i = w->nr_growing; i-- > 0;) {
		struct growing *g = &w->growing[i];
		const struct mount *m = g->asked ? NULL : mounts_now(&w->mounts, g->id.dev);

		if (g->asked)
			continue;
		g->asked = m && asker_ask(w->asker, m, &g->id);
		if (g->asked)
			continue;
		w->counts.growing_lost++;
		growing_drop(w, i);
	}
}

static struct growing *growing_of(struct watch *w, const struct file_id *id)
{
	for (uint32_t i = 0; i < w->nr_growing; i++)
		if (!memcmp(&w->growing[i].id, id, sizeof(*id)))
			return &w->growing[i];
	return NULL;
}

/*
 * What was allocated ahead counts: databases do that for the files they are about to write.  Whoever was waited for too
 * long is told with a later tick, if it still grows then.
 */
static void hear_growing(struct watch *w, uint64_t now_ns)
{
	struct asker_answer *a = &w->answer;

	while (asker_hear(w->asker, now_ns + PATIENCE_NS, a)) {
		struct growing *g = growing_of(w, &a->id);
		const struct file *file = files_find(&w->files, &a->id);
		const struct mount *m = mounts_now(&w->mounts, a->id.dev);

		extents_count(&w->counts.extents, &a->stats);
		if (g && file && file->open && m && stack_same(&m->stack, &a->stack))
			w->tell.growing(w->tell.ctx, &g->id, g->b, g->bottom, a->extent, a->nr);
		w->counts.growing_late += g && (!file || !file->open);
		if (g)
			growing_drop(w, (uint32_t)(g - w->growing));
	}
}

/* ---- what files tell ------------------------------------------------------------------------ */

static void ask_later(struct watch *w, const struct file_id *id)
{
	if (w->nr_waiting < WAITING) {
		w->waiting[w->nr_waiting++] = *id;
		return;
	}
	w->counts.unmapped++;
	if (w->tell.left)
		w->tell.left(w->tell.ctx, id);
}

/* One that has a place was cut, or written on. */
static void on_table(void *ctx, const struct file *file)
{
	struct watch *w = ctx;
	struct place *p = places_find(&w->places, &file->id);

	if (p)
		p->stale = true;
	ask_later(w, &file->id);
}

/*
 * What it has given up may be another's in a moment, what it shares is another's already: should it die before it is
 * asked again, its place is not to be relied upon.  What is shared is not asked for: that may be about to happen only.
 */
static void on_changed(void *ctx, const struct file_id *id, bool shared)
{
	struct watch *w = ctx;
	struct place *p = places_find(&w->places, id);

	if (!p)
		return;
	w->counts.places_changed++;
	if (!p->stale && !shared)
		ask_later(w, id);
	p->stale = true;
}

/* From before the daemon's start, perhaps. */
static void on_input(void *ctx, const struct file_id *id)
{
	struct watch *w = ctx;

	if (!places_find(&w->places, id) && w->nr_waiting < WAITING)
		w->waiting[w->nr_waiting++] = *id;
}

static void on_left(void *ctx, const struct file *file)
{
	struct watch *w = ctx;

	if (w->tell.left)
		w->tell.left(w->tell.ctx, &file->id);
}

/* What is told of it ends also where its place is not known: a killed compaction's output was never asked for. */
static void on_death(void *ctx, const struct file *file)
{
	struct watch *w = ctx;
	const struct mount *m = mounts_now(&w->mounts, file->id.dev);
	struct place *p = places_find(&w->places, &file->id);

	for (uint32_t i = 0; p && i < p->nr; i++)
		w->counts.dead_blocks += p->extent[i].nr;
	if (m && w->tell.dead)
		w->tell.dead(w->tell.ctx, m->path, &file->id, p ? p->extent : NULL, p ? p->nr : 0, p && !p->stale);
	if (p)
		places_drop(&w->places, p);
}

/* Inputs are still there; but their places go when they die. */
static void on_job(void *ctx, const struct file_job *job)
{
	struct watch *w = ctx;
	struct bequest *b;

	if (!w->tell.bequest)
		return;
	b = w->nr_bequests < BEQUESTS ? bequest_of(job, &w->places) : NULL;
	if (b)
		w->bequest[w->nr_bequests++] = b;
	else
		w->counts.bequests_lost++;
}

/* "000012.sst"; 0: not of that form */
static uint64_t number_of(const char *name)
{
	char *end;
	uint64_t number = strtoull(name, &end, 10);

	return strcmp(end, ".sst") ? 0 : number;
}

static bool goes_to_bottom(const struct watch *w, const struct file_job *job, const struct file *file)
{
	const struct eventlog *log = logs_of(w->logs, file->id.dev, file->parent);
	uint64_t input[FILES_INPUTS];

	for (uint32_t i = 0; i < job->nr_inputs; i++)
		input[i] = number_of(job->input[i].name);
	return log && eventlog_goes_to_bottom(log, input, job->nr_inputs);
}

static void on_growing(void *ctx, const struct file_job *job, const struct file *file)
{
	struct watch *w = ctx;
	struct bequest *b;

	if (!w->tell.growing)
		return;
	if (w->nr_growing == BEQUESTS) {
		w->counts.growing_lost++;
		return;
	}
	b = bequest_of(job, &w->places);
	if (b)
		w->growing[w->nr_growing++] = (struct growing){
			.id = file->id, .b = b, .bottom = goes_to_bottom(w, job, file),
		};
}

static size_t names(char *line, size_t at, size_t bytes, const struct file_part *part, uint32_t nr)
{
	for (uint32_t i = 0; i < nr && at < bytes; i++)
		at += (size_t)snprintf(line + at, bytes - at, "%s%s", i ? " " : "", part[i].name[0] ? part[i].name : "?");
	return at < bytes ? at : bytes - 1;
}

static void on_compaction(void *ctx, const struct file_job *job)
{
	struct watch *w = ctx;
	char line[2048];
	size_t at;

	if (!w->tell.compaction)
		return;
	at = names(line, 0, sizeof(line), job->input, job->nr_inputs);
	at += (size_t)snprintf(line + at, sizeof(line) - at, " -> ");
	if (at < sizeof(line))
		names(line, at, sizeof(line), job->output, job->nr_outputs);
	w->tell.compaction(w->tell.ctx, line);
}

static size_t numbers(char *line, size_t at, size_t bytes, const uint64_t *number, uint32_t nr)
{
	for (uint32_t i = 0; i < nr && at < bytes; i++)
		at += (size_t)snprintf(line + at, bytes - at, "%s%06llu.sst", i ? " " : "", (unsigned long long)number[i]);
	return at < bytes ? at : bytes - 1;
}

static void on_logged(void *ctx, const struct eventlog_job *job)
{
	struct watch *w = ctx;
	char line[2048];
	size_t at;

	if (!w->tell.logged)
		return;
	at = numbers(line, 0, sizeof(line), job->input, job->nr_inputs);
	at += (size_t)snprintf(line + at, sizeof(line) - at, " -> ");
	if (at < sizeof(line))
		at = numbers(line, at, sizeof(line), job->output, job->nr_outputs);
	if (at < sizeof(line))
		snprintf(line + at, sizeof(line) - at, " at level %d", job->level);
	w->tell.logged(w->tell.ctx, line);
}

static void on_busy(void *ctx, uint32_t thread, bool yes)
{
	struct watch *w = ctx;

	if (w->tell.busy)
		w->tell.busy(w->tell.ctx, thread, yes);
}

static void on_event(void *ctx, const struct terrace_file_event *e)
{
	struct watch *w = ctx;

	files_event(&w->files, e);
}

/* ---- filesystems ------------------------------------------------------------------------------ */

/* What was said of its blocks was of others' blocks from some moment on: marks, hints, pins. */
static void take_back(struct watch *w, uint32_t dev)
{
	for (uint32_t i = w->nr_growing; i-- > 0;)
		if (w->growing[i].id.dev == dev)
			growing_drop(w, i);
	if (!w->tell.moved)
		return;
	w->tell.moved(w->tell.ctx, NULL, 0);
	for (uint32_t i = 0; i < PLACES; i++)
		if (w->places.place[i].nr && w->places.place[i].id.dev == dev)
			w->tell.moved(w->tell.ctx, w->places.place[i].extent, w->places.place[i].nr);
}

/* Where it is in its filesystem has not changed. */
static void move_place(struct watch *w, struct place *p, const struct stack *stack)
{
	const struct file *file = files_find(&w->files, &p->id);
	const struct file_id id = p->id;
	const uint32_t room = p->nr + STACK_PIECES;	/* each border cuts one */
	const bool stale = p->stale;
	struct extent *extent = malloc(room * sizeof(*extent));
	uint32_t nr = 0;

	for (uint32_t i = 0; extent && i < p->nr && nr < room; i++) {
		const struct fiemap_extent fe = {
			.fe_logical = p->extent[i].offset, .fe_physical = p->extent[i].physical,
			.fe_length = p->extent[i].nr * EXTENT_BLOCK,
		};
		int got = extents_place(&fe, stack, extent + nr, room - nr, &w->counts.extents);

		nr = got < 0 ? room : nr + (uint32_t)got;
	}
	if (!nr) {
		places_drop(&w->places, p);
		free(extent);
		return;
	}
	places_keep(&w->places, &id, extent, nr);
	p = places_find(&w->places, &id);
	if (p)
		p->stale = stale;
	if (w->tell.placed && file)
		w->tell.placed(w->tell.ctx, file, extent, nr);
	free(extent);
}

static void move_places(struct watch *w, const struct mount *m)
{
	for (uint32_t i = 0; i < PLACES; i++)
		if (w->places.place[i].nr && w->places.place[i].id.dev == mount_dev(m))
			move_place(w, &w->places.place[i], &m->stack);
}

/* Files that have died meanwhile, or another filesystem's, are not found by their handles. */
static void ask_places_again(struct watch *w, uint32_t dev)
{
	for (uint32_t i = 0; i < PLACES; i++) {
		struct place *p = &w->places.place[i];
		const struct file *file = p->nr && p->id.dev == dev ? files_find(&w->files, &p->id) : NULL;
		const struct file_id id = p->id;
		struct extent *extent = NULL;
		uint32_t nr;

		if (!p->nr || id.dev != dev)
			continue;
		nr = extents_by_id(w, &id, &extent);
		if (!nr) {
			places_drop(&w->places, p);
			continue;
		}
		places_keep(&w->places, &id, extent, nr);
		if (w->tell.placed && file)
			w->tell.placed(w->tell.ctx, file, extent, nr);
		free(extent);
	}
}

static int on_mounted(void *ctx, const struct mount *m)
{
	struct watch *w = ctx;
	int err = lsm_watch(w->lsm, m->major, m->minor, true);

	if (err)
		return err;
	if (w->tell.filesystem)
		w->tell.filesystem(w->tell.ctx, m->path);
	ask_places_again(w, mount_dev(m));	/* of when it was mounted before */
	return 0;
}

static void on_refused(void *ctx, const char *path, const char *why)
{
	struct watch *w = ctx;

	if (w->tell.refused)
		w->tell.refused(w->tell.ctx, path, why);
}

static void on_unmounted(void *ctx, const struct mount *m)
{
	struct watch *w = ctx;

	lsm_watch(w->lsm, m->major, m->minor, false);
	logs_gone(w->logs, mount_dev(m));
	take_back(w, mount_dev(m));
}

static void on_restacked(void *ctx, const struct mount *m)
{
	struct watch *w = ctx;

	w->counts.restacked++;
	take_back(w, mount_dev(m));
	move_places(w, m);
}

/* ---- the whole ---------------------------------------------------------------------------------- */

void watch_tick(struct watch *w, bool look, bool logs)
{
	struct timespec now;

	mounts_round(&w->mounts);
	if (look)
		mounts_look(&w->mounts);
	if (logs)
		logs_tick(w->logs);
	lsm_drain(w->lsm);
	clock_gettime(CLOCK_MONOTONIC, &now);
	files_tick(&w->files, (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec);
	ask_growing(w);
	hear_growing(w, (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec);
	for (uint32_t i = 0; i < w->nr_waiting; i++) {
		ask(w, &w->waiting[i]);
		pass_on(w, &w->waiting[i]);
	}
	w->nr_waiting = 0;
	for (uint32_t i = 0; i < w->nr_bequests; i++) {
		bequest_outputs(w->bequest[i], &w->places);
		w->tell.bequest(w->tell.ctx, w->bequest[i]);
		bequest_free(w->bequest[i]);
	}
	w->nr_bequests = 0;
}

const struct watch_counts *watch_counts(struct watch *w)
{
	w->counts.files = w->files.stats;
	w->counts.places_forgotten = w->places.forgotten;
	w->counts.filesystems = mounts_count(&w->mounts);
	w->counts.lost = lsm_lost(w->lsm);
	logs_counts(w->logs, &w->counts.logs);
	return &w->counts;
}

/* The kernel's marks go by the names of these alone. */
static void mark(struct watch *w)
{
	lsm_mark(w->lsm, w->marks && w->files.profiles & (FILE_PROFILE_ROCKSDB | FILE_PROFILE_LEVELDB));
}

void watch_mark(struct watch *w, bool yes)
{
	w->marks = yes;
	mark(w);
}

void watch_profiles(struct watch *w, uint32_t profiles)
{
	files_profiles(&w->files, profiles);
	mark(w);
}

int watch_open(unsigned int major, unsigned int minor, const int *ignored, uint32_t profiles, const struct watch_tell *tell,
	       struct watch **out, char *why, size_t bytes)
{
	struct watch *w = calloc(1, sizeof(*w));
	const struct files_tell files = {
		.job = on_job, .growing = on_growing, .compaction = on_compaction, .busy = on_busy, .table = on_table,
		.input = on_input, .changed = on_changed, .left = on_left, .died = on_death, .ctx = w,
	};
	const struct mounts_tell mounts = {
		.mounted = on_mounted, .unmounted = on_unmounted, .restacked = on_restacked, .refused = on_refused, .ctx = w,
	};
	int err;

	if (!w)
		return -ENOMEM;
	w->tell = *tell;
	mounts_init(&w->mounts, major, minor, &mounts);
	files_init(&w->files, profiles, &files);
	w->logs = logs_open(on_logged, w);
	err = w->logs ? asker_open(&w->asker) : -ENOMEM;
	if (!err)
		err = lsm_open(&w->lsm, ignored, on_event, w, why, bytes);
	if (err) {
		if (w->asker)
			asker_close(w->asker);
		logs_close(w->logs);
		free(w);
		return err;
	}
	mounts_look(&w->mounts);
	*out = w;
	return 0;
}

void watch_close(struct watch *w)
{
	lsm_close(w->lsm);
	for (uint32_t i = 0; i < w->nr_bequests; i++)
		bequest_free(w->bequest[i]);
	for (uint32_t i = 0; i < w->nr_growing; i++)
		bequest_free(w->growing[i].b);
	asker_close(w->asker);
	places_exit(&w->places);
	logs_close(w->logs);
	free(w);
}
