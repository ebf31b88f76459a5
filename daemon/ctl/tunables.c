// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl tunables: the constants of terraced's policies, from the tables
 * that terraced itself reads, so that the list cannot be out of date.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "tuning.h"

static const char help_text[] =
"usage: terracectl tunables [--json] [PART]\n"
"\n"
"The tunables of terraced's policies: name, default, range, effect. They go into\n"
"/etc/terrace/terraced.conf; terraced --show-config tells what is in force. The\n"
"kernel module's own are those of terracectl set. PART is what stands before\n"
"the dot: watermark, budget, …\n"
"\n"
"  --json    as JSON\n"
"  --help    this text\n"
"\n"
"Exit status: 0 done, 1 there is no such part, 2 wrong usage.\n"
"\n"
"Examples:\n"
"  terracectl tunables\n"
"  terracectl tunables watermark\n";

static struct json_object *row_json(const char *part, const struct tunable *row)
{
	struct json_object *o = json_object_new_object();
	char name[96];

	snprintf(name, sizeof(name), "%s.%s", part, row->name);
	json_object_object_add(o, "name", json_object_new_string(name));
	json_object_object_add(o, "default", json_object_new_double(row->initial));
	json_object_object_add(o, "min", json_object_new_double(row->min));
	json_object_object_add(o, "max", json_object_new_double(row->max));
	json_object_object_add(o, "effect", json_object_new_string(row->what));
	return o;
}

static void print_row(const char *part, const struct tunable *row)
{
	printf("%s.%s = %.10g  [%.10g … %.10g]\n    %s\n", part, row->name, row->initial, row->min, row->max,
	       row->what);
}

static int list(const char *only, struct json_object *all)
{
	u32 parts = 0;

	for (size_t i = 0; i < tuning_part_count; i++) {
		const struct tunable_table *table = tuning_parts[i].table;

		if (only && strcmp(only, table->policy))
			continue;
		parts++;
		for (size_t k = 0; k < table->count; k++) {
			if (all)
				json_object_array_add(all, row_json(table->policy, &table->rows[k]));
			else
				print_row(table->policy, &table->rows[k]);
		}
	}
	if (parts)
		return CTL_OK;
	ctl_error("there is no part '%s'", only);
	fputs("There are:", stderr);
	for (size_t i = 0; i < tuning_part_count; i++)
		fprintf(stderr, " %s", tuning_parts[i].table->policy);
	fputc('\n', stderr);
	return CTL_PROBLEM;
}

static int tunables_run(const struct ctl_command *cmd, int argc, char **argv)
{
	bool json = false;
	struct json_object *all;
	int r = args_plain(cmd, argc, argv, &json);

	if (r != ARGS_GO_ON)
		return r;
	if (argc - optind > 1)
		return ctl_usage(cmd, "'%s': one part at a time", argv[optind + 1]);
	all = json ? json_object_new_array() : NULL;
	r = list(argv[optind], all);
	if (all && !r)
		ctl_json_print(all);
	else
		json_object_put(all);
	return r;
}

const struct ctl_command ctl_tunables_command = {
	.name = "tunables",
	.summary = "the constants of terraced's policies: default, range, effect",
	.help = help_text,
	.run = tunables_run,
};
