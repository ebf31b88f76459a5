// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Locks of volumes. See lock.h. The file says who has it, for the message
 * alone; it is never removed, or two could hold what has one name.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control.h"
#include "file.h"
#include "lock.h"
#include "names.h"

/* Its words, or "another terracectl" if it has ended since. */
static char *words_of(long pid)
{
	char *path = ctl_text("/proc/%ld/cmdline", pid), words[512];
	FILE *f = pid > 0 ? fopen(path, "re") : NULL;
	size_t n = f ? fread(words, 1, sizeof(words) - 1, f) : 0;

	if (f)
		fclose(f);
	free(path);
	if (!n)
		return ctl_text("another terracectl");
	words[n] = 0;
	for (size_t i = 0; i + 1 < n; i++)
		if (!words[i])
			words[i] = ' ';
	return ctl_text("'%s' (process %ld)", words, pid);
}

static void say_who(int fd, const char *name)
{
	char text[32] = "", *words;

	if (pread(fd, text, sizeof(text) - 1, 0) < 0)
		text[0] = 0;
	words = words_of(atol(text));
	ctl_error("%s is at work on volume '%s': wait for it, or stop it (Ctrl-C)", words, name);
	free(words);
}

static int take(const u8 *uuid, const char *name)
{
	char *path = ctl_text(FILE_RUN "/%s.lock", uuid_text(uuid));
	int fd, r = 0;

	mkdir(FILE_RUN, 0700);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB))
		r = -errno;
	if (r == -EWOULDBLOCK) {
		say_who(fd, name);
		r = -EBUSY;
	} else if (r) {
		ctl_error("%s: cannot be locked: %s", path, strerror(-r));
	} else {	/* when /run is full nobody can tell who it is */
		(void)!(ftruncate(fd, 0) || dprintf(fd, "%ld\n", (long)getpid()) < 0);
	}
	if (r && fd >= 0)
		close(fd);
	free(path);
	return r;	/* the file stays open */
}

int lock_volume(const u8 *uuid, const char *name)
{
	static u8 held[TERRACE_UUID_BYTES];
	int r;

	if (!memcmp(held, uuid, sizeof(held)))
		return 0;
	r = take(uuid, name);
	if (!r)
		memcpy(held, uuid, sizeof(held));
	return r;
}

int lock_active(const struct dm_volume *volume)
{
	static const u8 unknown[TERRACE_UUID_BYTES];
	struct terrace_hello hello;
	int fd;

	if (memcmp(volume->uuid, unknown, sizeof(unknown)))
		return lock_volume(volume->uuid, volume->name);
	fd = control_open(volume, &hello);
	if (fd < 0)
		return fd;
	close(fd);
	return lock_volume(hello.volume_uuid, volume->name);
}
