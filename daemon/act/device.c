// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Control device and sysfs behind the loop's port; uapi/terrace.h is the manual.
 *
 * A kernel part without summaries is asked for exact regions instead, which costs it a walk over
 * 1024 places each: then a tick reads few.  One that has grown is opened anew by whoever uses the
 * port, since all sizes change: it is told that the volume has gone.
 */
#include "act/device.h"
#include "act/physical.h"
#include "act/sampler.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SYSFS			"/sys/fs/terrace"
#define CLAIM_TIMEOUT_MS	30000	/* a driver that hangs is none */
#define CLAIM_AGAIN_S		10
#define PHYSICAL_S		2	/* between two reports of drives that compress */
#define HOME_FULL_PERMILLE	900	/* inside, as the kernel has it: nothing more goes there */
#define CHEAP_SUMMARIES		4096	/* a tick, where they are mapped */
#define KEPT_FILES		96u
#define DEAR_SUMMARIES		64	/* … where they are not */

/* A file of sysfs that each tick reads: opening it costs three times what reading it does. */
struct kept {
	char name[40];
	int fd;
};

struct device {
	struct port port;
	struct port_ops ops;		/* drain only with a sense */
	struct sense *sense;
	struct sampler *sampler;
	int fd;
	int sampler_fd;			/* its hints */
	struct terrace_hello hello;
	const struct terrace_ring *ring;
	const struct terrace_summary *summary;	/* NULL: not offered */
	uint64_t tail;
	bool claimed;
	char name[64];
	char disk[32];			/* dm-3 */
	unsigned int major, minor;
	uint64_t last_writes[TERRACE_MAX_RESULT_TIERS];
	uint64_t last_ios, last_sectors;
	time_t next_physical, next_claim;
	uint64_t written_blocks[TERRACE_MAX_RESULT_TIERS];
	struct terrace_region regions[DEAR_SUMMARIES];
	struct kept kept[KEPT_FILES];
	uint32_t nr_kept, next_kept;
};

static struct device *device_of(struct port *port)
{
	return (struct device *)port;
}

/* ---- sysfs ---------------------------------------------------------------------------- */

static int open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 ? fd : errno == ENOENT ? -ENODEV : -errno;
}

/* Its first line, as it is now, however long the file has been open. */
static int first_line(int fd, char *line, size_t bytes)
{
	ssize_t n = pread(fd, line, bytes - 1, 0);

	if (n < 0)
		return errno == ENODEV || errno == ENOENT ? -ENODEV : -EIO;
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	return 0;
}

static int read_line(const char *path, char *line, size_t bytes)
{
	int fd = open_file(path), err = fd < 0 ? fd : first_line(fd, line, bytes);

	if (fd >= 0)
		close(fd);
	return err;
}

/* They are asked for in the same order each tick: most likely the next one. */
static struct kept *kept(struct device *d, const char *name)
{
	for (uint32_t n = 0; n < d->nr_kept; n++, d->next_kept++) {
		if (d->next_kept >= d->nr_kept)
			d->next_kept = 0;
		if (!strcmp(d->kept[d->next_kept].name, name))
			return &d->kept[d->next_kept++];
	}
	return NULL;
}

/* Of FOLDER/DISK/NAME; names are of one folder only. */
static int kept_line(struct device *d, const char *folder, const char *name, char *line, size_t bytes)
{
	struct kept *k = kept(d, name);
	char path[128];
	int fd;

	if (k)
		return first_line(k->fd, line, bytes);
	snprintf(path, sizeof(path), "%s/%s/%s", folder, d->disk, name);
	if (d->nr_kept == KEPT_FILES)
		return read_line(path, line, bytes);
	fd = open_file(path);
	if (fd < 0)
		return fd;
	k = &d->kept[d->nr_kept++];
	snprintf(k->name, sizeof(k->name), "%s", name);
	k->fd = fd;
	return first_line(fd, line, bytes);
}

/* @name: relative to the volume's folder. */
static int word(struct device *d, const char *name, char *line, size_t bytes)
{
	return kept_line(d, SYSFS, name, line, bytes);
}

static int number(struct device *d, const char *name, uint64_t *out)
{
	char line[64];
	int err = word(d, name, line, sizeof(line));

	*out = err ? 0 : strtoull(line, NULL, 10);
	return err;
}

static int find_disk(struct device *d, const char *name)
{
	char path[512], line[128];
	DIR *dir = opendir(SYSFS);
	struct dirent *entry;
	int found = -ENODEV;

	if (!dir)
		return -ENODEV;
	while (found && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof(d->disk))
			continue;
		snprintf(path, sizeof(path), SYSFS "/%s/name", entry->d_name);
		if (read_line(path, line, sizeof(line)) || strcmp(line, name))
			continue;
		memcpy(d->disk, entry->d_name, strlen(entry->d_name) + 1);
		found = 0;
	}
	closedir(dir);
	if (found)
		return found;
	snprintf(path, sizeof(path), "/sys/block/%s/dev", d->disk);
	found = read_line(path, line, sizeof(line));
	if (!found && sscanf(line, "%u:%u", &d->major, &d->minor) != 2)
		found = -ENODEV;
	return found;
}

static uint32_t kind_of(const char *name)
{
	static const char *const kinds[] = { "?", "slots", "shelves", "home" };

	for (uint32_t k = 1; k < 4; k++)
		if (!strcmp(kinds[k], name))
			return k;
	return 0;
}

static int read_tier(struct device *d, uint32_t t, struct port_tier *out, uint64_t *reads,
		     uint64_t *writes)
{
	uint64_t limit, used;
	char name[48], line[64];
	int err;

#define WORD(what) (snprintf(name, sizeof(name), "tier%u/" what, t), name)
	err = word(d, WORD("class"), line, sizeof(line));
	if (err)
		return err;
	snprintf(out->class, sizeof(out->class), "%.11s", line);
	err = word(d, WORD("kind"), line, sizeof(line));
	out->kind = kind_of(line);
	if (!err)
		err = number(d, WORD("used_blocks"), &out->used_blocks);
	if (!err)
		err = number(d, WORD("blocks"), &out->blocks);
	if (!err)
		err = number(d, WORD("reads"), reads);
	if (!err)
		err = number(d, WORD("writes"), writes);
	if (!err)
		err = word(d, WORD("missing"), line, sizeof(line));
	out->missing = !strcmp(line, "yes");
	if (!err)
		number(d, WORD("reserve_blocks"), &out->reserve_blocks);	/* older modules do not tell */
	if (out->kind == TERRACE_KIND_SHELVES)
		number(d, WORD("free_shelves"), &out->free_shelves);
	if (!err)
		number(d, WORD("io_errors"), &out->io_errors);	/* older modules do not count */
	if (out->kind == TERRACE_KIND_HOME && !number(d, WORD("physical_limit"), &limit) &&
	    !number(d, WORD("physical_used"), &used))
		out->full = limit && used * 1000 >= limit * HOME_FULL_PERMILLE;
#undef WORD
	return err;
}

/* Writes are counted, not measured: each as long as the users' mean since the last call. */
static void measure_writes(struct device *d, const uint64_t *writes, uint64_t ios, uint64_t sectors)
{
	double each = ios > d->last_ios ? (double)(sectors - d->last_sectors) / 8 / (double)(ios - d->last_ios) : 1;

	for (uint32_t t = 0; t < d->hello.nr_tiers; t++) {
		if (writes[t] > d->last_writes[t])
			d->written_blocks[t] += (uint64_t)((double)(writes[t] - d->last_writes[t]) * each);
		d->last_writes[t] = writes[t];
	}
	d->last_ios = ios;
	d->last_sectors = sectors;
}

static int read_latency(struct device *d, struct port_state *out, const uint64_t *writes)
{
	unsigned long long f[8] = { 0 };
	char line[256];
	int err;

	err = kept_line(d, "/sys/block", "stat", line, sizeof(line));
	if (err)
		return err;
	if (sscanf(line, "%llu %llu %llu %llu %llu %llu %llu %llu", &f[0], &f[1], &f[2], &f[3], &f[4],
		   &f[5], &f[6], &f[7]) != 8)
		return -EIO;
	out->busy_ns = (f[3] + f[7]) * 1000000;
	measure_writes(d, writes, f[4], f[6]);
	return 0;
}

/* Tiers of kind home are as full as their drives say. */
static void report_physical(struct device *d, const struct port_state *state)
{
	struct timespec now;
	bool any = false;

	for (uint32_t t = 0; t < state->nr_tiers; t++)
		any |= state->tier[t].kind == TERRACE_KIND_HOME && !state->tier[t].missing;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!any || now.tv_sec < d->next_physical)
		return;
	d->next_physical = now.tv_sec + PHYSICAL_S;
	physical_report(d->major, d->minor);
}

static int device_state(struct port *port, struct port_state *out)
{
	struct device *d = device_of(port);
	uint64_t reads = 0, writes[TERRACE_MAX_RESULT_TIERS] = { 0 }, blocks = 0, avoid = 0;
	char line[64];
	int err = number(d, "virtual_blocks", &blocks);

	if (!err && blocks != d->hello.virtual_blocks)
		err = -ENODEV;
	memset(out, 0, sizeof(*out));
	out->nr_tiers = d->hello.nr_tiers;
	for (uint32_t t = 0; !err && t < out->nr_tiers; t++) {
		err = read_tier(d, t, &out->tier[t], &reads, &writes[t]);
		out->reads += reads;
		out->writes += writes[t];
		if (out->tier[t].kind == TERRACE_KIND_SLOTS)
			out->fast_reads += reads;
	}
	if (!err)
		number(d, "index_lookups", &out->vain_reads);
	if (!err && !number(d, "tune/avoid_tiers", &avoid))
		for (uint32_t t = 0; t < out->nr_tiers; t++)
			out->tier[t].avoided = avoid >> t & 1;
	if (!err)
		err = word(d, "mode", line, sizeof(line));
	if (!err)
		err = read_latency(d, out, writes);
	if (err)
		return err;
	report_physical(d, out);
	out->writable = !strcmp(line, "write");
	memcpy(out->written_blocks, d->written_blocks, sizeof(out->written_blocks));
	return 0;
}

/* ---- the control device ---------------------------------------------------------------- */

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

static int device_regions(struct port *port, uint64_t first, uint32_t nr, struct terrace_region *out)
{
	struct terrace_regions ask = {
		.first = first, .nr = nr, .region_bytes = sizeof(*out), .regions = (uintptr_t)out,
		.flags = device_of(port)->hello.features & TERRACE_FEATURE_RUNS ? TERRACE_REGIONS_RUNS : 0,
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
	got = device_regions(port, first, nr < DEAR_SUMMARIES ? nr : DEAR_SUMMARIES, d->regions);
	for (int i = 0; i < got; i++)
		summarize(&d->regions[i], &out[i]);
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

static bool holds(const char *pid, const char *path)
{
	char link[600], target[300];
	struct dirent *entry;
	bool found = false;
	DIR *fds;

	snprintf(link, sizeof(link), "/proc/%.20s/fd", pid);
	fds = opendir(link);
	while (fds && !found && (entry = readdir(fds))) {
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/%.20s/fd/%s", pid, entry->d_name);
		n = readlink(link, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = 0;
		found = !strcmp(target, path);
	}
	if (fds)
		closedir(fds);
	return found;
}

/* As far as /proc shows it to us. */
static void device_holders(struct port *port, char *text, size_t bytes)
{
	char path[160], line[64];
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	size_t used = 0;

	snprintf(path, sizeof(path), TERRACE_DEVICE_FOLDER "/%s", device_of(port)->name);
	text[0] = 0;
	while (proc && (entry = readdir(proc))) {
		char comm[300];

		if (strtol(entry->d_name, NULL, 10) <= 0 || strtol(entry->d_name, NULL, 10) == getpid() ||
		    !holds(entry->d_name, path))
			continue;
		snprintf(comm, sizeof(comm), "/proc/%.20s/comm", entry->d_name);
		if (read_line(comm, line, sizeof(line)) || used >= bytes)
			continue;
		used += (size_t)snprintf(text + used, bytes - used, "%s%s (pid %.20s)", used ? ", " : "", line,
					 entry->d_name);
	}
	if (proc)
		closedir(proc);
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

static int device_sample(struct port *port, uint64_t region, const uint64_t *blocks)
{
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
	if (d->sampler_fd >= 0)
		close(d->sampler_fd);
	if (d->sense)
		d->sense->close(d->sense);
	if (d->port.health)
		d->port.health->close(d->port.health);
	for (uint32_t i = 0; i < d->nr_kept; i++)
		close(d->kept[i].fd);
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
	.each_slow = device_each_slow, .claim = device_claim, .holders = device_holders, .close = device_close,
};

/* Without it packing goes by what it gained so far. */
static void add_sampler(struct device *d)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/%s", d->disk);
	d->sampler_fd = device_marker(&d->port);
	if (sampler_open(&d->sampler, path, d->sampler_fd))
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
	d->sampler_fd = -1;
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
	err = find_disk(d, name);
	if (err)
		return fail(d, err, why, bytes, SYSFS);
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
	return ((const struct device *)port)->major;
}

unsigned int device_minor(const struct port *port)
{
	return ((const struct device *)port)->minor;
}

uint32_t device_heat_sample(struct port *port)
{
	uint64_t n;

	return number(device_of(port), "tune/heat_sample", &n) || !n ? 1 : (uint32_t)n;
}

uint32_t device_slow_sample(struct port *port)
{
	uint64_t n;

	return number(device_of(port), "tune/slow_sample", &n) ? 0 : (uint32_t)n;
}

static int set_tune(struct port *port, const char *name, uint32_t n)
{
	char path[160], text[16];
	int bytes = snprintf(text, sizeof(text), "%u\n", n), fd, err = 0;

	snprintf(path, sizeof(path), SYSFS "/%s/tune/%s", device_of(port)->disk, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, (size_t)bytes) != bytes)
		err = -errno;
	close(fd);
	return err;
}

int device_set_heat_sample(struct port *port, uint32_t n)
{
	return set_tune(port, "heat_sample", n);
}

int device_set_slow_sample(struct port *port, uint32_t n)
{
	return set_tune(port, "slow_sample", n);
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
