// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The oracle's ledger once more, from its marks in the record.
 */
#include <stdlib.h>
#include <string.h>

#include "explore.h"

static void make_room(struct promises *p, u32 id)
{
	u32 room = p->room;

	if (id < room)
		return;
	while (room <= id)
		room = room * 2 + 1024;
	p->op = reallocarray(p->op, room, sizeof(*p->op));
	p->flush = reallocarray(p->flush, room, sizeof(*p->flush));
	if (!p->op || !p->flush)
		give_up("no memory for marks");
	memset(p->op + p->room, 0, (room - p->room) * sizeof(*p->op));
	memset(p->flush + p->room, 0, (room - p->room) * sizeof(*p->flush));
	p->room = room;
}

static void begin_run(struct promises *p, const struct mark *m)
{
	if (!p->ledger)
		p->ledger = ledger_create(m->count, m->version);
	if (ledger_salt(p->ledger) != m->version || ledger_blocks(p->ledger) != m->count)
		give_up("marks of two ledgers in one record");
	if (p->room) {
		memset(p->op, 0, p->room * sizeof(*p->op));
		memset(p->flush, 0, p->room * sizeof(*p->flush));
	}
}

void promises_mark(struct promises *p, const struct mark *m)
{
	if (m->kind == MARK_NEW) {
		begin_run(p, m);
		return;
	}
	if (m->kind == MARK_SEEN) {
		ledger_end(p->ledger, ledger_begin(p->ledger, m->first, m->count, m->version, false), true);
		p->sharpened++;
		return;
	}
	if (!p->ledger)
		give_up("a mark of an operation before that of a run");
	make_room(p, m->id);
	switch (m->kind) {
	case MARK_BEGIN:
		p->op[m->id] = ledger_begin(p->ledger, m->first, m->count, m->version, m->fua);
		break;
	case MARK_END:
		ledger_end(p->ledger, p->op[m->id], m->well);
		p->sharpened++;
		break;
	case MARK_FLUSH:
		p->flush[m->id] = ledger_flush_begin(p->ledger);
		break;
	case MARK_FLUSHED:
		if (m->well)
			ledger_flush_end(p->ledger, p->flush[m->id]);
		p->sharpened++;
		break;
	default:
		give_up("an unknown mark");
	}
}

void promises_cut(struct promises *p)
{
	if (p->ledger)
		ledger_crash(p->ledger);
	p->sharpened++;
}
