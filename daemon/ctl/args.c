// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Options into variables. See args.h.
 */
#include <getopt.h>

#include "args.h"

int args_parse(const struct ctl_command *cmd, int argc, char **argv, const struct args_option *options)
{
	struct option known[ARGS_MAX + 2] = { { "help", no_argument, NULL, 'h' } };
	int opt, at = 0;

	for (u32 i = 0; i < ARGS_MAX && options[i].name; i++)
		known[i + 1] = (struct option){
			options[i].name, options[i].text ? required_argument : no_argument, NULL, 0,
		};
	while ((opt = getopt_long(argc, argv, "h", known, &at)) != -1) {
		if (opt == 'h')
			return ctl_help(cmd);
		if (opt == '?')
			return ctl_usage(cmd, "wrong option");
		if (options[at - 1].text)
			*options[at - 1].text = optarg;
		else
			*options[at - 1].flag = true;
	}
	return ARGS_GO_ON;
}

int args_plain(const struct ctl_command *cmd, int argc, char **argv, bool *json)
{
	const struct args_option options[] = { { .name = "json", .flag = json }, { .name = NULL } };

	return args_parse(cmd, argc, argv, options);
}

int args_one_volume(const struct ctl_command *cmd, int argc, char **argv, const struct args_option *options)
{
	int r = args_parse(cmd, argc, argv, options);

	if (r == ARGS_GO_ON && argc - optind > 1)
		return ctl_usage(cmd, "name one volume: '%s' is one too many", argv[optind + 1]);
	if (r == ARGS_GO_ON && argc == optind)
		return ctl_usage(cmd, "name one volume");
	return r;
}
