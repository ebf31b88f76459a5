// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * orders: move orders by hand, and at random.
 *
 *	orders DEVICE move REGION MODE [up=RANGES] [warm=RANGES] [tier_up=N] [tier_down=N]
 *	       [codec=none|lz4|zstd] [level=N] [shift=0|2|4] [flags=N]
 *	orders DEVICE moves REGION MODE [OPTION...] + REGION MODE [OPTION...] ...
 *	orders DEVICE leave REGION MODE [OPTION...]
 *	orders DEVICE given FILE
 *	orders DEVICE sweep FIRST COUNT MODE [OPTION...]
 *	orders DEVICE show REGION
 *	orders DEVICE only TIER
 *	orders DEVICE random COUNT SEED REGIONS [region=FIRST] [tier_up=N[-M]] [tier_down=N[-M]] [shelves=[FIRST+]N] [batch=N] [tally=FILE] [claim]
 *	orders DEVICE bad
 *	orders DEVICE abi
 *	orders DEVICE uring
 *	orders DEVICE cancel
 *	orders DEVICE summary REGION...
 *	orders DEVICE range BLOCK NR pin-fast|pin-slow|unpin|cold|noheat|dead|clear|fast [SECONDS]
 *	orders DEVICE marks BLOCK COUNT
 *	orders DEVICE events SECONDS
 *	orders DEVICE claim
 *	orders DEVICE hold [MILLISECONDS]
 *	orders DEVICE look DISK BLOCK NR
 *
 * --uring before DEVICE: orders go as io_uring commands instead of by ioctl.
 *
 * move prints the result, one name=value per word; exit status 1 if it failed.
 * moves gives several at once and prints their results in this order.
 * leave does not wait for the order, and sleeps until it is killed; given gives the order
 * that lies in FILE, which is mapped, and prints "taken" or the error.
 * sweep gives the same order to COUNT regions in batches and prints the sums
 * and how long all of it took.
 * only prints, one run on a line, the blocks that are lost with that tier.
 * RANGES: 0-99,200,512-1023 or all. random gives COUNT orders (random.c) to
 * REGIONS, at most 256, from the first on, and prints how they ended; executed are those that
 * found something to do. tally: 8 numbers of 64 bits each, by mode: orders given, ended, executed.
 * claim: it drives meanwhile, and waits a minute for who did to be gone. bad
 * gives malformed ones; each must be refused, as abi does with all other calls. uring tests io_uring commands, cancel (on a
 * suspended volume, whose orders wait) that they can be taken back, claim who may drive. hold
 * makes it the driver until it is killed, or says nothing for so long; look reads
 * blocks as the driver. range keeps a hint
 * for SECONDS; events prints what comes until none came for SECONDS.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "orders.h"

void die(const char *what)
{
	fprintf(stderr, "orders: %s: %s\n", what, strerror(errno));
	exit(1);
}

void usage(void)
{
	fprintf(stderr, "usage: orders [--uring] DEVICE move|show|random|bad|uring ... (see the head of orders.c)\n");
	exit(2);
}

void volume_open(struct volume *v, const char *path)
{
	memset(v, 0, sizeof(*v));
	v->fd = open(path, O_RDWR | O_CLOEXEC);
	if (v->fd < 0)
		die(path);
	v->hello.bytes = sizeof(v->hello);
	v->hello.min_version = TERRACE_ABI_MIN;
	v->hello.max_version = TERRACE_ABI_MAX;
	if (ioctl(v->fd, TERRACE_IOC_HELLO, &v->hello))
		die("HELLO");
	v->ring = mmap(NULL, v->hello.results_bytes, PROT_READ, MAP_SHARED, v->fd, TERRACE_MAP_RESULTS);
	if (v->ring == MAP_FAILED)
		die("mmap of the results");
}

int submit(struct volume *v, struct terrace_move *move, unsigned int nr)
{
	struct terrace_submit submit = {
		.orders = (uintptr_t)move, .nr = nr, .order_bytes = sizeof(*move),
		.flags = TERRACE_SUBMIT_WAIT, .consumed = v->tail,
	};

	if (v->by_uring) {
		int said = uring_submit(v, &submit);

		return said < 0 ? said : 0;
	}
	return ioctl(v->fd, TERRACE_IOC_SUBMIT, &submit) ? -errno : 0;
}

const struct terrace_result *next_result(struct volume *v)
{
	const struct terrace_result *entry = (const void *)((const char *)v->ring + v->ring->entries_offset);
	uint64_t head = __atomic_load_n(&v->ring->head, __ATOMIC_ACQUIRE);

	return v->tail == head ? NULL : &entry[v->tail++ & v->ring->mask];
}

/* ---- by hand ---------------------------------------------------------------- */

static void ranges(uint64_t *map, const char *text)
{
	char *end;

	if (!strcmp(text, "all")) {
		memset(map, 0xff, TERRACE_REGION_WORDS * 8);
		return;
	}
	for (;;) {
		unsigned long first = strtoul(text, &end, 0), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 0);
		if (last >= TERRACE_REGION_BLOCKS || first > last)
			usage();
		for (; first <= last; first++)
			map[first / 64] |= 1ull << (first % 64);
		if (*end != ',')
			break;
		text = end + 1;
	}
	if (*end)
		usage();
}

static const char *const modes[] = { "?", "append", "merge", "raise", "clean", "drop", "scrub" };
static const char *const codecs[] = { "none", "lz4", "zstd" };
static const char *const ends[] = { "?", "done", "partly", "no-room", "cancelled", "failed" };

static int number_of(const char *const *names, int nr, const char *name)
{
	int k;

	for (k = 0; k < nr; k++)
		if (!strcmp(names[k], name))
			return k;
	usage();
	return 0;
}

static void option(struct terrace_move *move, const char *word)
{
	const char *value = strchr(word, '=');
	size_t n = value ? (size_t)(value - word) : 0;

	if (!value)
		usage();
	value++;
	if (!strncmp(word, "up", n))
		ranges((uint64_t *)move->up, value);
	else if (!strncmp(word, "warm", n))
		ranges((uint64_t *)move->warm, value);
	else if (!strncmp(word, "tier_up", n))
		move->tier_up = atoi(value);
	else if (!strncmp(word, "tier_down", n))
		move->tier_down = atoi(value);
	else if (!strncmp(word, "codec", n))
		move->codec = number_of(codecs, 3, value);
	else if (!strncmp(word, "level", n))
		move->level = atoi(value);
	else if (!strncmp(word, "shift", n))
		move->shift = atoi(value);
	else if (!strncmp(word, "flags", n))
		move->flags = strtoul(value, NULL, 0);
	else
		usage();
}

static struct terrace_move move_of(int argc, char **argv)
{
	struct terrace_move move = { .cookie = 1 };
	int k;

	if (argc < 2)
		usage();
	move.region = strtoull(argv[0], NULL, 0);
	move.mode = number_of(modes, 7, argv[1]);
	for (k = 2; k < argc; k++)
		option(&move, argv[k]);
	return move;
}

static void print_result(const struct terrace_result *r)
{
	int t;

	printf("status=%s error=%s down=%u up=%u dropped=%u raced=%u unreadable=%u raw=%u packs=%u packed_bytes=%llu",
	       ends[r->status], r->error ? strerrorname_np(-r->error) : "0", r->down, r->up, r->dropped,
	       r->raced, r->unreadable, r->raw, r->packs, (unsigned long long)r->packed_bytes);
	printf(" bad_block=%lld cpu_ns=%llu", (long long)r->bad_block, (unsigned long long)r->cpu_nanoseconds);
	for (t = 0; t < 4; t++)
		printf(" read%d=%llu written%d=%llu", t, (unsigned long long)r->read_bytes[t], t,
		       (unsigned long long)r->written_bytes[t]);
	printf(" ns=%llu\n", (unsigned long long)r->nanoseconds);
}

static int do_move(struct volume *v, int argc, char **argv)
{
	struct terrace_move move = move_of(argc, argv);
	const struct terrace_result *r;
	int err;

	err = submit(v, &move, 1);
	if (err) {
		errno = -err;
		die("SUBMIT");
	}
	r = next_result(v);
	if (!r)
		die("no result");
	print_result(r);
	return r->error ? 1 : 0;
}

/* Given at once, so that a worker may take them together. */
static int do_moves(struct volume *v, int argc, char **argv)
{
	struct terrace_move move[8];
	const struct terrace_result *r, *result[8];
	int nr = 0, from = 0, k, failed = 0;

	for (k = 0; k <= argc; k++) {
		if (k < argc && strcmp(argv[k], "+"))
			continue;
		if (nr == 8)
			usage();
		move[nr] = move_of(k - from, argv + from);
		move[nr].cookie = nr + 1;
		nr++;
		from = k + 1;
	}
	k = submit(v, move, nr);
	if (k) {
		errno = -k;
		die("SUBMIT");
	}
	while ((r = next_result(v)))
		result[r->cookie - 1] = r;
	for (k = 0; k < nr; k++) {
		print_result(result[k]);
		failed += result[k]->error != 0;
	}
	return failed ? 1 : 0;
}

unsigned long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

#define SWEEP	256	/* orders at once */

static int do_sweep(struct volume *v, int argc, char **argv)
{
	unsigned long long first, count, done = 0, began, down = 0, up = 0, dropped = 0, bytes = 0, cpu = 0;
	static struct terrace_move move[SWEEP] = { { .cookie = 1 } };
	const struct terrace_result *r;
	int k, err, failed = 0;

	if (argc < 3)
		usage();
	first = strtoull(argv[0], NULL, 0);
	count = strtoull(argv[1], NULL, 0);
	move[0].mode = number_of(modes, 7, argv[2]);
	for (k = 3; k < argc; k++)
		option(&move[0], argv[k]);
	began = now_ns();
	while (done < count) {
		unsigned int nr = count - done < SWEEP ? count - done : SWEEP, i;

		for (i = nr; i--;) {
			move[i] = move[0];
			move[i].region = first + done + i;
		}
		err = submit(v, move, nr);
		if (err) {
			errno = -err;
			die("SUBMIT");
		}
		done += nr;
		while ((r = next_result(v))) {
			failed += r->error != 0;
			down += r->down;
			up += r->up;
			dropped += r->dropped;
			bytes += r->packed_bytes;
			cpu += r->cpu_nanoseconds;
		}
	}
	printf("failed=%d down=%llu up=%llu dropped=%llu packed_bytes=%llu cpu_ns=%llu ns=%llu\n", failed, down,
	       up, dropped, bytes, cpu, now_ns() - began);
	return failed ? 1 : 0;
}

static unsigned int bits(const __u64 *map)
{
	unsigned int k, n = 0;

	for (k = 0; k < TERRACE_REGION_WORDS; k++)
		n += __builtin_popcountll(map[k]);
	return n;
}

static int do_show(struct volume *v, int argc, char **argv)
{
	struct terrace_region region;
	struct terrace_regions ask = {
		.nr = 1, .region_bytes = sizeof(region), .regions = (uintptr_t)&region,
	};

	if (argc != 1)
		usage();
	ask.first = strtoull(argv[0], NULL, 0);
	if (ioctl(v->fd, TERRACE_IOC_REGIONS, &ask))
		die("REGIONS");
	if (region.status) {
		printf("%s\n", strerrorname_np(-(int)region.status));
		return 1;
	}
	printf("present=%u fast=%u packed=%u packs=%u\n", bits(region.present), bits(region.fast),
	       bits(region.packed), region.nr_packs);
	return 0;
}

/* The blocks that a volume without tier @argv[0] has not: one line for each run of them, FIRST NR. */
static int do_only(struct volume *v, int argc, char **argv)
{
	struct terrace_region all, on;
	struct terrace_regions ask = { .region_bytes = sizeof(all) };
	uint64_t first = 0, nr = 0, block = 0;
	unsigned int tier, k;

	if (argc != 1)
		usage();
	tier = strtoul(argv[0], NULL, 0);
	for (;; ask.first++) {
		ask.nr = 1;
		ask.flags = ask.tier = 0;
		ask.regions = (uintptr_t)&all;
		if (ioctl(v->fd, TERRACE_IOC_REGIONS, &ask)) {
			if (errno == ERANGE)
				break;
			die("REGIONS");
		}
		ask.flags = TERRACE_REGIONS_TIER;
		ask.tier = tier;
		ask.regions = (uintptr_t)&on;
		if (ioctl(v->fd, TERRACE_IOC_REGIONS, &ask) || all.status || on.status)
			die("REGIONS of a tier");
		for (k = 0; k < TERRACE_REGION_WORDS * 64; k++, block++) {
			uint64_t bit = 1ull << k % 64;
			bool here = on.fast[k / 64] & bit, packed_here = on.packed[k / 64] & bit;
			bool elsewhere = (all.present[k / 64] & bit && !here) || (all.packed[k / 64] & bit && !packed_here);

			if ((here || packed_here) && !elsewhere) {
				first = nr++ ? first : block;
				continue;
			}
			if (nr)
				printf("%llu %llu\n", (unsigned long long)first, (unsigned long long)nr);
			nr = 0;
		}
	}
	if (nr)
		printf("%llu %llu\n", (unsigned long long)first, (unsigned long long)nr);
	return 0;
}

/* ---- malformed ------------------------------------------------------------------ */

static int refused(struct volume *v, const char *what, const struct terrace_move *move)
{
	struct terrace_move copy = *move;
	int err = submit(v, &copy, 1);

	if (err == -EINVAL)
		return 0;
	printf("%s: %s instead of EINVAL\n", what, err ? strerror(-err) : "taken");
	return 1;
}

static int do_bad(struct volume *v)
{
	const struct terrace_move good = { .cookie = 7, .mode = TERRACE_MOVE_APPEND, .tier_down = 1 };
	struct terrace_submit empty = { .order_bytes = sizeof(good) };
	struct terrace_move bad;
	int n = 0;

#define BAD(what, field, value) (bad = good, bad.field = (value), n += refused(v, what, &bad))
	BAD("no cookie", cookie, 0);
	BAD("mode 0", mode, 0);
	BAD("mode 7", mode, 7);
	BAD("codec 3", codec, 3);
	BAD("shift 1", shift, 1);
	BAD("shift 6", shift, 6);
	BAD("level without a codec", level, 1);
	BAD("unknown flag", flags, 0x80);
	BAD("reserved0", reserved0, 1);
	BAD("reserved1", reserved1, 1);
	BAD("codec of a raise", mode, TERRACE_MOVE_RAISE);
	bad = (struct terrace_move){
		.cookie = 7, .mode = TERRACE_MOVE_CLEAN, .tier_down = 1, .flags = TERRACE_MOVE_ADVISE,
	};
	n += refused(v, "advice of a clean", &bad);
	bad.flags = 0;
	bad.up[0] = 1;
	n += refused(v, "up of a clean", &bad);
	bad.mode = TERRACE_MOVE_SCRUB;
	n += refused(v, "up of a scrub", &bad);
	bad.up[0] = 0;
	bad.flags = TERRACE_MOVE_ADVISE;
	n += refused(v, "advice of a scrub", &bad);
	bad = (struct terrace_move){ .cookie = 7, .mode = TERRACE_MOVE_RAISE, .up = { 1 }, .warm = { 1 } };
	n += refused(v, "warm of a raise", &bad);
#undef BAD
	if (!ioctl(v->fd, TERRACE_IOC_SUBMIT, &empty) || errno != EINVAL)
		n += printf("no orders: not EINVAL\n");
	return n ? 1 : 0;
}

int main(int argc, char **argv)
{
	bool by_uring = argc > 1 && !strcmp(argv[1], "--uring");
	struct volume v;

	argc -= by_uring;
	argv += by_uring;
	if (argc < 3)
		usage();
	volume_open(&v, argv[1]);
	v.by_uring = by_uring;
	if (!strcmp(argv[2], "move"))
		return do_move(&v, argc - 3, argv + 3);
	if (!strcmp(argv[2], "moves"))
		return do_moves(&v, argc - 3, argv + 3);
	if (!strcmp(argv[2], "leave")) {
		struct terrace_move move = move_of(argc - 3, argv + 3);

		return do_left(&v, &move);
	}
	if (!strcmp(argv[2], "given") && argc == 4)
		return do_given(&v, argv[3]);
	if (!strcmp(argv[2], "sweep"))
		return do_sweep(&v, argc - 3, argv + 3);
	if (!strcmp(argv[2], "only"))
		return do_only(&v, argc - 3, argv + 3);
	if (!strcmp(argv[2], "show"))
		return do_show(&v, argc - 3, argv + 3);
	if (!strcmp(argv[2], "random"))
		return do_random(&v, argc - 3, argv + 3);
	if (!strcmp(argv[2], "bad"))
		return do_bad(&v);
	if (!strcmp(argv[2], "abi"))
		return do_abi(&v, argv[1]);
	if (!strcmp(argv[2], "uring"))
		return do_uring(&v, argv[1]);
	if (!strcmp(argv[2], "cancel"))
		return do_cancel(&v);
	if (!strcmp(argv[2], "summary"))
		return do_summary(&v, argc - 3, argv + 3);
	if (!strcmp(argv[2], "range"))
		return do_range(&v, argc - 3, argv + 3);
	if (!strcmp(argv[2], "marks"))
		return do_marks(&v, argc - 3, argv + 3);
	if (!strcmp(argv[2], "events"))
		return do_events(&v, argc - 3, argv + 3);
	if (!strcmp(argv[2], "claim"))
		return do_claim(&v, argv[1]);
	if (!strcmp(argv[2], "look"))
		return do_look(&v, argc - 3, argv + 3);
	if (!strcmp(argv[2], "hold"))
		return do_hold(&v, argc - 3, argv + 3);
	usage();
}
