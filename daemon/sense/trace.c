// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A perf ring per CPU, drained each tick; see trace.h.
 *
 * What comes faster than it is drained is lost and counted: heat is a statistic.
 */
#include "sense/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RING_PAGES	128	/* of data, per CPU; a power of two */
#define SECTORS		8	/* of 512 bytes in a block */

/* `where` of terrace_access: a tier's number, and */
#define WHERE_SLOW	(1u << 8)	/* not a slots tier */
#define WHERE_NOWHERE	(1u << 10)	/* no tier: read as zeros */

struct cpu_ring {
	int fd;
	struct perf_event_mmap_page *page;	/* NULL: this CPU is off */
};

struct trace {
	struct sense sense;
	struct trace_format format;
	struct cpu_ring *ring;
	int cpus;
	size_t ring_bytes, data_bytes;
	uint32_t period;
};

/* ---- the tracepoint's description ------------------------------------------------------ */

/* "field:sector_t sector;	offset:16;	size:8;	signed:0;" */
static int field(const char *text, const char *name, uint32_t *offset, uint32_t *size)
{
	char wanted[40];
	const char *at;

	snprintf(wanted, sizeof(wanted), " %s", name);
	for (at = strstr(text, wanted); at; at = strstr(at + 1, wanted)) {
		char after = at[strlen(wanted)];
		const char *numbers;

		if (after != ';' && after != '[')
			continue;
		numbers = strstr(at, "offset:");
		if (numbers && sscanf(numbers, "offset:%u; size:%u", offset, size) == 2)
			return 0;
	}
	return -EPROTO;
}

/* A field of @bytes. */
static int fixed(const char *text, const char *name, uint32_t bytes, uint32_t *offset)
{
	uint32_t size;
	int err = field(text, name, offset, &size);

	return err ? err : size == bytes ? 0 : -EPROTO;
}

int trace_parse_format(enum trace_point point, const char *text, struct trace_format *out)
{
	int err;

	memset(out, 0, sizeof(*out));
	out->point = point;
	err = fixed(text, point == TRACE_ACCESS ? "block" : "sector", 8, &out->first);
	if (!err)
		err = fixed(text, point == TRACE_ACCESS ? "count" : "nr_sector", 4, &out->count);
	if (!err && point == TRACE_BLOCK)
		return field(text, "rwbs", &out->rwbs, &out->rwbs_bytes);
	if (!err)
		err = fixed(text, "op", 4, &out->op);
	if (!err)
		err = fixed(text, "where", 4, &out->where);
	return err;
}

/* "FWS", "R", "RA", "D", "N": an F in front is a flush that comes before. */
static bool op_of(const char *rwbs, enum port_op *op)
{
	if (rwbs[0] == 'F' && rwbs[1])
		rwbs++;
	switch (rwbs[0]) {
	case 'R':
		*op = PORT_READ;
		return true;
	case 'W':
		*op = PORT_WRITE;
		return true;
	case 'D':
	case 'N':
		*op = PORT_DISCARD;
		return true;
	}
	return false;
}

static uint32_t word_at(const char *record, uint32_t offset)
{
	uint32_t value;

	memcpy(&value, record + offset, sizeof(value));
	return value;
}

static bool parse_block(const struct trace_format *f, const char *record, uint32_t bytes,
			struct port_access *out)
{
	uint64_t sector;
	uint32_t nr = word_at(record, f->count);
	char rwbs[16] = "";
	uint32_t n = f->rwbs_bytes < sizeof(rwbs) - 1 ? f->rwbs_bytes : (uint32_t)sizeof(rwbs) - 1;

	if (f->rwbs + n > bytes)
		return false;
	memcpy(&sector, record + f->first, 8);
	memcpy(rwbs, record + f->rwbs, n);
	if (!nr || !op_of(rwbs, &out->op))
		return false;
	out->block = sector / SECTORS;
	out->count = (sector + nr + SECTORS - 1) / SECTORS - out->block;
	out->where = PORT_UNKNOWN;
	out->always = false;
	return true;
}

static bool parse_access(const struct trace_format *f, const char *record, uint32_t bytes,
			 struct port_access *out)
{
	uint32_t op, where;

	if (f->op + 4 > bytes || f->where + 4 > bytes)
		return false;
	op = word_at(record, f->op);
	where = word_at(record, f->where);
	if (op > PORT_DISCARD)
		return false;
	memcpy(&out->block, record + f->first, 8);
	out->count = word_at(record, f->count);
	out->op = (enum port_op)op;	/* the same numbers */
	out->where = where & WHERE_NOWHERE ? PORT_NOWHERE : where & WHERE_SLOW ? PORT_SLOW : PORT_FAST;
	out->always = op == PORT_READ && out->where != PORT_FAST;
	return out->count > 0;
}

bool trace_parse_record(const struct trace_format *f, const void *data, uint32_t bytes,
			struct port_access *out)
{
	if (f->first + 8 > bytes || f->count + 4 > bytes)
		return false;
	return f->point == TRACE_ACCESS ? parse_access(f, data, bytes, out) :
					  parse_block(f, data, bytes, out);
}

/* ---- draining ---------------------------------------------------------------------------- */

/* Copies @bytes from position @at of the ring, which wraps. */
static void ring_copy(const struct trace *t, const struct cpu_ring *r, uint64_t at, void *to, size_t bytes)
{
	const char *data = (const char *)r->page + (t->ring_bytes - t->data_bytes);
	size_t from = at & (t->data_bytes - 1), first = t->data_bytes - from;

	if (first > bytes)
		first = bytes;
	memcpy(to, data + from, first);
	memcpy((char *)to + first, data, bytes - first);
}

static void lost(struct trace *t, const char *record)
{
	uint64_t nr;

	memcpy(&nr, record + sizeof(struct perf_event_header) + 8, sizeof(nr));
	t->sense.lost += nr;
}

static int see_record(struct trace *t, const char *record, const struct perf_event_header *h,
		      port_see_fn see, void *ctx)
{
	struct port_access access;
	uint32_t raw;

	if (h->type == PERF_RECORD_LOST)
		lost(t, record);
	if (h->type != PERF_RECORD_SAMPLE || h->size < sizeof(*h) + 4)
		return 0;
	memcpy(&raw, record + sizeof(*h), 4);
	if (raw > h->size - sizeof(*h) - 4 ||
	    !trace_parse_record(&t->format, record + sizeof(*h) + 4, raw, &access))
		return 0;
	see(ctx, &access);
	return 1;
}

static uint32_t drain_cpu(struct trace *t, struct cpu_ring *r, uint32_t most, port_see_fn see, void *ctx)
{
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE), tail = r->page->data_tail;
	char record[512];
	uint32_t n = 0;

	while (tail < head && n < most) {
		struct perf_event_header h;

		ring_copy(t, r, tail, &h, sizeof(h));
		if (h.size < sizeof(h))
			break;
		if (h.size <= sizeof(record)) {
			ring_copy(t, r, tail, record, h.size);
			n += (uint32_t)see_record(t, record, &h, see, ctx);
		}
		tail += h.size;
	}
	__atomic_store_n(&r->page->data_tail, tail, __ATOMIC_RELEASE);
	return n;
}

static int trace_drain(struct sense *sense, uint32_t most, port_see_fn see, void *ctx)
{
	struct trace *t = (struct trace *)sense;
	uint32_t n = 0;

	for (int cpu = 0; cpu < t->cpus && n < most; cpu++)
		if (t->ring[cpu].page)
			n += drain_cpu(t, &t->ring[cpu], most - n, see, ctx);
	return (int)n;
}

static void trace_close(struct sense *sense)
{
	struct trace *t = (struct trace *)sense;

	for (int cpu = 0; t->ring && cpu < t->cpus; cpu++) {
		if (t->ring[cpu].page)
			munmap(t->ring[cpu].page, t->ring_bytes);
		if (t->ring[cpu].fd >= 0)
			close(t->ring[cpu].fd);
	}
	free(t->ring);
	free(t);
}

/* ---- opening ------------------------------------------------------------------------------- */

static const char *const events[] = {
	[TRACE_ACCESS] = "terrace/terrace_access",
	[TRACE_BLOCK] = "block/block_bio_queue",
};

static int read_file(enum trace_point point, const char *name, char *text, size_t bytes)
{
	static const char *const roots[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	char path[128];
	ssize_t n = -1;
	int err = -ENOENT;

	for (int i = 0; i < 2 && n < 0; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/events/%s/%s", roots[i], events[point], name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0) {
			err = -errno;
			continue;
		}
		n = read(fd, text, bytes - 1);
		close(fd);
	}
	if (n < 0)
		return err;
	text[n] = 0;
	return 0;
}

static int open_cpu(struct trace *t, int cpu, uint64_t id, const char *filter)
{
	struct cpu_ring *r = &t->ring[cpu];
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .config = id,
		.sample_period = t->period, .sample_type = PERF_SAMPLE_RAW, .disabled = 1,
	};

	r->fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (r->fd < 0)
		return errno == ENODEV ? 0 : -errno;	/* no such CPU now */
	if (ioctl(r->fd, PERF_EVENT_IOC_SET_FILTER, filter))
		return -errno;
	r->page = mmap(NULL, t->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (r->page == MAP_FAILED) {
		r->page = NULL;
		return -errno;
	}
	return ioctl(r->fd, PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
}

static int open_cpus(struct trace *t, uint64_t id, const char *filter)
{
	long page = sysconf(_SC_PAGESIZE);
	int err = 0;

	t->cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
	t->data_bytes = (size_t)page * RING_PAGES;
	t->ring_bytes = t->data_bytes + (size_t)page;
	t->ring = calloc((size_t)t->cpus, sizeof(*t->ring));
	if (!t->ring)
		return -ENOMEM;
	for (int cpu = 0; cpu < t->cpus; cpu++)
		t->ring[cpu].fd = -1;
	for (int cpu = 0; !err && cpu < t->cpus; cpu++)
		err = open_cpu(t, cpu, id, filter);
	return err;
}

int trace_open(enum trace_point point, unsigned int major, unsigned int minor, uint32_t sampling,
	       struct sense **out, char *why, size_t bytes)
{
	struct trace *t = calloc(1, sizeof(*t));
	char text[4096], filter[64];
	int err = t ? read_file(point, "format", text, sizeof(text)) : -ENOMEM;

	if (!err)
		err = trace_parse_format(point, text, &t->format);
	if (!err)
		err = read_file(point, "id", text, sizeof(text));
	if (err) {
		snprintf(why, bytes, "the tracepoint %s cannot be read: %s", events[point], strerror(-err));
		free(t);
		return err;
	}
	t->sense = (struct sense){
		.drain = trace_drain, .close = trace_close, .sampling = sampling ? sampling : 1,
		.name = point == TRACE_ACCESS ? "access" : "block", .slow_always = point == TRACE_ACCESS,
	};
	/* The module samples by itself. */
	t->period = point == TRACE_ACCESS ? 1 : t->sense.sampling;
	/* The kernel's own dev_t, not stat's. */
	snprintf(filter, sizeof(filter), "dev == %u", major << 20 | minor);
	err = open_cpus(t, strtoull(text, NULL, 10), filter);
	if (err) {
		snprintf(why, bytes, "perf refuses the tracepoint %s: %s", events[point], strerror(-err));
		trace_close(&t->sense);
		return err;
	}
	*out = &t->sense;
	return 0;
}
