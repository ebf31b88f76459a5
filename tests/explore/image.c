// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The drives. An image holds what is durable; writes that are not wait in the
 * order in which they came, and a state is the image with some of them, sector
 * by sector in that order, which is then taken back again. What a later write
 * has made durable is not overwritten by an earlier one that was not.
 *
 * Images are files without a name, so that the product's code can open and
 * read them as it does any image.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "explore.h"

#define ZERO_HASH	0ull

static const u8 zeros[SECTOR];

void world_init(struct world *w, struct log *log)
{
	memset(w, 0, sizeof(*w));
	w->log = log;
}

static void add_image(struct world *w, const struct drive_record *r)
{
	const struct drive_record_drive *who = log_data(r);
	struct image *i = &w->image[w->nr_images];

	if (r->drive != w->nr_images || w->nr_images == MAX_IMAGES)
		give_up("drive %u of the record, at most %u in order", r->drive, MAX_IMAGES);
	i->number = w->nr_images++;
	memcpy(i->name, who->name, sizeof(i->name));
	i->fd = memfd_create(i->name, MFD_CLOEXEC);
	if (i->fd < 0 || ftruncate(i->fd, who->bytes))
		give_up("no memory for an image of %s", i->name);
	i->bytes = mmap(NULL, who->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, i->fd, 0);
	i->nr_sectors = who->bytes / SECTOR;
	i->atom = who->atom < SECTOR ? 1 : who->atom / SECTOR;
	i->hash = calloc(i->nr_sectors, sizeof(*i->hash));
	i->since = calloc(i->nr_sectors, sizeof(*i->since));
	snprintf(i->path, sizeof(i->path), "/proc/self/fd/%d", i->fd);
	if (i->bytes == MAP_FAILED || !i->hash || !i->since)
		give_up("no memory for an image of %s", i->name);
}

/* ---- sectors ---- */

/* What this sector's content adds to the hash of all. */
static u64 weight(const struct image *i, u64 sector, u64 hash)
{
	return hash ? stamp_mix(hash ^ stamp_mix(sector ^ (u64)i->number << 56)) : ZERO_HASH;
}

static void put_sector(struct world *w, struct image *i, u64 sector, const u8 *bytes, u64 hash)
{
	w->hash ^= weight(i, sector, i->hash[sector]) ^ weight(i, sector, hash);
	i->hash[sector] = hash;
	memcpy(i->bytes + sector * SECTOR, bytes, SECTOR);
}

static void remember(struct world *w, struct image *i, u64 sector)
{
	struct undo *u;

	if (w->nr_undo == w->room_undo) {
		w->room_undo = w->room_undo * 2 + 1024;
		w->undo = reallocarray(w->undo, w->room_undo, sizeof(*w->undo));
		if (!w->undo)
			give_up("no memory to take a state back");
	}
	u = &w->undo[w->nr_undo++];
	u->image = i;
	u->sector = sector;
	u->hash = i->hash[sector];
	memcpy(u->bytes, i->bytes + sector * SECTOR, SECTOR);
}

static struct image *image_of(struct world *w, const struct drive_record *r)
{
	struct image *i = &w->image[r->drive];

	if (r->drive >= w->nr_images || (r->start + r->bytes) / SECTOR > i->nr_sectors)
		give_up("a write beyond the drive's end");
	return i;
}

/* All of it is on the medium, for good. */
static void make_durable(struct world *w, u32 at)
{
	const struct drive_record *r = w->log->record[at];
	struct image *i = image_of(w, r);
	const u64 *hash = log_hashes(w->log, at);
	const u8 *data = log_data(r);

	for (u64 n = 0; n < r->bytes / SECTOR; n++) {
		u64 sector = r->start / SECTOR + n;

		if (i->since[sector] > at)
			continue;
		i->since[sector] = at;
		if (hash)
			put_sector(w, i, sector, data + n * SECTOR, hash[n]);
		else if (i->hash[sector])
			put_sector(w, i, sector, zeros, 0);
	}
}

static bool unit_is_there(const struct pending *p, const struct image *i, u64 sector)
{
	return p->fate == FATE_WHOLE || stamp_mix(p->seed ^ sector / i->atom) & 1;
}

static void apply(struct world *w, const struct pending *p)
{
	const struct drive_record *r = w->log->record[p->at];
	struct image *i = image_of(w, r);
	const u64 *hash = log_hashes(w->log, p->at);
	const u8 *data = log_data(r);

	for (u64 n = 0; n < r->bytes / SECTOR; n++) {
		u64 sector = r->start / SECTOR + n;

		if (i->since[sector] > p->at || !unit_is_there(p, i, sector))
			continue;
		if (i->hash[sector] == (hash ? hash[n] : 0))
			continue;
		remember(w, i, sector);
		put_sector(w, i, sector, hash ? data + n * SECTOR : zeros, hash ? hash[n] : 0);
	}
}

void world_build(struct world *w)
{
	for (u32 k = 0; k < w->nr_pending; k++)
		if (w->pending[k].fate != FATE_LOST)
			apply(w, &w->pending[k]);
}

void world_unbuild(struct world *w)
{
	while (w->nr_undo) {
		const struct undo *u = &w->undo[--w->nr_undo];

		put_sector(w, u->image, u->sector, u->bytes, u->hash);
	}
}

/* ---- the course of things ---- */

static void add_pending(struct world *w, u32 at, u32 kind)
{
	if (w->nr_pending == w->room_pending) {
		w->room_pending = w->room_pending * 2 + 256;
		w->pending = reallocarray(w->pending, w->room_pending, sizeof(*w->pending));
	}
	w->pending[w->nr_pending++] = (struct pending){ .at = at, .kind = kind };
}

/* What @settled says leaves the list: durable if @keep, else gone. */
typedef bool (*settled_fn)(const struct pending *p, const struct drive_record *of, const void *ctx);

static void settle(struct world *w, settled_fn settled, const void *ctx, bool keep)
{
	u32 kept = 0;

	for (u32 k = 0; k < w->nr_pending; k++) {
		struct pending *p = &w->pending[k];

		if (!settled(p, w->log->record[p->at], ctx))
			w->pending[kept++] = *p;
		else if (keep)
			make_durable(w, p->at);
	}
	w->nr_pending = kept;
}

static bool is_that(const struct pending *p, const struct drive_record *of, const void *ctx)
{
	const struct drive_record *r = ctx;

	(void)p;
	return of->id == r->id;
}

struct covered {
	u32 drive;
	u32 before;		/* record of the flush's begin */
};

static bool is_covered(const struct pending *p, const struct drive_record *of, const void *ctx)
{
	const struct covered *c = ctx;

	return of->drive == c->drive && p->done_at && p->done_at < c->before;
}

static bool is_on(const struct pending *p, const struct drive_record *of, const void *ctx)
{
	const struct drive_record *r = ctx;

	(void)p;
	return of->drive == r->drive;
}

static void done(struct world *w, u32 at)
{
	const struct drive_record *r = w->log->record[at];

	if (r->flags & RECORD_DURABLE) {
		settle(w, is_that, r, true);
		return;
	}
	for (u32 k = 0; k < w->nr_pending; k++)
		if (w->log->record[w->pending[k].at]->id == r->id)
			w->pending[k].done_at = at;
}

static void flush_begins(struct world *w, u32 at)
{
	const struct drive_record *r = w->log->record[at];

	if (w->nr_flushes == sizeof(w->flush) / sizeof(w->flush[0]))
		give_up("too many flushes at once");
	w->flush[w->nr_flushes++] = (struct flush){ .id = r->id, .drive = r->drive, .at = at };
}

static void flush_ends(struct world *w, const struct drive_record *r)
{
	for (u32 k = 0; k < w->nr_flushes; k++) {
		struct covered c = { .drive = r->drive, .before = w->flush[k].at };

		if (w->flush[k].id != r->id)
			continue;
		settle(w, is_covered, &c, true);
		w->flush[k] = w->flush[--w->nr_flushes];
		return;
	}
}

bool world_settles(const struct world *w, u32 at)
{
	const struct drive_record *r = w->log->record[at];

	return w->nr_pending && (r->kind == RECORD_FLUSHED || r->kind == RECORD_CUT ||
				 (r->kind == RECORD_DONE && r->flags & RECORD_DURABLE));
}

static void cut(struct world *w, const struct drive_record *r)
{
	u32 kept = 0;

	settle(w, is_on, r, false);
	for (u32 k = 0; k < w->nr_flushes; k++)
		if (w->flush[k].drive != r->drive)
			w->flush[kept++] = w->flush[k];
	w->nr_flushes = kept;
}

void world_step(struct world *w, u32 at, u32 kind)
{
	const struct drive_record *r = w->log->record[at];

	switch (r->kind) {
	case RECORD_DRIVE:
		add_image(w, r);
		break;
	case RECORD_WRITE:
	case RECORD_ZERO:
		add_pending(w, at, kind);
		break;
	case RECORD_DONE:
		done(w, at);
		break;
	case RECORD_FLUSH:
		flush_begins(w, at);
		break;
	case RECORD_FLUSHED:
		flush_ends(w, r);
		break;
	case RECORD_CUT:
		cut(w, r);
		break;
	case RECORD_LEFT:
		make_durable(w, at);
		break;
	default:
		break;
	}
}
