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

#include "sense/errand.h"

#define NAME		"LOG"
#define OLD_NAME	"LOG.old."

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
	struct errand *errand;
	uint32_t next;		/* to be looked at */
	struct look *look;	/* NULL: it is out */
	struct database database[LOGS_MAX];
};

/* What a thread is sent for, and what it brings. */
struct look {
	struct database as;	/* what it was then */
	enum {
		NOTHING,	/* it is not there */
		FIRST,		/* nothing has been read of it yet */
		ON,		/* it is the one that was read */
		CUT,		/* ... and is shorter than it was */
		OLD,		/* it is another; this is of the old one */
		OLD_LOST,	/* ... which is not there */
	} kind;
	ino_t inode;		/* of LOG */
	uint64_t size, from;	/* where the text begins */
	ssize_t bytes;
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

/* ---- the thread -------------------------------------------------------------------------- */

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
		if (entry->d_ino != d->inode || strncmp(entry->d_name, OLD_NAME, strlen(OLD_NAME)))
			continue;
		fd = open_log(d, folder, entry->d_name, &st);
	}
	closedir(dir);
	return fd;
}

static uint64_t first_at(uint64_t size)
{
	return size > LOGS_PAST ? size - LOGS_PAST : 0;
}

static void read_text(struct look *l, int fd)
{
	l->bytes = pread(fd, l->text, sizeof(l->text), (off_t)l->from);
}

static void look_at(struct look *l, int folder)
{
	struct stat st;
	int fd = open_log(&l->as, folder, NAME, &st), old;

	if (fd < 0)
		return;
	l->inode = st.st_ino;
	l->size = (uint64_t)st.st_size;
	if (l->as.inode && l->as.inode != st.st_ino) {
		old = open_old(&l->as, folder);
		l->kind = old < 0 ? OLD_LOST : OLD;
		l->from = l->as.at;
		if (old >= 0) {
			read_text(l, old);
			close(old);
		}
	} else {
		l->kind = !l->as.inode ? FIRST : l->size < l->as.at ? CUT : ON;
		l->from = l->kind == FIRST ? first_at(l->size) : l->kind == CUT ? 0 : l->as.at;
		if (l->size > l->from)
			read_text(l, fd);
	}
	close(fd);
}

static void run(void *arg)
{
	struct look *l = arg;
	int folder = open(l->as.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	l->kind = NOTHING;
	l->bytes = 0;
	if (folder < 0)
		return;
	if (!fstat(folder, &st) && st.st_ino == l->as.folder && (major(st.st_dev) << 20 | minor(st.st_dev)) == l->as.dev)
		look_at(l, folder);
	close(folder);
}

/* ---- reading ----------------------------------------------------------------------------- */

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
static bool read_on(struct database *d, const struct look *l)
{
	size_t done;

	if (l->bytes <= 0)
		return false;
	done = lines(d, l->text, (size_t)l->bytes);
	/* A line that is longer than that is none of ours. */
	if (!done && l->bytes == sizeof(l->text)) {
		d->log->stats.malformed += !d->within;
		d->within = true;
		done = (size_t)l->bytes;
	}
	d->at += done;
	return l->bytes == sizeof(l->text);
}

static void begin(struct database *d, const struct look *l, uint64_t at)
{
	d->inode = l->inode;
	d->at = at;
	d->within = at != 0;
}

/* True: there is a new one to be looked at. */
static bool heard(struct logs *logs, const struct look *l)
{
	struct database *d = find(logs, l->as.dev, l->as.folder);

	/* given up meanwhile, and found again, perhaps */
	if (!d || d->log != l->as.log || d->inode != l->as.inode || d->at != l->as.at || l->kind == NOTHING)
		return false;
	if (l->kind == FIRST || l->kind == CUT)
		begin(d, l, l->from);
	if (l->kind != OLD_LOST && read_on(d, l) && l->kind == OLD)
		return false;
	if (l->kind != OLD && l->kind != OLD_LOST)
		return false;
	logs->counts.lost_rests += l->kind == OLD_LOST;
	logs->counts.rotations++;
	begin(d, l, 0);
	return true;
}

void logs_tick(struct logs *l, uint64_t until_ns)
{
	for (uint32_t looks = 0;;) {
		struct database *d = &l->database[l->next % LOGS_MAX];

		if (!l->look) {
			l->look = errand_ended(l->errand, until_ns);
			if (!l->look)
				return;
			l->next += !heard(l, l->look);
			looks++;
		} else if (looks >= LOGS_MAX) {
			return;
		} else if (!d->folder) {
			l->next++;
			looks++;
		} else {
			l->look->as = *d;
			if (!errand_start(l->errand, l->look))
				return;
			l->look = NULL;
		}
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

	if (!l)
		return NULL;
	l->compaction = compaction;
	l->ctx = ctx;
	l->look = calloc(1, sizeof(*l->look));
	if (l->look && !errand_open(run, free, &l->errand))
		return l;
	free(l->look);
	free(l);
	return NULL;
}

void logs_close(struct logs *l)
{
	if (!l)
		return;
	errand_close(l->errand);
	for (uint32_t i = 0; i < LOGS_MAX; i++)
		free(l->database[i].log);
	free(l->look);
	free(l);
}
