// SPDX-License-Identifier: GPL-2.0-or-later
/* A walk through /proc; see holders.h. */
#include "act/holders.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "act/counters.h"

static bool holds(const char *pid, const char *path)
{
	char link[600], target[300];
	struct dirent *entry;
	bool found = false;
	DIR *fds;

	snprintf(link, sizeof(link), "/proc/%.20s/fd", pid);
	fds = opendir(link);
	while (fds && !found && (entry = readdir(fds))) {
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/%.20s/fd/%s", pid, entry->d_name);
		n = readlink(link, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = 0;
		found = !strcmp(target, path);
	}
	if (fds)
		closedir(fds);
	return found;
}

void holders_of(const char *path, char *text, size_t bytes)
{
	char line[64];
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	size_t used = 0;

	text[0] = 0;
	while (proc && (entry = readdir(proc))) {
		char comm[300];

		if (strtol(entry->d_name, NULL, 10) <= 0 || strtol(entry->d_name, NULL, 10) == getpid() ||
		    !holds(entry->d_name, path))
			continue;
		snprintf(comm, sizeof(comm), "/proc/%.20s/comm", entry->d_name);
		if (first_line_of(comm, line, sizeof(line)) || used >= bytes)
			continue;
		used += (size_t)snprintf(text + used, bytes - used, "%s%s (pid %.20s)", used ? ", " : "", line,
					 entry->d_name);
	}
	if (proc)
		closedir(proc);
}
