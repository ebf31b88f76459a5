/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages of the daemon: one line each to standard error, with the priority in front where the
 * journal reads it ("<4>…"), plain on a terminal.
 */
#ifndef TERRACE_LOG_H
#define TERRACE_LOG_H

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_NOTICE,
	LOG_LEVEL_DEBUG,
	LOG_LEVELS,
};

void log_set_level(enum log_level most);
enum log_level log_get_level(void);

/* NULL beyond the last; -1 for an unknown name. */
const char *log_level_name(enum log_level level);
int log_level_of(const char *name);

/* @volume: whose message it is, NULL for the daemon's own. */
void log_line(enum log_level level, const char *volume, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
