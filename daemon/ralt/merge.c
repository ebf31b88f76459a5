// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The k-way merge; see merge.h.  There are seldom more than ten sources, so the
 * smallest head is found by looking at all of them.
 */
#include "ralt/merge.h"

static int advance(struct merge *m, uint32_t i)
{
	int got = m->sources[i].next(m->sources[i].ctx, &m->heads[i]);

	m->next[i] = got > 0 ? m->heads[i].block : MERGE_ENDED;
	m->consumed += got > 0;
	if (got < 0)
		m->failed = i;
	return got < 0 ? got : 0;
}

int merge_begin(struct merge *m, const struct ralt_judge *judge, const struct forget *forget,
		const struct merge_source *sources, uint32_t count)
{
	m->judge = judge;
	m->forget = forget;
	m->count = count;
	m->cursor = 0;
	m->consumed = 0;
	for (uint32_t i = 0; i < count; i++) {
		int err;

		m->sources[i] = sources[i];
		err = advance(m, i);
		if (err)
			return err;
	}
	return 0;
}

uint64_t merge_at(const struct merge *m)
{
	uint64_t block = MERGE_ENDED;

	for (uint32_t i = 0; i < m->count; i++)
		block = m->next[i] < block ? m->next[i] : block;
	return block;
}

/* Folds the heads for @block, newest source first; *@found says whether any was alive. */
static int fold(struct merge *m, uint64_t block, struct ralt_record *out, bool *found)
{
	*found = false;
	for (uint32_t i = m->count; i-- > 0;) {
		while (m->next[i] == block) {
			struct ralt_record *r = &m->heads[i];
			int err;

			if (!forget_covers(m->forget, &m->cursor, block, r->generation)) {
				if (*found)
					ralt_record_merge(m->judge, out, r);
				else
					*out = *r;
				*found = true;
			}
			err = advance(m, i);
			if (err)
				return err;
		}
	}
	return 0;
}

int merge_step(struct merge *m, struct ralt_record *out)
{
	uint64_t block = merge_at(m);
	bool found;
	int err;

	if (block == MERGE_ENDED)
		return 0;
	err = fold(m, block, out, &found);
	return err ? err : found ? 1 : 2;
}

int merge_next(struct merge *m, struct ralt_record *out)
{
	int got;

	do {
		got = merge_step(m, out);
	} while (got == 2);
	return got;
}
