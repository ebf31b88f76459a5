// SPDX-License-Identifier: GPL-2.0-or-later
/* Filesystems, files and their places together; see watch.h. */
#include "sense/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "sense/bequest.h"
#include "sense/lsm.h"
#include "sense/places.h"

#define MOUNTS		16	/* filesystems of a volume */
#define EXTENTS		256	/* of a table; what it has beyond them is left alone */
#define WAITING		1024	/* tables closed since the last tick */
#define BEQUESTS	16	/* jobs that ended since then */

struct mount {
	unsigned int major, minor;
	char path[WATCH_PATH];	/* "": free */
	bool xfs, seen;
	struct stack stack;
};

struct watch {
	struct watch_tell tell;
	struct watch_counts counts;
	unsigned int major, minor;
	struct lsm_sense *lsm;
	struct mount mount[MOUNTS];
	struct file_id waiting[WAITING];
	uint32_t nr_waiting;
	struct bequest *bequest[BEQUESTS];	/* until outputs have been asked for */
	uint32_t nr_bequests;
	struct growing {
		struct file_id id;
		struct bequest *b;
		bool bottom;
	} growing[BEQUESTS];		/* outputs that began to grow since the last tick */
	uint32_t nr_growing;
	struct logs *logs;
	struct places places;
	struct files files;
};

/* ---- asking for extents ------------------------------------------------------------------- */

static struct mount *mount_of(struct watch *w, uint32_t dev)
{
	for (int i = 0; i < MOUNTS; i++)
		if (w->mount[i].path[0] && (w->mount[i].major << 20 | w->mount[i].minor) == dev)
			return &w->mount[i];
	return NULL;
}

/*
 * Handles as ext4 and xfs make them: inode and generation; xfs with 64-bit inodes of its own type.
 * A wrong guess is refused by the filesystem (ESTALE), not taken for another file: the generation
 * has to be right.  No O_NOATIME: that is for a file's owner alone, and FIEMAP is no access.
 */
static int open_inode(const struct mount *m, int root, const struct file_id *id)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + 16];
	} u;
	uint32_t inode = (uint32_t)id->inode;

	memset(&u, 0, sizeof(u));
	if (m->xfs) {
		u.handle.handle_type = 0x81;	/* XFS: FILEID_INO32_GEN | 64 bits */
		u.handle.handle_bytes = 12;
		memcpy(u.handle.f_handle, &id->inode, 8);
		memcpy(u.handle.f_handle + 8, &id->generation, 4);
	} else {
		u.handle.handle_type = 1;	/* FILEID_INO32_GEN */
		u.handle.handle_bytes = 8;
		memcpy(u.handle.f_handle, &inode, 4);
		memcpy(u.handle.f_handle + 4, &id->generation, 4);
	}
	return open_by_handle_at(root, &u.handle, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

int watch_root(const char *path, uint32_t dev)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && (major(st.st_dev) << 20 | minor(st.st_dev)) == dev)
		return fd;
	close(fd);
	return -ESTALE;
}

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

/* Into EXTENTS of @extent; their number, 0: it cannot be asked. */
static uint32_t extents_by_id(struct watch *w, const struct file_id *id, struct extent *extent)
{
	const struct file *file = files_find(&w->files, id);
	const struct mount *m = mount_of(w, id->dev);
	int root = m ? watch_root(m->path, id->dev) : -1;
	int fd = root >= 0 ? open_inode(m, root, id) : -1, nr = 0;

	if (root >= 0)
		close(root);
	if (fd >= 0) {
		nr = extents_of(fd, &m->stack, extent, EXTENTS, &w->counts.extents);
		if (file)
			note_folder(w, file, fd);
		close(fd);
	}
	return nr > 0 ? (uint32_t)nr : 0;
}

static void ask(struct watch *w, const struct file_id *id)
{
	const struct file *file = files_find(&w->files, id);
	struct extent extent[EXTENTS];
	uint32_t nr = extents_by_id(w, id, extent);

	if (!nr) {
		w->counts.unmapped++;
		return;
	}
	w->counts.mapped++;
	places_keep(&w->places, id, extent, nr);
	if (w->tell.placed && file)
		w->tell.placed(w->tell.ctx, file, extent, nr);
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

/* What was allocated ahead counts: databases do that for the files they are about to write. */
static void ask_growing(struct watch *w, const struct growing *g)
{
	struct extent extent[EXTENTS];
	uint32_t nr = extents_by_id(w, &g->id, extent);

	w->tell.growing(w->tell.ctx, &g->id, g->b, g->bottom, extent, nr);
}

/* ---- what files tell ------------------------------------------------------------------------ */

static void on_table(void *ctx, const struct file *file)
{
	struct watch *w = ctx;

	if (w->nr_waiting < WAITING)
		w->waiting[w->nr_waiting++] = file->id;
	else
		w->counts.unmapped++;
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
	struct place *p = places_find(&w->places, &file->id);
	const struct mount *m = mount_of(w, file->id.dev);

	for (uint32_t i = 0; p && i < p->nr; i++)
		w->counts.dead_blocks += p->extent[i].nr;
	if (m && w->tell.dead)
		w->tell.dead(w->tell.ctx, m->path, &file->id, p ? p->extent : NULL, p ? p->nr : 0);
	if (p)
		places_drop(p);
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

	if (!w->tell.growing || w->nr_growing == BEQUESTS)
		return;
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

static void mount_drop(struct watch *w, struct mount *m)
{
	lsm_watch(w->lsm, m->major, m->minor, false);
	logs_gone(w->logs, m->major << 20 | m->minor);
	m->path[0] = 0;
}

static void mount_add(struct watch *w, unsigned int major, unsigned int minor, const char *path, bool xfs)
{
	struct mount *m = NULL;

	for (int i = 0; !m && i < MOUNTS; i++)
		if (!w->mount[i].path[0])
			m = &w->mount[i];
	if (!m || stack_find(major, minor, w->major, w->minor, &m->stack) ||
	    lsm_watch(w->lsm, major, minor, true))
		return;
	snprintf(m->path, sizeof(m->path), "%s", path);
	m->major = major;
	m->minor = minor;
	m->xfs = xfs;
	m->seen = true;
	if (w->tell.filesystem)
		w->tell.filesystem(w->tell.ctx, path);
}

/* "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw" */
static void mount_line(struct watch *w, const char *line)
{
	unsigned int major, minor;
	char path[WATCH_PATH], type[32];
	const char *dash = strstr(line, " - ");
	struct mount *m;

	if (!dash || sscanf(line, "%*d %*d %u:%u %*s %255s", &major, &minor, path) != 3 ||
	    sscanf(dash, " - %31s", type) != 1 || (strcmp(type, "ext4") && strcmp(type, "xfs")))
		return;
	m = mount_of(w, major << 20 | minor);
	if (m)
		m->seen = true;
	else
		mount_add(w, major, minor, path, !strcmp(type, "xfs"));
}

/* No folder stays open: that would keep a filesystem from being unmounted. */
static void look_for_mounts(struct watch *w)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[2048];

	if (!f)
		return;
	for (int i = 0; i < MOUNTS; i++)
		w->mount[i].seen = false;
	while (fgets(line, sizeof(line), f))
		mount_line(w, line);
	fclose(f);
	w->counts.filesystems = 0;
	for (int i = 0; i < MOUNTS; i++) {
		if (w->mount[i].path[0] && !w->mount[i].seen)
			mount_drop(w, &w->mount[i]);
		w->counts.filesystems += w->mount[i].path[0] != 0;
	}
}

/* ---- the whole ---------------------------------------------------------------------------------- */

void watch_tick(struct watch *w, bool look, bool logs)
{
	struct timespec now;

	if (look)
		look_for_mounts(w);
	if (logs)
		logs_tick(w->logs);
	lsm_drain(w->lsm);
	clock_gettime(CLOCK_MONOTONIC, &now);
	files_tick(&w->files, (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec);
	for (uint32_t i = 0; i < w->nr_growing; i++) {
		ask_growing(w, &w->growing[i]);
		bequest_free(w->growing[i].b);
	}
	w->nr_growing = 0;
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
	w->counts.lost = lsm_lost(w->lsm);
	logs_counts(w->logs, &w->counts.logs);
	return &w->counts;
}

void watch_mark(struct watch *w, bool yes)
{
	lsm_mark(w->lsm, yes);
}

void watch_profiles(struct watch *w, uint32_t profiles)
{
	files_profiles(&w->files, profiles);
}

int watch_open(unsigned int major, unsigned int minor, const int *ignored, uint32_t profiles, const struct watch_tell *tell,
	       struct watch **out, char *why, size_t bytes)
{
	struct watch *w = calloc(1, sizeof(*w));
	const struct files_tell files = {
		.job = on_job, .growing = on_growing, .compaction = on_compaction, .busy = on_busy, .table = on_table,
		.input = on_input, .left = on_left, .died = on_death, .ctx = w,
	};
	int err;

	if (!w)
		return -ENOMEM;
	w->tell = *tell;
	w->major = major;
	w->minor = minor;
	files_init(&w->files, profiles, &files);
	w->logs = logs_open(on_logged, w);
	err = w->logs ? lsm_open(&w->lsm, ignored, on_event, w, why, bytes) : -ENOMEM;
	if (err) {
		logs_close(w->logs);
		free(w);
		return err;
	}
	look_for_mounts(w);
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
	places_exit(&w->places);
	logs_close(w->logs);
	free(w);
}
