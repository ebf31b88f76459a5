// SPDX-License-Identifier: GPL-2.0
/*
 * powercut: does a power cut take exactly what was not promised?
 *
 *	powercut NAME [--seed N] [--cuts N] [--ops N] [--depth N] [--blocks N]
 *		 [--align BYTES] [--atom BYTES] [--expect mixed|durable|newest]
 *		 [--prefix] [--no-discard] [--need lost,torn,survived]
 *
 * NAME is a drive model at /dev/mapper/NAME. Each round arms a cut, writes,
 * flushes, writes with FUA and discards several at a time until the power is
 * gone, revives the drive and reads everything back.
 *
 * The ledger: every write has a version and fills its sectors with it. Per
 * sector it keeps the versions that may be found there: the newest one known
 * to be durable and all later ones. A completed flush makes durable what had
 * completed before it was issued, a completed FUA write itself. Beyond that:
 *  - within one atomic unit a write is there as a whole or not at all;
 *  - --prefix: no write is there if an earlier one is not;
 *  - --expect durable, newest: nothing unflushed survives, or everything does;
 *  - --need: over all rounds, writes were really lost, torn, or survived.
 *
 * Exit status: 0 as promised, 1 a promise was broken, 2 usage or trouble.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <liburing.h>
#include <linux/dm-ioctl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SECTOR		512u
#define BLOCK		4096u
#define MAX_DEPTH	64u
#define MAX_WRITE	(64u * 1024)
#define WORDS		(SECTOR / sizeof(uint64_t))

enum expect { MIXED, DURABLE, NEWEST };

static struct {
	const char *name;
	uint64_t seed;
	unsigned int cuts, ops, depth, blocks, align, atom;
	enum expect expect;
	bool prefix, discard, need_lost, need_torn, need_survived;
} opt = { .seed = 1, .cuts = 100, .ops = 60, .depth = 8, .blocks = 256, .align = 4096, .atom = 4096, .discard = true };

/* A write or discard; its index in writes[] is its version. */
struct write {
	unsigned int first, count;	/* sectors */
	unsigned int done;		/* order of completion, 0 = not completed */
	bool zeroes;			/* a discard */
	bool durable;
};

/* What may be found in a sector: versions, ascending; the first is durable. */
struct history {
	unsigned int *version;
	unsigned int count, room;
};

struct request {
	bool busy, flush, fua;
	unsigned int version;	/* of a write */
	unsigned int mark;	/* of a flush: completions before it was issued */
	uint8_t *data;
};

static struct write *writes;
static unsigned int nr_writes, room_writes, nr_done;
static struct history *history;
static unsigned int nr_sectors;
static struct request requests[MAX_DEPTH];
static struct io_uring ring;
static int device, control;
static bool dark;	/* something failed: the power is gone */
static unsigned int round_nr;
static struct { unsigned long writes, flushes, fuas, discards, lost, torn, survived; } total;

/* ---- small things ---- */

static void trouble(const char *what, int error)
{
	fprintf(stderr, "powercut: %s: %s\n", what, strerror(error));
	exit(2);
}

__attribute__((format(printf, 1, 2)))
static void broken(const char *format, ...)
{
	va_list args;

	printf("powercut: BROKEN PROMISE: seed %llu round %u: ", (unsigned long long)opt.seed, round_nr);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	exit(1);
}

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static uint64_t rnd_state;

static unsigned int rnd(unsigned int below)
{
	rnd_state = mix(rnd_state);
	return (rnd_state >> 16) % below;
}

static void *grow(void *p, size_t count, size_t size)
{
	p = reallocarray(p, count, size);
	if (!p)
		trouble("memory", ENOMEM);
	return p;
}

/* dmsetup message, without the cost of a process */
__attribute__((format(printf, 1, 2)))
static int message(const char *format, ...)
{
	struct { struct dm_ioctl head; struct dm_target_msg message; char text[256]; } m = { 0 };
	va_list args;

	m.head.version[0] = DM_VERSION_MAJOR;
	m.head.data_size = sizeof(m);
	m.head.data_start = sizeof(m.head);
	snprintf(m.head.name, sizeof(m.head.name), "%s", opt.name);
	va_start(args, format);
	vsnprintf(m.message.message, sizeof(m.text), format, args);
	va_end(args);
	return ioctl(control, DM_TARGET_MSG, &m) ? -errno : 0;
}

static void must(int r, const char *what)
{
	if (r)
		trouble(what, -r);
}

/* ---- the ledger ---- */

static void fill_sector(uint8_t *data, unsigned int sector, unsigned int version)
{
	uint64_t *word = (uint64_t *)data, i;

	word[0] = version;
	word[1] = sector;
	for (i = 2; i < WORDS; i++)
		word[i] = version * 0x9e3779b97f4a7c15ULL + sector + i;
}

static unsigned int new_version(unsigned int first, unsigned int count, bool zeroes)
{
	struct write *w;
	unsigned int s;

	if (nr_writes == room_writes) {
		room_writes = room_writes * 2 + 1024;
		writes = grow(writes, room_writes, sizeof(*writes));
	}
	w = &writes[nr_writes];
	*w = (struct write){ .first = first, .count = count, .zeroes = zeroes };
	for (s = first; s < first + count; s++) {
		struct history *h = &history[s];

		if (h->count == h->room) {
			h->room = h->room * 2 + 8;
			h->version = grow(h->version, h->room, sizeof(*h->version));
		}
		h->version[h->count++] = nr_writes;
	}
	return nr_writes++;
}

static void make_durable(unsigned int version)
{
	struct write *w = &writes[version];
	unsigned int s, i;

	w->durable = true;
	for (s = w->first; s < w->first + w->count; s++) {
		struct history *h = &history[s];

		for (i = 0; i < h->count && h->version[i] != version; i++)
			;
		if (i == h->count)
			continue;	/* a later one is durable already */
		h->count -= i;
		memmove(h->version, h->version + i, h->count * sizeof(*h->version));
	}
}

static void flushed(unsigned int from, unsigned int mark)
{
	unsigned int v;

	for (v = from; v < nr_writes; v++)
		if (writes[v].done && writes[v].done <= mark && !writes[v].durable)
			make_durable(v);
}

/* ---- commands ---- */

static bool overlaps_busy(unsigned int first, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < opt.depth; i++) {
		const struct write *w = &writes[requests[i].version];

		if (requests[i].busy && !requests[i].flush &&
		    first < w->first + w->count && w->first < first + count)
			return true;
	}
	return false;
}

static unsigned int round_start;	/* first version of this round */

static void reap(bool wait)
{
	struct io_uring_cqe *cqe;
	struct request *q;
	int r = wait ? io_uring_wait_cqe(&ring, &cqe) : io_uring_peek_cqe(&ring, &cqe);

	if (r == -EAGAIN || r == -EINTR)
		return;
	must(r, "io_uring");
	q = io_uring_cqe_get_data(cqe);
	q->busy = false;
	if (cqe->res < 0) {
		if (cqe->res != -EIO)
			trouble("I/O", -cqe->res);
		dark = true;
	} else if (q->flush) {
		flushed(round_start, q->mark);
	} else {
		if (cqe->res != (int)(writes[q->version].count * SECTOR))
			broken("short write: %d", cqe->res);
		writes[q->version].done = ++nr_done;
		if (q->fua)
			make_durable(q->version);
	}
	io_uring_cqe_seen(&ring, cqe);
}

static bool any_busy(void)
{
	unsigned int i;

	for (i = 0; i < opt.depth; i++)
		if (requests[i].busy)
			return true;
	return false;
}

static void drain(void)
{
	while (any_busy())
		reap(true);
}

static struct request *free_request(void)
{
	unsigned int i;

	for (;;) {
		for (i = 0; i < opt.depth; i++)
			if (!requests[i].busy)
				return &requests[i];
		reap(true);
	}
}

static void submit(struct request *q, struct io_uring_sqe *sqe)
{
	int r;

	io_uring_sqe_set_data(sqe, q);
	q->busy = true;
	r = io_uring_submit(&ring);
	if (r < 0)
		trouble("io_uring_submit", -r);
}

static void pick_range(unsigned int *first, unsigned int *count)
{
	unsigned int unit = opt.align / SECTOR, units = nr_sectors / unit;
	unsigned int longest = MAX_WRITE / opt.align, n;

	/* mostly short, sometimes long */
	n = 1 + rnd(rnd(4) ? 4 : longest);
	if (n > units)
		n = units;
	*count = n * unit;
	*first = rnd(units - n + 1) * unit;
}

static void do_write(bool fua)
{
	struct request *q = free_request();
	struct io_uring_sqe *sqe;
	unsigned int first, count, s;

	pick_range(&first, &count);
	while (overlaps_busy(first, count))
		reap(true);
	q->version = new_version(first, count, false);
	q->flush = false;
	q->fua = fua;
	for (s = 0; s < count; s++)
		fill_sector(q->data + s * SECTOR, first + s, q->version);
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_write(sqe, device, q->data, count * SECTOR, (uint64_t)first * SECTOR);
	if (fua)
		sqe->rw_flags = RWF_DSYNC;
	submit(q, sqe);
	total.writes++;
	total.fuas += fua;
}

static void do_flush(void)
{
	struct request *q = free_request();
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	q->flush = true;
	q->mark = nr_done;
	io_uring_prep_fsync(sqe, device, IORING_FSYNC_DATASYNC);
	submit(q, sqe);
	total.flushes++;
}

static void do_discard(void)
{
	unsigned int first, count, version;
	uint64_t range[2];

	pick_range(&first, &count);
	drain();
	version = new_version(first, count, true);
	range[0] = (uint64_t)first * SECTOR;
	range[1] = (uint64_t)count * SECTOR;
	if (ioctl(device, BLKDISCARD, range)) {
		if (errno != EIO)
			trouble("BLKDISCARD", errno);
		dark = true;
		return;
	}
	writes[version].done = ++nr_done;
	total.discards++;
}

/* ---- the cut ---- */

static void arm(void)
{
	unsigned int n = 1 + rnd(opt.ops), few = 1 + rnd(opt.ops / 8 + 1);

	switch (rnd(8)) {
	case 0:
		must(message("arm write %u", n), "arm write");
		break;
	case 1:
		must(message("arm bytes %u", n * 8192), "arm bytes");
		break;
	case 2:
		must(message("arm flush %u", few), "arm flush");
		break;
	case 3:
		must(message("arm flush %u after", few), "arm flush after");
		break;
	case 4:
		must(message("arm fua %u", few), "arm fua");
		break;
	case 5:
		must(message("arm fua %u after", few), "arm fua after");
		break;
	case 6:
		must(message("arm time %uus", n * 20), "arm time");
		break;
	default:
		break;	/* when the operations are done */
	}
}

static void work(void)
{
	unsigned int i;

	for (i = 0; i < opt.ops && !dark; i++) {
		unsigned int what = rnd(100);

		if (what < 72)
			do_write(false);
		else if (what < 82)
			do_write(true);
		else if (what < 94 || !opt.discard)
			do_flush();
		else
			do_discard();
		reap(false);
	}
}

/* ---- the inspection ---- */

/* Version found, per sector; zeros may be of several: the newest and the oldest. */
static unsigned int *shown, *shown_oldest;

static bool is_zero(const uint8_t *data)
{
	return !data[0] && !memcmp(data, data + 1, SECTOR - 1);
}

static bool holds(unsigned int sector, const uint8_t *data, unsigned int version)
{
	uint8_t want[SECTOR] __attribute__((aligned(8)));

	if (writes[version].zeroes)
		return is_zero(data);
	fill_sector(want, sector, version);
	return !memcmp(want, data, SECTOR);
}

static void identify(unsigned int sector, const uint8_t *data)
{
	const struct history *h = &history[sector];
	uint64_t want[2];
	bool found = false;
	unsigned int i;

	for (i = h->count; i-- > 0;) {
		if (!holds(sector, data, h->version[i]))
			continue;
		if (!found)
			shown[sector] = h->version[i];
		shown_oldest[sector] = h->version[i];
		found = true;
	}
	if (found)
		return;
	memcpy(want, data, sizeof(want));
	broken("sector %u holds version %llu of sector %llu, may hold %u (durable) to %u",
	       sector, (unsigned long long)want[0], (unsigned long long)want[1],
	       h->version[0], h->version[h->count - 1]);
}

static void read_back(void)
{
	static uint8_t *data;
	unsigned int s;

	if (!data && posix_memalign((void **)&data, BLOCK, (size_t)nr_sectors * SECTOR))
		trouble("memory", ENOMEM);
	if (pread(device, data, (size_t)nr_sectors * SECTOR, 0) != (ssize_t)nr_sectors * SECTOR)
		trouble("reading back", errno);
	for (s = 0; s < nr_sectors; s++)
		identify(s, data + (size_t)s * SECTOR);
}

/*
 * A write survived in a unit if one of its sectors shows it; then none of the
 * unit's other sectors it covers may show anything older.
 */
static void check_atoms(const struct write *w, unsigned int version)
{
	unsigned int unit = opt.atom / SECTOR, s, t, end;

	for (s = w->first; s < w->first + w->count; s++) {
		if (shown_oldest[s] != version)
			continue;
		t = s / unit * unit;
		end = t + unit;
		for (t = t < w->first ? w->first : t; t < end && t < w->first + w->count; t++)
			if (shown[t] < version)
				broken("write %u is torn inside an atomic unit of %u bytes: sector %u has it, sector %u has %u",
				       version, opt.atom, s, t, shown[t]);
	}
}

static void judge_write(unsigned int version)
{
	const struct write *w = &writes[version];
	unsigned int s, has = 0, older = 0;

	check_atoms(w, version);
	for (s = w->first; s < w->first + w->count; s++) {
		has += shown[s] == version && shown_oldest[s] == version;
		older += shown[s] < version;
	}
	if (w->durable)
		return;
	if (has && older)
		total.torn++;
	else if (has)
		total.survived++;
	else if (older)
		total.lost++;
}

static void check_expected(void)
{
	unsigned int s;

	for (s = 0; s < nr_sectors; s++) {
		const struct history *h = &history[s];
		unsigned int i;

		if (opt.expect == DURABLE && shown_oldest[s] != h->version[0])
			broken("sector %u shows %u, which was not flushed", s, shown[s]);
		for (i = 0; i < h->count && opt.expect == NEWEST; i++)
			if (writes[h->version[i]].done && shown[s] < h->version[i])
				broken("sector %u shows %u, not the newer %u", s, shown[s], h->version[i]);
	}
}

/* In order of arrival: what is older than the newest one found is there too. */
static void check_prefix(void)
{
	unsigned int last = 0, s;

	for (s = 0; s < nr_sectors; s++)
		if (!writes[shown_oldest[s]].durable && shown_oldest[s] > last)
			last = shown_oldest[s];
	for (s = 0; s < nr_sectors; s++) {
		const struct history *h = &history[s];
		unsigned int i;

		for (i = 0; i < h->count && h->version[i] < last; i++)
			if (shown[s] < h->version[i])
				broken("sector %u shows %u, not %u, although the later %u is there",
				       s, shown[s], h->version[i], last);
	}
}

static void inspect(void)
{
	unsigned int v, s;

	read_back();
	for (v = round_start; v < nr_writes; v++)
		judge_write(v);
	check_expected();
	if (opt.prefix)
		check_prefix();
	for (s = 0; s < nr_sectors; s++) {
		history[s].version[0] = shown[s];
		history[s].count = 1;
	}
}

static void one_round(void)
{
	int r;

	rnd_state = mix(opt.seed * 1000003 + round_nr);
	round_start = nr_writes;
	dark = false;
	must(message("disarm"), "disarm");
	must(message("set seed=%u", rnd(1u << 30)), "set seed");
	arm();
	work();
	must(message("cut"), "cut");
	drain();
	r = message("revive");
	must(r, "revive");
	inspect();
}

/* ---- start ---- */

static void usage(void)
{
	fprintf(stderr, "usage: powercut NAME [--seed N] [--cuts N] [--ops N] [--depth N] [--blocks N] [--align BYTES] [--atom BYTES]\n"
		"       [--expect mixed|durable|newest] [--prefix] [--no-discard] [--need lost,torn,survived]\n");
	exit(2);
}

static unsigned int number(const char *text, unsigned int min, unsigned int max)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*end || n < min || n > max)
		usage();
	return n;
}

static enum expect parse_expect(const char *text)
{
	if (!strcmp(text, "mixed"))
		return MIXED;
	if (!strcmp(text, "durable"))
		return DURABLE;
	if (strcmp(text, "newest"))
		usage();
	return NEWEST;
}

static void parse_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", 1, NULL, 's' }, { "cuts", 1, NULL, 'c' }, { "ops", 1, NULL, 'o' }, { "depth", 1, NULL, 'd' },
		{ "blocks", 1, NULL, 'b' }, { "align", 1, NULL, 'a' }, { "atom", 1, NULL, 't' }, { "expect", 1, NULL, 'e' },
		{ "prefix", 0, NULL, 'p' }, { "no-discard", 0, NULL, 'D' }, { "need", 1, NULL, 'n' }, { NULL, 0, NULL, 0 }
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's': opt.seed = number(optarg, 0, 1u << 31); break;
		case 'c': opt.cuts = number(optarg, 1, 1000000); break;
		case 'o': opt.ops = number(optarg, 1, 100000); break;
		case 'd': opt.depth = number(optarg, 1, MAX_DEPTH); break;
		case 'b': opt.blocks = number(optarg, 1, 16384); break;
		case 'a': opt.align = number(optarg, SECTOR, BLOCK); break;
		case 't': opt.atom = number(optarg, SECTOR, MAX_WRITE); break;
		case 'e': opt.expect = parse_expect(optarg); break;
		case 'p': opt.prefix = true; break;
		case 'D': opt.discard = false; break;
		case 'n':
			opt.need_lost = strstr(optarg, "lost");
			opt.need_torn = strstr(optarg, "torn");
			opt.need_survived = strstr(optarg, "survived");
			break;
		default: usage();
		}
	}
	if (optind != argc - 1)
		usage();
	opt.name = argv[optind];
}

static void prepare(void)
{
	char path[256];
	unsigned int i, zero;

	snprintf(path, sizeof(path), "/dev/mapper/%s", opt.name);
	device = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (device < 0)
		trouble(path, errno);
	control = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);
	if (control < 0)
		trouble("/dev/mapper/control", errno);
	must(io_uring_queue_init(MAX_DEPTH, &ring, 0), "io_uring_queue_init");
	for (i = 0; i < opt.depth; i++)
		if (posix_memalign((void **)&requests[i].data, BLOCK, MAX_WRITE))
			trouble("memory", ENOMEM);
	nr_sectors = opt.blocks * (BLOCK / SECTOR);
	history = grow(NULL, nr_sectors, sizeof(*history));
	memset(history, 0, nr_sectors * sizeof(*history));
	shown = grow(NULL, nr_sectors, sizeof(*shown));
	shown_oldest = grow(NULL, nr_sectors, sizeof(*shown_oldest));
	/* version 0: the new drive, all zeros, durable */
	zero = new_version(0, nr_sectors, true);
	writes[zero].done = ++nr_done;
	make_durable(zero);
}

int main(int argc, char **argv)
{
	parse_options(argc, argv);
	prepare();
	for (round_nr = 1; round_nr <= opt.cuts; round_nr++)
		one_round();
	printf("powercut: seed %llu: %u cuts, %lu writes (%lu FUA), %lu flushes, %lu discards: of the unflushed %lu lost, %lu torn, %lu survived; no promise broken\n",
	       (unsigned long long)opt.seed, opt.cuts, total.writes, total.fuas, total.flushes, total.discards,
	       total.lost, total.torn, total.survived);
	if ((opt.need_lost && !total.lost) || (opt.need_torn && !total.torn) || (opt.need_survived && !total.survived)) {
		printf("powercut: the cuts did not do enough harm to prove anything\n");
		return 1;
	}
	return 0;
}
