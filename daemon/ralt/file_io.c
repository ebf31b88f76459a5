// SPDX-License-Identifier: GPL-2.0-or-later
/* The ring: starting, reaping, and the calls that wait; see file_io.h. */
#include "ralt/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define RING_ENTRIES	64u

int file_io_init(struct file_io *io)
{
	memset(io, 0, sizeof(*io));
	return io_uring_queue_init(RING_ENTRIES, &io->ring, 0);
}

void file_io_exit(struct file_io *io)
{
	io_uring_queue_exit(&io->ring);
}

/* Every completion belongs to a request; whoever reaps it marks that one done. */
static int reap_one(struct file_io *io)
{
	struct io_uring_cqe *cqe;
	struct file_request *req;
	int err;

	do {
		err = io_uring_wait_cqe(&io->ring, &cqe);
	} while (err == -EINTR);
	if (err)
		return err;
	req = io_uring_cqe_get_data(cqe);
	req->result = cqe->res;
	req->busy = false;
	io_uring_cqe_seen(&io->ring, cqe);
	return 0;
}

static struct io_uring_sqe *get_sqe(struct file_io *io)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&io->ring);

	if (sqe)
		return sqe;
	io_uring_submit(&io->ring);
	return io_uring_get_sqe(&io->ring);
}

static int submit(struct file_io *io, struct io_uring_sqe *sqe, struct file_request *req)
{
	int sent;

	io_uring_sqe_set_data(sqe, req);
	req->busy = true;
	do {
		sent = io_uring_submit(&io->ring);
	} while (sent == -EINTR || sent == -EAGAIN);
	if (sent < 0)
		req->busy = false;
	return sent < 0 ? sent : 0;
}

int file_start(struct file_io *io, struct file_request *req, bool write, int fd, void *buffer,
	       size_t bytes, uint64_t offset)
{
	struct io_uring_sqe *sqe = get_sqe(io);

	*req = (struct file_request){ 0, false, write, fd, buffer, bytes, offset };
	if (!sqe)
		return -EBUSY;
	if (write)
		io_uring_prep_write(sqe, fd, buffer, (unsigned int)bytes, offset);
	else
		io_uring_prep_read(sqe, fd, buffer, (unsigned int)bytes, offset);
	return submit(io, sqe, req);
}

/* A short transfer is continued; one of nothing means the end of the file. */
int file_wait(struct file_io *io, struct file_request *req)
{
	while (req->busy) {
		int err = reap_one(io);

		if (err)
			return err;
		if (req->busy)
			continue;
		if (req->result == -EINTR || req->result == -EAGAIN)
			req->result = 0;
		else if (req->result < 0)
			return req->result;
		else if (!req->result)
			return req->write ? -ENOSPC : -ENODATA;
		if ((size_t)req->result < req->bytes) {
			err = file_start(io, req, req->write, req->fd, req->buffer + req->result,
					 req->bytes - (size_t)req->result,
					 req->offset + (uint64_t)req->result);
			if (err)
				return err;
		}
	}
	return req->result < 0 ? req->result : 0;
}

int file_read(struct file_io *io, int fd, void *buffer, size_t bytes, uint64_t offset)
{
	struct file_request req;
	int err = file_start(io, &req, false, fd, buffer, bytes, offset);

	return err ? err : file_wait(io, &req);
}

int file_write(struct file_io *io, int fd, const void *buffer, size_t bytes, uint64_t offset)
{
	struct file_request req;
	int err = file_start(io, &req, true, fd, (void *)(uintptr_t)buffer, bytes, offset);

	return err ? err : file_wait(io, &req);
}

static int call(struct file_io *io, struct io_uring_sqe *sqe)
{
	struct file_request req = { 0 };
	int err = submit(io, sqe, &req);

	while (!err && req.busy)
		err = reap_one(io);
	return err ? err : req.result;
}

int file_open(struct file_io *io, int dir, const char *name, int flags)
{
	struct io_uring_sqe *sqe = get_sqe(io);

	if (!sqe)
		return -EBUSY;
	io_uring_prep_openat(sqe, dir, name, flags | O_CLOEXEC, 0600);
	return call(io, sqe);
}

int file_sync(struct file_io *io, int fd)
{
	struct io_uring_sqe *sqe = get_sqe(io);

	if (!sqe)
		return -EBUSY;
	io_uring_prep_fsync(sqe, fd, 0);
	return call(io, sqe);
}

int file_rename(struct file_io *io, int dir, const char *from, const char *to)
{
	struct io_uring_sqe *sqe = get_sqe(io);

	if (!sqe)
		return -EBUSY;
	io_uring_prep_renameat(sqe, dir, from, dir, to, 0);
	return call(io, sqe);
}

int file_unlink(struct file_io *io, int dir, const char *name)
{
	struct io_uring_sqe *sqe = get_sqe(io);

	if (!sqe)
		return -EBUSY;
	io_uring_prep_unlinkat(sqe, dir, name, 0);
	return call(io, sqe);
}
