// SPDX-License-Identifier: GPL-2.0
/*
 * Faults asked for by the tester: errors and delays on ranges of sectors, on
 * the n-th command of a kind, once, a number of times, or for ever; or they are
 * held, before their data move, until the tester lets them go (release).
 *
 *	error add KINDS START LENGTH [nth=N] [count=N] [delay=TIME]
 *	          [status=io|medium|timeout|nospc|ok] [hold]
 *
 * KINDS is a comma list of read write flush discard zeroes all; START and
 * LENGTH are in sectors, LENGTH 0 means to the end. A flush has no place, so
 * ranges do not matter for it. A failed write changes nothing on the medium.
 */
#include <linux/slab.h>

#include "drive.h"

static bool matches(const struct drive_fault *f, const struct drive_cmd *cmd)
{
	if (!(f->kinds & (1U << cmd->kind)))
		return false;
	if (cmd->kind == DRIVE_FLUSH)
		return true;
	return cmd->start < f->end && cmd->start + cmd->bytes > f->start;
}

static bool strikes(struct drive_fault *f)
{
	if (f->skip) {
		f->skip--;
		return false;
	}
	return true;
}

/**
 * drive_fault_strike() - what do the faults do to this command?
 * @d: the drive
 * @op: the command; gets its delay and status
 */
void drive_fault_strike(struct drive *d, struct drive_op *op)
{
	struct drive_fault *f, *next;
	bool struck = false;

	spin_lock_irq(&d->queue_lock);
	list_for_each_entry_safe(f, next, &d->faults, node) {
		if (!matches(f, &op->cmd) || !strikes(f))
			continue;
		struck = true;
		op->delay_ns += f->delay_ns;
		op->hold |= f->hold;
		if (f->status != BLK_STS_OK && op->status == BLK_STS_OK) {
			op->status = f->status;
			d->counters.errors++;
		}
		if (f->left && !--f->left) {
			list_del(&f->node);
			kfree(f);
		}
	}
	d->counters.struck += struck;
	WRITE_ONCE(d->faulty, !list_empty(&d->faults));
	spin_unlock_irq(&d->queue_lock);
}

/* ---- the message ---- */

static const struct {
	const char *name;
	unsigned int kinds;
} kind_names[] = {
	{ "read", 1U << DRIVE_READ },
	{ "write", 1U << DRIVE_WRITE },
	{ "flush", 1U << DRIVE_FLUSH },
	{ "discard", 1U << DRIVE_DISCARD },
	{ "zeroes", 1U << DRIVE_ZEROES },
	{ "all", (1U << DRIVE_KINDS) - 1 },
};

static const struct {
	const char *name;
	blk_status_t status;
} status_names[] = {
	{ "io", BLK_STS_IOERR },
	{ "medium", BLK_STS_MEDIUM },
	{ "timeout", BLK_STS_TIMEOUT },
	{ "nospc", BLK_STS_NOSPC },
	{ "ok", BLK_STS_OK },
};

static unsigned int kind_of(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kind_names); i++)
		if (!strcmp(kind_names[i].name, name))
			return kind_names[i].kinds;
	return 0;
}

static int parse_kinds(char *list, unsigned int *kinds)
{
	unsigned int kind;
	char *name;

	*kinds = 0;
	while ((name = strsep(&list, ","))) {
		kind = kind_of(name);
		if (!kind)
			return -EINVAL;
		*kinds |= kind;
	}
	return 0;
}

static int parse_status(const char *name, blk_status_t *status)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(status_names); i++) {
		if (!strcmp(status_names[i].name, name)) {
			*status = status_names[i].status;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_range(struct drive_fault *f, const char *start,
		       const char *length)
{
	u64 first, count;

	if (kstrtou64(start, 10, &first) || kstrtou64(length, 10, &count) ||
	    first > U64_MAX >> SECTOR_SHIFT || count > U64_MAX >> SECTOR_SHIFT)
		return -EINVAL;
	f->start = first << SECTOR_SHIFT;
	f->end = count ? f->start + (count << SECTOR_SHIFT) : U64_MAX;
	return f->end > f->start ? 0 : -EINVAL;
}

static int parse_option(struct drive_fault *f, char *word)
{
	char *value = strchr(word, '=');

	if (!strcmp(word, "hold")) {
		f->hold = true;
		f->status = BLK_STS_OK;
		return 0;
	}
	if (!value)
		return -EINVAL;
	*value++ = 0;
	if (!strcmp(word, "count"))
		return kstrtou64(value, 10, &f->left);
	if (!strcmp(word, "delay"))
		return drive_parse_number(value, &f->delay_ns, true);
	if (!strcmp(word, "status"))
		return parse_status(value, &f->status);
	if (strcmp(word, "nth") || kstrtou64(value, 10, &f->skip) || !f->skip)
		return -EINVAL;
	f->skip--;
	return 0;
}

static int parse_fault(struct drive_fault *f, unsigned int argc, char **argv)
{
	unsigned int i;

	f->status = BLK_STS_IOERR;
	if (argc < 3 || parse_kinds(argv[0], &f->kinds) ||
	    parse_range(f, argv[1], argv[2]))
		return -EINVAL;
	for (i = 3; i < argc; i++)
		if (parse_option(f, argv[i]))
			return -EINVAL;
	return 0;
}

/**
 * drive_fault_add() - add one fault
 * @d: the drive
 * @argc: number of words after "error add"
 * @argv: these words
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int drive_fault_add(struct drive *d, unsigned int argc, char **argv)
{
	struct drive_fault *f = kzalloc(sizeof(*f), GFP_KERNEL);

	if (!f)
		return -ENOMEM;
	if (parse_fault(f, argc, argv)) {
		kfree(f);
		return -EINVAL;
	}
	spin_lock_irq(&d->queue_lock);
	list_add_tail(&f->node, &d->faults);
	WRITE_ONCE(d->faulty, true);
	spin_unlock_irq(&d->queue_lock);
	return 0;
}

void drive_fault_clear(struct drive *d)
{
	struct drive_fault *f, *next;
	LIST_HEAD(list);

	spin_lock_irq(&d->queue_lock);
	list_splice_init(&d->faults, &list);
	WRITE_ONCE(d->faulty, false);
	spin_unlock_irq(&d->queue_lock);
	list_for_each_entry_safe(f, next, &list, node)
		kfree(f);
}
