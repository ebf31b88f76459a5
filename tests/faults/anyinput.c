// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Gives a volume in use anything for a while: calls of its control device and
 * io_uring commands that are right, or right but for some fields, or not at all;
 * pointers to where nothing is; mappings; messages; words in its files in sysfs.
 *
 *	anyinput SEED SECONDS NAME FOLDER
 *
 * of volume /dev/mapper/NAME; FOLDER is its folder in /sys/fs/terrace. The seed
 * repeats what is asked, not what two CPUs make of it. Nothing is demanded of the
 * answers but that they come, and that an errno is one (1 to 511). The last line
 * counts them. Others see to it that the volume keeps its promises meanwhile.
 *
 * Exit status: 0, 1 an answer was none or did not come, 2 trouble.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/dm-ioctl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "chance.h"
#include "terrace.h"

typedef uint64_t u64;
typedef uint32_t u32;

#define ARENA		(512 << 10)	/* behind it nothing can be read */
#define FILES		4
#define PATIENCE	60		/* seconds for a command */
#define MAX_TUNES	64

static u64 regions = 1, blocks = 1, went_well, refused;
static char *arena;
static const char *name, *folder;
static char *tune[MAX_TUNES];
static u32 nr_tunes, nr_tiers = 1;
static int file[FILES];

/* ---- chance ---------------------------------------------------------------------- */

static bool one_in(u32 n) { return !below(n); }

/* One of those that limits are made of. */
static u64 number(void)
{
	switch (below(8)) {
	case 0: return 0;
	case 1: return ~0ull >> below(64);
	case 2: return 1ull << below(64);
	case 3: return (1ull << below(64)) - 1;
	case 4: return regions + below(3) - 1;
	case 5: return blocks + below(3) - 1;
	case 6: return below(300);
	default: return any();
	}
}

/* Some of its fields are another's, or nobody's. */
static void spoil(void *what, size_t bytes)
{
	u32 nr = one_in(2) ? 0 : 1 + below(3);

	while (nr--) {
		u64 value = number();
		size_t width = 1u << below(4);

		if (width <= bytes)
			memcpy((char *)what + below(bytes / width) * width, &value, width);
	}
}

/* Where @bytes are, or begin, or are not. */
static void *place(const void *what, size_t bytes)
{
	size_t at = one_in(2) ? 0 : below(4096);

	switch (below(24)) {
	case 0: return NULL;
	case 1: return (void *)(uintptr_t)number();
	case 2: return (void *)0xffff888000000000;
	case 3: at = ARENA - below(bytes + 1); break;
	case 4: at = ARENA - bytes; break;
	}
	memcpy(arena + at, what, bytes < ARENA - at ? bytes : ARENA - at);
	return arena + at;
}

static int judge(const char *what, long result)
{
	if (result >= 0) {
		went_well++;
		return 0;
	}
	refused++;
	if (errno > 0 && errno < 512)
		return 0;
	printf("anyinput: %s answers errno %d\n", what, errno);
	exit(1);
}

/* ---- the control device -------------------------------------------------------------- */

static void renew(u32 k, bool greet)
{
	char path[300];
	struct terrace_hello hello = {
		.bytes = sizeof(hello), .min_version = TERRACE_ABI_MIN, .max_version = TERRACE_ABI_MAX,
	};

	if (file[k] >= 0)
		close(file[k]);
	snprintf(path, sizeof(path), TERRACE_DEVICE_FOLDER "/%s", name);
	file[k] = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (file[k] < 0)
		trouble(path);
	if (!greet)
		return;
	if (ioctl(file[k], TERRACE_IOC_HELLO, &hello))
		trouble("hello");
	regions = hello.regions;
	blocks = hello.virtual_blocks;
	nr_tiers = hello.nr_tiers;
}

static void bits(__u64 *words)
{
	for (u32 w = 0; w < TERRACE_REGION_WORDS; w++)
		words[w] = one_in(3) ? 0 : one_in(2) ? ~0ull : any();
}

static struct terrace_submit orders(void)
{
	static struct terrace_move move[300];
	struct terrace_submit submit = {
		.nr = 1 + below(one_in(8) ? 300 : 6), .order_bytes = sizeof(move[0]),
		.flags = one_in(2) ? TERRACE_SUBMIT_WAIT : 0,
	};

	memset(move, 0, sizeof(move));
	for (u32 n = 0; n < submit.nr; n++) {
		struct terrace_move *m = &move[n];

		m->region = below(regions);
		m->cookie = 1 + below(1000);
		m->mode = below(7);
		m->tier_up = one_in(3) ? below(nr_tiers) : 0;
		m->tier_down = m->mode == TERRACE_MOVE_RAISE || m->mode == TERRACE_MOVE_DROP ? 0 : nr_tiers - 1 - below(2);
		m->codec = below(3);
		m->shift = 2 * below(3);
		m->flags = one_in(4) ? below(8) : TERRACE_MOVE_WAIT;
		if (m->mode != TERRACE_MOVE_CLEAN && m->mode != TERRACE_MOVE_SCRUB)
			bits(m->up);
		if (m->mode <= 1 && one_in(2))
			bits(m->warm);
		if (one_in(3))
			spoil(m, sizeof(*m));
	}
	submit.orders = (uintptr_t)place(move, submit.nr * sizeof(move[0]));
	submit.consumed = one_in(4) ? number() : 0;
	spoil(&submit, sizeof(submit));
	return submit;
}

/* What is read from, or not even touched by, the next call may be overwritten by this one. */
static void call(void)
{
	int fd = file[below(FILES)];

	switch (below(10)) {
	case 0: case 1: case 2: {
		struct terrace_submit ask = orders();

		judge("SUBMIT", ioctl(fd, TERRACE_IOC_SUBMIT, one_in(16) ? place(&ask, sizeof(ask)) : &ask));
		return;
	}
	case 3: {
		struct terrace_cancel ask = { .cookie = below(3) ? below(1000) : 0 };

		spoil(&ask, sizeof(ask));
		judge("CANCEL", ioctl(fd, TERRACE_IOC_CANCEL, place(&ask, sizeof(ask))));
		return;
	}
	case 4: {
		struct terrace_consume ask = { .tail = below(5000) };

		spoil(&ask, sizeof(ask));
		judge("CONSUME", ioctl(fd, TERRACE_IOC_CONSUME, place(&ask, sizeof(ask))));
		return;
	}
	case 5: {
		struct terrace_regions ask = {
			.first = below(regions), .nr = 1 + below(300), .region_bytes = sizeof(struct terrace_region),
			.regions = (uintptr_t)place("", 1), .flags = below(2), .tier = below(nr_tiers),
		};

		spoil(&ask, sizeof(ask));
		judge("REGIONS", ioctl(fd, TERRACE_IOC_REGIONS, place(&ask, sizeof(ask))));
		return;
	}
	case 6: {
		struct terrace_range ask = { .block = below(blocks), .nr = 1 + below(one_in(2) ? 5000 : blocks), .what = below(8) };

		spoil(&ask, sizeof(ask));
		judge("RANGE", ioctl(fd, TERRACE_IOC_RANGE, place(&ask, sizeof(ask))));
		return;
	}
	case 7: {
		struct terrace_claim ask = { .timeout_ms = below(1000) };

		spoil(&ask, sizeof(ask));
		judge("CLAIM", ioctl(fd, TERRACE_IOC_CLAIM, place(&ask, sizeof(ask))));
		judge("RELEASE", ioctl(fd, TERRACE_IOC_RELEASE, number()));
		return;
	}
	case 8: {
		struct terrace_hello ask = { .bytes = sizeof(ask), .min_version = 1, .max_version = 1 };

		spoil(&ask, sizeof(ask));
		judge("HELLO", ioctl(fd, TERRACE_IOC_HELLO, place(&ask, sizeof(ask))));
		return;
	}
	default:
		judge("no call", ioctl(fd, one_in(2) ? _IOC(below(4), TERRACE_IOC, below(12), below(300)) : any(), place("", 1)));
	}
}

static void command(void)
{
	struct io_uring_params params = { .flags = one_in(6) ? 0 : IORING_SETUP_SQE128 };
	struct __kernel_timespec patience = { .tv_sec = PATIENCE };
	struct terrace_submit submit = orders();
	size_t room = params.flags ? sizeof(submit) : 16;
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	int err = io_uring_queue_init_params(4, &ring, &params);

	if (err) {
		errno = -err;
		trouble("io_uring_queue_init");
	}
	sqe = io_uring_get_sqe(&ring);
	memset(sqe, 0, params.flags ? 128 : 64);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = file[below(FILES)];
	sqe->cmd_op = one_in(6) ? number() : TERRACE_URING_SUBMIT;
	if (one_in(8))
		sqe->flags = IOSQE_ASYNC;
	memcpy(sqe->cmd, &submit, room);
	err = io_uring_submit(&ring);
	/* a kill while it is under way: the ring goes before its completion */
	if (err == 1 && !one_in(6)) {
		err = io_uring_wait_cqe_timeout(&ring, &cqe, &patience);
		if (err == -ETIME) {
			puts("anyinput: a command never completed");
			exit(1);
		}
		errno = err ? -err : cqe->res < 0 ? -cqe->res : 0;
		judge("URING_CMD", err ? -1 : cqe->res < 0 ? -1 : 0);
	}
	io_uring_queue_exit(&ring);
}

static void map(void)
{
	static const u64 at[] = { TERRACE_MAP_RESULTS, TERRACE_MAP_SUMMARY };
	size_t bytes = 4096 * (1 + below(one_in(4) ? 100000 : 64));
	u64 offset = one_in(8) ? number() & ~4095ull : at[below(2)] + (one_in(4) ? 4096 * below(64) : 0);
	char *got = mmap(NULL, bytes, one_in(4) ? PROT_READ | PROT_WRITE : PROT_READ, one_in(4) ? MAP_PRIVATE : MAP_SHARED,
			 file[below(FILES)], offset);

	judge("mmap", got == MAP_FAILED ? -1 : 0);
	if (got == MAP_FAILED)
		return;
	for (u32 n = 0; n < 8; n++)
		*(volatile char *)(got + below(bytes));
	munmap(got, bytes);
}

static void other(void)
{
	int fd = file[below(FILES)];
	struct pollfd wanted = { .fd = fd, .events = any() };

	switch (below(5)) {
	case 0: judge("poll", poll(&wanted, 1, 0)); break;
	case 1: judge("read", read(fd, place("", 1), below(5000))); break;
	case 2: judge("write", write(fd, place("", 1), below(5000))); break;
	case 3: judge("lseek", lseek(fd, number(), below(3))); break;
	case 4: renew(below(FILES), !one_in(4)); break;
	}
}

/* ---- words -------------------------------------------------------------------------- */

static void word(char *to, size_t room)
{
	static const char * const known[] = {
		"commit", "checkpoint", "evict", "evict_indexes", "set", "resize", "grow_tier", "physical", "trim", "trim_homes",
	};
	u64 n = number();

	switch (below(6)) {
	case 0: case 1: case 2:
		snprintf(to, room, "%s", known[below(sizeof(known) / sizeof(known[0]))]);
		break;
	case 3:
		snprintf(to, room, one_in(4) ? "-%llu" : "%llu", (unsigned long long)n);
		break;
	case 4:
		snprintf(to, room, "%s=%llu", tune[below(nr_tunes)], (unsigned long long)(one_in(2) ? below(300) : n));
		break;
	default:
		room = 1 + below(one_in(8) ? room : 20);
		for (size_t k = 0; k < room - 1; k++)
			to[k] = 33 + below(200);
		to[room - 1] = 0;
	}
}

static void message(void)
{
	static struct { struct dm_ioctl dm; struct dm_target_msg message; char text[8192]; } ask;
	int fd = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);
	size_t at = 0;

	if (fd < 0)
		trouble("/dev/mapper/control");
	memset(&ask, 0, sizeof(ask));
	ask.dm.version[0] = DM_VERSION_MAJOR;
	ask.dm.data_size = sizeof(ask);
	ask.dm.data_start = offsetof(__typeof__(ask), message);
	snprintf(ask.dm.name, sizeof(ask.dm.name), "%s", name);
	for (u32 n = 1 + below(4); n; n--) {
		word(ask.text + at, 1500);
		at += strlen(ask.text + at);
		ask.text[at++] = n > 1 ? ' ' : 0;
	}
	judge("a message", ioctl(fd, DM_TARGET_MSG, &ask));
	close(fd);
}

static void attribute(void)
{
	char path[600], text[6000];
	int fd;

	snprintf(path, sizeof(path), "%s/tune/%s", folder, tune[below(nr_tunes)]);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		trouble(path);
	if (one_in(2))
		snprintf(text, sizeof(text), "%llu\n", (unsigned long long)(one_in(2) ? below(300) : number()));
	else
		word(text, sizeof(text));
	judge("writing an attribute", write(fd, text, strlen(text)));
	judge("reading an attribute", pread(fd, text, below(sizeof(text)), one_in(4) ? below(5000) : 0));
	close(fd);
}

static void find_tunes(void)
{
	char path[600];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/tune", folder);
	dir = opendir(path);
	if (!dir)
		trouble(path);
	while ((entry = readdir(dir)) && nr_tunes < MAX_TUNES)
		if (entry->d_name[0] != '.')
			tune[nr_tunes++] = strdup(entry->d_name);
	closedir(dir);
}

int main(int argc, char **argv)
{
	time_t until;
	u64 rounds = 0;

	if (argc != 5) {
		fputs("usage: anyinput SEED SECONDS NAME FOLDER\n", stderr);
		return 2;
	}
	chance = strtoull(argv[1], NULL, 0);
	until = time(NULL) + atoi(argv[2]);
	name = argv[3];
	folder = argv[4];
	arena = mmap(NULL, ARENA + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (arena == MAP_FAILED || mprotect(arena + ARENA, 4096, PROT_NONE))
		trouble("memory");
	find_tunes();
	for (u32 k = 0; k < FILES; k++) {
		file[k] = -1;
		renew(k, true);
	}
	for (; time(NULL) < until; rounds++) {
		switch (below(16)) {
		case 0: case 1: case 2: command(); break;
		case 3: map(); break;
		case 4: case 5: other(); break;
		case 6: message(); break;
		case 7: attribute(); break;
		default: call();
		}
	}
	printf("%llu rounds: %llu calls went well, %llu were refused\n", (unsigned long long)rounds, (unsigned long long)went_well,
	       (unsigned long long)refused);
	return 0;
}
