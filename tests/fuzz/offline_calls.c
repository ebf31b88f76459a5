// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a tool asks of the system. It may end by exit(), which must not end the fuzzer; it writes only
 * where it is allowed to; and reads and writes of the devices, and of the image that salvage makes,
 * are copies in memory: a call each took half of an input's time.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include "fuzz/offline.h"

u32 given, writable, writes, killed_at;
bool running;
jmp_buf leave;
static struct image *opened[256];	/* by descriptor, NULL: none of them */

__attribute__((noreturn)) void __real_exit(int status);
__attribute__((noreturn)) void __wrap_exit(int status);
void __wrap_exit(int status)
{
	if (running)
		longjmp(leave, 1 + status);
	__real_exit(status);
}

/* ---- open, close ------------------------------------------------------------------- */

static struct image *image_at(const char *path)
{
	for (u32 i = 0; i < ALL_IMAGES; i++)
		if (!strcmp(path, image[i].path))
			return &image[i];
	return NULL;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	struct image *img = running ? image_at(path) : NULL;
	va_list args;
	int fd, mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, int) : 0;
	va_end(args);
	if (img == &image[SALVAGED] && flags & O_TRUNC)
		clear_image(img);
	fd = __real_open(path, img ? flags & ~O_TRUNC : flags, mode);
	if (fd < 0)
		return fd;
	hold(!img || fd < (int)ARRAY_SIZE(opened));
	if (fd < (int)ARRAY_SIZE(opened))
		opened[fd] = img;
	return fd;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	if (fd >= 0 && fd < (int)ARRAY_SIZE(opened))
		opened[fd] = NULL;
	return __real_close(fd);
}

static struct image *image_of(int fd)
{
	return running && fd >= 0 && fd < (int)ARRAY_SIZE(opened) ? opened[fd] : NULL;
}

void calls_close_all(int first_fd)
{
	memset(opened, 0, sizeof(opened));
	close_range(first_fd, ~0u, 0);
}

/* The image that salvage makes is of the volume's size: no other superblock is believed when it is judged. */
int __real_ftruncate(int fd, off_t bytes);
int __wrap_ftruncate(int fd, off_t bytes);
int __wrap_ftruncate(int fd, off_t bytes)
{
	const struct image *img = image_of(fd);

	if (!img)
		return __real_ftruncate(fd, bytes);
	hold(img == &image[SALVAGED] && (u64)bytes == img->blocks * TERRACE_BLOCK_BYTES);
	return 0;
}

/* ---- reading, writing ---------------------------------------------------------------- */

ssize_t __real_pread(int fd, void *buf, size_t bytes, off_t offset);
ssize_t __wrap_pread(int fd, void *buf, size_t bytes, off_t offset);
ssize_t __wrap_pread(int fd, void *buf, size_t bytes, off_t offset)
{
	const struct image *img = image_of(fd);
	u64 block = offset / TERRACE_BLOCK_BYTES, nr = bytes / TERRACE_BLOCK_BYTES;

	if (!img)
		return __real_pread(fd, buf, bytes, offset);
	hold(!(offset % TERRACE_BLOCK_BYTES) && !(bytes % TERRACE_BLOCK_BYTES));
	hold(block <= img->blocks && nr <= img->blocks - block);
	read_image(img, buf, block, nr);
	return bytes;
}

/* The write at which it is killed: a drive that does not write blocks whole has half of one. */
static void tear(struct image *img, u64 block, const void *buf)
{
	struct tr_label label;

	if (!label_of(img, &label) || label.flags & TERRACE_LABEL_ATOMIC)
		return;
	change(img, block, 1);
	memcpy(img->is + block * TERRACE_BLOCK_BYTES, buf, TERRACE_BLOCK_BYTES / 2);
}

ssize_t __real_pwrite(int fd, const void *buf, size_t bytes, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t bytes, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t bytes, off_t offset)
{
	struct image *img = image_of(fd);
	u64 block = offset / TERRACE_BLOCK_BYTES, nr = bytes / TERRACE_BLOCK_BYTES;

	hold(img || !running);
	if (!img)
		return __real_pwrite(fd, buf, bytes, offset);
	hold(!(offset % TERRACE_BLOCK_BYTES) && !(bytes % TERRACE_BLOCK_BYTES));
	hold(block <= img->blocks && nr <= img->blocks - block);
	if (img != &image[SALVAGED]) {
		hold(writable & 1u << (img - image));
		if (++writes == killed_at) {
			tear(img, block, buf);
			longjmp(leave, 1 + KILLED);
		}
	}
	change(img, block, nr);
	memcpy(img->is + offset, buf, bytes);
	return bytes;
}
