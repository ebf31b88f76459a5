/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The port of a real volume: its control device and its words in sysfs.
 */
#ifndef TERRACE_ACT_DEVICE_H
#define TERRACE_ACT_DEVICE_H

#include <stddef.h>

#include "port.h"

/* Opens /dev/terrace/@name. 0 or -errno with a phrase in @why. */
int device_open(const char *name, struct port **out, char *why, size_t bytes);

/* The volume's disk, for those who sense its I/O. */
unsigned int device_major(const struct port *port);
unsigned int device_minor(const struct port *port);

/* One access in so many is told by the module's own tracepoint. */
uint32_t device_heat_sample(struct port *port);
int device_set_heat_sample(struct port *port, uint32_t n);
/* The same of reads that a slow tier serves. */
uint32_t device_slow_sample(struct port *port);	/* 0: the module tells each */
int device_set_slow_sample(struct port *port, uint32_t n);

/* Pins or hints a range: enum terrace_range_what. */
int device_range(struct port *port, uint32_t what, uint64_t block, uint64_t nr);

/*
 * A file of the control device for hints alone, or -errno.  A hint belongs to the file that set it, so whoever takes
 * one back takes nobody else's: DEAD is set through the port itself, each other user has a file of its own.
 */
int device_marker(struct port *port);
int device_mark(int fd, uint32_t what, uint64_t block, uint64_t nr);

/* Reads by this thread heat nothing, until further notice; where the sense can tell threads apart. */
void device_ignore(struct port *port, uint32_t thread, bool yes);

/* From now on drain() asks @sense, which is closed with the port. */
void device_set_sense(struct port *port, struct sense *sense);

#endif
