/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plots for one HTML page that needs nothing else: lines over time, and a map
 * of cells over time.
 */
#ifndef TERRACE_CTL_SVG_H
#define TERRACE_CTL_SVG_H

#include <stdio.h>

#include "core/place.h"

#define SVG_MAX_LINES 8

struct svg_plot {
	const char *title, *unit;
	double top;			/* of the vertical axis; 0: the largest value */
	u32 nr_points, nr_lines;
	const double *seconds;		/* [nr_points] */
	struct {
		const char *name;
		const double *value;	/* [nr_points]; <0: none */
	} line[SVG_MAX_LINES];
};

void svg_plot(FILE *out, const struct svg_plot *plot);

/* @value: 0-255, rows of @columns, one for each of @nr points in time, the last after @seconds. */
void svg_map(FILE *out, const char *title, double seconds, u32 nr, u32 columns, const u8 *value);

/* Text as it may stand in HTML. */
void html_text(FILE *out, const char *text);

#endif
