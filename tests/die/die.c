// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Preloaded (LD_PRELOAD) into a program that changes devices: it dies, or fails, at
 * one of its changes. These are counted, from 1: writes at a place, flushes, renames,
 * discards, the requests to device-mapper that change something, and orders and pins of a volume.
 *
 *	DIE_AT=N	SIGKILL before change N
 *	FAIL_AT=N	change N is not made: EIO
 *	COUNT=FILE	how many there were so far
 *	LABEL_AT=N	the Nth read of a device's label fails: EIO
 *	WRITES=1	only writes at a place count
 *	WRITES=head	... of these only those at the beginning of a file or device
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <linux/dm-ioctl.h>
#include <linux/fs.h>

#include "terrace.h"
#include "terrace_format.h"

static int number(const char *name)
{
	const char *text = getenv(name);

	return text ? atoi(text) : 0;
}

/* The change is to fail. */
static int fails(void)
{
	static int changes;
	const char *count = getenv("COUNT");
	FILE *f;

	changes++;
	if (changes == number("DIE_AT"))
		kill(getpid(), SIGKILL);
	f = count ? fopen(count, "w") : NULL;
	if (f) {
		fprintf(f, "%d\n", changes);
		fclose(f);
	}
	if (changes != number("FAIL_AT"))
		return 0;
	errno = EIO;
	return 1;
}

static int write_fails(off64_t at)
{
	const char *which = getenv("WRITES");

	return (!which || strcmp(which, "head") || !at) && fails();
}

/* A change that is no write at a place. */
static int other_fails(void)
{
	return !getenv("WRITES") && fails();
}

#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at)
{
	return write_fails(at) ? -1 : REAL(pwrite)(fd, data, bytes, at);
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t at)
{
	return write_fails(at) ? -1 : REAL(pwrite64)(fd, data, bytes, at);
}

static int label_fails(size_t bytes, off64_t at)
{
	static int labels, failing;

	/* Both copies, read as one or one by one. */
	if (!at && (bytes == TERRACE_BLOCK_BYTES || bytes == TERRACE_LABEL_COPIES * TERRACE_BLOCK_BYTES))
		failing = ++labels == number("LABEL_AT");
	else if (at != TERRACE_BLOCK_BYTES || bytes != TERRACE_BLOCK_BYTES)
		return 0;
	if (failing)
		errno = EIO;
	return failing;
}

ssize_t pread(int fd, void *data, size_t bytes, off_t at)
{
	return label_fails(bytes, at) ? -1 : REAL(pread)(fd, data, bytes, at);
}

ssize_t pread64(int fd, void *data, size_t bytes, off64_t at)
{
	return label_fails(bytes, at) ? -1 : REAL(pread64)(fd, data, bytes, at);
}

int fsync(int fd)
{
	return other_fails() ? -1 : REAL(fsync)(fd);
}

int rename(const char *from, const char *to)
{
	return other_fails() ? -1 : REAL(rename)(from, to);
}

static int changes_something(unsigned long request)
{
	switch (request) {
	case BLKDISCARD:
	case DM_DEV_CREATE:
	case DM_DEV_REMOVE:
	case DM_DEV_SUSPEND:	/* and resume */
	case DM_TABLE_LOAD:
	case DM_TABLE_CLEAR:
	case TERRACE_IOC_SUBMIT:
	case TERRACE_IOC_RANGE:
		return 1;
	default:
		return 0;
	}
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *data;

	va_start(args, request);
	data = va_arg(args, void *);
	va_end(args);
	if (changes_something(request) && other_fails())
		return -1;
	return REAL(ioctl)(fd, request, data);
}
