// SPDX-License-Identifier: GPL-2.0-or-later
/* See finder.h. */
#include "sense/finder.h"

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

#define PATH	1024	/* of a folder; those below are left */

struct finder {
	struct errand *errand;
	struct walk *walk;	/* that has ended, and is being told */
	struct finder_counts counts;
};

/* ---- the thread ----------------------------------------------------------------------------- */

struct folders {
	char *path[FINDER_FOLDERS];	/* a ring: near the root first */
	uint32_t first, nr;
};

static void push(struct walk *w, struct folders *fs, const char *in, const char *name)
{
	char path[PATH];
	char *copy = NULL;

	if (fs->nr < FINDER_FOLDERS && (size_t)snprintf(path, sizeof(path), "%s/%s", in, name) < sizeof(path))
		copy = strdup(path);
	if (copy)
		fs->path[(fs->first + fs->nr++) % FINDER_FOLDERS] = copy;
	else
		w->counts.left++;
}

/* Inode and generation as in open_inode() of asker.c, without opening it. */
static bool id_of(const struct walk *w, int folder, const char *name, const struct stat *st, struct file_id *id)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} u;
	int mount;

	u.handle.handle_bytes = MAX_HANDLE_SZ;
	if (name_to_handle_at(folder, name, &u.handle, &mount, 0))
		return false;
	*id = (struct file_id){ .inode = st->st_ino, .dev = w->dev };
	if (u.handle.handle_type == 1 && u.handle.handle_bytes >= 8)
		memcpy(&id->generation, u.handle.f_handle + 4, 4);
	else if (u.handle.handle_type == 0x81 && u.handle.handle_bytes >= 12)
		memcpy(&id->generation, u.handle.f_handle + 8, 4);
	else
		return false;
	return true;
}

static bool is_here(const struct walk *w, const struct stat *st)
{
	return (major(st->st_dev) << 20 | minor(st->st_dev)) == w->dev;
}

static void table(struct walk *w, int folder, uint64_t parent, const char *name)
{
	struct found_file *one = &w->table[w->nr];
	struct stat st;

	if (file_kind_of(name, w->profiles) != FILE_TABLE && file_pins_of(name, w->profiles) != FILE_PINS_ALL)
		return;
	if (strlen(name) >= sizeof(one->name))
		return;
	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) || !is_here(w, &st) || !st.st_size)
		return;
	if (w->nr == FINDER_TABLES) {
		w->counts.left++;
		return;
	}
	*one = (struct found_file){ .parent = parent, .size = (uint64_t)st.st_size };
	memcpy(one->name, name, strlen(name));
	if (!id_of(w, folder, name, &st, &one->id))
		return;
	w->nr++;
	w->counts.tables++;
}

static bool is_folder(int folder, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	return !fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode);
}

/* Of this filesystem alone, whatever is mounted in it. */
static DIR *open_folder(const struct walk *w, const char *path, struct stat *st)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 && !fstat(fd, st) && is_here(w, st) ? fdopendir(fd) : NULL;

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

/* False: enough. */
static bool read_folder(struct walk *w, struct folders *fs, const char *path, uint32_t *names)
{
	struct dirent *entry;
	struct stat st;
	DIR *dir = open_folder(w, path, &st);

	while (dir && *names < FINDER_NAMES && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		++*names;
		if (is_folder(dirfd(dir), entry))
			push(w, fs, path, entry->d_name);
		else
			table(w, dirfd(dir), st.st_ino, entry->d_name);
	}
	if (dir)
		closedir(dir);
	return *names < FINDER_NAMES;
}

void finder_read(struct walk *w)
{
	struct folders *fs = calloc(1, sizeof(*fs));
	uint32_t names = 0;
	bool more = fs && !fs->nr;

	if (fs)
		push(w, fs, w->root, ".");
	while (more && fs->nr) {
		char *path = fs->path[fs->first];

		fs->first = (fs->first + 1) % FINDER_FOLDERS;
		fs->nr--;
		more = read_folder(w, fs, path, &names);
		free(path);
	}
	w->counts.left += !more;
	for (uint32_t i = 0; fs && i < fs->nr; i++)
		free(fs->path[(fs->first + i) % FINDER_FOLDERS]);
	free(fs);
}

static void run(void *arg)
{
	finder_read(arg);
}

/* ---- the daemon's side ------------------------------------------------------------------------ */

bool finder_walk(struct finder *f, const struct mount *m, uint32_t profiles)
{
	struct walk *w = f->walk ? NULL : calloc(1, sizeof(*w));

	if (!w)
		return false;
	snprintf(w->root, sizeof(w->root), "%s", m->path);
	w->dev = mount_dev(m);
	w->profiles = profiles;
	if (errand_start(f->errand, w))
		return true;
	free(w);
	return false;
}

bool finder_next(struct finder *f, struct found_file *out)
{
	struct walk *w = f->walk ?: errand_ended(f->errand, 0);

	if (w && !f->walk) {
		f->walk = w;
		f->counts.walks++;
		f->counts.tables += w->counts.tables;
		f->counts.left += w->counts.left;
	}
	if (w && w->heard < w->nr) {
		*out = w->table[w->heard++];
		return true;
	}
	free(w);
	f->walk = NULL;
	return false;
}

void finder_counts(const struct finder *f, struct finder_counts *out)
{
	*out = f->counts;
}

int finder_open(struct finder **out)
{
	struct finder *f = calloc(1, sizeof(*f));
	int err = f ? errand_open(run, free, &f->errand) : -ENOMEM;

	if (err)
		free(f);
	else
		*out = f;
	return err;
}

void finder_close(struct finder *f)
{
	errand_close(f->errand);
	free(f->walk);
	free(f);
}
