// SPDX-License-Identifier: GPL-2.0-or-later
/* See inquiry.h. */
#include "sense/inquiry.h"

#include <string.h>

static bool same(const struct file_id *a, const struct file_id *b)
{
	return a->inode == b->inode && a->generation == b->generation && a->dev == b->dev;
}

bool inquiries_add(struct inquiries *q, const struct inquiry *one)
{
	if (q->end - q->first == INQUIRIES)
		return false;
	q->waiting[q->end++ % INQUIRIES] = *one;
	return true;
}

const struct inquiry *inquiries_next(const struct inquiries *q)
{
	return q->first != q->end && q->nr_asked < ASKER_PATIENT ? &q->waiting[q->first % INQUIRIES] : NULL;
}

void inquiries_asked(struct inquiries *q)
{
	q->asked[q->nr_asked++] = q->waiting[q->first++ % INQUIRIES];
}

bool inquiries_answered(struct inquiries *q, const struct file_id *id, struct inquiry *out)
{
	for (uint32_t i = 0; i < q->nr_asked; i++) {
		if (!same(&q->asked[i].file.id, id))
			continue;
		*out = q->asked[i];
		memmove(&q->asked[i], &q->asked[i + 1], (--q->nr_asked - i) * sizeof(q->asked[0]));
		return true;
	}
	return false;
}

bool inquiries_wait(const struct inquiries *q, const struct file_id *id)
{
	for (uint64_t at = q->first; at != q->end; at++)
		if (same(&q->waiting[at % INQUIRIES].file.id, id))
			return true;
	return false;
}

bool inquiries_have(const struct inquiries *q, const struct file_id *id)
{
	for (uint32_t i = 0; i < q->nr_asked; i++)
		if (same(&q->asked[i].file.id, id))
			return true;
	return inquiries_wait(q, id);
}

bool inquiries_changed(struct inquiries *q, const struct file_id *id, bool shared)
{
	bool any = false;

	for (uint32_t i = 0; i < q->nr_asked; i++) {
		if (!same(&q->asked[i].file.id, id))
			continue;
		q->asked[i].changed = true;
		q->asked[i].shared |= shared;
		any = true;
	}
	return any;
}

bool inquiries_dead(struct inquiries *q, const struct file_id *id, bool told)
{
	bool any = false;

	for (uint32_t i = 0; i < q->nr_asked; i++) {
		if (!same(&q->asked[i].file.id, id))
			continue;
		q->asked[i].dead = true;
		q->asked[i].told |= told;
		any = true;
	}
	return any;
}
