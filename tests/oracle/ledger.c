// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The ledger: see ledger.h for the rules.
 *
 * Each block has a list of the operations whose value it may still hold. What
 * is overwritten for certain, durably, and visible to no read under way, is
 * dropped when the list is next touched, so lists stay short.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ledger.h"

#define NEVER		UINT64_MAX
#define MAX_READS	1024
#define FILE_MAGIC	0x3172656764656c54ull	/* "Tledger1" */

struct op {
	uint64_t version;
	uint64_t start, end;		/* end: also of one that failed */
	uint32_t first, count;
	bool well, fua;
};

struct entries {
	uint32_t *op;
	uint32_t nr, room;
	uint32_t busy;			/* operations under way */
	bool touched;
};

struct ledger {
	uint32_t blocks, runs;
	uint64_t salt;
	uint64_t now;
	uint64_t flushed;		/* what ended well before this is durable */
	struct op *ops;
	uint32_t nr_ops, room_ops;
	struct entries *list;
	uint64_t reads[MAX_READS];	/* start of those under way, 0: free */
};

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static uint32_t add_op(struct ledger *l, struct op op)
{
	if (l->nr_ops == l->room_ops) {
		l->room_ops = l->room_ops * 2 + 1024;
		l->ops = must(reallocarray(l->ops, l->room_ops, sizeof(*l->ops)));
	}
	l->ops[l->nr_ops] = op;
	return l->nr_ops++;
}

static void add_entry(struct entries *e, uint32_t op)
{
	if (e->nr == e->room) {
		e->room = e->room * 2 + 2;
		e->op = must(reallocarray(e->op, e->room, sizeof(*e->op)));
	}
	e->op[e->nr++] = op;
}

struct ledger *ledger_create(uint32_t blocks, uint64_t salt)
{
	struct ledger *l = must(calloc(1, sizeof(*l)));
	uint32_t b;

	l->blocks = blocks;
	l->salt = salt;
	l->now = 1;
	l->list = must(calloc(blocks, sizeof(*l->list)));
	add_op(l, (struct op){ .well = true, .fua = true });	/* zeros since ever */
	for (b = 0; b < blocks; b++)
		add_entry(&l->list[b], 0);
	return l;
}

void ledger_destroy(struct ledger *l)
{
	uint32_t b;

	if (!l)
		return;
	for (b = 0; b < l->blocks; b++)
		free(l->list[b].op);
	free(l->list);
	free(l->ops);
	free(l);
}

uint32_t ledger_blocks(const struct ledger *l)
{
	return l->blocks;
}

uint64_t ledger_salt(const struct ledger *l)
{
	return l->salt;
}

uint32_t ledger_runs(const struct ledger *l)
{
	return l->runs;
}

void ledger_next_run(struct ledger *l)
{
	l->runs++;
}

/* ---- the rules ---- */

static bool ended_well_before(const struct op *op, uint64_t when)
{
	return op->well && op->end < when;
}

static bool durable(const struct ledger *l, const struct op *op)
{
	return op->well && (op->fua || op->end < l->flushed);
}

/* The latest start among those that have ended well before @when. */
static uint64_t seen_start(const struct ledger *l, const struct entries *e, uint64_t when)
{
	uint64_t start = 0;
	uint32_t k;

	for (k = 0; k < e->nr; k++) {
		const struct op *op = &l->ops[e->op[k]];

		if (ended_well_before(op, when) && op->start > start)
			start = op->start;
	}
	return start;
}

/* The latest start among the durable ones that ended before @when. */
static uint64_t durable_start(const struct ledger *l, const struct entries *e, uint64_t when)
{
	uint64_t start = 0;
	uint32_t k;

	for (k = 0; k < e->nr; k++) {
		const struct op *op = &l->ops[e->op[k]];

		if (durable(l, op) && op->end < when && op->start > start)
			start = op->start;
	}
	return start;
}

static uint64_t oldest_read(const struct ledger *l)
{
	uint64_t oldest = NEVER;
	uint32_t k;

	for (k = 0; k < MAX_READS; k++)
		if (l->reads[k] && l->reads[k] < oldest)
			oldest = l->reads[k];
	return oldest;
}

static void forget_overwritten(struct ledger *l, struct entries *e)
{
	uint64_t start;
	uint32_t k, kept = 0;

	if (e->nr < 2)
		return;
	start = durable_start(l, e, oldest_read(l));
	for (k = 0; k < e->nr; k++)
		if (l->ops[e->op[k]].end >= start)
			e->op[kept++] = e->op[k];
	e->nr = kept;
}

static bool allowed(const struct ledger *l, const struct entries *e, uint64_t value, uint64_t start)
{
	uint32_t k;

	for (k = 0; k < e->nr; k++)
		if (l->ops[e->op[k]].version == value && l->ops[e->op[k]].end >= start)
			return true;
	return false;
}

bool ledger_may_read(const struct ledger *l, uint32_t block, uint64_t value, uint64_t began)
{
	const struct entries *e = &l->list[block];

	return allowed(l, e, value, seen_start(l, e, began));
}

bool ledger_may_survive(const struct ledger *l, uint32_t block, uint64_t value)
{
	const struct entries *e = &l->list[block];

	return allowed(l, e, value, durable_start(l, e, NEVER));
}

static uint32_t list_values(const struct ledger *l, const struct entries *e, uint64_t start, uint64_t *values, uint32_t max)
{
	uint32_t k, i, nr = 0;

	for (k = 0; k < e->nr; k++) {
		const struct op *op = &l->ops[e->op[k]];

		if (op->end < start)
			continue;
		for (i = 0; i < nr && i < max && values[i] != op->version; i++)
			;
		if (i < nr && i < max)
			continue;
		if (nr < max)
			values[nr] = op->version;
		nr++;
	}
	return nr;
}

uint32_t ledger_now(const struct ledger *l, uint32_t block, uint64_t *values, uint32_t max)
{
	const struct entries *e = &l->list[block];

	return list_values(l, e, seen_start(l, e, NEVER), values, max);
}

uint32_t ledger_survivors(const struct ledger *l, uint32_t block, uint64_t *values, uint32_t max)
{
	const struct entries *e = &l->list[block];

	return list_values(l, e, durable_start(l, e, NEVER), values, max);
}

/* ---- events ---- */

uint32_t ledger_begin(struct ledger *l, uint32_t first, uint32_t count, uint64_t version, bool fua)
{
	uint32_t op = add_op(l, (struct op){ .version = version, .start = ++l->now, .end = NEVER,
					     .first = first, .count = count, .fua = fua });
	uint32_t b;

	for (b = first; b < first + count; b++) {
		forget_overwritten(l, &l->list[b]);
		add_entry(&l->list[b], op);
		l->list[b].busy++;
		l->list[b].touched = true;
	}
	return op;
}

void ledger_end(struct ledger *l, uint32_t op, bool well)
{
	struct op *o = &l->ops[op];
	uint32_t b;

	o->end = ++l->now;
	o->well = well;
	for (b = o->first; b < o->first + o->count; b++)
		l->list[b].busy--;
}

uint64_t ledger_flush_begin(struct ledger *l)
{
	return ++l->now;
}

void ledger_flush_end(struct ledger *l, uint64_t began)
{
	if (began > l->flushed)
		l->flushed = began;
}

uint64_t ledger_read_begin(struct ledger *l)
{
	uint32_t k;

	for (k = 0; l->reads[k]; k++)
		if (k == MAX_READS - 1)
			abort();
	return l->reads[k] = ++l->now;
}

void ledger_read_end(struct ledger *l, uint64_t began)
{
	uint32_t k;

	for (k = 0; k < MAX_READS; k++)
		if (l->reads[k] == began)
			l->reads[k] = 0;
}

bool ledger_busy(const struct ledger *l, uint32_t first, uint32_t count)
{
	while (count--)
		if (l->list[first++].busy)
			return true;
	return false;
}

bool ledger_touched(const struct ledger *l, uint32_t block)
{
	return l->list[block].touched;
}

/* A value that is there for certain: an operation that ended long ago. */
static uint32_t settled_op(struct ledger *l, uint64_t value)
{
	if (!value)
		return 0;
	return add_op(l, (struct op){ .version = value, .well = true, .fua = true });
}

void ledger_settle(struct ledger *l, uint32_t block, uint64_t value)
{
	struct entries *e = &l->list[block];

	e->nr = 0;
	e->touched = false;
	add_entry(e, settled_op(l, value));
}

static void crash_block(struct ledger *l, struct entries *e)
{
	uint64_t start = durable_start(l, e, NEVER);
	uint32_t k, kept = 0;

	for (k = 0; k < e->nr; k++)
		if (l->ops[e->op[k]].end >= start)
			e->op[kept++] = settled_op(l, l->ops[e->op[k]].version);
	e->nr = kept;
	e->busy = 0;
}

void ledger_crash(struct ledger *l)
{
	uint32_t b;

	memset(l->reads, 0, sizeof(l->reads));
	for (b = 0; b < l->blocks; b++)
		if (l->list[b].touched)
			crash_block(l, &l->list[b]);
}

/* ---- the file: per block the values that may survive, and those it has now ---- */

#define IS_NOW	(1ull << 63)
#define MAX_VALUES	4096

struct file_head {
	uint64_t magic, salt;
	uint32_t blocks, runs;
};

static int save_block(const struct ledger *l, uint32_t block, FILE *f)
{
	static uint64_t values[MAX_VALUES], now[MAX_VALUES];
	uint32_t nr = ledger_survivors(l, block, values, MAX_VALUES);
	uint32_t nr_now = ledger_now(l, block, now, MAX_VALUES), k, i;
	uint32_t head[2] = { nr, l->list[block].touched };

	if (nr > MAX_VALUES || nr_now > MAX_VALUES)
		return -E2BIG;
	for (k = 0; k < nr; k++)
		for (i = 0; i < nr_now; i++)
			if ((values[k] & ~IS_NOW) == now[i])
				values[k] |= IS_NOW;
	if (fwrite(head, sizeof(head), 1, f) != 1 || fwrite(values, sizeof(*values), nr, f) != nr)
		return -EIO;
	return 0;
}

int ledger_save(const struct ledger *l, const char *path)
{
	struct file_head head = { FILE_MAGIC, l->salt, l->blocks, l->runs };
	FILE *f = fopen(path, "w");
	uint32_t b;
	int err;

	if (!f)
		return -errno;
	err = fwrite(&head, sizeof(head), 1, f) == 1 ? 0 : -EIO;
	for (b = 0; b < l->blocks && !err; b++)
		err = save_block(l, b, f);
	if (fclose(f) && !err)
		err = -errno;
	return err;
}

/*
 * The values come back as operations that ended at time 0. One that is there
 * now but not necessarily after a crash started later than the others ended.
 */
static int load_block(struct ledger *l, uint32_t block, FILE *f)
{
	uint32_t head[2], k;
	uint64_t value;

	if (fread(head, sizeof(head), 1, f) != 1)
		return -EINVAL;
	l->list[block].touched = head[1];
	l->list[block].nr = 0;
	for (k = 0; k < head[0]; k++) {
		if (fread(&value, sizeof(value), 1, f) != 1)
			return -EINVAL;
		if (head[0] == 1 || !(value & IS_NOW))
			add_entry(&l->list[block], settled_op(l, value & ~IS_NOW));
		else
			add_entry(&l->list[block], add_op(l, (struct op){ .version = value & ~IS_NOW, .start = 1, .end = 1,
									  .well = true }));
	}
	return head[0] ? 0 : -EINVAL;
}

struct ledger *ledger_load(const char *path, int *error)
{
	struct file_head head;
	struct ledger *l = NULL;
	FILE *f = fopen(path, "r");
	uint32_t b;

	*error = f ? 0 : -errno;
	if (!f)
		return NULL;
	if (fread(&head, sizeof(head), 1, f) != 1 || head.magic != FILE_MAGIC) {
		*error = -EINVAL;
		goto out;
	}
	l = ledger_create(head.blocks, head.salt);
	l->runs = head.runs;
	for (b = 0; b < l->blocks && !*error; b++)
		*error = load_block(l, b, f);
	if (*error) {
		ledger_destroy(l);
		l = NULL;
	}
out:
	fclose(f);
	return l;
}
