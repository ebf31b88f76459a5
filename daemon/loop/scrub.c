// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Scrubs by itself: every scrub_days days all that is on slow tiers is read and verified, region by
 * region, then the owner tables of shelves; one order at a time, which yields to users (IDLE), and
 * within the kernel's limit (scrub_mb).
 *
 * The first pass begins scrub_days after the volume was first driven. The file `scrub` in the state directory keeps
 * when the last one began and how far it is: a restart goes on from there.  Damaged, or from a clock that was
 * ahead: as on the first day.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "loop/engine.h"

#define DAY_S		86400u
#define LOOKS		4096u		/* regions a tick */
#define SAVE_NS		60000000000ull
#define COOKIE		(1ull << 63)	/* of these orders, and no others */
#define TOLD		16u		/* findings of one pass that are logged; the others are counted */

/* ---- what survives a restart ---------------------------------------------------------- */

static void path_of(const struct engine *e, const char *name, char *path, size_t bytes)
{
	snprintf(path, bytes, "%s/%s", e->c.directory, name);
}

static bool parse(struct scrub *s, FILE *f)
{
	unsigned int going;

	if (fscanf(f, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %u %" SCNu32 " %" SCNu64, &s->began_s, &s->ended_s, &s->passes,
		   &going, &s->tier, &s->next) != 6 || going > 1 || s->tier >= TERRACE_MAX_RESULT_TIERS)
		return false;
	s->going = going;
	return fscanf(f, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &s->regions, &s->tables,
		      &s->read_bytes, &s->unreadable, &s->damaged, &s->bad_tables) == 6;
}

int scrub_load(struct engine *e)
{
	char path[4096];
	bool good;
	FILE *f;

	path_of(e, "scrub", path, sizeof(path));
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? 0 : -errno;
	good = parse(&e->scrub, f);
	fclose(f);
	if (!good)
		e->scrub = (struct scrub){ 0 };
	return good ? 0 : -EINVAL;
}

static int write_out(const struct scrub *s, FILE *f)
{
	fprintf(f, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %d %" PRIu32 " %" PRIu64 "\n", s->began_s, s->ended_s, s->passes,
		s->going, s->tier, s->next);
	fprintf(f, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", s->regions, s->tables,
		s->read_bytes, s->unreadable, s->damaged, s->bad_tables);
	return fflush(f) || fsync(fileno(f)) ? -errno : 0;
}

void scrub_save(struct engine *e)
{
	char path[4096], part[4096];
	FILE *f;
	int err;

	if (!e->scrub.began_s)
		return;
	e->scrub.saved_ns = e->now_ns;
	path_of(e, "scrub", path, sizeof(path));
	path_of(e, "scrub.new", part, sizeof(part));
	f = fopen(part, "we");
	err = f ? write_out(&e->scrub, f) : -errno;
	if (f && fclose(f) && !err)
		err = -errno;
	if (!err && rename(part, path))
		err = -errno;
	if (err)
		unlink(part);
	if (err && err != e->scrub.save_error)
		engine_log(e, ENGINE_WARNING, "%s cannot be written (%s): after a restart scrubs begin anew", path, strerror(-err));
	e->scrub.save_error = err;
}

/* ---- what comes next ---------------------------------------------------------------------- */

static uint64_t shelves_of(const struct port_tier *tier)
{
	return tier->kind == TERRACE_KIND_SHELVES && !tier->missing ? tier->blocks / TERRACE_CHUNK_BLOCKS : 0;
}

/* 1: @move; 0: the pass has ended; -EAGAIN: not found in this tick. */
static int next_order(struct engine *e, struct terrace_move *move)
{
	struct scrub *s = &e->scrub;

	*move = (struct terrace_move){
		.mode = TERRACE_MOVE_SCRUB, .flags = TERRACE_MOVE_WAIT | TERRACE_MOVE_IDLE, .cookie = COOKIE | ++s->cookies,
	};
	for (uint32_t looks = LOOKS; !s->tier; s->next++) {
		const struct terrace_summary *sum = &e->book.summary[s->next];

		if (s->next >= e->book.regions) {
			s->tier = 1;	/* shelves of the first cannot be named */
			s->next = 0;
			break;
		}
		if (!looks--)
			return -EAGAIN;
		if (!sum->packs && !sum->loose && !(sum->flags & TERRACE_SUMMARY_STALE))
			continue;
		move->region = s->next;
		return 1;
	}
	for (; s->tier < e->state.nr_tiers; s->tier++, s->next = 0)
		if (s->next < shelves_of(&e->state.tier[s->tier])) {
			move->region = s->next;
			move->tier_down = (uint8_t)s->tier;
			return 1;
		}
	return 0;
}

/* ---- passes -------------------------------------------------------------------------------- */

static void begin(struct engine *e)
{
	struct scrub *s = &e->scrub;

	*s = (struct scrub){
		.began_s = e->wall_s, .ended_s = s->ended_s, .passes = s->passes, .going = true,
		.cookies = s->cookies, .save_error = s->save_error,
	};
	engine_log(e, ENGINE_NOTICE, "scrub: a pass begins: all that is on slow tiers is read and verified");
	scrub_save(e);
}

static void end(struct engine *e)
{
	struct scrub *s = &e->scrub;
	bool bad = s->unreadable || s->damaged || s->bad_tables;

	s->going = false;
	s->tier = 0;
	s->next = 0;
	s->ended_s = e->wall_s;
	s->passes++;
	engine_log(e, bad ? ENGINE_WARNING : ENGINE_NOTICE,
		   "scrub: the pass has ended: %" PRIu64 " regions and %" PRIu64 " tables of shelves, %" PRIu64 " MiB read; %" PRIu64 " blocks cannot be read, %" PRIu64 " regions have damaged packs, %" PRIu64 " tables are bad",
		   s->regions, s->tables, s->read_bytes >> 20, s->unreadable, s->damaged, s->bad_tables);
	scrub_save(e);
}

/* Is one under way, or is it time for one? */
static bool goes_on(struct engine *e)
{
	struct scrub *s = &e->scrub;

	if (!e->c.scrub_days || e->c.evaluate || !e->wall_s)
		return false;
	if (!s->began_s || s->began_s > e->wall_s) {
		s->began_s = e->wall_s;
		scrub_save(e);
	}
	if (!s->going && e->wall_s - s->began_s >= (uint64_t)e->c.scrub_days * DAY_S)
		begin(e);
	return s->going;
}

void scrub_text(const struct engine *e, char *line, size_t bytes)
{
	const struct scrub *s = &e->scrub;
	char what[64];

	if (!e->c.scrub_days || e->c.evaluate) {
		snprintf(line, bytes, "no scrubs: %s", e->c.evaluate ? "evaluation" : "scrub_days is 0");
		return;
	}
	if (!s->going) {
		snprintf(line, bytes, "no scrub: %.1f of %u days (scrub_days) since the last pass began, or the volume was first driven",
			 s->began_s ? (double)(e->wall_s - s->began_s) / DAY_S : 0, e->c.scrub_days);
		return;
	}
	if (s->tier)
		snprintf(what, sizeof(what), "shelf %" PRIu64 " of tier %u", s->next, s->tier);
	else
		snprintf(what, sizeof(what), "region %" PRIu64, s->next);
	snprintf(line, bytes, "scrub %s: pass %" PRIu64 ", one is due every %u days (scrub_days); %s", what, s->passes + 1,
		 e->c.scrub_days, s->cookie ? "under way" : "next");
}

static void debug(struct engine *e)
{
	char line[400];

	if (!e->c.debug)
		return;
	scrub_text(e, line, sizeof(line));
	engine_log(e, ENGINE_DEBUG, "%s", line);
}

void scrub_tick(struct engine *e)
{
	struct scrub *s = &e->scrub;
	struct terrace_move move;
	int got;

	if (!goes_on(e) || s->cookie || !e->book.complete || !e->state.writable || e->now_ns < s->again_ns)
		return;
	got = next_order(e, &move);
	if (!got)
		end(e);
	if (got <= 0)
		return;
	/* Refused: there are too many under way; the same comes again. */
	if (e->port->ops->submit(e->port, &move, 1) == 1) {
		s->cookie = move.cookie;
		debug(e);
	}
	if (e->now_ns - s->saved_ns >= SAVE_NS)
		scrub_save(e);
}

/* ---- results ------------------------------------------------------------------------------- */

static void finding(struct engine *e, const struct terrace_result *r)
{
	struct scrub *s = &e->scrub;
	unsigned long long at = r->region;

	if (s->tier)
		s->bad_tables++;
	else
		s->unreadable += r->unreadable;
	s->damaged += !s->tier && !r->unreadable;
	if (s->told++ >= TOLD)
		return;
	if (s->tier)
		engine_log(e, ENGINE_WARNING, "scrub: shelf %llu of tier %u: what it says of its owners is damaged", at, s->tier);
	else if (r->error != -EIO)
		engine_log(e, ENGINE_WARNING, "scrub: region %llu cannot be looked at: %s", at, strerror(-r->error));
	else if (r->status == TERRACE_RESULT_FAILED)
		engine_log(e, ENGINE_WARNING, "scrub: region %llu: so many reads failed that the rest of it was not tried", at);
	else if (r->unreadable)
		engine_log(e, ENGINE_WARNING, "scrub: region %llu: %u blocks cannot be read; the first is block %llu", at,
			   r->unreadable, (unsigned long long)r->bad_block);
	else
		engine_log(e, ENGINE_WARNING, "scrub: region %llu: a pack is damaged, but all its blocks can be read: the kernel log says where", at);
}

/* A suspend, a region that is busy: the same comes again. */
static bool passes(int error)
{
	return error == -EBUSY || error == -ECANCELED || error == -EAGAIN || error == -EINTR || error == -ENOMEM || error == -EROFS;
}

bool scrub_ended(struct engine *e, const struct terrace_result *r)
{
	struct scrub *s = &e->scrub;

	if (!(r->cookie & COOKIE))
		return false;
	if (r->cookie != s->cookie)
		return true;
	s->cookie = 0;
	for (uint32_t t = 0; t < e->state.nr_tiers; t++)
		s->read_bytes += r->read_bytes[t];
	if (passes(r->error)) {
		s->again_ns = e->now_ns + 1000000000;
		return true;
	}
	if (r->error && r->error != -ENOENT && r->error != -ENODEV)
		finding(e, r);
	*(s->tier ? &s->tables : &s->regions) += r->error != -ENOENT;
	s->next++;
	return true;
}
