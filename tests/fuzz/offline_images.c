// SPDX-License-Identifier: GPL-2.0-or-later
/* The volume's devices, in memory: read once, and what changes is put back after each input. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz/offline.h"

struct image image[ALL_IMAGES];
u32 nr_images;
struct spot changed[1 << 18];
u32 nr_changed;

void change(struct image *img, u64 block, u64 nr)
{
	for (; nr; block++, nr--) {
		hold(nr_changed < ARRAY_SIZE(changed));
		changed[nr_changed++] = (struct spot){ img, block };
		img->has_data[block] = true;
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

static u64 run_of_same(const bool *data, u64 nr)
{
	u64 run = 1;

	while (run < nr && data[run] == data[0])
		run++;
	return run;
}

void read_image(const struct image *img, u8 *to, u64 block, u64 nr)
{
	for (u64 run; nr; block += run, nr -= run, to += run * TERRACE_BLOCK_BYTES) {
		bool data = img->has_data[block];

		run = run_of_same(img->has_data + block, nr);
		if (data)
			memcpy(to, img->is + block * TERRACE_BLOCK_BYTES, run * TERRACE_BLOCK_BYTES);
		else
			memset(to, 0, run * TERRACE_BLOCK_BYTES);
	}
}

/* Holes stay holes. */
static void copy_data(int from, struct image *img)
{
	for (u64 block = 0; block < img->blocks; block++) {
		off_t data = lseek(from, block * TERRACE_BLOCK_BYTES, SEEK_DATA);

		if (data < 0)
			break;
		block = data / TERRACE_BLOCK_BYTES;
		hold(block < img->blocks);
		img->has_data[block] = true;
		memcpy(img->is + block * TERRACE_BLOCK_BYTES, img->was + block * TERRACE_BLOCK_BYTES, TERRACE_BLOCK_BYTES);
	}
}

/* Zeros. */
static void new_image(struct image *img, const char *name, u64 blocks)
{
	size_t bytes = blocks * TERRACE_BLOCK_BYTES;

	img->fd = memfd_create(name, MFD_CLOEXEC);
	img->blocks = blocks;
	img->has_data = ctl_alloc(blocks);
	snprintf(img->path, sizeof(img->path), "/proc/self/fd/%d", img->fd);
	hold(!ftruncate(img->fd, bytes));
	img->is = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, img->fd, 0);
	img->was = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	hold(img->is != MAP_FAILED && img->was != MAP_FAILED);
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
	new_image(img, name, st.st_size / TERRACE_BLOCK_BYTES);
	img->was = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, from, 0);
	hold(img->was != MAP_FAILED);
	copy_data(from, img);
	close(from);
	nr_images++;
	return true;
}

void clear_image(struct image *img)
{
	for (u32 k = 0; k < nr_changed; k++)
		if (changed[k].image == img)
			memset(img->is + changed[k].block * TERRACE_BLOCK_BYTES, 0, TERRACE_BLOCK_BYTES);
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
	new_image(&image[SPARE], "spare", (8 << 20) / TERRACE_BLOCK_BYTES);
	new_image(&image[SALVAGED], "salvaged", VIRTUAL_BLOCKS);
}
