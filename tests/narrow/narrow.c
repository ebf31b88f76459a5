// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program of 32 bits that gives an order: HELLO, a RAISE of block 10 of region 0, and its exact state.
 *
 *	narrow DEVICE
 *
 * Built without a C library, which need not be there for 32 bits. Exit status: 0; else the number of the first
 * step that went wrong, as listed in run().
 */
#include "terrace.h"

#define OPEN	5	/* system calls of i386 */
#define EXIT	1
#define IOCTL	54
#define O_RDWR	2

static long call(long number, long a, long b, long c)
{
	long r;

	__asm__ volatile ("int $0x80" : "=a" (r) : "0" (number), "b" (a), "c" (b), "d" (c) : "memory");
	return r;
}

/* The compiler may call it. */
void *memset(void *to, int byte, unsigned long bytes);
void *memset(void *to, int byte, unsigned long bytes)
{
	volatile char *at = to;

	while (bytes--)
		*at++ = (char)byte;
	return to;
}

static struct terrace_hello hello;
static struct terrace_move move;
static struct terrace_submit submit;
static struct terrace_region region;
static struct terrace_regions regions;

/* See the top. */
static int run(const char *path)
{
	long fd = call(OPEN, (long)path, O_RDWR, 0);

	if (fd < 0)
		return 1;
	hello.bytes = sizeof(hello);
	hello.min_version = TERRACE_ABI_MIN;
	hello.max_version = TERRACE_ABI_MAX;
	if (call(IOCTL, fd, TERRACE_IOC_HELLO, (long)&hello))
		return 2;
	if (hello.version != TERRACE_ABI_MAX || hello.region_blocks != TERRACE_REGION_WORDS * 64)
		return 3;
	move.cookie = 5000000000ull;
	move.mode = TERRACE_MOVE_RAISE;
	move.up[0] = 1 << 10;
	submit.orders = (unsigned long)&move;
	submit.nr = 1;
	submit.order_bytes = sizeof(move);
	submit.flags = TERRACE_SUBMIT_WAIT;
	if (call(IOCTL, fd, TERRACE_IOC_SUBMIT, (long)&submit))
		return 4;
	regions.nr = 1;
	regions.region_bytes = sizeof(region);
	regions.regions = (unsigned long)&region;
	if (call(IOCTL, fd, TERRACE_IOC_REGIONS, (long)&regions))
		return 5;
	if (region.fast[0] != 1 << 10 || region.packed[15] != ~0ull)
		return 6;
	/* what is refused says the same here: the claim is told by its errno */
	return call(IOCTL, fd, TERRACE_IOC_RELEASE, 0) == -2 ? 0 : 7;
}

/* The stack: argc, argv[0], argv[1]. */
__asm__ (".globl _start\n_start:\n\tmov %esp, %eax\n\tpush %eax\n\tcall begin\n");
void begin(const char **stack) __attribute__((noreturn));
void begin(const char **stack)
{
	call(EXIT, run(stack[2]), 0, 0);
	for (;;)
		;
}
