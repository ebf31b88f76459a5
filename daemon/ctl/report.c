// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl report: watches a volume for a while and writes what it saw as
 * one HTML file, which loads nothing from anywhere.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "args.h"
#include "interrupt.h"
#include "names.h"
#include "sample.h"
#include "svg.h"
#include "term.h"

#define MAX_SAMPLES	2000

struct report {
	const char *output;
	double seconds, every;
	bool json;
	struct sample *sample;
	u32 nr;
};

/* ---- watching ------------------------------------------------------------------------------- */

static void pause_for(double seconds)
{
	const struct timespec t = {
		.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9),
	};

	nanosleep(&t, NULL);
}

/* Ctrl-C ends it early: what was seen by then is written. */
static int record(struct report *p, const struct dm_volume *v)
{
	u32 most = (u32)(p->seconds / p->every) + 1;
	struct sampler sampler;
	int r = sampler_open(&sampler, v);

	if (r)
		return r;
	interrupt_watch();
	p->sample = ctl_alloc(most * sizeof(*p->sample));
	while (!r && p->nr < most) {
		r = sample_take(&sampler, &p->sample[p->nr]);
		p->nr += !r;
		term_progress("watching", p->nr, most);
		if (p->nr == most || r || (interrupt_seen() && p->nr > 1))
			break;
		pause_for(p->every);
	}
	sampler_close(&sampler);
	return p->nr > 1 ? 0 : r ? r : -EINTR;
}

/* ---- the page ---------------------------------------------------------------------------------- */

enum { HITS, LATENCY, MOVED, NEW, PACKED, USE, READS = USE + TERRACE_MAX_TIERS,
	WRITES = READS + TERRACE_MAX_TIERS, SERIES = WRITES + TERRACE_MAX_TIERS };

struct series {
	u32 nr;			/* points: one less than samples */
	double *seconds, *of[SERIES];
};

static void fill_series(struct series *s, const struct report *p)
{
	s->nr = p->nr - 1;
	s->seconds = ctl_alloc(s->nr * sizeof(double));
	for (u32 k = 0; k < SERIES; k++)
		s->of[k] = ctl_alloc(s->nr * sizeof(double));
	for (u32 i = 0; i < s->nr; i++) {
		const struct sample *b = &p->sample[i + 1];
		struct sample_rates r;

		sample_compare(&p->sample[i], b, &r);
		s->seconds[i] = (double)(b->ns - p->sample[0].ns) * 1e-9;
		s->of[HITS][i] = r.hit_rate < 0 ? -1 : 100 * r.hit_rate;
		s->of[LATENCY][i] = r.mean_us;
		s->of[MOVED][i] = r.moved;
		s->of[NEW][i] = r.new_writes;
		s->of[PACKED][i] = r.packed_reads;
		for (u32 t = 0; t < b->nr_tiers; t++) {
			s->of[USE + t][i] = b->tier[t].blocks ?
				100.0 * (double)b->tier[t].used_blocks / (double)b->tier[t].blocks : 0;
			s->of[READS + t][i] = r.reads[t];
			s->of[WRITES + t][i] = r.writes[t];
		}
	}
}

static void free_series(struct series *s)
{
	free(s->seconds);
	for (u32 k = 0; k < SERIES; k++)
		free(s->of[k]);
}

static void plot_one(FILE *out, const struct series *s, const char *title, const char *unit, double top,
		     u32 which)
{
	struct svg_plot p = { .title = title, .unit = unit, .top = top, .nr_points = s->nr, .seconds = s->seconds,
			      .nr_lines = 1, .line = { { title, s->of[which] } } };

	svg_plot(out, &p);
}

static void plot_tiers(FILE *out, const struct series *s, const struct sample *last, const char *title,
		       const char *unit, double top, u32 first)
{
	struct svg_plot p = { .title = title, .unit = unit, .top = top, .nr_points = s->nr, .seconds = s->seconds };
	char name[TERRACE_MAX_TIERS][32];

	for (u32 t = 0; t < last->nr_tiers; t++) {
		snprintf(name[t], sizeof(name[t]), "tier %u %.10s", t, class_name(last->tier[t].class));
		p.line[t].name = name[t];
		p.line[t].value = s->of[first + t];
	}
	p.nr_lines = last->nr_tiers;
	svg_plot(out, &p);
}

static void plot_moves(FILE *out, const struct series *s)
{
	struct svg_plot p = {
		.title = "Moves and new places", .unit = "blocks per second", .nr_points = s->nr,
		.seconds = s->seconds, .nr_lines = 3,
		.line = { { "moved", s->of[MOVED] }, { "new writes", s->of[NEW] }, { "packed reads", s->of[PACKED] } },
	};

	svg_plot(out, &p);
}

static void plot_maps(FILE *out, const struct report *p)
{
	u32 columns = p->sample[p->nr - 1].nr_cells;
	double end = (double)(p->sample[p->nr - 1].ns - p->sample[0].ns) * 1e-9;
	u8 *fast = ctl_alloc((size_t)p->nr * SAMPLE_CELLS), *lately = ctl_alloc((size_t)p->nr * SAMPLE_CELLS);

	for (u32 i = 0; i < p->nr && columns; i++) {
		memcpy(fast + i * columns, p->sample[i].fast, columns);
		memcpy(lately + i * columns, p->sample[i].lately, columns);
	}
	if (columns) {
		svg_map(out, "What is fast, over time: first to last block of the volume", end, p->nr, columns, fast);
		svg_map(out, "What was used lately, over time", end, p->nr, columns, lately);
	}
	free(fast);
	free(lately);
}

static void print_table(FILE *out, const struct report *p)
{
	const struct sample *last = &p->sample[p->nr - 1];
	struct sample_rates r;
	double days = sample_days_left(&p->sample[0], last);

	sample_compare(&p->sample[0], last, &r);
	fputs("<div><table><tr><th>tier<th>class<th>kind<th>used<th>of<th>reads/s<th>writes/s</tr>\n", out);
	for (u32 t = 0; t < last->nr_tiers; t++)
		fprintf(out, "<tr><td>%u<td>%s<td>%s<td>%s<td>%s<td>%.0f<td>%.0f</tr>\n", t,
			class_name(last->tier[t].class), kind_name(last->tier[t].kind),
			size_text(last->tier[t].used_blocks), size_text(last->tier[t].blocks), r.reads[t], r.writes[t]);
	fprintf(out, "</table></div>\n<p>Over %s: ", span_text(r.seconds));
	if (r.hit_rate >= 0)
		fprintf(out, "hit rate %.1f %%, ", 100 * r.hit_rate);
	if (r.mean_us >= 0)
		fprintf(out, "mean latency %.0f us, ", r.mean_us);
	fprintf(out, "%.0f blocks moved per second", r.moved);
	if (days >= 0)
		fprintf(out, "; at this pace full in %s", span_text(days * 86400));
	fputs(".</p>\n", out);
}

static void print_page(FILE *out, const struct report *p, const struct dm_volume *v)
{
	const struct sample *last = &p->sample[p->nr - 1];
	static const u8 unknown[TERRACE_UUID_BYTES];	/* made with dmsetup by hand */
	bool known = memcmp(v->uuid, unknown, sizeof(unknown)) != 0;
	struct series s;

	fill_series(&s, p);
	fputs("<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
	      "<meta name='viewport' content='width=device-width'><meta name='color-scheme' content='light dark'>"
	      "<title>Terrace: ", out);
	html_text(out, v->name);
	fputs("</title>\n<style>:root{--text:#222;--grey:#666;--grid:#ddd}"
	      "@media(prefers-color-scheme:dark){:root{--text:#ddd;--grey:#999;--grid:#444}body{background:#181818}}"
	      "body{font:14px sans-serif;max-width:860px;margin:2em auto;padding:0 1em;color:var(--text)}"
	      "h2{font-size:15px;margin:1.6em 0 0}h2 small{font-weight:normal;color:var(--grey)}p{margin:.3em 0}"
	      "svg{width:100%}text{font-size:11px;fill:var(--grey)}.left{text-anchor:end}.middle{text-anchor:middle}"
	      ".grid{stroke:var(--grid)}.frame{fill:none;stroke:var(--grid)}div{overflow-x:auto}"
	      "td,th{white-space:nowrap;padding:.2em .8em;text-align:right;border-bottom:1px solid var(--grid)}</style></head><body>\n<h1>Volume ", out);
	html_text(out, v->name);
	fprintf(out, "</h1>\n<p>%s%s%s, mode %s</p>\n", known ? uuid_text(v->uuid) : "", known ? ", " : "",
		size_text(v->sectors / TERRACE_BLOCK_SECTORS), last->mode);
	print_table(out, p);
	plot_one(out, &s, "Hit rate", "% of reads from fast tiers or the promotion cache", 100, HITS);
	plot_one(out, &s, "Mean latency", "microseconds, all I/O", 0, LATENCY);
	plot_tiers(out, &s, last, "Reads", "per second", 0, READS);
	plot_tiers(out, &s, last, "Writes", "per second", 0, WRITES);
	plot_tiers(out, &s, last, "Use of the tiers", "%", 100, USE);
	plot_moves(out, &s);
	plot_maps(out, p);
	fputs("</body></html>\n", out);
	free_series(&s);
}

/* Beside it first: an interrupted report leaves the older one. */
static int write_page(const struct report *p, const struct dm_volume *v)
{
	char *part = ctl_text("%s.part", p->output);
	FILE *out = fopen(part, "we");
	int r = 0;

	if (out)
		print_page(out, p, v);
	if (!out || ferror(out) || fclose(out) || rename(part, p->output)) {
		r = -errno;
		ctl_error("%s: cannot be written: %s", p->output, strerror(errno));
		remove(part);
	}
	free(part);
	return r;
}

static void say(const struct report *p)
{
	const struct sample *first = &p->sample[0], *last = &p->sample[p->nr - 1];
	struct json_object *o;
	struct sample_rates r;

	sample_compare(first, last, &r);
	if (!p->json) {
		printf("%s: %u samples over %.0f s\n", p->output, p->nr, r.seconds);
		return;
	}
	o = json_object_new_object();
	json_object_object_add(o, "file", json_object_new_string(p->output));
	json_object_object_add(o, "samples", json_object_new_uint64(p->nr));
	json_object_object_add(o, "seconds", json_object_new_double(r.seconds));
	json_object_object_add(o, "hit_rate", r.hit_rate < 0 ? NULL : json_object_new_double(r.hit_rate));
	ctl_json_print(o);
}

/* ---- the command ----------------------------------------------------------------------------------- */

static const char help_text[] =
"usage: terracectl report --output FILE [OPTION]... NAME\n"
"\n"
"Watches a volume and writes one HTML file with plots, which needs nothing else:\n"
"hit rate, latency, reads, writes and use of each tier, moves, and maps of what\n"
"was fast and what was used, over time. Ctrl-C ends it early and keeps what was\n"
"seen.\n"
"\n"
"  --output FILE      where to\n"
"  --seconds SECONDS  how long, default 60\n"
"  --every SECONDS    between two looks; default: a hundredth of it, at least 0.1\n"
"  --json             what was done, as JSON\n"
"  --help             this text\n"
"\n"
"Exit status: 0 written, 1 failed, 2 wrong usage.\n"
"\n"
"Example:\n"
"  terracectl report --seconds 3600 --output db.html db\n";

static int parse_seconds(const struct ctl_command *cmd, const char *name, const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	if (*end || !(*out >= 0.1 && *out <= 10e6))
		return ctl_usage(cmd, "--%s %s: seconds, from 0.1 on", name, text);
	return 0;
}

static int run_report(struct report *p, const char *name)
{
	struct dm_volume v;
	int r = CTL_PROBLEM;

	if (dm_named(&v, name))
		return CTL_PROBLEM;
	if (!record(p, &v) && !write_page(p, &v)) {
		say(p);
		r = CTL_OK;
	}
	free(p->sample);
	return r;
}

static int report_run(const struct ctl_command *cmd, int argc, char **argv)
{
	struct report p = { .seconds = 60 };
	const char *seconds = NULL, *every = NULL;
	const struct args_option options[] = {
		{ .name = "output", .text = &p.output }, { .name = "seconds", .text = &seconds },
		{ .name = "every", .text = &every }, { .name = "json", .flag = &p.json }, { .name = NULL },
	};
	int r = args_parse(cmd, argc, argv, options);

	if (r != ARGS_GO_ON)
		return r;
	r = seconds ? parse_seconds(cmd, "seconds", seconds, &p.seconds) : 0;
	if (!r && every)
		r = parse_seconds(cmd, "every", every, &p.every);
	if (r)
		return r;
	if (argc - optind != 1)
		return ctl_usage(cmd, "name one volume");
	if (!p.output)
		return ctl_usage(cmd, "where to? --output FILE");
	if (!(p.every > 0))
		p.every = p.seconds / 100 < 0.1 ? 0.1 : p.seconds / 100;
	if (p.seconds / p.every > MAX_SAMPLES || p.every > p.seconds)
		return ctl_usage(cmd, "--every %g: 1 to %u looks in %g seconds, please", p.every, MAX_SAMPLES, p.seconds);
	return run_report(&p, argv[optind]);
}

const struct ctl_command ctl_report_command = {
	.name = "report",
	.summary = "watch a volume, write an HTML page with plots",
	.help = help_text,
	.run = report_run,
};
