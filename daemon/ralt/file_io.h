/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * File operations of RALT through io_uring.
 *
 * Reads and writes are started and waited for separately, so that merging overlaps
 * with I/O; everything else is one call that waits.  All return negative errno.
 * One ring per store, used by one thread.
 */
#ifndef RALT_FILE_IO_H
#define RALT_FILE_IO_H

#include <liburing.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file_io {
	struct io_uring ring;
};

struct file_request {
	int result;
	bool busy;
	bool write;
	int fd;
	uint8_t *buffer;
	size_t bytes;
	uint64_t offset;
};

int file_io_init(struct file_io *io);
void file_io_exit(struct file_io *io);

/* @req and @buffer stay untouched until file_wait(). */
int file_start(struct file_io *io, struct file_request *req, bool write, int fd, void *buffer,
	       size_t bytes, uint64_t offset);

/* 0 once all bytes are transferred; -ENODATA when the file ends before.  Nothing started: 0. */
int file_wait(struct file_io *io, struct file_request *req);

int file_read(struct file_io *io, int fd, void *buffer, size_t bytes, uint64_t offset);
int file_write(struct file_io *io, int fd, const void *buffer, size_t bytes, uint64_t offset);
int file_open(struct file_io *io, int dir, const char *name, int flags);
int file_sync(struct file_io *io, int fd);
int file_rename(struct file_io *io, int dir, const char *from, const char *to);
int file_unlink(struct file_io *io, int dir, const char *name);

#endif
