/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A volume in use goes one floor down, so that something else can take its
 * place: NAME, which is mounted, keeps its identity and gets a table that
 * leads to NAME-terrace, which gets the volume.
 *
 * The kernel runs a volume under one mapped device at a time, and stops it
 * when that device's table is replaced. So for a moment there is no volume:
 * what arrives at NAME then waits at NAME-terrace, which is suspended.
 *
 *	     NAME			NAME-terrace
 *	in   terrace			(none)
 *	a    terrace			error, suspended
 *	b    linear NAME-terrace	error, suspended	I/O waits here
 *	out  linear NAME-terrace	terrace
 *	(NAME is anything that leads to NAME-terrace from here on)
 *	c    suspended			terrace
 *	d    suspended			error			the volume is stopped
 *	e    terrace, suspended		error			killed while it started
 *	(between two of them the volume may be suspended to be stopped, by one that was killed: it is resumed first)
 *	in   terrace			(none)
 *
 * Killed in any state: a power cut leaves the volume as it is on its devices;
 * a killed terracectl leaves I/O waiting in b to e. relay_find() tells
 * from the tables and from /run/terrace/NAME.relay which state it is, and
 * relay_out() and relay_in() go on from there. It also takes the volume's lock
 * (lock.h): of two at a time each would go on with what the other has just made.
 *
 * A volume is stopped only if each label of the table it is to start with can
 * be read: the kernel refuses a table with a drive that died in use. And only if
 * it can write down what it has acknowledged (quiet.h); else it stays as it is, one
 * floor down if it was there, and terracectl deactivate takes it down from there.
 */
#ifndef TERRACE_CTL_RELAY_H
#define TERRACE_CTL_RELAY_H

#include <sys/types.h>

#include "dm.h"

#define RELAY_BELOW	"-terrace"	/* behind NAME: what is below it */

struct relay {
	char name[DM_NAME_BYTES], below[DM_NAME_BYTES];
	u8 uuid[TERRACE_UUID_BYTES];
	u64 sectors;
	char params[DM_PARAMS_BYTES];	/* of the terrace table */
	bool begun;			/* some state but the first `in` */
};

/*
 * Fills @relay from a volume that is active under its own name, or from one
 * that was left in another state. -errno after a message.
 */
int relay_find(struct relay *relay, const char *name);

/* The same without asking the volume, its lock, or a change; false: nothing is below, or NAME does not run. */
bool relay_left(struct relay *relay, const char *name);

/* Which of the two runs the volume; NULL: neither. */
const char *relay_runs(const struct relay *relay);

/* Suspended to be stopped, by one that was killed then: the volume runs as it did. */
void relay_wake(const char *name);

/* NAME leads somewhere, and not below any more (leave.c): the device, or 0. */
dev_t relay_elsewhere(const struct relay *relay);

/* Killed before NAME led to NAME-terrace, or after: removes that, finds again. */
int relay_tidy(struct relay *relay, const char *name);

/* `in` (or any state up to `out`) to `out`. 0, or -errno after a message; if
 * it could not begin, it is `in` again.
 */
int relay_out(struct relay *relay);

/* To d: the volume stands still, I/O waits. Its devices can be written to. */
int relay_stop(struct relay *relay);

/* Its table from now on, also for the call that goes on after this one. All or nothing. */
int relay_change(struct relay *relay, const char *params);

/*
 * From anything to `in`, with @params as the terrace table. If that cannot be
 * started: to `out` (or as it is, if it was not stopped yet); and if that
 * cannot be either, I/O waits. -EROFS: it was not stopped, or what it has acknowledged would be lost.
 */
int relay_in(struct relay *relay, const char *params);

/* NAME does not need what is below any more: it goes, the volume with it. */
int relay_end(struct relay *relay);

#endif
