// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * /etc/terrace/UUID.options. See kept.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "kept.h"
#include "names.h"

#define FOLDER	"/etc/terrace"

static char *file_of(const u8 *uuid)
{
	return ctl_text(FOLDER "/%s.options", uuid_text(uuid));
}

/* A word of the table line: nothing that could be two. */
static bool good(const char *line)
{
	return strchr(line, '=') && line[0] != '=' && !strpbrk(line, " \t");
}

u32 kept_read(const u8 *uuid, char **word)
{
	char *path = file_of(uuid), line[256];
	FILE *f = fopen(path, "re");
	u32 nr = 0;

	if (!f && errno != ENOENT)
		ctl_error("%s: cannot be read: %s", path, strerror(errno));
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (!line[0] || line[0] == '#')
			continue;
		if (!good(line) || nr == KEPT_MAX)
			ctl_error("%s: '%s' is no line TUNABLE=VALUE: left out", path, line);
		else
			word[nr++] = ctl_text("%s", line);
	}
	if (f)
		fclose(f);
	free(path);
	return nr;
}

int kept_load(const char *path, char **word)
{
	FILE *f = fopen(path, "re");
	char line[256];
	int nr = 0;

	if (!f) {
		ctl_error("%s: cannot be read: %s", path, strerror(errno));
		return -1;
	}
	for (u32 at = 1; nr >= 0 && fgets(line, sizeof(line), f); at++) {
		line[strcspn(line, "\n")] = 0;
		if (!line[0] || line[0] == '#')
			continue;
		if (good(line) && nr < KEPT_MAX) {
			word[nr++] = ctl_text("%s", line);
			continue;
		}
		ctl_error("%s: line %u: '%s' is no line TUNABLE=VALUE, like commit_ms=500", path, at, line);
		while (nr)
			free(word[--nr]);
		nr = -1;
	}
	fclose(f);
	return nr;
}

static bool is_of(const char *word, const char *tunable)
{
	size_t bytes = strlen(tunable);

	return !strncmp(word, tunable, bytes) && word[bytes] == '=';
}

char *kept_value(const u8 *uuid, const char *tunable)
{
	char *word[KEPT_MAX], *value = NULL;
	u32 nr = kept_read(uuid, word);

	for (u32 i = 0; i < nr; i++) {
		if (is_of(word[i], tunable)) {
			free(value);
			value = ctl_text("%s", word[i] + strlen(tunable) + 1);
		}
		free(word[i]);
	}
	return value;
}

int kept_write(const u8 *uuid, const char *tunable, const char *value)
{
	char *word[KEPT_MAX], *path = file_of(uuid), *text = ctl_text("%s", "");
	u32 nr = kept_read(uuid, word);
	int r;

	for (u32 i = 0; i < nr; i++) {
		char *longer = is_of(word[i], tunable) ? NULL : ctl_text("%s%s\n", text, word[i]);

		if (longer) {
			free(text);
			text = longer;
		}
		free(word[i]);
	}
	if (value) {
		char *longer = ctl_text("%s%s=%s\n", text, tunable, value);

		free(text);
		text = longer;
	}
	mkdir(FOLDER, 0755);
	r = *text ? file_put(path, text, strlen(text)) : unlink(path) && errno != ENOENT ? -errno : 0;
	free(text);
	free(path);
	return r;
}
