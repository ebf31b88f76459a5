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
#include "sense/inquiry.h"
#include "sense/lsm.h"
#include "sense/mounts.h"
#include "sense/places.h"

#define BEQUESTS	32	/* jobs that ended, and outputs that began to grow */
#define BEQUEST_NS	5000000000ull	/* outputs that are not placed by then are not waited for */
#define PATIENCE_NS	2000000ull	/* of a tick, with who is asked */
#define MOST_EXTENTS	EXTENTS_MOST	/* told in a tick, of deaths, and of answers; one file more may have begun by then */
#define DEATH_EXTENTS	16u		/* what a death costs beside its own */

struct watch {
	struct watch_tell tell;
	struct watch_counts counts;
	struct lsm_sense *lsm;
	bool marks;
	struct mounts mounts;
	uint64_t now_ns;		/* of this tick */
	uint64_t dead_extents;		/* told in this tick */
	struct inquiries inquiries;
	struct waiting_bequest {
		struct bequest *b;
		uint64_t since_ns;
	} bequest[BEQUESTS];		/* until outputs have been asked for */
	uint32_t nr_bequests;
	struct growing {
		struct file_id id;
		struct bequest *b;
		bool bottom, asked;
	} growing[BEQUESTS];		/* outputs that began to grow, until it is known where */
	uint32_t nr_growing;
	uint64_t lost;			/* events, as far as they have been made good */
	bool doubted;			/* all of them, in this tick */
	uint32_t looked;		/* places before this one are not to be looked at again ... */
	uint32_t looked_open;		/* ... nor files before this one that seem to be open; their number: all */
	struct asker *asker;
	struct asker_answer answer;
	struct logs *logs;
	struct places places;
	struct files files;
};

/* ---- asking for extents ------------------------------------------------------------------- */

/* The folder of a table may be a database's.  A name that is not known any more ends in " (deleted)", and is none. */
static void note_folder(struct watch *w, const struct file *file, char *path)
{
	char *end = strrchr(path, '/');

	if (file->kind != FILE_TABLE || !file->parent || logs_used(w->logs, file->id.dev, file->parent))
		return;
	if (!end || end == path || strcmp(end + 1, file->name))
		return;
	*end = 0;
	logs_found(w->logs, file->id.dev, file->parent, path);
}

/* Nothing of it is known; what was known before may still be its own, and is trimmed where it is free. */
static void cannot_be_asked(struct watch *w, const struct inquiry *one)
{
	const struct file_id *id = &one->file.id;
	struct place *p = places_find(&w->places, id);

	if (p)
		p->stale = true;
	if (one->again)
		return;
	w->counts.unmapped++;
	if (w->tell.left)
		w->tell.left(w->tell.ctx, id);
}

static void ask_later(struct watch *w, const struct inquiry *one)
{
	if (inquiries_add(&w->inquiries, one))
		return;
	w->counts.not_asked++;
	cannot_be_asked(w, one);
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
		g->asked = m && asker_ask(w->asker, m, &g->id, true);
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
static void hear_growing(struct watch *w, const struct asker_answer *a)
{
	struct growing *g = growing_of(w, &a->id);
	const struct file *file = files_find(&w->files, &a->id);
	const struct mount *m = mounts_now(&w->mounts, a->id.dev);

	if (g && file && file->open && m && stack_same(&m->stack, &a->stack))
		w->tell.growing(w->tell.ctx, &g->id, g->b, g->bottom, a->extent, a->nr);
	w->counts.growing_late += g && (!file || !file->open);
	if (g)
		growing_drop(w, (uint32_t)(g - w->growing));
}

/* As many as may be asked; whose filesystem is out of reach is not. */
static void ask_waiting(struct watch *w)
{
	const struct inquiry *one;

	while ((one = inquiries_next(&w->inquiries))) {
		const struct file_id id = one->file.id;
		const struct mount *m = mounts_now(&w->mounts, id.dev);

		if (m && !asker_ask(w->asker, m, &id, false))
			return;
		inquiries_asked(&w->inquiries);
		if (!m) {
			struct inquiry gone;

			if (inquiries_answered(&w->inquiries, &id, &gone))
				cannot_be_asked(w, &gone);
		}
	}
}

/* It is inline, or all of it is shared. */
static void nothing_of_its_own(struct watch *w, const struct inquiry *one)
{
	struct place *p = places_find(&w->places, &one->file.id);

	if (p && w->tell.moved)
		w->tell.moved(w->tell.ctx, p->extent, p->nr);
	if (p)
		places_drop(&w->places, p);
	cannot_be_asked(w, one);
}

/*
 * What it left behind is trimmed where it is free, like that of others of which nobody is sure.  If its filesystem was away
 * meanwhile, what lay there may be anything by now.
 */
static void died_unheard(struct watch *w, const struct file_id *id)
{
	const struct terrace_file_event death = {
		.what = TERRACE_FILE_DIED, .inode = id->inode, .generation = id->generation, .dev = id->dev, .nanoseconds = w->now_ns,
	};
	struct place *p = places_find(&w->places, id);

	if (p && p->absent) {
		places_drop(&w->places, p);
		return;
	}
	w->counts.died_unheard++;
	files_event(&w->files, &death);
}

/*
 * It died while it was asked.  Where it lay then is its own no longer, and another may have been told as placed there: that
 * is trimmed where it is free, and nothing else is said of it.
 */
static void died_meanwhile(struct watch *w, const struct inquiry *one, const struct asker_answer *a)
{
	const struct mount *m = mounts_now(&w->mounts, a->id.dev);

	if (one->told || !a->nr || !m || !stack_same(&m->stack, &a->stack))
		return;
	for (uint32_t i = 0; i < a->nr; i++)
		w->counts.dead_blocks += a->extent[i].nr;
	inquiries_dead(&w->inquiries, &a->id, true);
	if (w->tell.dead)
		w->tell.dead(w->tell.ctx, m->path, &a->id, a->extent, a->nr, false);
}

/*
 * It may have been cut, shared or written on since it was asked: an answer that is not sure, and it has to be asked again.
 * So it is while it seems to be written: if that is true it will be told again when it is closed.
 */
static void placed(struct watch *w, const struct inquiry *one, struct asker_answer *a)
{
	const struct file *file = files_find(&w->files, &a->id);
	struct place *p = places_find(&w->places, &a->id);
	const bool shared = one->shared || (p && p->shared);

	if (p && w->tell.moved)
		w->tell.moved(w->tell.ctx, p->extent, p->nr);
	*(one->again ? &w->counts.looked_again : &w->counts.mapped) += 1;
	places_keep(&w->places, &a->id, a->extent, a->nr);
	p = places_find(&w->places, &a->id);
	if (p) {
		p->shared = shared;
		p->stale = shared || one->changed || (file && file->open);
	}
	if (!file || file->open)
		return;
	if (w->tell.placed)
		w->tell.placed(w->tell.ctx, file, a->extent, a->nr);
	note_folder(w, file, a->path);
}

static void hear(struct watch *w, struct asker_answer *a)
{
	const struct mount *m = mounts_now(&w->mounts, a->id.dev);
	struct inquiry one;

	if (!inquiries_answered(&w->inquiries, &a->id, &one))
		return;
	if (one.dead) {
		died_meanwhile(w, &one, a);
	} else if (one.again && m && a->err == -ESTALE) {
		died_unheard(w, &a->id);
	} else if (m && !stack_same(&m->stack, &a->stack)) {
		ask_later(w, &(struct inquiry){ .file = one.file, .again = one.again, .shared = one.shared });
	} else if (!m || a->err) {
		cannot_be_asked(w, &one);
	} else if (!a->nr) {
		nothing_of_its_own(w, &one);
	} else {
		placed(w, &one, a);
		pass_on(w, &a->id);
	}
}

/* While few others wait. */
static void look_again(struct watch *w)
{
	for (; w->looked < PLACES && inquiries_count(&w->inquiries) < INQUIRIES_FEW; w->looked++) {
		struct place *p = &w->places.place[w->looked];

		if (!p->nr || !p->again)
			continue;
		p->again = false;
		ask_later(w, &(struct inquiry){ .file.id = p->id, .again = true });
	}
	while (w->looked_open < FILES_MAX && inquiries_count(&w->inquiries) < INQUIRIES_FEW) {
		const struct file *file = files_next_open(&w->files, &w->looked_open);

		if (file)
			ask_later(w, &(struct inquiry){ .file.id = file->id, .again = true });
	}
}

/* Asks and hears, as much as a tick has time for. */
static void ask(struct watch *w)
{
	uint64_t told = 0;

	ask_growing(w);
	look_again(w);
	ask_waiting(w);
	while (told < MOST_EXTENTS && asker_hear(w->asker, w->now_ns + PATIENCE_NS, &w->answer)) {
		struct asker_answer *a = &w->answer;

		extents_count(&w->counts.extents, &a->stats);
		if (a->urgent)
			hear_growing(w, a);
		else
			hear(w, a);
		told += 1 + a->nr;
		free(a->extent);
		a->extent = NULL;
		look_again(w);
		ask_waiting(w);
	}
}

/* ---- what files tell ------------------------------------------------------------------------ */

/* One that has a place was cut, or written on. */
static void on_table(void *ctx, const struct file *file)
{
	struct watch *w = ctx;
	struct place *p = places_find(&w->places, &file->id);

	if (p)
		p->stale = true;
	inquiries_changed(&w->inquiries, &file->id, false);
	ask_later(w, &(struct inquiry){ .file.id = file->id });
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
	const bool asked = inquiries_changed(&w->inquiries, id, shared);

	if (!p && !asked)
		return;
	w->counts.places_changed++;
	if (!shared && !inquiries_wait(&w->inquiries, id))
		ask_later(w, &(struct inquiry){ .file.id = *id });
	if (!p)
		return;
	p->stale = true;
	p->shared |= shared;
}

/* From before the daemon's start, perhaps. */
static void on_input(void *ctx, const struct file_id *id)
{
	struct watch *w = ctx;

	if (!places_find(&w->places, id) && !inquiries_have(&w->inquiries, id))
		ask_later(w, &(struct inquiry){ .file.id = *id });
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

	inquiries_dead(&w->inquiries, &file->id, p && m);
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
			ask_later(w, &(struct inquiry){ .file = one->file, .again = true });
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

void watch_tick(struct watch *w, bool look, bool logs)
{
	w->now_ns = now_ns();
	mounts_round(&w->mounts);
	if (look)
		mounts_look(&w->mounts);
	if (logs)
		logs_tick(w->logs);
	w->dead_extents = 0;
	w->doubted = false;
	lsm_drain(w->lsm);
	if (lsm_lost(w->lsm) != w->lost)
		look_at_all(w, lsm_lost(w->lsm));
	w->now_ns = now_ns();
	files_tick(&w->files, w->now_ns);
	ask(w);
	tell_bequests(w);
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
	w->lost = lsm_lost(w->lsm);
	w->looked_open = FILES_MAX;
	mounts_look(&w->mounts);
	*out = w;
	return 0;
}

void watch_close(struct watch *w)
{
	lsm_close(w->lsm);
	for (uint32_t i = 0; i < w->nr_bequests; i++)
		bequest_free(w->bequest[i].b);
	for (uint32_t i = 0; i < w->nr_growing; i++)
		bequest_free(w->growing[i].b);
	asker_close(w->asker);
	places_exit(&w->places);
	logs_close(w->logs);
	free(w);
}
