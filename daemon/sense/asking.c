// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Asks where files lie, and puts the answers to use; see watching.h.  First those that are being written, then fresh tables,
 * then what is looked at again, then what was found.  Nothing here waits for a filesystem, but for PATIENCE_NS of a tick.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sense/watching.h"

#define FOUND_FILES	(FILES_MAX / 4 * 3)	/* with more that are known none is taken only because it was found */
#define FOUND_AT_ONCE	64u	/* looked at in a tick */
#define WALK_NS		30000000000ull	/* between walks after lost events */

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
	if (one->again || one->found)
		return;
	w->counts.unmapped++;
	if (w->tell.left)
		w->tell.left(w->tell.ctx, id);
}

void asking_later(struct watch *w, const struct inquiry *one)
{
	if (inquiries_add(&w->inquiries, one))
		return;
	w->counts.not_asked++;
	cannot_be_asked(w, one);
}

/*
 * It died while it was asked.  Where it lay then is its own no longer, and another may have been told as placed there: that
 * is trimmed where it is free, and nothing else is said of it.
 */
static void dead_late(struct watch *w, const struct mount *m, const struct asker_answer *a)
{
	for (uint32_t i = 0; i < a->nr; i++)
		w->counts.dead_blocks += a->extent[i].nr;
	if (w->tell.dead)
		w->tell.dead(w->tell.ctx, m->path, &a->id, a->extent, a->nr, false);
}

/* ---- files that are being written ------------------------------------------------------------ */

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

static struct growing *growing_of(struct watch *w, const struct file_id *id)
{
	for (uint32_t i = 0; i < w->nr_growing; i++)
		if (!memcmp(&w->growing[i].id, id, sizeof(*id)))
			return &w->growing[i];
	return NULL;
}

static void growing_drop(struct watch *w, uint32_t i)
{
	if (w->growing[i].b)
		bequest_free(w->growing[i].b);
	w->growing[i] = w->growing[--w->nr_growing];
}

struct growing *asking_grows(struct watch *w, const struct file_id *id, uint32_t most)
{
	struct growing *g = growing_of(w, id);

	if (!g && w->nr_growing < most) {
		g = &w->growing[w->nr_growing++];
		*g = (struct growing){ .id = *id };
	}
	return g;
}

void asking_died(struct watch *w, const struct file_id *id, bool told)
{
	struct growing *g = growing_of(w, id);

	if (!g)
		return;
	g->dead = true;
	if (!told)
		return;
	w->counts.growing_late += g->b != NULL;
	w->counts.logs_late += g->log;
	growing_drop(w, (uint32_t)(g - w->growing));
}

void asking_drops(struct watch *w, uint32_t dev)
{
	for (uint32_t i = w->nr_growing; i-- > 0;)
		if (w->growing[i].id.dev == dev)
			growing_drop(w, i);
}

/* What is complete is asked for that. */
static bool is_complete(const struct watch *w, const struct growing *g)
{
	const struct file *file = files_find(&w->files, &g->id);

	return !g->b && !g->log && (!file || !file->open);
}

static void ask_one(struct watch *w, uint32_t i)
{
	const struct file_id id = w->growing[i].id;
	const struct mount *m = mounts_now(&w->mounts, id.dev);	/* first: it may drop what grows there */
	struct growing *g = growing_of(w, &id);

	if (!g)
		return;
	g->asked = m && !is_complete(w, g) && asker_ask(w->asker, m, &id, true);
	if (g->asked)
		return;
	w->counts.growing_lost += g->b != NULL;
	w->counts.logs_lost += g->log;
	growing_drop(w, (uint32_t)(g - w->growing));
}

static void ask_growing(struct watch *w)
{
	for (uint32_t i = w->nr_growing; i-- > 0;)
		if (i < w->nr_growing && !w->growing[i].asked)
			ask_one(w, i);
}

/*
 * A log is deleted as soon as it is closed, before it can be asked once more, and so is what a compaction or a flush was writing
 * when it was stopped. Its end may be given up when it is closed, unheard.
 */
static void keep_growing(struct watch *w, const struct asker_answer *a)
{
	struct place *p = places_find(&w->places, &a->id);
	const bool shared = p && p->shared;

	if (!a->nr)
		return;
	places_keep(&w->places, &a->id, a->extent, a->nr);
	p = places_find(&w->places, &a->id);
	if (p) {
		p->shared = shared;
		p->stale = true;
		p->early = true;
	}
}

static void tell_growing(struct watch *w, const struct growing *g, const struct asker_answer *a)
{
	uint64_t bytes = 0;

	keep_growing(w, a);
	if (g->b) {
		w->tell.growing(w->tell.ctx, &g->id, g->b, g->bottom, a->extent, a->nr);
		return;
	}
	for (uint32_t i = 0; i < a->nr; i++)
		if (a->extent[i].offset + a->extent[i].nr * EXTENT_BLOCK > bytes)
			bytes = a->extent[i].offset + a->extent[i].nr * EXTENT_BLOCK;
	if (!g->log)
		return;
	files_lies(&w->files, &g->id, bytes);
	w->tell.log(w->tell.ctx, &g->id, a->extent, a->nr);
}

/* It grows no more. Where it lay is worth knowing all the same: it may die before it is asked again, or has died already. */
static void grown(struct watch *w, const struct growing *g, const struct file *file, const struct mount *m, const struct asker_answer *a)
{
	w->counts.growing_late += g->b != NULL;
	w->counts.logs_late += g->log;
	if (!a->nr || !m || !stack_same(&m->stack, &a->stack))
		return;
	if (file && !places_find(&w->places, &a->id))
		keep_growing(w, a);
	else if (g->dead)
		dead_late(w, m, a);
}

/*
 * What was allocated ahead counts: databases do that for the files they are about to write.  Whoever was waited for too
 * long is told with a later tick, if it still grows then.
 */
static void hear_growing(struct watch *w, const struct asker_answer *a)
{
	const struct mount *m = mounts_now(&w->mounts, a->id.dev);	/* first: it may drop what grows there */
	struct growing *g = growing_of(w, &a->id);
	const struct file *file = files_find(&w->files, &a->id);

	if (g && (!file || !file->open))
		grown(w, g, file, m, a);
	else if (g && m && stack_same(&m->stack, &a->stack))
		tell_growing(w, g, a);
	if (g)
		growing_drop(w, (uint32_t)(g - w->growing));
}

/* ---- answers ------------------------------------------------------------------------------------ */

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

static void died_meanwhile(struct watch *w, const struct inquiry *one, const struct asker_answer *a)
{
	const struct mount *m = mounts_now(&w->mounts, a->id.dev);

	if (one->told || !a->nr || !m || !stack_same(&m->stack, &a->stack))
		return;
	inquiries_dead(&w->inquiries, &a->id, true);
	dead_late(w, m, a);
}

/*
 * What filesystems have allocated ahead they give up just after a file is told to be closed: it may be in the answer, and
 * another's when this one dies.
 */
static void end_at(struct asker_answer *a, uint64_t size)
{
	const uint64_t end = (size + EXTENT_BLOCK - 1) / EXTENT_BLOCK;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < a->nr; i++) {
		struct extent *e = &a->extent[i];
		const uint64_t first = e->offset / EXTENT_BLOCK;

		if (first >= end)
			continue;
		e->nr = e->nr < end - first ? e->nr : end - first;
		a->extent[kept++] = *e;
	}
	a->nr = kept;
}

/*
 * It may have been cut, shared or written on since it was asked: an answer that is not sure, and it has to be asked again.
 * So it is while it seems to be written: if that is true it will be told again when it is closed.
 */
static void placed(struct watch *w, const struct inquiry *one, struct asker_answer *a)
{
	struct place *p = places_find(&w->places, &a->id);
	const bool shared = one->shared || (p && p->shared);
	const struct file *file;

	if (one->found)
		files_found(&w->files, &a->id, one->file.parent, one->file.name, one->file.size);
	file = files_find(&w->files, &a->id);
	if (p && w->tell.moved)
		w->tell.moved(w->tell.ctx, p->extent, p->nr);
	*(one->found ? &w->counts.found : one->again ? &w->counts.looked_again : &w->counts.mapped) += 1;
	places_keep(&w->places, &a->id, a->extent, a->nr);
	p = places_find(&w->places, &a->id);
	if (p) {
		p->shared = shared;
		p->early = file && file->open;
		p->stale = shared || one->changed || p->early;
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
	const struct file *file = files_find(&w->files, &a->id);
	struct inquiry one;

	if (!inquiries_answered(&w->inquiries, &a->id, &one))
		return;
	if (file && !file->open && file->size)
		end_at(a, file->size);
	if (one.dead) {
		died_meanwhile(w, &one, a);
	} else if (one.again && m && a->err == -ESTALE) {
		died_unheard(w, &a->id);
	} else if (m && !stack_same(&m->stack, &a->stack)) {
		asking_later(w, &(struct inquiry){ .file = one.file, .found = one.found, .again = one.again, .shared = one.shared });
	} else if (!m || a->err) {
		cannot_be_asked(w, &one);
	} else if (!a->nr) {
		nothing_of_its_own(w, &one);
	} else {
		placed(w, &one, a);
		pass_on(w, &a->id);
	}
}

/* ---- what is known already, or found -------------------------------------------------------------- */

void asking_walk(struct watch *w, uint32_t dev)
{
	for (uint32_t i = 0; i < w->nr_to_walk; i++)
		if (w->to_walk[i] == dev)
			return;
	if (w->nr_to_walk < MOUNTS)
		w->to_walk[w->nr_to_walk++] = dev;
}

/* One after the other, each when the one before has been heard to its end. */
static void walk(struct watch *w)
{
	const struct mount *m;

	if (w->walks_all && w->now_ns - w->walked_ns >= WALK_NS) {
		for (int i = 0; i < MOUNTS; i++)
			if (w->mounts.mount[i].path[0])
				asking_walk(w, mount_dev(&w->mounts.mount[i]));
		w->walks_all = false;
		w->walked_ns = w->now_ns;
	}
	if (!w->nr_to_walk)
		return;
	m = mounts_now(&w->mounts, w->to_walk[0]);
	if (m && !finder_walk(w->finder, m, w->files.profiles))
		return;
	memmove(&w->to_walk[0], &w->to_walk[1], --w->nr_to_walk * sizeof(w->to_walk[0]));
}

/* That it is called so may be all that is not known of it. */
static void consider(struct watch *w, const struct found_file *found)
{
	const struct file *file = files_find(&w->files, &found->id);
	const bool is_placed = places_find(&w->places, &found->id);

	if ((file && file->open) || (file && is_placed && !strcmp(file->name, found->name)) ||
	    inquiries_have(&w->inquiries, &found->id))
		return;
	if (!file && w->files.nr >= FOUND_FILES)
		w->counts.found_left++;
	else
		asking_later(w, &(struct inquiry){ .file = *found, .found = true });
}

/* While few others wait: what is known already, then what is found. */
static void look_again(struct watch *w)
{
	struct found_file found;

	for (; w->looked < PLACES && inquiries_count(&w->inquiries) < INQUIRIES_FEW; w->looked++) {
		struct place *p = &w->places.place[w->looked];

		if (!p->nr || !p->again)
			continue;
		p->again = false;
		asking_later(w, &(struct inquiry){ .file.id = p->id, .again = true });
	}
	while (w->looked_open < FILES_MAX && inquiries_count(&w->inquiries) < INQUIRIES_FEW) {
		const struct file *file = files_next_open(&w->files, &w->looked_open);

		if (file)
			asking_later(w, &(struct inquiry){ .file.id = file->id, .again = true });
	}
	for (uint32_t i = 0; i < FOUND_AT_ONCE && inquiries_count(&w->inquiries) < INQUIRIES_FEW && finder_next(w->finder, &found); i++)
		consider(w, &found);
}

/* ---- the whole ---------------------------------------------------------------------------------- */

void asking_tick(struct watch *w)
{
	uint64_t told = 0;

	ask_growing(w);
	walk(w);
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
