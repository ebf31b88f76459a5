/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The options of a command: it says where each goes, --help comes by itself.
 */
#ifndef TERRACE_CTL_ARGS_H
#define TERRACE_CTL_ARGS_H

#include <stdbool.h>

#include "ctl.h"

#define ARGS_GO_ON	(-1)
#define ARGS_MAX	15

struct args_option {
	const char *name;
	bool *flag;		/* becomes true; or: */
	const char **text;	/* takes an argument, the last one counts */
};

/*
 * @options ends with a name of NULL. ARGS_GO_ON with optind at the first
 * argument, or the exit status.
 */
int args_parse(const struct ctl_command *cmd, int argc, char **argv, const struct args_option *options);

/* For commands with --json and no more. */
int args_plain(const struct ctl_command *cmd, int argc, char **argv, bool *json);

/* The same, and the one argument is a volume. */
int args_one_volume(const struct ctl_command *cmd, int argc, char **argv, const struct args_option *options);

#endif
