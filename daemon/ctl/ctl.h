/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the commands of terracectl share: the table of commands, messages,
 * exit codes. Every command is one file; what several need is in device.h
 * (drives and images), names.h (words and sizes), volume.h (reading a volume).
 */
#ifndef TERRACE_CTL_H
#define TERRACE_CTL_H

#include <json-c/json.h>

#include "core/format.h"

enum ctl_exit {
	CTL_OK = 0,
	CTL_PROBLEM = 1,	/* refused, failed, or damage found */
	CTL_USAGE = 2,		/* the call itself was wrong */
};

struct ctl_command {
	const char *name;
	const char *summary;
	const char *help;
	int (*run)(const struct ctl_command *cmd, int argc, char **argv);
};

extern const struct ctl_command ctl_create_command;
extern const struct ctl_command ctl_list_command;
extern const struct ctl_command ctl_status_command;
extern const struct ctl_command ctl_top_command;
extern const struct ctl_command ctl_report_command;
extern const struct ctl_command ctl_trace_command;
extern const struct ctl_command ctl_set_command;
extern const struct ctl_command ctl_tunables_command;
extern const struct ctl_command ctl_which_command;
extern const struct ctl_command ctl_explain_command;
extern const struct ctl_command ctl_move_command;
extern const struct ctl_command ctl_pin_command;
extern const struct ctl_command ctl_unpin_command;
extern const struct ctl_command ctl_scrub_command;
extern const struct ctl_command ctl_activate_command;
extern const struct ctl_command ctl_deactivate_command;
extern const struct ctl_command ctl_evacuate_command;
extern const struct ctl_command ctl_add_command;
extern const struct ctl_command ctl_replace_command;
extern const struct ctl_command ctl_convert_command;
extern const struct ctl_command ctl_leave_command;
extern const struct ctl_command ctl_remove_command;
extern const struct ctl_command ctl_label_command;
extern const struct ctl_command ctl_format_command;
extern const struct ctl_command ctl_check_command;
extern const struct ctl_command ctl_dump_command;
extern const struct ctl_command ctl_restore_command;
extern const struct ctl_command ctl_repair_command;
extern const struct ctl_command ctl_salvage_command;

#define CTL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* One line on stderr: "terracectl: …". */
void ctl_error(const char *format, ...) CTL_PRINTF(1, 2);

/* The same, with where to find help. Returns CTL_USAGE. */
int ctl_usage(const struct ctl_command *cmd, const char *format, ...) CTL_PRINTF(2, 3);

/* Prints the command's help. Returns CTL_OK. */
int ctl_help(const struct ctl_command *cmd);

/* Prints @object on stdout and drops it. */
void ctl_json_print(struct json_object *object);

/* Never return NULL: out of memory ends the program. */
void *ctl_alloc(size_t bytes);			/* zeroed */
void *ctl_realloc(void *old, size_t bytes);
void *ctl_alloc_blocks(u64 nr);			/* zeroed, aligned for direct I/O; free() */
char *ctl_text(const char *format, ...) CTL_PRINTF(1, 2);

#endif
