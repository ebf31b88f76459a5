// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What each write is, from where it goes; which stage of a commit that makes;
 * and how many states there were of each record type, mode of a move and stage.
 *
 * The types are those of the newest journal block that was begun before the
 * cut. With a block that is not durable the state says whether it is there,
 * lost or torn. A mode lasts from one mark "mode NAME" to the next.
 */
#include <string.h>

#include "ctl/volume.h"
#include "core/journal_block.h"
#include "explore.h"

#define ENOUGH 50u	/* states of each type, mode and stage */

const char * const write_kind_names[NR_WRITE_KINDS] = {
	"other", "label", "super", "journal", "bitmap", "page", "slot", "shelf", "home",
};

static const char * const stage_names[NR_STAGES] = {
	[STAGE_DATA] = "data", [STAGE_FLUSH] = "flush", [STAGE_FLUSHED] = "flushed", [STAGE_LOST] = "lost",
	[STAGE_TORN] = "torn", [STAGE_THERE] = "there", [STAGE_COMMITTED] = "durable", [STAGE_FREED] = "freed",
	[STAGE_PAGES] = "pages", [STAGE_SUPER] = "super", [STAGE_TAIL] = "tail",
};

static const char * const type_names[NR_TYPES] = {
	"(none)", "map", "unmap", "discard", "resize", "pack-add", "pack-drop", "home-set", "home-clear", "clean", "packed",
	"packed-mask", "index-add", "index-drop", "?", "?",
};

/* Modes stay: they number the columns of the counts. */
void kinds_init(struct kinds *k)
{
	memset(k->layout, 0, sizeof(k->layout));
	k->journal_blocks = 0;
	k->bitmap_blocks = 0;
	k->types = 1;
	k->stage = STAGE_DATA;
	kinds_mode(k, "none");
}

/* ---- counts of several records ------------------------------------------------------ */

struct counts_head {
	char mode[MAX_MODES][16];
	u32 nr_modes, bytes;
};

void kinds_load(struct kinds *k, struct counts *c, const char *path)
{
	struct counts_head head;
	FILE *f = fopen(path, "r");

	if (!f)
		return;		/* the first record */
	if (fread(&head, sizeof(head), 1, f) != 1 || head.bytes != sizeof(*c) || fread(c, sizeof(*c), 1, f) != 1)
		give_up("%s: no counts", path);
	memcpy(k->mode, head.mode, sizeof(k->mode));
	k->nr_modes = head.nr_modes;
	fclose(f);
}

void kinds_save(const struct kinds *k, const struct counts *c, const char *path)
{
	struct counts_head head = { .nr_modes = k->nr_modes, .bytes = sizeof(*c) };
	FILE *f = fopen(path, "w");

	memcpy(head.mode, k->mode, sizeof(head.mode));
	if (!f || fwrite(&head, sizeof(head), 1, f) != 1 || fwrite(c, sizeof(*c), 1, f) != 1 || fclose(f))
		give_up("%s: cannot be written", path);
}

/* ---- where things are -------------------------------------------------------------- */

static void take_super(struct kinds *k, const struct image *i, const struct tr_label *label)
{
	for (u32 copy = 0; copy < 2; copy++) {
		struct tr_super super;

		if (tr_super_decode(&super, i->bytes + (label->meta_start + copy) * TERRACE_BLOCK_BYTES))
			continue;
		k->journal_start = super.journal_start;
		k->journal_blocks = super.journal_blocks;
		k->bitmap_start[0] = super.bitmap_start[0];
		k->bitmap_start[1] = super.bitmap_start[1];
		k->bitmap_blocks = super.bitmap_blocks;
	}
}

void kinds_layout(struct kinds *k, const struct world *w)
{
	for (u32 i = 0; i < w->nr_images; i++) {
		struct layout *l = &k->layout[i];
		struct tr_label label;

		l->known = !tr_label_decode(&label, w->image[i].bytes);
		if (!l->known)
			continue;
		l->data_start = label.data_start;
		l->meta_start = label.meta_start;
		l->meta_blocks = label.meta_blocks;
		l->tier_kind = label.kind;
		if (label.meta_blocks)
			take_super(k, &w->image[i], &label);
	}
}

static u32 meta_kind(const struct kinds *k, u64 block)
{
	if (block < TR_JOURNAL_START)
		return W_SUPER;
	if (block - k->journal_start < k->journal_blocks)
		return W_JOURNAL;
	if (block - k->bitmap_start[0] < k->bitmap_blocks || block - k->bitmap_start[1] < k->bitmap_blocks)
		return W_BITMAP;
	return W_PAGE;
}

u32 kinds_of(const struct kinds *k, const struct drive_record *r)
{
	const struct layout *l = &k->layout[r->drive];
	u64 block = r->start / TERRACE_BLOCK_BYTES;

	if ((r->kind != RECORD_WRITE && r->kind != RECORD_ZERO) || !l->known)
		return W_OTHER;
	if (block < TERRACE_LABEL_COPIES)
		return W_LABEL;
	if (block >= l->meta_start && block - l->meta_start < l->meta_blocks)
		return meta_kind(k, block - l->meta_start);
	if (block < l->data_start)
		return W_OTHER;
	return l->tier_kind == TERRACE_KIND_SHELVES ? W_SHELF : l->tier_kind == TERRACE_KIND_HOME ? W_HOME : W_SLOT;
}

/* ---- stages ---------------------------------------------------------------------------- */

static bool is_meta(u32 kind)
{
	return kind == W_PAGE || kind == W_BITMAP;
}

static bool under_way(const struct world *w, bool (*is)(u32 kind))
{
	for (u32 n = 0; n < w->nr_pending; n++)
		if (is(w->pending[n].kind))
			return true;
	return false;
}

static bool is_journal(u32 kind)
{
	return kind == W_JOURNAL;
}

static bool is_super(u32 kind)
{
	return kind == W_SUPER;
}

static void read_types(struct kinds *k, const struct drive_record *r)
{
	const struct terrace_journal_disk *block = log_data(r);
	struct tr_record record;

	if (r->kind != RECORD_WRITE || r->data_bytes < sizeof(*block) || block->magic != TERRACE_JOURNAL_MAGIC)
		return;
	k->types = 0;
	for (u32 n = 0; n < r->data_bytes / sizeof(*block); n++)
		for (u32 i = 0; i < tr_jblock_nr(block + n) && i < TERRACE_RECORDS_PER_BLOCK; i++) {
			tr_jblock_record(block + n, i, &record);
			k->types |= 1u << (record.type % NR_TYPES);
		}
	if (!k->types)
		k->types = 1;
}

static enum stage stage_after(const struct kinds *k, const struct world *w, const struct drive_record *r, u32 kind)
{
	switch (r->kind) {
	case RECORD_ZERO:
		return k->stage == STAGE_COMMITTED || k->stage == STAGE_TAIL ? STAGE_FREED : k->stage;
	case RECORD_WRITE:
		return kind == W_SLOT || kind == W_SHELF || kind == W_HOME ? STAGE_DATA : k->stage;
	case RECORD_FLUSHED:
		return k->stage == STAGE_DATA ? STAGE_FLUSHED : k->stage;
	case RECORD_DONE:
		if (!(r->flags & RECORD_DURABLE))
			return k->stage;
		for (u32 n = 0; n < w->nr_pending; n++)
			if (w->log->record[w->pending[n].at]->id == r->id)
				return w->pending[n].kind == W_JOURNAL ? STAGE_COMMITTED :
				       w->pending[n].kind == W_SUPER ? STAGE_TAIL : k->stage;
		return k->stage;
	default:
		return k->stage;
	}
}

void kinds_step(struct kinds *k, const struct world *w, const struct drive_record *r, u32 kind)
{
	k->stage = stage_after(k, w, r, kind);
	if (kind == W_JOURNAL)
		read_types(k, r);
	if (kind == W_LABEL || r->kind == RECORD_DRIVE)
		kinds_layout(k, w);
}

bool kinds_turns(const struct kinds *k, const struct drive_record *r, u32 kind)
{
	if (r->kind == RECORD_FLUSH || kind == W_JOURNAL || kind == W_SUPER)
		return true;
	if (r->kind != RECORD_WRITE && r->kind != RECORD_ZERO)
		return false;
	return k->stage == STAGE_COMMITTED || k->stage == STAGE_FREED || k->stage == STAGE_TAIL;
}

static enum stage stage_of(const struct kinds *k, const struct world *w)
{
	for (u32 n = w->nr_pending; n-- > 0;)
		if (is_journal(w->pending[n].kind))
			return w->pending[n].fate == FATE_LOST ? STAGE_LOST : w->pending[n].fate == FATE_TORN ? STAGE_TORN : STAGE_THERE;
	if (under_way(w, is_super))
		return STAGE_SUPER;
	if (under_way(w, is_meta))
		return STAGE_PAGES;
	return w->nr_flushes ? STAGE_FLUSH : k->stage;
}

/* ---- modes, and the table ------------------------------------------------------------------ */

void kinds_mode(struct kinds *k, const char *name)
{
	for (k->now = 0; k->now < k->nr_modes; k->now++)
		if (!strcmp(k->mode[k->now], name))
			return;
	if (k->nr_modes == MAX_MODES)
		give_up("too many modes");
	snprintf(k->mode[k->nr_modes++], sizeof(k->mode[0]), "%s", name);
}

void kinds_count(const struct kinds *k, const struct world *w, struct counts *c)
{
	enum stage stage = stage_of(k, w);

	for (u32 t = 0; t < NR_TYPES; t++)
		if (k->types >> t & 1)
			__atomic_add_fetch(&c->cell[t][k->now][stage], 1, __ATOMIC_RELAXED);
}

void kinds_pick(const struct kinds *k, const struct world *w, struct picks *picks, u64 random, struct picked state)
{
	enum stage stage = stage_of(k, w);

	for (u32 t = 0; t < NR_TYPES; t++) {
		struct picked *p = &picks->cell[t][k->now][stage];

		if (!(k->types >> t & 1))
			continue;
		state.nr = __atomic_add_fetch(&p->nr, 1, __ATOMIC_RELAXED);
		random = stamp_mix(random);
		if ((random >> 8) % state.nr == 0)
			*p = state;
	}
}

/* Of all that this state is one of there are states enough. */
bool kinds_enough(const struct kinds *k, const struct world *w, const struct counts *c)
{
	enum stage stage = stage_of(k, w);

	for (u32 t = 0; t < NR_TYPES; t++)
		if (k->types >> t & 1 && __atomic_load_n(&c->cell[t][k->now][stage], __ATOMIC_RELAXED) < ENOUGH)
			return false;
	return true;
}

static bool any_of(const struct counts *c, u32 type, u32 mode)
{
	for (u32 s = 0; s < NR_STAGES; s++)
		if (c->cell[type][mode][s])
			return true;
	return false;
}

u64 kinds_of_type(const struct counts *c, const char *name, size_t len)
{
	u64 nr = 0;
	u32 t = 0;

	while (t < NR_TYPES && (strlen(type_names[t]) != len || memcmp(type_names[t], name, len)))
		t++;
	if (t == NR_TYPES)
		give_up("no record type '%.*s'", (int)len, name);
	for (u32 m = 0; m < MAX_MODES; m++)
		for (u32 s = 0; s < NR_STAGES; s++)
			nr += c->cell[t][m][s];
	return nr;
}

/* Of the stages that were met those with too few states. */
static void print_few(const struct kinds *k, const struct counts *c)
{
	u32 few = 0, enough = 0;

	for (u32 t = 0; t < NR_TYPES; t++)
		for (u32 m = 0; m < k->nr_modes; m++)
			for (u32 s = 0; s < NR_STAGES; s++) {
				u32 n = c->cell[t][m][s];

				enough += n >= ENOUGH;
				if (!n || n >= ENOUGH)
					continue;
				few++;
				printf("few: %s, %s, %s: %u\n", type_names[t], k->mode[m], stage_names[s], n);
			}
	printf("explore: of the stages that were met %u have %u states or more, %u fewer\n", enough, ENOUGH, few);
}

void kinds_print_picks(const struct kinds *k, const struct picks *picks)
{
	for (u32 t = 0; t < NR_TYPES; t++)
		for (u32 m = 0; m < k->nr_modes; m++)
			for (u32 s = 0; s < NR_STAGES; s++) {
				const struct picked *p = &picks->cell[t][m][s];

				if (p->nr)
					printf("pick: %u %u %s, %s, %s\n", p->at, p->state, type_names[t], k->mode[m], stage_names[s]);
			}
}

/* One line per type and mode that were met, with the states in each stage. */
void kinds_print(const struct kinds *k, const struct counts *c)
{
	printf("%-11s %-10s", "record", "mode");
	for (u32 s = 0; s < NR_STAGES; s++)
		printf(" %7s", stage_names[s]);
	putchar('\n');
	for (u32 t = 0; t < NR_TYPES; t++)
		for (u32 m = 0; m < k->nr_modes; m++) {
			if (!any_of(c, t, m))
				continue;
			printf("%-11s %-10s", type_names[t], k->mode[m]);
			for (u32 s = 0; s < NR_STAGES; s++)
				printf(" %7u", c->cell[t][m][s]);
			putchar('\n');
		}
	print_few(k, c);
}
