// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl: finds the command, and the few helpers that all commands use.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

static const struct ctl_command *const commands[] = {
	&ctl_create_command,
	&ctl_list_command,
	&ctl_status_command,
	&ctl_top_command,
	&ctl_report_command,
	&ctl_trace_command,
	&ctl_set_command,
	&ctl_tunables_command,
	&ctl_which_command,
	&ctl_explain_command,
	&ctl_move_command,
	&ctl_pin_command,
	&ctl_unpin_command,
	&ctl_scrub_command,
	&ctl_activate_command,
	&ctl_deactivate_command,
	&ctl_add_command,
	&ctl_replace_command,
	&ctl_evacuate_command,
	&ctl_convert_command,
	&ctl_leave_command,
	&ctl_remove_command,
	&ctl_label_command,
	&ctl_format_command,
	&ctl_check_command,
	&ctl_dump_command,
	&ctl_restore_command,
	&ctl_repair_command,
	&ctl_salvage_command,
};

#define MOST_TYPOS	2
#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_line(const char *format, va_list args)
{
	fflush(stdout);
	fputs("terracectl: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

void ctl_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line(format, args);
	va_end(args);
}

int ctl_usage(const struct ctl_command *cmd, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_line(format, args);
	va_end(args);
	fprintf(stderr, "Try: terracectl %s%s--help\n", cmd ? cmd->name : "", cmd ? " " : "");
	return CTL_USAGE;
}

int ctl_help(const struct ctl_command *cmd)
{
	fputs(cmd->help, stdout);
	return CTL_OK;
}

void ctl_json_print(struct json_object *object)
{
	puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PRETTY |
					    JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(object);
}

static void *or_die(void *memory)
{
	if (!memory) {
		ctl_error("out of memory");
		exit(CTL_PROBLEM);
	}
	return memory;
}

void *ctl_alloc(size_t bytes)
{
	return or_die(calloc(1, bytes ? bytes : 1));
}

void *ctl_realloc(void *old, size_t bytes)
{
	return or_die(realloc(old, bytes ? bytes : 1));
}

void *ctl_alloc_blocks(u64 nr)
{
	size_t bytes = (nr ? nr : 1) * TERRACE_BLOCK_BYTES;

	return memset(or_die(aligned_alloc(TERRACE_BLOCK_BYTES, bytes)), 0, bytes);
}

char *ctl_text(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	return or_die(text);
}

static int help(void)
{
	puts("usage: terracectl COMMAND [OPTION]... ARGUMENT...\n\nCommands:");
	for (size_t i = 0; i < NR_COMMANDS; i++)
		printf("  %-11s %s\n", commands[i]->name, commands[i]->summary);
	puts("\nterracectl COMMAND --help explains a command, with examples.\n"
	     "Exit status: 0 done, 1 refused, failed or problem found, 2 wrong usage.");
	return CTL_OK;
}

static const struct ctl_command *find(const char *name)
{
	for (size_t i = 0; i < NR_COMMANDS; i++)
		if (!strcmp(name, commands[i]->name))
			return commands[i];
	return NULL;
}

/* How many letters are to be put in, left out, changed or swapped with the next; more than `most`: one more than that. */
static u32 typos(const char *a, const char *b, u32 most)
{
	u32 least, n;

	while (*a && *a == *b) {
		a++;
		b++;
	}
	if (!*a && !*b)
		return 0;
	if (!most)
		return 1;
	least = most;
	n = *a && *b ? typos(a + 1, b + 1, most - 1) : least;
	least = n < least ? n : least;
	n = *a ? typos(a + 1, b, most - 1) : least;
	least = n < least ? n : least;
	n = *b ? typos(a, b + 1, most - 1) : least;
	least = n < least ? n : least;
	n = *a && a[0] == b[1] && a[1] == b[0] ? typos(a + 2, b + 2, most - 1) : least;
	return 1 + (n < least ? n : least);
}

/* What LVM and others call it. */
static const struct { const char *other, *ours; } synonyms[] = {
	{ "delete", "remove" }, { "destroy", "remove" }, { "start", "activate" }, { "open", "activate" },
	{ "stop", "deactivate" }, { "close", "deactivate" }, { "show", "status" }, { "info", "status" },
	{ "ls", "list" }, { "fsck", "check" }, { "rm", "remove" }, { "verify", "scrub" }, { "drain", "evacuate" }, { "promote", "move" },
};

static int unknown(const char *name)
{
	const char *meant = NULL;
	u32 least = MOST_TYPOS + 1;

	for (size_t i = 0; i < NR_COMMANDS; i++) {
		u32 n = strncmp(name, commands[i]->name, strlen(name)) ?
			typos(name, commands[i]->name, MOST_TYPOS) : 1;

		if (n < least && n * 2 < strlen(name)) {
			least = n;
			meant = commands[i]->name;
		}
	}
	for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++)
		if (!strcmp(name, synonyms[i].other))
			meant = synonyms[i].ours;
	if (!meant)
		return ctl_usage(NULL, "unknown command '%s'", name);
	return ctl_usage(find(meant), "unknown command '%s': is '%s' meant?", name, meant);
}

int main(int argc, char **argv)
{
	const struct ctl_command *cmd;

	if (argc < 2)
		return ctl_usage(NULL, "no command given");
	if (!strcmp(argv[1], "help") && argc > 2)
		return (cmd = find(argv[2])) ? ctl_help(cmd) : unknown(argv[2]);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return help();
	cmd = find(argv[1]);
	return cmd ? cmd->run(cmd, argc - 1, argv + 1) : unknown(argv[1]);
}
