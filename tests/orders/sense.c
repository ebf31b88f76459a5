// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The sense side: summaries, ranges, events, the claim to drive. Each call says
 * what it found, and is judged by tests/vm/volume-sense.sh.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "orders.h"

/* summary REGION...: one line for each, when its numbers hold still */
int do_summary(struct volume *v, int argc, char **argv)
{
	const struct terrace_summary *all = mmap(NULL, v->hello.summary_bytes, PROT_READ, MAP_SHARED, v->fd,
						 TERRACE_MAP_SUMMARY);
	int k, tries;

	if (all == MAP_FAILED)
		die("mmap of the summaries");
	if (mmap(NULL, v->hello.summary_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd, TERRACE_MAP_SUMMARY) != MAP_FAILED)
		die("summaries can be written");
	for (k = 0; k < argc; k++) {
		const struct terrace_summary *s = &all[strtoull(argv[k], NULL, 0)];

		for (tries = 0; s->flags & TERRACE_SUMMARY_STALE && tries < 100; tries++)
			usleep(100000);
		printf("fast=%u dirty=%u loose=%u packed=%u garbage=%u packs=%u pinned=%u stale=%u\n", s->fast,
		       s->dirty, s->loose, s->packed, s->garbage, s->packs,
		       !!(s->flags & TERRACE_SUMMARY_PINNED), !!(s->flags & TERRACE_SUMMARY_STALE));
	}
	return 0;
}

static int range(int fd, uint64_t block, uint64_t nr, uint32_t what)
{
	struct terrace_range ask = { .block = block, .nr = nr, .what = what };

	return ioctl(fd, TERRACE_IOC_RANGE, &ask) ? -errno : 0;
}

/* range BLOCK NR WHAT [SECONDS]: a hint lasts as long as the process */
int do_range(struct volume *v, int argc, char **argv)
{
	static const char *const what[] = { "?", "pin-fast", "pin-slow", "unpin", "cold", "noheat", "dead", "clear", "fast" };
	unsigned int k;
	int err;

	if (argc < 3)
		return 2;
	for (k = 1; k < 8 && strcmp(what[k], argv[2]); k++)
		;
	err = range(v->fd, strtoull(argv[0], NULL, 0), strtoull(argv[1], NULL, 0), k);
	printf("%s\n", err ? strerrorname_np(-err) : "0");
	fflush(stdout);
	if (!err && argc > 3)
		sleep(atoi(argv[3]));
	return !!err;
}

/* marks BLOCK COUNT: every second block is marked dead, then they are cleared, one by one; milliseconds */
int do_marks(struct volume *v, int argc, char **argv)
{
	uint64_t first = argc > 0 ? strtoull(argv[0], NULL, 0) : 0, count = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	struct timespec from, to;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (uint64_t k = 0; k < 2 * count && !err; k++)
		err = range(v->fd, first + k % count * 2, 1, k < count ? TERRACE_RANGE_DEAD : TERRACE_RANGE_CLEAR);
	clock_gettime(CLOCK_MONOTONIC, &to);
	if (err)
		die("a mark");
	printf("%lld\n", (to.tv_sec - from.tv_sec) * 1000ll + (to.tv_nsec - from.tv_nsec) / 1000000);
	return 0;
}

/* events SECONDS: those that come in this time, one line for each */
int do_events(struct volume *v, int argc, char **argv)
{
	struct pollfd wait = { .fd = v->fd, .events = POLLIN };
	struct terrace_event event;
	int ms = argc ? atoi(argv[0]) * 1000 : 1000;

	fcntl(v->fd, F_SETFL, O_NONBLOCK);
	if (read(v->fd, &event, sizeof(event)) != -1 || errno != EAGAIN)
		die("read without events");
	if (read(v->fd, &event, 8) != -1 || errno != EINVAL)
		die("a short read");
	printf("listening\n");
	fflush(stdout);
	while (poll(&wait, 1, ms) == 1) {
		if (read(v->fd, &event, sizeof(event)) != sizeof(event)) {
			printf("%s%s\n", strerrorname_np(errno), wait.revents & POLLHUP ? " POLLHUP" : "");
			return 0;
		}
		printf("type=%u tier=%d region=%lld value=%llu\n", event.type, (int)event.tier,
		       (long long)event.region, (unsigned long long)event.value);
		fflush(stdout);
	}
	return 0;
}

static int claim(int fd, unsigned int ms)
{
	struct terrace_claim ask = { .timeout_ms = ms };

	return ioctl(fd, TERRACE_IOC_CLAIM, &ask) ? -errno : 0;
}

static int expect(const char *what, int got, int wanted)
{
	if (got == wanted)
		return 0;
	printf("%s: %s instead of %s\n", what, got ? strerrorname_np(-got) : "0",
	       wanted ? strerrorname_np(-wanted) : "0");
	return 1;
}

void take_over(struct volume *v)
{
	int tries, err = -EBUSY;

	for (tries = 0; tries < 600 && err == -EBUSY; tries++) {
		if (tries)
			usleep(100000);
		err = claim(v->fd, 0);
	}
	errno = -err;
	if (err)
		die("CLAIM");
}

/* Does the claim of another file end within 60 s? It says so to that file. */
static int ends(struct volume *other, const char *why)
{
	int tries, err = -EBUSY;

	for (tries = 0; tries < 600 && err == -EBUSY; tries++) {
		err = claim(other->fd, 0);
		usleep(100000);
	}
	ioctl(other->fd, TERRACE_IOC_RELEASE);
	return expect(why, err, 0);
}

/* The next event; 0: there is none. */
static uint32_t next_event(int fd, struct terrace_event *event)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };

	if (poll(&wait, 1, 0) != 1)
		return 0;
	if (read(fd, event, sizeof(*event)) != sizeof(*event))
		die("an event");
	return event->type;
}

/* Who claimed is told of the end; who does not read is told how many he missed. */
static int told(int fd, unsigned int ends)
{
	struct terrace_event event;
	unsigned int k, n = 0, kept = ends < 64 ? ends : 64;

	for (k = 0; k < kept; k++)
		if (next_event(fd, &event) != TERRACE_EVENT_CLAIM || event.value)
			n += printf("end of claim %u of %u: not told\n", k + 1, ends);
	if (ends > kept && (next_event(fd, &event) != TERRACE_EVENT_LOST || event.value != ends - kept))
		n += printf("%u ends of claims: not told that %u events were lost\n", ends, ends - kept);
	if (next_event(fd, &event))
		n += printf("%u ends of claims: event %u as well\n", ends, event.type);
	return n != 0;
}

int do_claim(struct volume *v, const char *path)
{
	struct volume other;
	pid_t child;
	int n = 0, k;

	volume_open(&other, path);
	n += expect("release without a claim", ioctl(v->fd, TERRACE_IOC_RELEASE) ? -errno : 0, -ENOENT);
	n += expect("claim", claim(v->fd, 0), 0);
	n += expect("claim again", claim(v->fd, 0), 0);
	n += expect("claim of another", claim(other.fd, 0), -EBUSY);
	child = fork();
	if (!child)
		_exit(0);	/* closes its copy */
	waitpid(child, NULL, 0);
	n += expect("claim of another after a child's end", claim(other.fd, 0), -EBUSY);
	n += expect("release", ioctl(v->fd, TERRACE_IOC_RELEASE) ? -errno : 0, 0);
	n += told(v->fd, 1);
	n += expect("claim with a timeout", claim(v->fd, 200), 0);
	n += ends(&other, "the timeout");
	n += told(v->fd, 1);
	for (k = 0; k < 70; k++)
		n += expect("claim", claim(v->fd, 0), 0) + ioctl(v->fd, TERRACE_IOC_RELEASE);
	n += told(v->fd, 70);
	child = fork();
	if (!child) {
		struct volume mine;

		volume_open(&mine, path);
		while (claim(mine.fd, 0))
			usleep(1000);
		pause();
		_exit(1);
	}
	while (claim(other.fd, 0) != -EBUSY)	/* until the child has it */
		ioctl(other.fd, TERRACE_IOC_RELEASE);
	kill(child, SIGKILL);
	n += ends(&other, "the end of a killed driver");
	waitpid(child, NULL, 0);
	n += expect("a range beyond the volume", range(v->fd, v->hello.virtual_blocks, 1, TERRACE_RANGE_DEAD), -ERANGE);
	n += expect("a range of nothing", range(v->fd, 0, 0, TERRACE_RANGE_DEAD), -EINVAL);
	n += expect("an unknown mark", range(v->fd, 0, 1, TERRACE_RANGE_HINT_FAST + 1), -EINVAL);
	return n ? 1 : 0;
}

static uint64_t read_blocks(int disk, uint64_t first, uint64_t nr)
{
	void *block = aligned_alloc(TERRACE_BLOCK_BYTES, TERRACE_BLOCK_BYTES);
	uint64_t n = 0;

	while (block && n < nr && pread(disk, block, TERRACE_BLOCK_BYTES, (off_t)((first + n) * TERRACE_BLOCK_BYTES)) == TERRACE_BLOCK_BYTES)
		n++;
	free(block);
	return n;
}

/* Waits until it has been told. */
static bool claim_ended(int fd)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	struct terrace_event event;

	while (poll(&wait, 1, 60000) == 1)
		if (next_event(fd, &event) == TERRACE_EVENT_CLAIM)
			return true;
	return false;
}

/*
 * look DISK BLOCK NR [release|time|close]: reads these as who drives; or as who has driven, until it released the claim, that
 * ran out, or a descriptor of the file was closed. How many were read.
 */
int do_look(struct volume *v, int argc, char **argv)
{
	uint64_t first = argc > 2 ? strtoull(argv[1], NULL, 0) : 0, nr = argc > 2 ? strtoull(argv[2], NULL, 0) : 0, n;
	const char *end = argc > 3 ? argv[3] : NULL;
	int disk = argc > 2 ? open(argv[0], O_RDONLY | O_DIRECT) : -1;

	if (disk < 0)
		die(argc > 2 ? argv[0] : "look");
	if (expect("claim", claim(v->fd, end && !strcmp(end, "time") ? 10 : 0), 0))
		return 1;
	if (end && !strcmp(end, "release") && ioctl(v->fd, TERRACE_IOC_RELEASE))
		die(end);
	if (end && !strcmp(end, "close"))
		close(dup(v->fd));
	if (end && !claim_ended(v->fd))
		die(end);
	n = read_blocks(disk, first, nr);
	printf("%llu\n", (unsigned long long)n);
	return n < nr;
}

/* hold [MILLISECONDS]: then it says no more, and the claim ends by itself */
int do_hold(struct volume *v, int argc, char **argv)
{
	if (expect("claim", claim(v->fd, argc ? atoi(argv[0]) : 0), 0))
		return 1;
	puts("held");
	fflush(stdout);
	for (;;)
		pause();
}
