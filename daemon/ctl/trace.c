// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl trace record: which blocks are accessed, in their order, for
 * replays of policies: 8 bytes for each block, in the CPU's byte order.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "args.h"
#include "dm.h"
#include "interrupt.h"
#include "sense/trace.h"
#include "term.h"

#define AT_ONCE	65536
#define TICK_MS	20

struct record {
	const char *output;
	double seconds;
	bool json, failed;
	FILE *out;
	u64 accesses, blocks, lost;
};

static void see(void *ctx, const struct port_access *access)
{
	struct record *r = ctx;

	if (access->op == PORT_DISCARD)
		return;
	r->accesses++;
	for (u64 k = 0; k < access->count; k++) {
		u64 block = access->block + k;

		r->failed |= fwrite(&block, sizeof(block), 1, r->out) != 1;
		r->blocks++;
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int watch(struct record *r, struct sense *sense)
{
	const struct timespec tick = { .tv_nsec = TICK_MS * 1000000 };
	double began = now(), at = 0;
	int n = 0;

	interrupt_watch();
	while (at < r->seconds && !interrupt_seen() && !r->failed && n >= 0) {
		nanosleep(&tick, NULL);
		n = sense->drain(sense, AT_ONCE, see, r);
		at = now() - began;
		term_progress("recording", (u64)(at < r->seconds ? at * 1000 : r->seconds * 1000),
			      (u64)(r->seconds * 1000));
	}
	r->lost = sense->lost;
	return n < 0 ? n : 0;
}

static void say(const struct record *r)
{
	struct json_object *o;

	if (r->lost)
		ctl_error("%llu accesses came faster than they could be written and are missing",
			  (unsigned long long)r->lost);
	if (!r->json) {
		printf("%s: %llu accesses of %llu blocks\n", r->output, (unsigned long long)r->accesses,
		       (unsigned long long)r->blocks);
		return;
	}
	o = json_object_new_object();
	json_object_object_add(o, "file", json_object_new_string(r->output));
	json_object_object_add(o, "accesses", json_object_new_uint64(r->accesses));
	json_object_object_add(o, "blocks", json_object_new_uint64(r->blocks));
	json_object_object_add(o, "lost", json_object_new_uint64(r->lost));
	ctl_json_print(o);
}

static int record_volume(struct record *r, const struct dm_volume *v)
{
	struct sense *sense;
	char why[200];
	int err = trace_open(TRACE_BLOCK, v->major, v->minor, 1, &sense, why, sizeof(why));

	if (err) {
		ctl_error("volume '%s' cannot be traced: %s", v->name, why);
		return CTL_PROBLEM;
	}
	r->out = fopen(r->output, "we");
	if (!r->out) {
		ctl_error("%s: cannot be written: %s", r->output, strerror(errno));
		sense->close(sense);
		return CTL_PROBLEM;
	}
	err = watch(r, sense);
	sense->close(sense);
	if (fclose(r->out) || r->failed) {
		ctl_error("%s: cannot be written: %s", r->output, strerror(errno));
		return CTL_PROBLEM;
	}
	if (err) {
		ctl_error("volume '%s': tracing ended: %s", v->name, strerror(-err));
		return CTL_PROBLEM;
	}
	say(r);
	return CTL_OK;
}

static const char help_text[] =
"usage: terracectl trace record --output FILE [OPTION]... NAME\n"
"\n"
"Records which blocks of a volume are read and written, in their order: 8 bytes\n"
"for each block of 4 KiB, in this machine's byte order, nothing else. What stands\n"
"in the blocks is not recorded. Such a trace can be replayed against the policies\n"
"(tests/replay/replay load=trace), to see what other settings or drives would have\n"
"given. Ctrl-C ends it early and keeps what was seen.\n"
"\n"
"  --output FILE      where to\n"
"  --seconds SECONDS  how long, default 60\n"
"  --json             what was done, as JSON\n"
"  --help             this text\n"
"\n"
"Exit status: 0 recorded, 1 failed, 2 wrong usage.\n"
"\n"
"Example:\n"
"  terracectl trace record --seconds 3600 --output db.trace db\n";

static int trace_run(const struct ctl_command *cmd, int argc, char **argv)
{
	struct record r = { .seconds = 60 };
	const char *seconds = NULL;
	const struct args_option options[] = {
		{ .name = "output", .text = &r.output }, { .name = "seconds", .text = &seconds },
		{ .name = "json", .flag = &r.json }, { .name = NULL },
	};
	struct dm_volume v;
	char *end;
	int result = args_parse(cmd, argc, argv, options);

	if (result != ARGS_GO_ON)
		return result;
	if (seconds) {
		r.seconds = strtod(seconds, &end);
		if (*end || !(r.seconds >= 0.1 && r.seconds <= 10e6))
			return ctl_usage(cmd, "--seconds %s: from 0.1 on", seconds);
	}
	if (argc - optind != 2 || strcmp(argv[optind], "record"))
		return ctl_usage(cmd, "say 'record' and name one volume");
	if (!r.output)
		return ctl_usage(cmd, "where to? --output FILE");
	return dm_named(&v, argv[optind + 1]) ? CTL_PROBLEM : record_volume(&r, &v);
}

const struct ctl_command ctl_trace_command = {
	.name = "trace",
	.summary = "record which blocks are accessed",
	.help = help_text,
	.run = trace_run,
};
