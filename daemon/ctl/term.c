// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Terminal or not. See term.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ctl.h"
#include "term.h"

bool term_confirm(const char *question)
{
	char answer[64];

	if (!isatty(STDIN_FILENO)) {
		ctl_error("nobody to ask (standard input is no terminal): --yes goes on without");
		return false;
	}
	fprintf(stderr, "%s [yes/no] ", question);
	if (!fgets(answer, sizeof(answer), stdin))
		return false;
	answer[strcspn(answer, "\n")] = 0;
	if (!strcasecmp(answer, "yes") || !strcasecmp(answer, "y"))
		return true;
	ctl_error("not done");
	return false;
}

const char *term_alarm(const char *text)
{
	static char buffer[4][256];
	static unsigned int next;
	const char *no_color = getenv("NO_COLOR");
	char *to = buffer[next++ % 4];

	if (!isatty(STDOUT_FILENO) || (no_color && *no_color))
		return text;
	snprintf(to, sizeof(buffer[0]), "\033[1;31m%s\033[0m", text);
	return to;
}

/* Where a line of @columns ends; colours take none. */
static size_t line_bytes(const char *line, u32 columns)
{
	size_t i = 0;

	for (u32 n = 0; line[i] && line[i] != '\n' && n < columns; n++) {
		while (line[i] == '\033' && strchr(line + i, 'm'))
			i = (size_t)(strchr(line + i, 'm') - line) + 1;
		i += line[i] && line[i] != '\n';
	}
	return i;
}

void term_show(const char *text)
{
	struct winsize size = { 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col || !size.ws_row) {
		size.ws_col = 200;
		size.ws_row = 200;
	}
	fputs("\033[H\033[2J", stdout);
	for (u32 row = 0; *text && row < size.ws_row; row++) {
		size_t bytes = line_bytes(text, size.ws_col);

		printf("%s%.*s\033[0m", row ? "\r\n" : "", (int)bytes, text);
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	fflush(stdout);
}

static u64 now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* "1 h 05 min left", once there is something to judge by */
static void print_left(u64 ms, u64 done, u64 total)
{
	u64 s;

	if (!done || done >= total || ms < 2000)
		return;
	s = ms * (total - done) / done / 1000;
	if (s >= 3600)
		fprintf(stderr, "  %llu h %02llu min left", (unsigned long long)s / 3600,
			(unsigned long long)s / 60 % 60);
	else if (s >= 60)
		fprintf(stderr, "  %llu min %02llu s left", (unsigned long long)s / 60,
			(unsigned long long)s % 60);
	else
		fprintf(stderr, "  %llu s left", (unsigned long long)s);
}

void term_progress(const char *what, u64 done, u64 total)
{
	static u64 last, first, before;	/* before: what was done when this call began */
	static const char *of;
	u64 now;

	if (!isatty(STDERR_FILENO))
		return;
	now = now_ms();
	if (of != what || !done) {
		of = what;
		first = now;
		before = done;
	}
	if (done < total && now - last < 100)
		return;
	last = now;
	fprintf(stderr, "\r%s  %3llu %%", what, total ? (unsigned long long)(done * 100 / total) : 100);
	print_left(now - first, done - before, total - before);
	fputs("\033[K", stderr);
	if (done >= total)
		fputc('\n', stderr);
}
