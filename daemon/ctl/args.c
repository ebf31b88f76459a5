// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * --json and --help. See args.h.
 */
#include <getopt.h>

#include "args.h"

int args_plain(const struct ctl_command *cmd, int argc, char **argv, bool *json)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "json", no_argument, NULL, 'j' },
		{ NULL, 0, NULL, 0 },
	};
	static const struct option help_only[] = {
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "h", json ? options : help_only, NULL)) != -1) {
		if (opt == 'h')
			return ctl_help(cmd);
		if (opt != 'j' || !json)
			return ctl_usage(cmd, "wrong option");
		*json = true;
	}
	return ARGS_GO_ON;
}
