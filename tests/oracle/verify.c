// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads everything back and compares it with the ledger: exactly, after a
 * clean stop, or with what may survive, after a crash. What is found is then
 * entered into the ledger as what is there, durably: another crash must not
 * change it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mark.h"
#include "oracle.h"

#define PIECE	256u	/* blocks read at once */

struct pass {
	const struct options *o;
	struct ledger *l;
	struct device device;
	char *data;
	int marks;
	struct mark seen;		/* a run of blocks, not yet written */
	unsigned char *only;		/* a byte for each block; NULL: all */
	FILE *eio;
	uint32_t eio_first, eio_nr;	/* a run of blocks that cannot be read, not yet written */
	uint64_t checked, wrong, changed, unread;
};

static void wrong(struct pass *p, const char *what)
{
	if (p->wrong++ < p->o->limit)
		printf("oracle: BROKEN: %s\n", what);
}

static void end_seen(struct pass *p)
{
	if (p->seen.count)
		mark(p->marks, p->seen);
	p->seen.count = 0;
}

static void see(struct pass *p, uint32_t block, uint64_t value)
{
	if (p->seen.count && (p->seen.version != value || p->seen.first + p->seen.count != block))
		end_seen(p);
	if (!p->seen.count)
		p->seen = (struct mark){ .kind = MARK_SEEN, .first = block, .version = value };
	p->seen.count++;
}

static void check_block(struct pass *p, uint32_t block, const void *data)
{
	uint64_t value;
	const char *what = p->o->older ? judge_older(p->l, block, data, &value) :
			   judge(p->l, block, data, p->o->crash, UINT64_MAX, &value);

	p->checked++;
	if (what)
		wrong(p, what);
	else if (!p->o->keep)
		ledger_settle(p->l, block, value);
	see(p, block, value);
}

static void end_unread(struct pass *p)
{
	if (p->eio_nr)
		fprintf(p->eio, "%u %u\n", p->eio_first, p->eio_nr);
	p->eio_nr = 0;
}

static void note_unread(struct pass *p, uint32_t block)
{
	if (p->eio_nr && p->eio_first + p->eio_nr != block)
		end_unread(p);
	if (!p->eio_nr)
		p->eio_first = block;
	p->eio_nr++;
	p->unread++;
}

/* An I/O fails as a whole: which of its blocks is it? */
static void check_each(struct pass *p, uint32_t first, uint32_t count)
{
	for (; count; first++, count--) {
		ssize_t got = pread(p->device.fd, p->data, STAMP_BLOCK, (off_t)first * STAMP_BLOCK);

		if (got < 0 && errno == EIO)
			note_unread(p, first);
		else if (got != STAMP_BLOCK)
			trouble("block %u cannot be read: %s", first, got < 0 ? strerror(errno) : "short read");
		else
			check_block(p, first, p->data);
	}
}

static void check_run(struct pass *p, uint32_t first, uint32_t count)
{
	ssize_t got = pread(p->device.fd, p->data, count * (size_t)STAMP_BLOCK, (off_t)first * STAMP_BLOCK);
	char text[120];
	uint32_t k;

	if (got < 0 && errno == EIO && p->eio) {
		check_each(p, first, count);
		return;
	}
	if (got != (ssize_t)(count * (size_t)STAMP_BLOCK)) {
		snprintf(text, sizeof(text), "blocks %u+%u cannot be read: %s", first, count, got < 0 ? strerror(errno) : "short read");
		wrong(p, text);
		return;
	}
	for (k = 0; k < count; k++)
		check_block(p, first + k, p->data + k * (size_t)STAMP_BLOCK);
}

static bool wanted(const struct pass *p, uint32_t block)
{
	if (p->only && !p->only[block])
		return false;
	if (!p->o->touched || ledger_touched(p->l, block))
		return true;
	return p->o->sample && stamp_mix(p->o->seed ^ block / 8) % p->o->sample == 0;
}

/* Runs, FIRST NR on a line. */
static unsigned char *read_only(const char *path, uint32_t end)
{
	unsigned char *only = calloc(end, 1);
	FILE *file = fopen(path, "r");
	unsigned long first, nr;

	if (!only || !file)
		trouble("%s: %s", path, strerror(errno));
	while (fscanf(file, "%lu %lu", &first, &nr) == 2)
		for (; nr && first < end; first++, nr--)
			only[first] = 1;
	if (!feof(file))
		trouble("%s: FIRST NR on a line, please", path);
	fclose(file);
	return only;
}

int verify(const struct options *o, struct ledger *l)
{
	struct pass p = { .o = o, .l = l };
	uint32_t end = ledger_blocks(l), block, n;

	device_open(&p.device, o->device, false);
	if (p.device.bytes / STAMP_BLOCK < end)
		trouble("%s is smaller than the ledger's %u blocks", o->device, end);
	p.eio = o->eio ? fopen(o->eio, "w") : NULL;
	if (o->eio && !p.eio)
		trouble("%s: %s", o->eio, strerror(errno));
	p.only = o->only ? read_only(o->only, end) : NULL;
	p.marks = mark_open(o, l);
	p.data = io_buffer(PIECE * (size_t)STAMP_BLOCK);
	for (block = 0; block < end; block += n) {
		for (n = 0; n < PIECE && block + n < end && wanted(&p, block + n); n++)
			;
		if (n)
			check_run(&p, block, n);
		else
			n = 1;
	}
	end_seen(&p);
	end_unread(&p);
	if (p.eio && fclose(p.eio))
		trouble("%s: %s", o->eio, strerror(errno));
	mark_close(p.marks);
	free(p.only);
	free(p.data);
	close(p.device.fd);
	if (!o->quiet || p.wrong)
		printf("oracle: %s: %llu blocks checked, %llu wrong, %llu unread\n",
		       o->older ? "any value" : o->crash ? "after a crash" : "after a clean stop",
		       (unsigned long long)p.checked, (unsigned long long)p.wrong, (unsigned long long)p.unread);
	return p.wrong ? EXIT_BROKEN : EXIT_GOOD;
}
