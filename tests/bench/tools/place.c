// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * place: the data of a placement that `ideal` has printed
 *
 *	place FAST_DEVICE SLOW_DEVICE up|back < TABLE
 *
 * Copies what TABLE has on FAST_DEVICE there from its own place on SLOW_DEVICE, or back again.
 * Past the page cache, for both devices are in use through others above them.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECTOR	512ULL
#define PIECE	(64 * 1024ULL)

static int opened(const char *path)
{
	int fd = open(path, O_RDWR | O_DIRECT);

	if (fd < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

static void copy(int from, unsigned long long at, int to, unsigned long long there, unsigned long long bytes)
{
	static char piece[PIECE] __attribute__((aligned(4096)));

	for (unsigned long long done = 0; done < bytes;) {
		size_t length = bytes - done < PIECE ? bytes - done : PIECE;

		if (pread(from, piece, length, (off_t)(at + done)) != (ssize_t)length ||
		    pwrite(to, piece, length, (off_t)(there + done)) != (ssize_t)length) {
			perror("place");
			exit(1);
		}
		done += length;
	}
}

int main(int argc, char **argv)
{
	unsigned long long at, sectors, there;
	char device[256];
	int fast, slow;
	bool back;

	if (argc != 4) {
		fprintf(stderr, "usage: place FAST_DEVICE SLOW_DEVICE up|back < TABLE\n");
		return 2;
	}
	fast = opened(argv[1]);
	slow = opened(argv[2]);
	back = !strcmp(argv[3], "back");
	while (scanf("%llu %llu linear %255s %llu", &at, &sectors, device, &there) == 4) {
		if (strcmp(device, argv[1]))
			continue;
		if (back)
			copy(fast, there * SECTOR, slow, at * SECTOR, sectors * SECTOR);
		else
			copy(slow, at * SECTOR, fast, there * SECTOR, sectors * SECTOR);
	}
	return fsync(fast) || fsync(slow);
}
