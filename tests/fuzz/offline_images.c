// SPDX-License-Identifier: GPL-2.0-or-later
/* The volume's devices, in memory: read once, and what changes is put back after each input. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz/offline.h"

struct image image[NR_IMAGES];
struct spot changed[65536];
u32 nr_changed;

void change(struct image *img, u64 block, u64 nr)
{
	for (; nr; block++, nr--) {
		hold(nr_changed < ARRAY_SIZE(changed));
		changed[nr_changed++] = (struct spot){ img, block };
	}
}

void put_back(u32 keep)
{
	for (u32 k = 0; k < nr_changed; k++) {
		u64 byte = changed[k].block * TERRACE_BLOCK_BYTES;

		memcpy(changed[k].image->is + byte, changed[k].image->was + byte, TERRACE_BLOCK_BYTES);
	}
	nr_changed = keep;
}

/* Holes stay holes. */
static void copy_data(int from, int to, off_t bytes)
{
	static u8 buf[1 << 20];

	for (off_t at = lseek(from, 0, SEEK_DATA), end; at >= 0 && at < bytes; at = lseek(from, end, SEEK_DATA))
		for (end = lseek(from, at, SEEK_HOLE); at < end; ) {
			ssize_t n = pread(from, buf, end - at < (off_t)sizeof(buf) ? end - at : (off_t)sizeof(buf), at);

			hold(n > 0 && pwrite(to, buf, n, at) == n);
			at += n;
		}
}

void open_image(struct image *img, const char *folder, const char *name)
{
	char *path = ctl_text("%s/%s", folder, name);
	int from = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (from < 0 || fstat(from, &st)) {
		perror(path);
		exit(2);
	}
	img->fd = memfd_create(name, MFD_CLOEXEC);
	img->blocks = st.st_size / TERRACE_BLOCK_BYTES;
	snprintf(img->path, sizeof(img->path), "/proc/self/fd/%d", img->fd);
	hold(!ftruncate(img->fd, st.st_size));
	copy_data(from, img->fd, st.st_size);
	img->is = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, img->fd, 0);
	img->was = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, from, 0);
	hold(img->is != MAP_FAILED && img->was != MAP_FAILED && !fstat(img->fd, &st));
	img->ino = st.st_ino;
	close(from);
	free(path);
}
