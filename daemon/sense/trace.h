/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block accesses through a tracepoint and perf, filtered to the volume's disk.  No BPF is needed.
 *
 *	terrace:terrace_access	the module's own: says where a read was served, samples what was
 *				fast, tells every slow read
 *	block:block_bio_queue	the block layer's, which every kernel has: does not say where;
 *				one access in `sampling` is told
 */
#ifndef TERRACE_SENSE_TRACE_H
#define TERRACE_SENSE_TRACE_H

#include <stddef.h>

#include "port.h"

enum trace_point {
	TRACE_ACCESS,
	TRACE_BLOCK,
};

/*
 * @sampling: TRACE_BLOCK: what is wanted; TRACE_ACCESS: what the module does.  0 or -errno with a
 * phrase in @why.
 */
int trace_open(enum trace_point point, unsigned int major, unsigned int minor, uint32_t sampling,
	       struct sense **out, char *why, size_t bytes);

/* --- for its test ---------------------------------------------------------------- */

/* Where in a record the fields are. */
struct trace_format {
	enum trace_point point;
	uint32_t first, count;		/* sector, nr_sector; block, count */
	uint32_t rwbs, rwbs_bytes;
	uint32_t op, where;
};

/* Reads the `format` file of the tracepoint.  -EPROTO: fields are missing. */
int trace_parse_format(enum trace_point point, const char *text, struct trace_format *out);

/* False: neither a read nor a write nor a discard. */
bool trace_parse_record(const struct trace_format *f, const void *data, uint32_t bytes,
			struct port_access *out);

#endif
