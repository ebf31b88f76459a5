// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Taking labels off, and putting them back. See labels.h. The devices are in
 * use, by the volume.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "file.h"
#include "labels.h"
#include "names.h"

#define LABEL_BYTES	(TERRACE_LABEL_COPIES * (ssize_t)TERRACE_BLOCK_BYTES)

/* The file is an array of these. */
struct taken {
	u32 major, minor;
	u8 label[LABEL_BYTES];
};

static char *file_of(const u8 *uuid)
{
	return ctl_text(FILE_RUN "/%s.labels", uuid_text(uuid));
}

static int complain(const char *path, const char *what)
{
	int r = errno ? -errno : -EIO;

	ctl_error("%s: its label cannot be %s: %s", path, what, strerror(-r));
	return r;
}

static int read_one(const char *path, void *blocks)
{
	int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC), r = 0;

	errno = fd < 0 ? errno : 0;
	if (fd < 0 || pread(fd, blocks, (size_t)LABEL_BYTES, 0) != LABEL_BYTES)
		r = complain(path, "read");
	if (fd >= 0)
		close(fd);
	return r;
}

int labels_write(const char *path, const void *blocks)
{
	int fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC), r = 0;

	errno = fd < 0 ? errno : 0;
	if (fd < 0 || pwrite(fd, blocks, (size_t)LABEL_BYTES, 0) != LABEL_BYTES || fsync(fd))
		r = complain(path, "written");
	if (fd >= 0)
		close(fd);
	return r;
}

/* ---- off ------------------------------------------------------------------------------------- */

static int take_one(const char *path, struct taken *taken)
{
	void *blocks = ctl_alloc_blocks(TERRACE_LABEL_COPIES);
	struct stat st;
	int r = stat(path, &st) ? complain(path, "read") : read_one(path, blocks);

	if (!r) {
		taken->major = major(st.st_rdev);
		taken->minor = minor(st.st_rdev);
		memcpy(taken->label, blocks, (size_t)LABEL_BYTES);
	}
	free(blocks);
	return r;
}

/* One that cannot be read is not touched, nor are the others. */
int labels_take(const struct found_volume *v)
{
	struct taken *taken = ctl_alloc(FOUND_MAX_DEVICES * sizeof(*taken));
	void *zeros = ctl_alloc_blocks(TERRACE_LABEL_COPIES);
	char *path = file_of(v->uuid);
	int r = 0;

	for (u32 i = 0; i < v->nr_devices && !r; i++)
		r = take_one(v->device[i].path, &taken[i]);
	if (!r)
		r = file_put(path, taken, v->nr_devices * sizeof(*taken));
	for (u32 i = 0; i < v->nr_devices && !r; i++)
		r = labels_write(v->device[i].path, zeros);
	free(path);
	free(zeros);
	free(taken);
	return r;
}

/* ---- back ------------------------------------------------------------------------------------ */

static bool is_zero(const u8 *data)
{
	return !data[0] && !memcmp(data, data + 1, (size_t)LABEL_BYTES - 1);
}

/* Only to where it was, or part of it is: a drive may have gone, and another have its number. */
static int put_one(const struct taken *taken)
{
	u8 *now = ctl_alloc_blocks(2 * TERRACE_LABEL_COPIES), *label = now + LABEL_BYTES;
	char *path = find_path(makedev(taken->major, taken->minor));
	int r = -ENODEV;

	memcpy(label, taken->label, (size_t)LABEL_BYTES);
	if (!path)
		ctl_error("device %u:%u is gone: its label cannot be put back", taken->major, taken->minor);
	else
		r = read_one(path, now);
	if (!r && !is_zero(now) && memcmp(now, label, (size_t)TERRACE_BLOCK_BYTES) &&
	    memcmp(now + TERRACE_BLOCK_BYTES, label + TERRACE_BLOCK_BYTES, (size_t)TERRACE_BLOCK_BYTES)) {
		ctl_error("%s holds something else by now: its label is not put back", path);
		r = -EEXIST;
	}
	if (!r && memcmp(now, label, (size_t)LABEL_BYTES))
		r = labels_write(path, label);
	free(path);
	free(now);
	return r;
}

int labels_back(const u8 *uuid)
{
	struct taken *taken = ctl_alloc(sizeof(*taken));
	char *path = file_of(uuid);
	FILE *f = fopen(path, "re");
	int r = 0;

	while (f && fread(taken, sizeof(*taken), 1, f) == 1) {
		int err = put_one(taken);

		if (!r)
			r = err;
	}
	if (f)
		fclose(f);
	if (!r)
		unlink(path);
	free(path);
	free(taken);
	return r;
}

void labels_forget(const u8 *uuid)
{
	char *path = file_of(uuid);

	unlink(path);
	free(path);
}
