// SPDX-License-Identifier: GPL-2.0-or-later
/* The volume's devices, in memory: read once, and what changes is put back after each input. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz/offline.h"

struct image image[MOST_IMAGES];
u32 nr_images;
struct spot changed[1 << 18];
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

static bool open_image(const char *folder, const char *name)
{
	char *path = ctl_text("%s/%s", folder, name);
	int from = open(path, O_RDONLY | O_CLOEXEC);
	struct image *img = &image[nr_images];
	struct stat st;

	free(path);
	if (from < 0 || fstat(from, &st))
		return false;
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
	nr_images++;
	return true;
}

static void open_spare(void)
{
	struct image *img = &image[SPARE];
	size_t bytes = 8 << 20;
	struct stat st;

	img->fd = memfd_create("spare", MFD_CLOEXEC);
	img->blocks = bytes / TERRACE_BLOCK_BYTES;
	snprintf(img->path, sizeof(img->path), "/proc/self/fd/%d", img->fd);
	hold(!ftruncate(img->fd, bytes) && !fstat(img->fd, &st));
	img->ino = st.st_ino;
	img->is = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, img->fd, 0);
	img->was = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	hold(img->is != MAP_FAILED && img->was != MAP_FAILED);
}

void clear_spare(void)
{
	for (u32 k = 0; k < nr_changed; k++)
		if (changed[k].image == &image[SPARE])
			memset(image[SPARE].is + changed[k].block * TERRACE_BLOCK_BYTES, 0, TERRACE_BLOCK_BYTES);
}

bool label_of(const struct image *img, struct tr_label *label)
{
	struct tr_label copy[TERRACE_LABEL_COPIES];
	bool good[TERRACE_LABEL_COPIES];

	for (u32 k = 0; k < TERRACE_LABEL_COPIES; k++)
		good[k] = !tr_label_decode(&copy[k], img->is + k * TERRACE_BLOCK_BYTES);
	if (good[0] || good[1])
		*label = copy[!good[0] || (good[1] && copy[1].generation > copy[0].generation)];
	return good[0] || good[1];
}

void open_images(void)
{
	const char *folder = getenv("OFFLINE");

	folder = folder ? folder : ".";
	if (!open_image(folder, "fast") || !open_image(folder, "slow")) {
		fprintf(stderr, "%s: fast and slow cannot be opened\n", folder);
		exit(2);
	}
	open_image(folder, "meta");
	open_spare();
}
