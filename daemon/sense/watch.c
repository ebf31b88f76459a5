// SPDX-License-Identifier: GPL-2.0-or-later
/* Filesystems, files and their places together; see watch.h. */
#include "sense/watch.h"

#include <errno.h>
#include <linux/fiemap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sense/lsm.h"
#include "sense/watching.h"

#define BEQUEST_NS	5000000000ull	/* outputs that are not placed by then are not waited for */
#define DEATH_EXTENTS	16u		/* what a death costs beside its own */

/* ---- what files tell ------------------------------------------------------------------------ */

/* One that has a place was cut, or written on. */
static void on_table(void *ctx, const struct file *file)
{
	struct watch *w = ctx;
	struct place *p = places_find(&w->places, &file->id);

	if (p)
		p->stale = true;
	inquiries_changed(&w->inquiries, &file->id, false);
	asking_later(w, &(struct inquiry){ .file.id = file->id });
}

/*
 * What it has given up may be another's in a moment, what it shares is another's already: should it die before it is
 * asked again, its place is not to be relied upon.  What is shared is not asked for, and whatever else it is asked for later
 * is not relied upon either: that may be about to happen only, or be under way.
 */
static void on_changed(void *ctx, const struct file_id *id, bool shared)
{
	struct watch *w = ctx;
	struct place *p = places_find(&w->places, id);
	const struct file *file = files_find(&w->files, id);
	const bool asked = inquiries_changed(&w->inquiries, id, shared);

	if (!p && !asked)
		return;
	/* While it grows nothing of that is relied upon, and it is asked when it is closed. */
	if (p && p->early && file && file->open && !asked) {
		p->shared |= shared;
		return;
	}
	w->counts.places_changed++;
	if (!shared && !inquiries_wait(&w->inquiries, id))
		asking_later(w, &(struct inquiry){ .file.id = *id });
	if (!p)
		return;
	p->stale = true;
	p->shared |= shared;
}

/* From before the daemon's start, perhaps; or only what it was when it grew is known. */
static void on_input(void *ctx, const struct file_id *id)
{
	struct watch *w = ctx;
	const struct place *p = places_find(&w->places, id);

	if ((!p || p->early) && !inquiries_have(&w->inquiries, id))
		asking_later(w, &(struct inquiry){ .file.id = *id });
}

/* Its death will mean nothing: what is kept of it would be kept for ever. */
static void on_forgotten(void *ctx, const struct place *p)
{
	struct watch *w = ctx;

	if (w->tell.moved)
		w->tell.moved(w->tell.ctx, p->extent, p->nr);
}

static void on_left(void *ctx, const struct file *file)
{
	struct watch *w = ctx;

	if (w->tell.left)
		w->tell.left(w->tell.ctx, &file->id);
}

/* What is told of it ends also where its place is not known: of a killed compaction's output hardly anything was written yet. */
static void on_death(void *ctx, const struct file *file)
{
	struct watch *w = ctx;
	const struct mount *m = mounts_now(&w->mounts, file->id.dev);
	struct place *p = places_find(&w->places, &file->id);

	inquiries_dead(&w->inquiries, &file->id, p && m && !p->early);
	asking_died(w, &file->id, p && m);
	w->dead_extents += p ? DEATH_EXTENTS + p->nr : 1;
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
		w->bequest[w->nr_bequests++] = (struct waiting_bequest){ .b = b, .since_ns = w->now_ns };
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
	struct growing *g;
	struct bequest *b;

	if (!w->tell.growing)
		return;
	b = bequest_of(job, &w->places);
	if (!b)
		return;
	g = asking_grows(w, &file->id, BEQUESTS);
	if (!g || g->b) {
		w->counts.growing_lost++;
		bequest_free(b);
		return;
	}
	g->b = b;
	g->bottom = goes_to_bottom(w, job, file);
}

static void on_log(void *ctx, const struct file *file)
{
	struct watch *w = ctx;
	struct growing *g = w->tell.log ? asking_grows(w, &file->id, BEQUESTS) : NULL;

	if (g)
		g->log = true;
	else
		w->counts.logs_lost += w->tell.log != NULL;
}

/* Of no use but when it dies: outputs and logs come first. */
static void on_begun(void *ctx, const struct file *file)
{
	asking_grows(ctx, &file->id, BEQUESTS / 4);
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

/*
 * Any file may have been cut, shared, closed or deleted unheard: what is known of it is not relied upon before it has been
 * asked again.  Answers are heard after all events of a tick, so that once in a tick is enough.
 */
static void look_at_all(struct watch *w, uint64_t lost)
{
	w->lost = lost;
	if (w->doubted)
		return;
	w->doubted = true;
	w->walks_all = true;
	for (uint32_t i = 0; i < PLACES; i++) {
		struct place *p = &w->places.place[i];

		if (p->nr)
			p->again = p->stale = true;
	}
	w->looked = 0;
	w->looked_open = 0;
	for (uint32_t i = 0; i < w->inquiries.nr_asked; i++) {
		struct inquiry *one = &w->inquiries.asked[i];

		one->changed = true;
		if (!inquiries_wait(&w->inquiries, &one->file.id))
			asking_later(w, &(struct inquiry){ .file = one->file, .again = true });
	}
}

/*
 * An event that comes after a lost one in the ring is heard after that is counted.  Others wait in the ring while so many
 * deaths are told.
 */
static bool on_event(void *ctx, const struct terrace_file_event *e)
{
	struct watch *w = ctx;
	const uint64_t lost = lsm_lost(w->lsm);

	if (lost != w->lost)
		look_at_all(w, lost);
	files_event(&w->files, e);
	return w->dead_extents < MOST_EXTENTS;
}

/* ---- filesystems ------------------------------------------------------------------------------ */

/* What was said of its blocks was of others' blocks from some moment on: marks, hints, pins. */
static void take_back(struct watch *w, uint32_t dev)
{
	asking_drops(w, dev);
	files_lie_elsewhere(&w->files);
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
	const struct place was = *p;
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
	if (p) {
		p->stale = was.stale;
		p->shared = was.shared;
		p->early = was.early;
		p->again = was.again;
		p->absent = was.absent;
	}
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

/*
 * Those of before are asked one by one, as there is time for it.  Files that have died meanwhile, or another filesystem's,
 * are not found by their handles.
 */
static void ask_places_again(struct watch *w, uint32_t dev)
{
	for (uint32_t i = 0; i < PLACES; i++) {
		struct place *p = &w->places.place[i];

		if (p->nr && p->id.dev == dev)
			p->again = p->stale = p->absent = true;
	}
	w->looked = 0;
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
	asking_walk(w, mount_dev(m));
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

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static bool waits_for_outputs(const struct watch *w, const struct bequest *b)
{
	for (uint32_t i = b->nr_inputs; i < b->nr_inputs + b->nr_outputs; i++)
		if (!b->file[i].nr && inquiries_have(&w->inquiries, &b->file[i].id))
			return true;
	return false;
}

/* In the order in which jobs ended. */
static void tell_bequests(struct watch *w)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < w->nr_bequests; i++) {
		struct waiting_bequest *one = &w->bequest[i];

		bequest_outputs(one->b, &w->places);
		if (w->now_ns - one->since_ns < BEQUEST_NS && waits_for_outputs(w, one->b)) {
			w->bequest[kept++] = *one;
			continue;
		}
		w->tell.bequest(w->tell.ctx, one->b);
		bequest_free(one->b);
	}
	w->nr_bequests = kept;
}

int watch_fd(const struct watch *w)
{
	return lsm_fd(w->lsm);
}

void watch_tick(struct watch *w, bool look, bool logs)
{
	w->now_ns = now_ns();
	mounts_round(&w->mounts);
	if (look)
		mounts_look(&w->mounts);
	if (logs)
		logs_tick(w->logs, w->now_ns + PATIENCE_NS);
	w->dead_extents = 0;
	w->doubted = false;
	lsm_drain(w->lsm);
	if (lsm_lost(w->lsm) != w->lost)
		look_at_all(w, lsm_lost(w->lsm));
	w->now_ns = now_ns();
	files_tick(&w->files, w->now_ns);
	asking_tick(w);
	tell_bequests(w);
}

const struct watch_counts *watch_counts(struct watch *w)
{
	w->counts.files = w->files.stats;
	w->counts.places_forgotten = w->places.forgotten;
	w->counts.filesystems = mounts_count(&w->mounts);
	w->counts.lost = lsm_lost(w->lsm);
	finder_counts(w->finder, &w->counts.walks);
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
		.job = on_job, .growing = on_growing, .compaction = on_compaction, .busy = on_busy, .table = on_table, .log = on_log, .begun = on_begun,
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
	w->places.forgets = on_forgotten;
	w->places.ctx = w;
	w->logs = logs_open(on_logged, w);
	err = w->logs ? asker_open(&w->asker) : -ENOMEM;
	if (!err)
		err = finder_open(&w->finder);
	if (!err)
		err = lsm_open(&w->lsm, ignored, on_event, w, why, bytes);
	if (err) {
		if (w->asker)
			asker_close(w->asker);
		if (w->finder)
			finder_close(w->finder);
		logs_close(w->logs);
		free(w);
		return err;
	}
	w->lost = lsm_lost(w->lsm);
	w->looked_open = FILES_MAX;
	mounts_look(&w->mounts);
	*out = w;
	return 0;
}

void watch_close(struct watch *w)
{
	lsm_close(w->lsm);
	files_rest(&w->files);
	for (uint32_t i = 0; i < w->nr_bequests; i++)
		bequest_free(w->bequest[i].b);
	for (uint32_t i = 0; i < w->nr_growing; i++)
		if (w->growing[i].b)
			bequest_free(w->growing[i].b);
	asker_close(w->asker);
	finder_close(w->finder);
	places_exit(&w->places);
	logs_close(w->logs);
	free(w);
}
