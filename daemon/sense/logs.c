// SPDX-License-Identifier: GPL-2.0-or-later
/* See logs.h. */
#include "sense/logs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define NAME		"LOG"
#define OLD		"LOG.old."

struct database {
	uint64_t folder;	/* inode; 0: free */
	uint64_t used;		/* when a table was found last */
	uint64_t at;		/* read up to here: the beginning of a line ... */
	ino_t inode;		/* ... of this LOG; 0: none yet */
	uint32_t dev;
	bool within;		/* ... or the middle of one, whose rest is to be passed over */
	char path[LOGS_PATH];
	struct eventlog *log;
};

struct logs {
	logs_compaction_fn compaction;
	void *ctx;
	uint64_t clock;
	struct logs_counts counts;
	struct eventlog_stats gone;
	struct database database[LOGS_MAX];
	char text[LOGS_AT_ONCE];
};

/* ---- which databases ------------------------------------------------------------------ */

static void add_stats(struct eventlog_stats *to, const struct eventlog_stats *from)
{
	to->events += from->events;
	to->malformed += from->malformed;
	to->compactions += from->compactions;
	to->cut += from->cut;
}

static void forget(struct logs *l, struct database *d)
{
	if (d->log)
		add_stats(&l->gone, &d->log->stats);
	free(d->log);
	memset(d, 0, sizeof(*d));
}

static struct database *find(const struct logs *l, uint32_t dev, uint64_t folder)
{
	for (uint32_t i = 0; i < LOGS_MAX; i++)
		if (l->database[i].folder == folder && l->database[i].dev == dev)
			return (struct database *)&l->database[i];
	return NULL;
}

bool logs_used(struct logs *l, uint32_t dev, uint64_t folder)
{
	struct database *d = folder ? find(l, dev, folder) : NULL;

	if (d)
		d->used = ++l->clock;
	return d;
}

/* Rather one that has shown no LOG yet, another kind of database's, than one that has; then the one that is longest without a new table. */
static bool gives_way(const struct database *a, const struct database *b)
{
	return !a->inode != !b->inode ? !a->inode : a->used < b->used;
}

void logs_found(struct logs *l, uint32_t dev, uint64_t folder, const char *path)
{
	struct database *d = folder ? find(l, dev, folder) : NULL;

	if (!folder || strlen(path) >= LOGS_PATH)
		return;
	if (!d) {
		d = &l->database[0];
		for (uint32_t i = 1; i < LOGS_MAX; i++)
			if (gives_way(&l->database[i], d))
				d = &l->database[i];
		forget(l, d);
		d->log = calloc(1, sizeof(*d->log));
		if (!d->log)
			return;
		eventlog_init(d->log);
		d->log->compaction = l->compaction;
		d->log->ctx = l->ctx;
		d->dev = dev;
		d->folder = folder;
	}
	d->used = ++l->clock;
	snprintf(d->path, sizeof(d->path), "%s", path);
}

void logs_gone(struct logs *l, uint32_t dev)
{
	for (uint32_t i = 0; i < LOGS_MAX; i++)
		if (l->database[i].folder && l->database[i].dev == dev)
			forget(l, &l->database[i]);
}

/* ---- reading ----------------------------------------------------------------------------- */

/* A regular file of this filesystem, whatever a database's owner put there. */
static int open_log(const struct database *d, int folder, const char *name, struct stat *st)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);

	if (fd < 0)
		return -1;
	if (!fstat(fd, st) && S_ISREG(st->st_mode) && (major(st->st_dev) << 20 | minor(st->st_dev)) == d->dev)
		return fd;
	close(fd);
	return -1;
}

/* Hands on whole lines; how many bytes they were. */
static size_t lines(struct database *d, const char *text, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		const char *line = text + done, *end = memchr(line, '\n', bytes - done);

		if (!end)
			break;
		if (!d->within)
			eventlog_line(d->log, line, (size_t)(end - line));
		d->within = false;
		done += (size_t)(end - line) + 1;
	}
	return done;
}

/* Whether there is more. */
static bool read_on(struct logs *l, struct database *d, int fd)
{
	ssize_t got = pread(fd, l->text, sizeof(l->text), (off_t)d->at);
	size_t done;

	if (got <= 0)
		return false;
	done = lines(d, l->text, (size_t)got);
	/* A line that is longer than that is none of ours. */
	if (!done && got == sizeof(l->text)) {
		d->log->stats.malformed += !d->within;
		d->within = true;
		done = (size_t)got;
	}
	d->at += done;
	return got == sizeof(l->text);
}

/* The one that was followed has another name now. */
static int open_old(const struct database *d, int folder)
{
	int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *entry;
	struct stat st;

	if (!dir) {
		if (copy >= 0)
			close(copy);
		return -1;
	}
	while (fd < 0 && (entry = readdir(dir))) {
		if (entry->d_ino != d->inode || strncmp(entry->d_name, OLD, strlen(OLD)))
			continue;
		fd = open_log(d, folder, entry->d_name, &st);
	}
	closedir(dir);
	return fd;
}

/* True: it has been read to its end, or is lost. */
static bool finish_old(struct logs *l, struct database *d, int folder)
{
	int fd = open_old(d, folder);
	bool more;

	if (fd < 0) {
		l->counts.lost_rests++;
		return true;
	}
	more = read_on(l, d, fd);
	close(fd);
	return !more;
}

static void begin(struct database *d, const struct stat *st, bool first)
{
	d->inode = st->st_ino;
	d->at = first && st->st_size > LOGS_PAST ? (uint64_t)st->st_size - LOGS_PAST : 0;
	d->within = d->at != 0;
}

static void follow(struct logs *l, struct database *d, int folder)
{
	struct stat st;
	int fd = open_log(d, folder, NAME, &st);

	if (fd < 0)
		return;
	if (!d->inode) {
		begin(d, &st, true);
	} else if (d->inode != st.st_ino) {
		if (finish_old(l, d, folder)) {
			l->counts.rotations++;
			begin(d, &st, false);
		}
	} else if ((uint64_t)st.st_size < d->at) {
		begin(d, &st, false);
	}
	if (d->inode == st.st_ino && (uint64_t)st.st_size > d->at)
		read_on(l, d, fd);
	close(fd);
}

void logs_tick(struct logs *l)
{
	for (uint32_t i = 0; i < LOGS_MAX; i++) {
		struct database *d = &l->database[i];
		int folder = d->folder ? open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
		struct stat st;

		if (folder < 0)
			continue;
		if (!fstat(folder, &st) && st.st_ino == d->folder && (major(st.st_dev) << 20 | minor(st.st_dev)) == d->dev)
			follow(l, d, folder);
		close(folder);
	}
}

/* ---- what is known ------------------------------------------------------------------------ */

const struct eventlog *logs_of(const struct logs *l, uint32_t dev, uint64_t folder)
{
	const struct database *d = folder ? find(l, dev, folder) : NULL;

	return d ? d->log : NULL;
}

void logs_counts(const struct logs *l, struct logs_counts *out)
{
	*out = l->counts;
	out->log = l->gone;
	out->databases = 0;
	for (uint32_t i = 0; i < LOGS_MAX; i++)
		if (l->database[i].log) {
			add_stats(&out->log, &l->database[i].log->stats);
			out->databases += l->database[i].log->stats.events > 0;
		}
}

struct logs *logs_open(logs_compaction_fn compaction, void *ctx)
{
	struct logs *l = calloc(1, sizeof(*l));

	if (l) {
		l->compaction = compaction;
		l->ctx = ctx;
	}
	return l;
}

void logs_close(struct logs *l)
{
	for (uint32_t i = 0; l && i < LOGS_MAX; i++)
		free(l->database[i].log);
	free(l);
}
