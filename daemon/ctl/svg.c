// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * SVG by hand. See svg.h.
 */
#include "names.h"
#include "svg.h"

#define WIDTH	760.0
#define HEIGHT	180.0
#define LEFT	64.0
#define BELOW	22.0
#define GRID	4
#define SHADES	16

static const char *const colour[SVG_MAX_LINES] = {
	"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f",
};

void html_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		default:
			fputc(*text, out);
		}
	}
}

static void print_number(FILE *out, double v)
{
	if (v >= 1e6)
		fprintf(out, "%.3gM", v / 1e6);
	else if (v >= 1e4)
		fprintf(out, "%.3gk", v / 1e3);
	else if (v >= 1e3)
		fprintf(out, "%.0f", v);
	else
		fprintf(out, "%.3g", v);
}

/* The next number up whose quarters are short. */
static double round_up(double v)
{
	static const double good[] = { 1, 1.2, 1.6, 2, 2.4, 3.2, 4, 5, 6, 8, 10 };
	double power = 1;
	u32 i = 0;

	while (power * 10 <= v)
		power *= 10;
	while (power > v)
		power /= 10;
	while (good[i] * power < v)
		i++;
	return good[i] * power;
}

static double largest(const struct svg_plot *p)
{
	double top = 0;

	for (u32 l = 0; l < p->nr_lines; l++)
		for (u32 i = 0; i < p->nr_points; i++)
			if (p->line[l].value[i] > top)
				top = p->line[l].value[i];
	return top > 0 ? round_up(top) : 1;
}

/* In the unit that suits the end: a few round numbers, and what comes last. */
static void times(FILE *out, double end)
{
	static const struct { double from, unit; const char *name; } units[] = {
		{ 172800, 86400, "days" }, { 7200, 3600, "h" }, { 120, 60, "min" }, { 0, 1, "s" },
	};
	double step;
	u32 u = 0;

	while (end < units[u].from)
		u++;
	end /= units[u].unit;
	step = end > 0 ? round_up(end / 6) : 1;
	for (u32 k = 0; k * step < end - step / 2 || !k; k++)
		fprintf(out, "<text x='%g' y='%g'%s>%g</text>", LEFT + (end > 0 ? WIDTH * k * step / end : 0),
			HEIGHT + BELOW + 4, k ? " class='middle'" : "", k * step);
	fprintf(out, "<text x='%g' y='%g' class='left'>%.3g %s</text>\n", LEFT + WIDTH, HEIGHT + BELOW + 4, end,
		units[u].name);
}

static void frame(FILE *out, const struct svg_plot *p, double top)
{
	for (int k = 0; k <= GRID; k++) {
		double y = HEIGHT - HEIGHT * k / GRID;

		fprintf(out, "<line x1='%g' y1='%g' x2='%g' y2='%g' class='grid'/><text x='%g' y='%g' class='left'>",
			LEFT, y + 8, LEFT + WIDTH, y + 8, LEFT - 6, y + 12);
		print_number(out, top * k / GRID);
		fputs("</text>\n", out);
	}
	times(out, p->nr_points ? p->seconds[p->nr_points - 1] : 0);
}

/* A gap where there is no value. How many there are. */
static u32 draw_line(FILE *out, const struct svg_plot *p, u32 l, double top)
{
	double end = p->nr_points ? p->seconds[p->nr_points - 1] : 1, x, y;
	bool open = false;
	u32 drawn = 0;

	for (u32 i = 0; i < p->nr_points; i++) {
		double v = p->line[l].value[i];

		if (v < 0) {
			if (open)
				fputs("'/>\n", out);
			open = false;
			continue;
		}
		x = LEFT + WIDTH * (end > 0 ? p->seconds[i] / end : 0);
		y = HEIGHT + 8 - HEIGHT * (v < top ? v : top) / top;
		if (!open)	/* twice: a value between two gaps would not be seen */
			fprintf(out, "<polyline fill='none' stroke-width='1.5' stroke-linecap='round' stroke='%s' points='%.1f,%.1f ",
				colour[l], x, y);
		open = true;
		drawn++;
		fprintf(out, "%.1f,%.1f ", x, y);
	}
	if (open)
		fputs("'/>\n", out);
	return drawn;
}

void svg_plot(FILE *out, const struct svg_plot *p)
{
	double top = p->top > 0 ? p->top : largest(p);
	u32 drawn = 0;

	fputs("<h2>", out);
	html_text(out, p->title);
	fputs(" <small>", out);
	html_text(out, p->unit);
	fputs("</small></h2>\n<p>", out);
	for (u32 l = 0; l < p->nr_lines && p->nr_lines > 1; l++) {
		fprintf(out, "<span style='color:%s'>&#9632; ", colour[l]);
		html_text(out, p->line[l].name);
		fputs("</span> ", out);
	}
	fprintf(out, "</p>\n<svg viewBox='0 0 %g %g' role='img'>\n", LEFT + WIDTH + 8, HEIGHT + BELOW + 12);
	frame(out, p, top);
	for (u32 l = 0; l < p->nr_lines; l++)
		drawn += draw_line(out, p, l, top);
	if (!drawn)
		fprintf(out, "<text x='%g' y='%g' class='middle'>nothing of that kind was seen</text>\n",
			LEFT + WIDTH / 2, HEIGHT / 2);
	fputs("</svg>\n", out);
}

/* Few, so that what hardly changes is one rectangle; 0: nothing at all. */
static u32 shade(u8 value)
{
	return (value * SHADES + 254u) / 255;
}

void svg_map(FILE *out, const char *title, double seconds, u32 nr, u32 columns, const u8 *value)
{
	double w = WIDTH / (nr ? nr : 1), h = HEIGHT / (columns ? columns : 1);
	u32 from, i;

	fputs("<h2>", out);
	html_text(out, title);
	fprintf(out, "</h2>\n<svg viewBox='0 0 %g %g' role='img' shape-rendering='crispEdges'>\n",
		LEFT + WIDTH + 8, HEIGHT + BELOW + 12);
	fprintf(out, "<rect x='%g' y='8' width='%g' height='%g' class='frame'/>\n", LEFT, WIDTH, HEIGHT);
	for (u32 k = 0; k < columns; k++)
		for (from = 0; from < nr; from = i) {
			u32 level = shade(value[from * columns + k]);

			for (i = from + 1; i < nr && shade(value[i * columns + k]) == level;)
				i++;
			if (level)
				fprintf(out, "<rect x='%.2f' y='%.2f' width='%.2f' height='%.2f' fill='#c30' fill-opacity='%.2f'/>\n",
					LEFT + w * from, 8 + h * k, w * (i - from), h, level / (double)SHADES);
		}
	fprintf(out, "<text x='%g' y='18' class='left'>first</text><text x='%g' y='%g' class='left'>last</text>\n",
		LEFT - 6, LEFT - 6, HEIGHT + 8);
	times(out, seconds);
	fputs("</svg>\n", out);
}
