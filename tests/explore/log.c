// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The record of the drives, from its file: see tests/drive/record.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "explore.h"

static void map_file(struct log *log, const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !st.st_size)
		give_up("%s: %s", path, errno ? strerror(errno) : "empty");
	log->size = st.st_size;
	log->bytes = mmap(NULL, log->size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (log->bytes == MAP_FAILED)
		give_up("%s: %s", path, strerror(errno));
	close(fd);
}

void log_open(struct log *log, const char *path)
{
	u32 room = 0;
	size_t at = 0;

	memset(log, 0, sizeof(*log));
	map_file(log, path);
	while (at + sizeof(struct drive_record) <= log->size) {
		const struct drive_record *r = (const void *)(log->bytes + at);

		if (r->kind < RECORD_DRIVE || r->kind > RECORD_OVERRUN)
			give_up("%s: no record at byte %zu", path, at);
		if (r->kind == RECORD_OVERRUN)
			give_up("%s: the drives had no room for all of it", path);
		if (log->nr == room) {
			room = room * 2 + 4096;
			log->record = reallocarray(log->record, room, sizeof(*log->record));
		}
		log->record[log->nr++] = r;
		at += sizeof(*r) + (((size_t)r->data_bytes + 7) & ~(size_t)7);
	}
	if (at != log->size)
		give_up("%s: ends within a record", path);
	log->hash = calloc(log->nr, sizeof(*log->hash));
}

static u64 hash_sector(const u64 *word)
{
	u64 h = 0, any = 0;

	for (u32 i = 0; i < SECTOR / sizeof(u64); i++) {
		any |= word[i];
		h = (h ^ word[i]) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 29;
	}
	return any ? h | 1 : 0;
}

const u64 *log_hashes(struct log *log, u32 at)
{
	const struct drive_record *r = log->record[at];
	u32 nr = r->data_bytes / SECTOR;
	u64 *hash = log->hash[at];

	if (hash || !nr)
		return hash;
	hash = malloc(nr * sizeof(*hash));
	for (u32 i = 0; i < nr; i++)
		hash[i] = hash_sector((const u64 *)log_data(r) + (size_t)i * (SECTOR / sizeof(u64)));
	log->hash[at] = hash;
	return hash;
}
