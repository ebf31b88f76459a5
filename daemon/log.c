// SPDX-License-Identifier: GPL-2.0-or-later
/* See log.h. */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum log_level wanted = LOG_LEVEL_NOTICE;

static const struct level {
	const char *name;
	int priority;	/* of syslog */
} levels[LOG_LEVELS] = {
	{ "error", 3 }, { "warning", 4 }, { "notice", 5 }, { "debug", 7 },
};

void log_set_level(enum log_level most)
{
	wanted = most;
}

enum log_level log_get_level(void)
{
	return wanted;
}

const char *log_level_name(enum log_level level)
{
	return level < LOG_LEVELS ? levels[level].name : NULL;
}

int log_level_of(const char *name)
{
	for (int i = 0; i < LOG_LEVELS; i++)
		if (!strcmp(levels[i].name, name))
			return i;
	return -1;
}

void log_line(enum log_level level, const char *volume, const char *format, ...)
{
	char text[600];
	va_list args;

	if (level > wanted)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (getenv("JOURNAL_STREAM"))
		fprintf(stderr, "<%d>%s%s%s\n", levels[level].priority, volume ? volume : "",
			volume ? ": " : "", text);
	else
		fprintf(stderr, "terraced: %s%s%s\n", volume ? volume : "", volume ? ": " : "", text);
}
