/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * terracectl format, in the order in which it runs:
 *   format_args.c   the command line
 *   format.c        open, probe, plan, and the order of it all
 *   format_plan.c   the plan in words, in JSON and as a table line
 *   format_write.c  writing it
 */
#ifndef TERRACE_CTL_FORMAT_H
#define TERRACE_CTL_FORMAT_H

#include "core/geometry.h"
#include "ctl.h"
#include "device.h"

#define FORMAT_MAX_DEVICES (TERRACE_MAX_TIERS + 1)

enum format_atomic { ATOMIC_ASK_DRIVE, ATOMIC_YES, ATOMIC_NO };

/* Devices are numbered as in struct tr_plan: tiers, then the metadata device. */
struct format {
	const char *path[FORMAT_MAX_DEVICES];
	enum format_atomic atomic[FORMAT_MAX_DEVICES];
	u32 align_blocks[FORMAT_MAX_DEVICES];	/* 0: ask the drive */
	bool guessed[FORMAT_MAX_DEVICES];	/* its class: by format_propose_class() */
	const char *meta_path;
	bool force, dry_run, json;
	bool create, yes;	/* terracectl create: NAME first, classes may be left out */
	bool convert;		/* terracectl convert: the same, with: */
	const char *from;
	const char *config;	/* of both: tunables to begin with */
	struct tr_plan_args args;

	struct device dev[FORMAT_MAX_DEVICES];
	u32 nr_devices;
	struct tr_plan plan;
};

/* The pieces of it that terracectl add uses; device @nr is a tier. */
int format_parse_tier(struct format *f, const struct ctl_command *cmd, const char *text);
int format_propose_class(struct format *f, u32 nr);
void format_describe_device(struct format *f, u32 nr);
int format_refuse_data(const struct format *f, u32 nr);
int format_write_tier(const struct format *f, u32 nr);

/* CTL_OK, or CTL_USAGE after a message. *@help: --help was asked for. */
int format_parse(struct format *f, const struct ctl_command *cmd, int argc, char **argv,
		 bool *help);

/* Opens the devices and refuses what may not be overwritten; makes the plan.
 * CTL_OK, or another exit status after a message.
 */
int format_open(struct format *f);
int format_make_plan(struct format *f);

/* That the class of tier @nr was not given, if so, and how to. */
void format_print_guess(const struct format *f, u32 nr);
void format_print_fault(const struct format *f, const struct tr_plan_fault *fault);
void format_print_plan(const struct format *f);
struct json_object *format_plan_json(const struct format *f);

/* 0 or -errno, after a message. */
int format_write(const struct format *f);

#endif
