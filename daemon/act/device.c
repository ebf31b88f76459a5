// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The control device behind the loop's port; uapi/terrace.h is the manual.  What sysfs counts is counters.c's.
 *
 * A kernel part without summaries is asked for exact regions instead, which costs it a walk over
 * 1024 places each: then a tick reads few.  One that has grown is opened anew by whoever uses the
 * port, since all sizes change: it is told that the volume has gone.
 */
#include "act/device.h"
#include "act/counters.h"
#include "act/holders.h"
#include "act/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CLAIM_TIMEOUT_MS	30000	/* a driver that hangs is none */
#define CLAIM_AGAIN_S		10
#define CHEAP_SUMMARIES		4096	/* a tick, where they are mapped */
#define DEAR_SUMMARIES		64	/* … where they are not */

struct device {
	struct port port;
	struct port_ops ops;		/* drain only with a sense */
	struct sense *sense;
	struct sampler *sampler;
	int fd;
	struct terrace_hello hello;
	const struct terrace_ring *ring;
	const struct terrace_summary *summary;	/* NULL: not offered */
	uint64_t tail;
	bool claimed;
	char name[64];
	time_t next_claim;
	struct counters counters;
	struct terrace_region regions[DEAR_SUMMARIES];
};

static struct device *device_of(struct port *port)
{
	return (struct device *)port;
}

/* ---- the control device ---------------------------------------------------------------- */

static int device_state(struct port *port, struct port_state *out)
{
	struct device *d = device_of(port);

	return counters_read(&d->counters, d->hello.nr_tiers, d->hello.virtual_blocks, port->health, out);
}

static int device_shape(struct port *port, struct port_shape *out)
{
	const struct terrace_hello *hello = &device_of(port)->hello;

	*out = (struct port_shape){
		.blocks = hello->virtual_blocks, .regions = hello->regions, .features = hello->features,
		.max_orders = hello->max_orders, .max_batch = hello->max_batch,
	};
	memcpy(out->uuid, hello->volume_uuid, sizeof(out->uuid));
	return hello->region_blocks == TERRACE_REGION_BLOCKS ? 0 : -EPROTONOSUPPORT;
}

static int device_regions(struct port *port, uint64_t first, uint32_t nr, bool runs, struct terrace_region *out)
{
	struct terrace_regions ask = {
		.first = first, .nr = nr, .region_bytes = sizeof(*out), .regions = (uintptr_t)out,
		.flags = runs && device_of(port)->hello.features & TERRACE_FEATURE_RUNS ? TERRACE_REGIONS_RUNS : 0,
	};

	return ioctl(device_of(port)->fd, TERRACE_IOC_REGIONS, &ask) ? -errno : (int)ask.nr;
}

static uint16_t bits(const __u64 *a, const __u64 *b, bool without)
{
	unsigned int n = 0;

	for (int w = 0; w < TERRACE_REGION_WORDS; w++)
		n += (unsigned int)__builtin_popcountll(a[w] & (without ? ~b[w] : b[w]));
	return (uint16_t)n;
}

static void summarize(const struct terrace_region *r, struct terrace_summary *s)
{
	uint32_t blocks = 0;

	memset(s, 0, sizeof(*s));
	if (r->status) {
		s->flags = TERRACE_SUMMARY_LOST;
		return;
	}
	s->fast = bits(r->fast, r->fast, false);
	s->dirty = bits(r->fast, r->packed, true);
	s->loose = bits(r->present, r->fast, true);
	s->packed = bits(r->packed, r->packed, false);
	s->packs = (uint8_t)r->nr_packs;
	for (uint32_t k = 0; k < r->nr_packs && k < 8; k++)
		blocks += r->pack_blocks[k];
	s->packed_blocks = (uint16_t)(blocks < UINT16_MAX ? blocks : UINT16_MAX);
	/* garbage stays 0: what a pack held at first is not told. */
}

static int device_summaries(struct port *port, uint64_t first, uint32_t nr, struct terrace_summary *out)
{
	struct device *d = device_of(port);
	int got;

	if (first >= d->hello.regions)
		return -ERANGE;
	if (nr > d->hello.regions - first)
		nr = (uint32_t)(d->hello.regions - first);
	if (d->summary) {
		memcpy(out, &d->summary[first], nr * sizeof(*out));
		return (int)nr;
	}
	got = device_regions(port, first, nr < DEAR_SUMMARIES ? nr : DEAR_SUMMARIES, false, d->regions);
	for (int i = 0; i < got; i++) {
		if ((int)d->regions[i].status == -EBUSY)
			return i;	/* suspended: from here on the next time */
		summarize(&d->regions[i], &out[i]);
	}
	return got;
}

static int device_submit(struct port *port, struct terrace_move *moves, uint32_t nr)
{
	struct device *d = device_of(port);
	struct terrace_submit submit = {
		.orders = (uintptr_t)moves, .nr = nr, .order_bytes = sizeof(*moves), .consumed = d->tail,
	};

	return ioctl(d->fd, TERRACE_IOC_SUBMIT, &submit) ? -errno : (int)submit.done;
}

/* CONSUME also renews the claim, so it is called every time. */
static int device_results(struct port *port, struct terrace_result *out, uint32_t most)
{
	struct device *d = device_of(port);
	const struct terrace_result *entry = (const void *)((const char *)d->ring + d->ring->entries_offset);
	uint64_t head = __atomic_load_n(&d->ring->head, __ATOMIC_ACQUIRE);
	struct terrace_consume consume = { 0 };
	uint32_t n = 0;

	for (; n < most && d->tail < head; n++)
		out[n] = entry[d->tail++ & d->ring->mask];
	consume.tail = d->tail;
	return ioctl(d->fd, TERRACE_IOC_CONSUME, &consume) ? -errno : (int)n;
}

static int device_claim(struct port *port, bool on)
{
	struct device *d = device_of(port);
	struct terrace_claim claim = { .timeout_ms = CLAIM_TIMEOUT_MS };
	struct timespec now;
	int err;

	/* The kernel ends the claim of one that has hung for too long, and so it is made again now and then. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (on == d->claimed && (!on || now.tv_sec < d->next_claim))
		return 0;
	d->next_claim = now.tv_sec + CLAIM_AGAIN_S;
	err = (on ? ioctl(d->fd, TERRACE_IOC_CLAIM, &claim) : ioctl(d->fd, TERRACE_IOC_RELEASE)) ? -errno : 0;
	d->claimed = on && !err;
	return err == -ENOTTY ? -EOPNOTSUPP : err;
}

static void device_holders(struct port *port, char *text, size_t bytes)
{
	char path[160];

	snprintf(path, sizeof(path), TERRACE_DEVICE_FOLDER "/%s", device_of(port)->name);
	holders_of(path, text, bytes);
}

static int device_drain(struct port *port, uint32_t most, port_see_fn see, void *ctx)
{
	struct sense *sense = device_of(port)->sense;

	port->sampling = 1.0 / sense->sampling;	/* it may adapt */
	port->slow_sampling = sense->slow_sampling;
	return sense->drain(sense, most, see, ctx);
}

static void device_each_slow(struct port *port, bool yes)
{
	struct sense *sense = device_of(port)->sense;

	if (sense && sense->each_slow)
		sense->each_slow(sense, yes);
}

static void device_spare(struct port *port, bool yes)
{
	struct sense *sense = device_of(port)->sense;

	if (sense && sense->spare)
		sense->spare(sense, yes);
}

static int device_sample(struct port *port, uint64_t region, const uint64_t *blocks)
{
	/* Without the claim the blocks look read once: no harm, and less than to pack in vain. */
	return sampler_ask(device_of(port)->sampler, region, blocks);
}

static int device_gains(struct port *port, struct port_gain *out, uint32_t most)
{
	return sampler_gains(device_of(port)->sampler, out, most);
}

static void device_close(struct port *port)
{
	struct device *d = device_of(port);

	if (d->sampler)
		sampler_close(d->sampler);
	if (d->sense)
		d->sense->close(d->sense);
	if (d->port.health)
		d->port.health->close(d->port.health);
	counters_close(&d->counters);
	if (d->summary)
		munmap((void *)d->summary, d->hello.summary_bytes);
	if (d->ring)
		munmap((void *)d->ring, d->hello.results_bytes);
	if (d->fd >= 0)
		close(d->fd);
	free(d);
}

/* ---- opening --------------------------------------------------------------------------- */

static int fail(struct device *d, int err, char *why, size_t bytes, const char *what)
{
	snprintf(why, bytes, "%s: %s", what, strerror(-err));
	device_close(&d->port);
	return err;
}

static int say_hello(struct device *d, char *why, size_t bytes)
{
	d->hello = (struct terrace_hello){
		.bytes = sizeof(d->hello), .min_version = TERRACE_ABI_MIN, .max_version = TERRACE_ABI_MAX,
	};
	if (!ioctl(d->fd, TERRACE_IOC_HELLO, &d->hello))
		return d->hello.nr_tiers <= TERRACE_MAX_RESULT_TIERS ? 0 : -EPROTO;
	if (errno != EPROTONOSUPPORT)
		return -errno;
	snprintf(why, bytes, "the kernel module speaks ABI %u to %u, this program %u to %u: their versions do not fit",
		 d->hello.min_version, d->hello.max_version, (unsigned int)TERRACE_ABI_MIN, (unsigned int)TERRACE_ABI_MAX);
	return -EPROTONOSUPPORT;
}

static int map_rings(struct device *d)
{
	d->ring = mmap(NULL, d->hello.results_bytes, PROT_READ, MAP_SHARED, d->fd, TERRACE_MAP_RESULTS);
	if (d->ring == MAP_FAILED) {
		d->ring = NULL;
		return -errno;
	}
	if (d->ring->entry_bytes != sizeof(struct terrace_result))
		return -EPROTO;
	d->tail = d->ring->consumed;
	if (!(d->hello.features & TERRACE_FEATURE_SUMMARY) || !d->hello.summary_bytes)
		return 0;
	d->summary = mmap(NULL, d->hello.summary_bytes, PROT_READ, MAP_SHARED, d->fd, TERRACE_MAP_SUMMARY);
	if (d->summary == MAP_FAILED)
		d->summary = NULL;	/* the other way is slower, no more */
	return 0;
}

static const struct port_ops device_ops = {
	.shape = device_shape, .state = device_state, .summaries = device_summaries,
	.regions = device_regions, .submit = device_submit, .results = device_results,
	.each_slow = device_each_slow, .spare = device_spare, .claim = device_claim, .holders = device_holders, .close = device_close,
};

/* Without it packing goes by what it gained so far. */
static void add_sampler(struct device *d)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/%s", d->counters.disk);
	if (sampler_open(&d->sampler, path))
		return;
	d->ops.sample = device_sample;
	d->ops.gains = device_gains;
}

int device_open(const char *name, struct port **out, char *why, size_t bytes)
{
	struct device *d = calloc(1, sizeof(*d));
	char path[128];
	int err;

	if (!d) {
		snprintf(why, bytes, "out of memory");
		return -ENOMEM;
	}
	d->ops = device_ops;
	d->port.ops = &d->ops;
	snprintf(d->name, sizeof(d->name), "%s", name);
	snprintf(path, sizeof(path), TERRACE_DEVICE_FOLDER "/%s", name);
	d->fd = open(path, O_RDWR | O_CLOEXEC);
	if (d->fd < 0)
		return fail(d, -errno, why, bytes, path);
	why[0] = 0;
	err = say_hello(d, why, bytes);
	if (err && why[0]) {
		device_close(&d->port);
		return err;
	}
	if (err)
		return fail(d, err, why, bytes, "HELLO");
	err = map_rings(d);
	if (err)
		return fail(d, err, why, bytes, "the ring of results");
	err = counters_find(&d->counters, name);
	if (err)
		return fail(d, err, why, bytes, COUNTERS_FOLDER);
	add_sampler(d);
	d->port.fd = d->fd;
	d->port.sampling = 1;
	d->port.aged = d->summary;
	d->port.summaries_per_tick = d->summary ? CHEAP_SUMMARIES : DEAR_SUMMARIES;
	*out = &d->port;
	return 0;
}

unsigned int device_major(const struct port *port)
{
	return ((const struct device *)port)->counters.major;
}

unsigned int device_minor(const struct port *port)
{
	return ((const struct device *)port)->counters.minor;
}

uint32_t device_heat_sample(struct port *port)
{
	uint64_t n;

	return counters_number(&device_of(port)->counters, "tune/heat_sample", &n) || !n ? 1 : (uint32_t)n;
}

uint32_t device_slow_sample(struct port *port)
{
	uint64_t n;

	return counters_number(&device_of(port)->counters, "tune/slow_sample", &n) ? 0 : (uint32_t)n;
}

int device_set_heat_sample(struct port *port, uint32_t n)
{
	return counters_set(&device_of(port)->counters, "heat_sample", n);
}

int device_set_slow_sample(struct port *port, uint32_t n)
{
	return counters_set(&device_of(port)->counters, "slow_sample", n);
}

int device_marker(struct port *port)
{
	struct terrace_hello hello = {
		.bytes = sizeof(hello), .min_version = TERRACE_ABI_MIN, .max_version = TERRACE_ABI_MAX,
	};
	char path[128];
	int fd, err;

	snprintf(path, sizeof(path), TERRACE_DEVICE_FOLDER "/%s", device_of(port)->name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!ioctl(fd, TERRACE_IOC_HELLO, &hello))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int device_mark(int fd, uint32_t what, uint64_t block, uint64_t nr)
{
	struct terrace_range range = { .block = block, .nr = nr, .what = what };

	return ioctl(fd, TERRACE_IOC_RANGE, &range) ? -errno : 0;
}

int device_range(struct port *port, uint32_t what, uint64_t block, uint64_t nr)
{
	return device_mark(device_of(port)->fd, what, block, nr);
}

void device_ignore(struct port *port, uint32_t thread, bool yes)
{
	struct sense *sense = device_of(port)->sense;

	if (sense && sense->ignore)
		sense->ignore(sense, thread, yes);
}

void device_set_sense(struct port *port, struct sense *sense)
{
	struct device *d = device_of(port);

	d->sense = sense;
	d->ops.drain = sense ? device_drain : NULL;
	d->port.sampling = sense ? 1.0 / sense->sampling : 1;
	d->port.slow_always = sense && sense->slow_always;
	d->port.sense = sense;
}
