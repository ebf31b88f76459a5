// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl top: what a volume does right now, again and again.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "args.h"
#include "ask.h"
#include "interrupt.h"
#include "latency.h"
#include "names.h"
#include "sample.h"
#include "term.h"

#define BAR		14
#define LONG_NAME	32

/* One look: the kernel's counters, and what terraced says, if it runs. */
struct frame {
	struct sample sample;
	struct json_object *status;
	struct latency latency;
};

static void print_bar(FILE *out, const struct ctl_tier *tier)
{
	u32 n = tier->blocks ? (u32)(tier->used_blocks * BAR / tier->blocks) : 0;

	fputc('[', out);
	if (tier->missing) {
		fprintf(out, "%s       ]", term_alarm("MISSING"));
		return;
	}
	for (u32 i = 0; i < BAR; i++)
		fputc(i < n ? '#' : '.', out);
	fputc(']', out);
}

static void print_tiers(FILE *out, const struct sample *s, const struct sample_rates *r)
{
	fputs("  tier class  kind                        used          of   reads/s  writes/s\n", out);
	for (u32 t = 0; t < s->nr_tiers; t++) {
		const struct ctl_tier *tier = &s->tier[t];

		fprintf(out, "  %-4u %-6s %-7s ", t, class_name(tier->class), kind_name(tier->kind));
		print_bar(out, tier);
		fprintf(out, " %5.1f %%  %10s  %8.0f  %8.0f\n",
		       tier->blocks ? 100.0 * (double)tier->used_blocks / (double)tier->blocks : 0.0,
		       size_text(tier->blocks), r->reads[t], r->writes[t]);
	}
}

/* Cold to hot; a space: nothing of it is fast. */
static void print_cells(FILE *out, const struct sample *s)
{
	static const char shade[] = " .:-=+*#%@";

	if (!s->nr_cells)
		return;
	fputs("  fast    |", out);
	for (u32 k = 0; k < s->nr_cells; k++)
		fputc(shade[(s->fast[k] * 9 + 254) / 255], out);
	fputs("|\n  used    |", out);
	for (u32 k = 0; k < s->nr_cells; k++)
		fputc(shade[s->lately[k] * 9 / 255], out);
	fputs("|\n           first to last block; darker: more of it fast, used more lately\n", out);
}

static const char *idle_reason(struct json_object *status, const char *name)
{
	struct json_object *o = ask_volume(status, name), *value;

	return o && json_object_object_get_ex(o, "nothing_moves_because", &value) && value ?
	       json_object_get_string(value) : NULL;
}

static void print_view(FILE *out, const struct sampler *sampler, const struct frame *before, const struct frame *now)
{
	const struct sample *a = &before->sample, *b = &now->sample;
	const char *idle = idle_reason(now->status, sampler->volume->name);
	struct latency latency;
	struct sample_rates r;
	double days = sample_days_left(a, b);

	sample_compare(a, b, &r);
	/* A long name has a line of its own, so that none is cut on a narrow terminal. */
	fprintf(out, "volume '%s'%s", sampler->volume->name,
		strlen(sampler->volume->name) > LONG_NAME ? "\n  " : "  ");
	fprintf(out, "%s  mode %s  over %.1f s\n", size_text(sampler->volume->sectors / TERRACE_BLOCK_SECTORS),
	       strcmp(b->mode, "write") ? term_alarm(b->mode) : b->mode, r.seconds);
	print_tiers(out, b, &r);
	if (r.hit_rate >= 0)
		fprintf(out, "  hit rate  %5.1f %% of reads (fast tiers, promotion cache), %.0f packed reads/s\n",
		       100 * r.hit_rate, r.packed_reads);
	else
		fputs("  hit rate  no reads\n", out);
	if (r.mean_us >= 0)
		fprintf(out, "  latency   %.0f us mean of all I/O\n", r.mean_us);
	latency_between(&before->latency, &now->latency, &latency);
	latency_print(out, &latency);
	fprintf(out, "  moves     %.0f blocks/s; new writes %.0f/s, of them delayed %.0f/s\n", r.moved, r.new_writes,
	       r.throttled);
	fprintf(out, "  journal   %llu of %llu blocks; map in memory %s\n", (unsigned long long)b->journal_used,
	       (unsigned long long)b->journal_blocks, size_text(b->memory / TERRACE_BLOCK_BYTES));
	if (days >= 0)
		fprintf(out, "  forecast  full in %s at this pace\n", span_text(days * 86400));
	print_cells(out, b);
	if (!now->status)
		fputs("  terraced  does not run: the kernel's janitor makes room by age\n", out);
	else if (idle)
		fprintf(out, "  terraced  moves nothing: %s\n", idle);
}

/* ---- JSON -------------------------------------------------------------------------------------- */

static void add(struct json_object *o, const char *name, double value)
{
	json_object_object_add(o, name, value < 0 ? NULL : json_object_new_double(value));
}

static struct json_object *view_json(const struct sampler *sampler, const struct frame *before,
				     const struct frame *now)
{
	const struct sample *a = &before->sample, *b = &now->sample;
	struct latency latency;
	struct json_object *o = json_object_new_object(), *tiers = json_object_new_array();
	struct sample_rates r;

	sample_compare(a, b, &r);
	json_object_object_add(o, "volume", json_object_new_string(sampler->volume->name));
	json_object_object_add(o, "mode", json_object_new_string(b->mode));
	add(o, "seconds", r.seconds);
	for (u32 t = 0; t < b->nr_tiers; t++) {
		struct json_object *tier = json_object_new_object();

		json_object_object_add(tier, "class", json_object_new_string(class_name(b->tier[t].class)));
		json_object_object_add(tier, "kind", json_object_new_string(kind_name(b->tier[t].kind)));
		json_object_object_add(tier, "used_blocks", json_object_new_uint64(b->tier[t].used_blocks));
		json_object_object_add(tier, "blocks", json_object_new_uint64(b->tier[t].blocks));
		add(tier, "reads_per_second", r.reads[t]);
		add(tier, "writes_per_second", r.writes[t]);
		json_object_array_add(tiers, tier);
	}
	json_object_object_add(o, "tiers", tiers);
	add(o, "hit_rate", r.hit_rate);
	add(o, "mean_latency_us", r.mean_us);
	latency_between(&before->latency, &now->latency, &latency);
	json_object_object_add(o, "latency_by_tier", latency.nr_tiers ? latency_json(&latency) : NULL);
	add(o, "moved_blocks_per_second", r.moved);
	add(o, "packed_reads_per_second", r.packed_reads);
	add(o, "days_until_full", sample_days_left(a, b));
	return o;
}

/* ---- the command ---------------------------------------------------------------------------------- */

struct top {
	bool once, json;
	double every;
	const char *socket_path;
};

static bool pause_for(double seconds)
{
	const struct timespec t = {
		.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9),
	};

	nanosleep(&t, NULL);
	return !interrupt_seen();
}

static int look(const struct top *top, const struct sampler *sampler, struct frame *f)
{
	json_object_put(f->status);
	f->status = ask_daemon(top->socket_path, "status\n");
	latency_read(f->status, sampler->volume->name, &f->latency);
	return sample_take(sampler, &f->sample);
}

static void show_live(const struct sampler *sampler, const struct frame *before, const struct frame *now)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (out) {
		print_view(out, sampler, before, now);
		fclose(out);
		term_show(text);
	}
	free(text);
}

static int watch(const struct top *top, const struct sampler *sampler)
{
	struct frame *f = ctl_alloc(2 * sizeof(*f));
	int r = look(top, sampler, &f[0]);

	for (u32 n = 1; !r && pause_for(top->every); n++) {
		struct frame *before = &f[!(n & 1)], *now = &f[n & 1];

		r = look(top, sampler, now);
		if (r)
			break;
		if (top->json)
			ctl_json_print(view_json(sampler, before, now));
		else if (top->once)
			print_view(stdout, sampler, before, now);
		else
			show_live(sampler, before, now);
		fflush(stdout);
		if (top->once)
			break;
	}
	json_object_put(f[0].status);
	json_object_put(f[1].status);
	free(f);
	return r ? CTL_PROBLEM : CTL_OK;
}

static const char help_text[] =
"usage: terracectl top [OPTION]... NAME\n"
"\n"
"Shows what a volume does, every second, until Ctrl-C: use of the tiers, reads and\n"
"writes of each, hit rate, mean latency, moves, days until it is full at this\n"
"pace, and which parts of the volume are fast and were used lately.\n"
"\n"
"  --once           once, for the next second, without terminal codes; this is\n"
"                   also what happens when the output is no terminal\n"
"  --every SECONDS  instead of 1; 0.1 to 3600\n"
"  --socket PATH    of terraced, default " ASK_SOCKET "\n"
"  --json           as JSON, once\n"
"  --help           this text\n"
"\n"
"Exit status: 0 done, 1 the volume is not active or went away, 2 wrong usage.\n"
"\n"
"Examples:\n"
"  terracectl top db\n"
"  terracectl top --once --every 10 db\n";

static int top_run(const struct ctl_command *cmd, int argc, char **argv)
{
	struct top top = { .every = 1, .once = !isatty(STDOUT_FILENO), .socket_path = ASK_SOCKET };
	const char *every = NULL;
	const struct args_option options[] = {
		{ .name = "once", .flag = &top.once }, { .name = "every", .text = &every },
		{ .name = "socket", .text = &top.socket_path }, { .name = "json", .flag = &top.json },
		{ .name = NULL },
	};
	struct sampler sampler;
	struct dm_volume v;
	char *end;
	int r = args_one_volume(cmd, argc, argv, options);

	if (r != ARGS_GO_ON)
		return r;
	if (every) {
		top.every = strtod(every, &end);
		if (*end || !(top.every >= 0.1 && top.every <= 3600))
			return ctl_usage(cmd, "--every %s: seconds, from 0.1 to 3600", every);
	}
	top.once |= top.json;
	if (dm_named(&v, argv[optind]) || sampler_open(&sampler, &v))
		return CTL_PROBLEM;
	interrupt_watch();
	r = watch(&top, &sampler);
	sampler_close(&sampler);
	return r;
}

const struct ctl_command ctl_top_command = {
	.name = "top",
	.summary = "what a volume does right now",
	.help = help_text,
	.run = top_run,
};
