// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lets one allocation of a program's calls into the kernel fail: the one that is
 * FAILNTH-th, from 1, among those of its ioctls of device-mapper and of Terrace
 * and of opening a control device.  For a kernel with FAILSLAB and FAIL_PAGE_ALLOC:
 *
 *	LD_PRELOAD=build/failnth.so FAILNTH=7 FAILNTH_LEFT=FILE dmsetup resume vol
 *
 * FILE then says how many allocations were still to come: 0 when one has failed.
 * The rest of the program (its start, its memory, its files) is left alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IOC_TYPE(request)	(((request) >> 8) & 0xff)
#define IOC_DM			0xfd
#define IOC_TERRACE		0xdb

static long left = -1;		/* allocations before the one that fails; -1: not asked for */

static int armed(void)
{
	const char *nth = getenv("FAILNTH");

	if (left < 0)
		left = nth ? atol(nth) : 0;
	return left > 0;
}

static void broken(void)
{
	perror("failnth: /proc/thread-self/fail-nth");
	_exit(125);
}

static void set(int fd, long nth)
{
	char text[24];
	int len = snprintf(text, sizeof(text), "%ld", nth);

	if (pwrite(fd, text, (size_t)len, 0) != len)
		broken();
}

/* what was set, less the allocations that were made */
static long get(int fd)
{
	char text[24] = "";

	if (pread(fd, text, sizeof(text) - 1, 0) < 0)
		broken();
	return atol(text);
}

static long counted(long number, long a, long b, long c, long d)
{
	/* open before and after: neither reading nor writing it allocates */
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	long result;
	int saved;

	if (fd < 0)
		broken();
	set(fd, left);
	result = syscall(number, a, b, c, d);
	saved = errno;
	left = get(fd);
	set(fd, 0);
	close(fd);
	errno = saved;
	return result;
}

int ioctl(int fd, unsigned long request, ...)
{
	unsigned long type = IOC_TYPE(request);
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if ((type != IOC_DM && type != IOC_TERRACE) || !armed())
		return (int)syscall(SYS_ioctl, fd, request, arg);
	return (int)counted(SYS_ioctl, fd, (long)request, (long)arg, 0);
}

int open(const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, int) : 0;
	va_end(ap);
	if (strncmp(path, "/dev/terrace/", 13) || !armed())
		return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	return (int)counted(SYS_openat, AT_FDCWD, (long)path, flags, mode);
}
int open64(const char *path, int flags, ...) __attribute__((alias("open")));

static void __attribute__((destructor)) tell(void)
{
	const char *path = getenv("FAILNTH_LEFT");
	FILE *file = path ? fopen(path, "w") : NULL;

	if (!file)
		return;
	fprintf(file, "%ld\n", left);
	fclose(file);
}
