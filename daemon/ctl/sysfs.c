// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files of sysfs. See sysfs.h.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sysfs.h"

static char *read_line(const char *path)
{
	char *line = NULL;
	size_t room = 0;
	FILE *f = fopen(path, "re");
	ssize_t n = f ? getline(&line, &room, f) : -1;

	if (f)
		fclose(f);
	if (n < 0) {
		free(line);
		return NULL;
	}
	line[strcspn(line, "\n")] = 0;
	return line;
}

char *sysfs_line(const char *format, ...)
{
	char path[512];
	va_list args;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	return read_line(path);
}

int sysfs_write(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int r = fd < 0 || pwrite(fd, value, strlen(value), 0) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return r;
}

u64 sysfs_number(u64 otherwise, const char *format, ...)
{
	char path[512], *line, *end;
	va_list args;
	u64 number;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	line = read_line(path);
	if (!line)
		return otherwise;
	number = strtoull(line, &end, 10);
	if (end == line)
		number = otherwise;
	free(line);
	return number;
}

static int visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

void sysfs_each(const char *folder, void (*fn)(void *ctx, const char *name), void *ctx)
{
	struct dirent **entry;
	int nr = scandir(folder, &entry, visible, versionsort);

	for (int i = 0; i < nr; i++) {
		fn(ctx, entry[i]->d_name);
		free(entry[i]);
	}
	if (nr >= 0)
		free(entry);
}
