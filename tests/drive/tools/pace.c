// SPDX-License-Identifier: GPL-2.0
/*
 * pace: how long do commands take?
 *
 *	pace DEVICE read|write|flush [--bs BYTES] [--depth N] [--count N]
 *	     [--pattern seq|rand|hop] [--start BYTE] [--span BYTES] [--seed N]
 *	     [--pause NS --after N]
 *
 * Keeps --depth commands under way until --count are done and prints one line:
 * iops, bytes per second, and mean, least and greatest latency in nanoseconds.
 * rand picks within --span from --start; hop goes to and fro between --start
 * and --start + --span, so a disk seeks by that distance each time. --pause
 * lets the drive idle once, when N commands are done.
 *
 * Smaller and more exact than fio for a drive of known properties: nothing but
 * submission and completion is between the clock readings.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_DEPTH 256

enum what { READ, WRITE, FLUSH };
enum pattern { SEQ, RAND, HOP };

static enum what what;
static enum pattern pattern;
static uint64_t bs = 4096, depth = 1, count = 1000, start, span = 1 << 20, seed = 1, pause_ns, pause_after;

struct slot {
	void *data;
	uint64_t since;
};

static struct slot slots[MAX_DEPTH];
static struct io_uring ring;
static int device;
static uint64_t issued, done, sum, least = UINT64_MAX, greatest;

static void trouble(const char *text, int error)
{
	fprintf(stderr, "pace: %s: %s\n", text, strerror(error));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static uint64_t rnd(uint64_t below)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 20) % below;
}

static uint64_t place(void)
{
	if (pattern == SEQ)
		return start + issued * bs;
	if (pattern == HOP)
		return start + (issued & 1 ? span : 0);
	return start + rnd(span / bs) * bs;
}

static void issue(struct slot *s)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
	int r;

	if (what == READ)
		io_uring_prep_read(sqe, device, s->data, bs, place());
	else if (what == WRITE)
		io_uring_prep_write(sqe, device, s->data, bs, place());
	else
		io_uring_prep_fsync(sqe, device, IORING_FSYNC_DATASYNC);
	io_uring_sqe_set_data(sqe, s);
	issued++;
	s->since = now();
	r = io_uring_submit(&ring);
	if (r < 0)
		trouble("submit", -r);
}

static struct slot *reap(void)
{
	struct io_uring_cqe *cqe;
	struct slot *s;
	uint64_t ns;
	int r;

	do {
		r = io_uring_wait_cqe(&ring, &cqe);
	} while (r == -EINTR);
	if (r)
		trouble("wait", -r);
	s = io_uring_cqe_get_data(cqe);
	ns = now() - s->since;
	if (cqe->res < 0)
		trouble("I/O", -cqe->res);
	io_uring_cqe_seen(&ring, cqe);
	sum += ns;
	least = ns < least ? ns : least;
	greatest = ns > greatest ? ns : greatest;
	done++;
	return s;
}

static void drain_and_pause(void)
{
	struct timespec t = { .tv_sec = pause_ns / 1000000000, .tv_nsec = pause_ns % 1000000000 };

	while (done < issued)
		reap();
	nanosleep(&t, NULL);
}

static void fill_queue(void)
{
	uint64_t i;

	for (i = 0; i < depth && issued < count; i++)
		issue(&slots[i]);
}

static void usage(void)
{
	fprintf(stderr, "usage: pace DEVICE read|write|flush [--bs BYTES] [--depth N] [--count N] [--pattern seq|rand|hop]\n"
		"       [--start BYTE] [--span BYTES] [--seed N] [--pause NS --after N]\n");
	exit(2);
}

static int choose(const char *word, const char *const *words)
{
	int i;

	for (i = 0; words[i]; i++)
		if (!strcmp(word, words[i]))
			return i;
	usage();
	return 0;
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 10);

	if (*end || end == text)
		usage();
	return n;
}

static void parse(int argc, char **argv)
{
	static const char *const whats[] = { "read", "write", "flush", NULL };
	static const char *const patterns[] = { "seq", "rand", "hop", NULL };
	static const struct option options[] = {
		{ "bs", 1, NULL, 'b' }, { "depth", 1, NULL, 'd' }, { "count", 1, NULL, 'c' }, { "pattern", 1, NULL, 'p' },
		{ "start", 1, NULL, 's' }, { "span", 1, NULL, 'n' }, { "seed", 1, NULL, 'r' },
		{ "pause", 1, NULL, 'P' }, { "after", 1, NULL, 'A' }, { NULL, 0, NULL, 0 }
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'b': bs = number(optarg); break;
		case 'd': depth = number(optarg); break;
		case 'c': count = number(optarg); break;
		case 'p': pattern = choose(optarg, patterns); break;
		case 's': start = number(optarg); break;
		case 'n': span = number(optarg); break;
		case 'P': pause_ns = number(optarg); break;
		case 'A': pause_after = number(optarg); break;
		case 'r': seed = number(optarg); break;
		default: usage();
		}
	}
	if (optind != argc - 2 || !depth || depth > MAX_DEPTH || !bs || span < bs)
		usage();
	what = choose(argv[optind + 1], whats);
	device = open(argv[optind], O_RDWR | O_DIRECT | O_CLOEXEC);
	if (device < 0)
		trouble(argv[optind], errno);
}

int main(int argc, char **argv)
{
	uint64_t i, begin, took;

	parse(argc, argv);
	i = io_uring_queue_init(MAX_DEPTH, &ring, 0);
	if (i)
		trouble("io_uring_queue_init", -(int)i);
	for (i = 0; i < depth; i++) {
		if (posix_memalign(&slots[i].data, 4096, bs))
			trouble("memory", ENOMEM);
		memset(slots[i].data, 0x5a, bs);
	}
	begin = now();
	fill_queue();
	while (done < count) {
		struct slot *s = reap();

		if (issued == pause_after) {
			drain_and_pause();
			fill_queue();
		} else if (issued < count) {
			issue(s);
		}
	}
	took = now() - begin;
	printf("iops=%llu bw=%llu mean=%llu min=%llu max=%llu took=%llu\n",
	       (unsigned long long)(count * 1000000000ULL / took),
	       (unsigned long long)(what == FLUSH ? 0 : (unsigned __int128)count * bs * 1000000000ULL / took),
	       (unsigned long long)(sum / count), (unsigned long long)least, (unsigned long long)greatest,
	       (unsigned long long)took);
	return 0;
}
