// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a power cut left, as the product would find it: the full offline check
 * must call it sound; then the map is read with the journal laid over it, as
 * salvage does, and every block that is somewhere, or was touched, must hold
 * what it may.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/ctl.h"
#include "ctl/rebuild.h"
#include "ctl/salvage.h"
#include "explore.h"
#include "../oracle/judge.h"

#define MAX_LINES 8u

extern const struct ctl_command ctl_check_command;

/* Those that have a label: others are not part of the volume yet, or no more. */
static int paths_of(const struct world *w, char **paths)
{
	struct tr_label label;
	int nr = 0;

	for (u32 i = 0; i < w->nr_images; i++) {
		const struct image *image = &w->image[i];

		if (!tr_label_decode(&label, image->bytes) ||
		    !tr_label_decode(&label, image->bytes + TERRACE_BLOCK_BYTES))
			paths[nr++] = (char *)image->path;
	}
	return nr;
}

/* ---- the offline check --------------------------------------------------------- */

/* Drives by their names. */
static void print_named(const struct world *w, const char *text, FILE *out)
{
	while (*text) {
		u32 i = 0;

		while (i < w->nr_images && strncmp(text, w->image[i].path, strlen(w->image[i].path)))
			i++;
		if (i < w->nr_images) {
			fputs(w->image[i].name, out);
			text += strlen(w->image[i].path);
		} else {
			fputc(*text++, out);
		}
	}
}

int recover_check(const struct world *w, FILE *out)
{
	char *argv[MAX_IMAGES + 5] = { "check", "--full", "--limit", "12" };
	int argc = 4 + paths_of(w, argv + 4), result;
	FILE *was_out = stdout, *was_err = stderr, *said;
	char *text = NULL;
	size_t size = 0;

	said = open_memstream(&text, &size);
	if (!said)
		give_up("no memory for what the check says");
	stdout = said;
	stderr = said;
	optind = 0;
	result = ctl_check_command.run(&ctl_check_command, argc, argv);
	stdout = was_out;
	stderr = was_err;
	fclose(said);
	if (result)
		print_named(w, text, out);
	free(text);
	return result;
}

/* ---- reading it ------------------------------------------------------------------ */

struct reader {
	const struct world *w;
	const struct promises *p;
	FILE *out;
	struct volume vol;
	struct findings findings;
	struct rebuild rb;
	struct unpack *unpack;
	u8 *slot, *packed;
	u64 wrong;
};

static void wrong(struct reader *r, const char *what)
{
	if (r->wrong++ < MAX_LINES)
		fprintf(r->out, "%s\n", what);
}

static void judge_block(struct reader *r, u64 block, const void *data)
{
	const char *what;
	uint64_t value;

	if (!r->p->ledger || block >= ledger_blocks(r->p->ledger))
		return;
	what = judge(r->p->ledger, block, data, true, UINT64_MAX, &value);
	if (what)
		wrong(r, what);
}

static void read_block(struct reader *r, u64 block, u64 at)
{
	u64 place = rb_place(at);
	const char *why;
	int err;

	if (place != TR_NO_PLACE) {
		err = volume_read_tier(&r->vol, tr_place_tier(place), tr_place_index(place), 1, r->slot);
		if (err) {
			wrong(r, where("block %llu cannot be read: %s", block, strerror(-err)));
			return;
		}
		judge_block(r, block, r->slot);
	}
	if (!rb_pack(at))
		return;
	why = unpack_block(r->unpack, block / TERRACE_REGION_BLOCKS, rb_pack(at), block % TERRACE_REGION_BLOCKS, r->packed);
	if (why)
		wrong(r, where("block %llu cannot be read: %s", block, why));
	else if (place == TR_NO_PLACE)
		judge_block(r, block, r->packed);
	else if (memcmp(r->slot, r->packed, TERRACE_BLOCK_BYTES))
		wrong(r, where("block %llu: the clean slot does not hold what its pack does", block));
}

/* Pack by pack: each is opened once. */
static void read_region(struct reader *r, u64 number)
{
	const struct rb_region *region = r->rb.region[number];

	for (u32 pack = 0; pack <= region->nr_packs; pack++)
		for (u32 i = 0; i < TERRACE_REGION_BLOCKS; i++) {
			u64 at = region->at[i], block = number * TERRACE_REGION_BLOCKS + i;

			if (!pack && rb_state(at) != RB_CERTAIN)
				wrong(r, where("block %llu is %s (%s)", block, rb_state_word(rb_state(at)),
					       rb_source_text(rb_source(at))));
			if (rb_pack(at) == pack && rb_somewhere(at))
				read_block(r, block, at);
		}
}

static void judge_nowhere(struct reader *r)
{
	static const u64 zeros[TERRACE_BLOCK_BYTES / sizeof(u64)];
	u64 blocks = r->p->ledger ? ledger_blocks(r->p->ledger) : 0;

	for (u64 b = 0; b < blocks; b++) {
		if (b >= r->rb.virtual_blocks) {
			wrong(r, where("the volume has %llu blocks only", r->rb.virtual_blocks));
			return;
		}
		if (ledger_touched(r->p->ledger, b) && !rb_somewhere(rb_at(&r->rb, b)))
			judge_block(r, b, zeros);
	}
}

static void read_all(struct reader *r)
{
	rb_init(&r->rb, &r->vol, r->vol.super, &r->findings);
	rb_read_map(&r->rb);
	rb_resolve(&r->rb);
	if (!r->rb.unmapped_certain || r->rb.alien)
		wrong(r, "blocks that are nowhere are not so for certain");
	if (r->p->size && r->rb.virtual_blocks * TERRACE_BLOCK_BYTES < r->p->size)
		wrong(r, where("the volume has %llu blocks, less than was acknowledged", r->rb.virtual_blocks));
	r->unpack->rb = &r->rb;
	for (u64 n = 0; n < r->rb.nr_regions; n++)
		if (r->rb.region[n])
			read_region(r, n);
	judge_nowhere(r);
}

static bool read_back(const struct world *w, const struct promises *p, FILE *out)
{
	struct reader *r = ctl_alloc(sizeof(*r));
	char *paths[MAX_IMAGES];
	int nr = paths_of(w, paths);
	bool good;

	r->w = w;
	r->p = p;
	r->out = out;
	r->unpack = ctl_alloc(sizeof(*r->unpack));
	r->slot = ctl_alloc_blocks(2);
	r->packed = r->slot + TERRACE_BLOCK_BYTES;
	findings_init(&r->findings, false, MAX_LINES);
	r->findings.out = out;
	if (volume_open(&r->vol, paths, nr, DEVICE_READ, &r->findings))
		wrong(r, "the volume cannot be read");
	else
		read_all(r);
	if (r->wrong > MAX_LINES)
		fprintf(out, "... %llu in all\n", r->wrong);
	good = !r->wrong;
	unpack_end(r->unpack);
	rb_free(&r->rb);
	volume_close(&r->vol);
	free(r->slot);
	free(r->unpack);
	free(r);
	return good;
}

bool recover(const struct world *w, const struct promises *p, FILE *out)
{
	bool sound = !recover_check(w, out);

	return read_back(w, p, out) && sound;
}
