/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tunables: every constant of a policy, described once.
 *
 * A policy keeps its constants in a plain struct and describes the members in a
 * table: name, unit, default, range.  The same table fills in the defaults,
 * validates, lets the configuration parser set a member by name, and prints the
 * documentation, so none of them can drift from the others.
 */
#ifndef DECIDE_TUNABLE_H
#define DECIDE_TUNABLE_H

#include <stddef.h>
#include <stdint.h>

enum tunable_type {
	TUNABLE_U32,
	TUNABLE_U64,
	TUNABLE_DOUBLE,
};

struct tunable {
	const char *name;
	enum tunable_type type;
	size_t offset;
	double initial;
	double min;
	double max;
	const char *what;
};

struct tunable_table {
	const char *policy;
	const struct tunable *rows;
	size_t count;
};

#define TUNABLE(type_, strukt, member, initial_, min_, max_, what_)	\
	{ #member, type_, offsetof(struct strukt, member),		\
	  initial_, min_, max_, what_ }

#define TUNABLE_TABLE(name_, policy_, rows_)				\
	const struct tunable_table name_ = {				\
		policy_, rows_, sizeof(rows_) / sizeof((rows_)[0])	\
	}

/* Writes every default into @values. */
void tunable_defaults(const struct tunable_table *table, void *values);

double tunable_get(const struct tunable *row, const void *values);

/*
 * Sets one member by name.  -ENOENT: no such tunable; -ERANGE: outside
 * [min, max], a fraction for an integer, or not a number; @values is then unchanged.
 */
int tunable_set(const struct tunable_table *table, void *values,
		const char *name, double value);

/* 0, or -ERANGE with *@bad naming the first member out of range (@bad may be NULL). */
int tunable_check(const struct tunable_table *table, const void *values,
		  const struct tunable **bad);

#endif
