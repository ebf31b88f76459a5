// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What repair found, range by range.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "repair.h"

/*
 * Doubtful blocks are never kept: their places may hold another block's data.
 * From shelves alone all there is is possibly older; who asks for it knows.
 */
bool repair_keeps(const struct repair *rp, u64 at)
{
	switch (rb_state(at)) {
	case RB_CERTAIN:
		return true;
	case RB_OLDER:
		return rp->accept_older || rp->from_shelves;
	default:
		return false;
	}
}

static void print_range(struct repair *rp, const char *what, u64 block, u64 nr, const char *why)
{
	if (rp->ranges) {
		struct json_object *o = json_object_new_object();

		json_object_object_add(o, "what", json_object_new_string(what));
		json_object_object_add(o, "block", json_object_new_uint64(block));
		json_object_object_add(o, "blocks", json_object_new_uint64(nr));
		json_object_object_add(o, "why", json_object_new_string(why));
		json_object_array_add(rp->ranges, o);
		return;
	}
	if (rp->limit && rp->printed++ >= rp->limit)
		return;
	printf("%s: blocks %llu-%llu (%llu): %s\n", what, block, block + nr - 1, nr, why);
}

static void report_run(void *ctx, u64 block, u64 nr, u64 at)
{
	struct repair *rp = ctx;
	const char *why = rb_source_text(rb_source(at));

	if (rb_state(at) == RB_CERTAIN)
		return;
	if (rb_state(at) == RB_LOST) {
		rp->lost += nr;
		print_range(rp, "lost", block, nr, why);
	} else if (!repair_keeps(rp, at)) {
		rp->dropped += nr;
		print_range(rp, rb_state(at) == RB_OLDER ? "lost (a possibly older value is there)" :
			    "lost (doubtful)", block, nr, why);
	} else if (!rp->from_shelves) {
		print_range(rp, "kept, possibly older", block, nr, why);
	}
}

/* ---- shelves against the map ---------------------------------------------------------- */

enum difference { SAME, NEWER, ONLY_SHELVES, ONLY_MAP };

/* The record number of a claim is an upper bound, so "newer" is what may be. */
static enum difference differs(const struct repair *rp, u64 block)
{
	const struct rb_region *region = rp->rb.region[block / TERRACE_REGION_BLOCKS];
	const struct rb_region *known = rp->map.region[block / TERRACE_REGION_BLOCKS];
	u64 shelf = rb_at(&rp->rb, block), map = rb_at(&rp->map, block), seq;

	if (!rb_somewhere(shelf))
		return rb_somewhere(map) ? ONLY_MAP : SAME;
	if (rb_pack(shelf) && rb_pack(map) ?
	    region->pack[rb_pack(shelf) - 1].ref.id == known->pack[rb_pack(map) - 1].ref.id :
	    !rb_pack(shelf) && rb_place(shelf) == rb_place(map))
		return SAME;
	seq = region->claim_seq ? region->claim_seq[block % TERRACE_REGION_BLOCKS] - 1 : 0;
	if (seq > (known ? known->seq : rp->super.tail_record_seq) && rb_source(map) != RB_JOURNAL)
		return NEWER;
	return ONLY_SHELVES;
}

static void report_difference(struct repair *rp, enum difference d, u64 block, u64 nr)
{
	switch (d) {
	case NEWER:
		rp->newer += nr;
		print_range(rp, "newer", block, nr, "on the shelves than in the map");
		break;
	case ONLY_SHELVES:
		rp->only_shelves += nr;
		print_range(rp, "older", block, nr, "the map has a newer place, or none any more");
		break;
	case ONLY_MAP:
		rp->only_map += nr;
		print_range(rp, "lost", block, nr, "the map has them, no shelf does");
		break;
	default:
		break;
	}
}

static void compare_with_map(struct repair *rp)
{
	enum difference last = SAME;
	u64 from = 0;

	for (u64 b = 0; b < rp->rb.virtual_blocks; b++) {
		u64 r = b / TERRACE_REGION_BLOCKS;
		enum difference now = SAME;

		if (rp->rb.region[r] || rp->map.region[r])
			now = differs(rp, b);
		if (now == last)
			continue;
		report_difference(rp, last, from, b - from);
		last = now;
		from = b;
	}
	report_difference(rp, last, from, rp->rb.virtual_blocks - from);
	rp->lost += rp->only_map;
}

void repair_report(struct repair *rp)
{
	const struct rebuild *rb = &rp->rb;

	rb_runs(rb, false, report_run, rp);
	if (rp->from_shelves && rp->map.have_map)
		compare_with_map(rp);
	if (rb->first_lost && rb->last_lost < rb->first_lost && !rp->json)
		printf("note: the journal may lack records from %llu on: blocks that the map has nowhere may have been written\n",
		       rb->first_lost);
	else if (rb->first_lost && !rp->json)
		printf("note: the journal lacks records %llu-%llu: blocks that the map has nowhere may have been written\n",
		       rb->first_lost, rb->last_lost);
	if (rb->torn_end && !rp->json)
		puts(RB_TORN_NOTE);
	if (rb->ties && !rp->json)
		printf("note: of %llu claims of shelves it is uncertain which of two is newer\n", rb->ties);
	if (rb->beyond && !rp->json)
		printf("note: %llu claims are about blocks behind the end of the volume\n", rb->beyond);
	if (rp->limit && rp->printed > rp->limit)
		printf("... and %llu more ranges\n", rp->printed - rp->limit);
}

/* ---- the end ------------------------------------------------------------------------------ */

bool repair_blind(const struct repair *rp)
{
	return rp->from_shelves && !rp->map.have_map;
}

static void print_json(const struct repair *rp, u64 kept, bool written)
{
	struct json_object *o = json_object_new_object();
	const struct {
		const char *name;
		u64 value;
	} number[] = {
		{ "mapped_blocks", kept }, { "lost_blocks", rp->lost },
		{ "dropped_blocks", rp->dropped }, { "newer_blocks", rp->newer },
		{ "older_blocks", rp->only_shelves }, { "uncertain_claims", rp->rb.ties },
		{ "packs_found", rp->rb.packs_found },
		{ "first_lost_record", rp->rb.first_lost }, { "last_lost_record", rp->rb.last_lost },
	};

	json_object_object_add(o, "name", json_object_new_string(rp->vol.name));
	json_object_object_add(o, "uuid", json_object_new_string(uuid_text(rp->vol.uuid)));
	json_object_object_add(o, "written", json_object_new_boolean(written));
	json_object_object_add(o, "losses_known", json_object_new_boolean(!repair_blind(rp)));
	for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++)
		json_object_object_add(o, number[i].name, json_object_new_uint64(number[i].value));
	json_object_object_add(o, "ranges", json_object_get(rp->ranges));
	ctl_json_print(o);
}

void repair_print_summary(const struct repair *rp, u64 kept, bool written)
{
	if (rp->json) {
		print_json(rp, kept, written);
		return;
	}
	printf("volume '%s' (%s): ", rp->vol.name, uuid_text(rp->vol.uuid));
	if (written)
		printf("%llu blocks mapped; ", kept);
	if (rp->lost + rp->dropped)
		printf("%llu blocks lost, of %llu of them a value is left that may be outdated\n",
		       rp->lost + rp->dropped, rp->dropped);
	else if (repair_blind(rp))
		puts("what was in slots is lost, which cannot be listed without a map; any block may be older than its last write");
	else
		puts("nothing lost");
	if (written && rp->to)
		printf("activate it with the new metadata device: terracectl activate");
	for (u32 i = 0; written && rp->to && i < rp->vol.nr_devices; i++)
		if (rp->vol.label[i].tier_index != TERRACE_META_DEVICE)
			printf(" %s", rp->vol.dev[i].path);
	if (written && rp->to)
		printf(" %s\n", rp->to);
}
