// SPDX-License-Identifier: GPL-2.0
/*
 * Geometry: where everything goes on the devices of a new volume.
 *
 * The metadata area must be sized before the data area it describes is known
 * (both may share tier 0), so it is sized for whole devices: an upper bound,
 * and no iteration.
 */
#include <linux/errno.h>
#include <linux/string.h>

#include "geometry.h"

static u64 div_up(u64 n, u64 by)
{
	return n / by + (n % by != 0);
}

static u64 round_to(u64 n, u64 unit)
{
	return div_up(n, unit) * unit;
}

static int fail(struct tr_plan_fault *fault, enum tr_plan_error error, u32 device, u64 have,
		u64 need)
{
	fault->error = error;
	fault->device = device;
	fault->have = have;
	fault->need = need;
	return -EINVAL;
}

/* ---- what is asked for ---------------------------------------------------- */

/* Lower is faster; drives of one rank may come in any order. */
static u32 class_rank(u32 class)
{
	switch (class) {
	case TERRACE_CLASS_OPTANE:
		return 0;
	case TERRACE_CLASS_NVME:
		return 1;
	case TERRACE_CLASS_QLC:
	case TERRACE_CLASS_CSD:
		return 2;
	default:
		return 3;
	}
}

bool tr_comparable(u32 class, u32 other)
{
	return class == other || (class_rank(class) <= 1 && class_rank(other) <= 1);
}

static int check_align(const struct tr_plan_device *dev, u32 nr, struct tr_plan_fault *fault)
{
	u32 align = dev->align_blocks;

	if (!align || align > TERRACE_CHUNK_BLOCKS || (align & (align - 1)))
		return fail(fault, TR_PLAN_ALIGN, nr, align, TERRACE_CHUNK_BLOCKS);
	return 0;
}

static int check_tier(const struct tr_plan_args *args, u32 nr, struct tr_plan_fault *fault)
{
	const struct tr_plan_device *dev = &args->tier[nr];

	if (dev->class < TERRACE_CLASS_OPTANE || dev->class > TERRACE_CLASS_NET)
		return fail(fault, TR_PLAN_CLASS, nr, dev->class, 0);
	if (dev->kind < TERRACE_KIND_SLOTS || dev->kind > TERRACE_KIND_HOME)
		return fail(fault, TR_PLAN_KIND, nr, dev->kind, 0);
	if (nr && class_rank(dev->class) < class_rank(dev[-1].class))
		return fail(fault, TR_PLAN_ORDER, nr, dev->class, dev[-1].class);
	if (dev->blocks > TERRACE_MAX_PLACE_INDEX)
		return fail(fault, TR_PLAN_TOO_BIG, nr, dev->blocks, TERRACE_MAX_PLACE_INDEX);
	return check_align(dev, nr, fault);
}

static int check_args(const struct tr_plan_args *args, struct tr_plan_fault *fault)
{
	bool slots = false;
	u32 i;
	int r;

	if (args->nr_tiers < TR_MIN_TIERS)
		return fail(fault, TR_PLAN_TIERS, TR_NO_DEVICE, args->nr_tiers, TR_MIN_TIERS);
	if (args->nr_tiers > TERRACE_MAX_TIERS)
		return fail(fault, TR_PLAN_TIERS, TR_NO_DEVICE, args->nr_tiers, TERRACE_MAX_TIERS);
	for (i = 0; i < args->nr_tiers; i++) {
		r = check_tier(args, i, fault);
		if (r)
			return r;
		slots |= args->tier[i].kind == TERRACE_KIND_SLOTS;
	}
	if (!slots)
		return fail(fault, TR_PLAN_NO_SLOTS, TR_NO_DEVICE, 0, 1);
	if (args->journal_blocks && args->journal_blocks < TR_JOURNAL_MIN)
		return fail(fault, TR_PLAN_JOURNAL, TR_NO_DEVICE, args->journal_blocks,
			    TR_JOURNAL_MIN);
	if (args->journal_blocks > TR_JOURNAL_MAX)
		return fail(fault, TR_PLAN_JOURNAL, TR_NO_DEVICE, args->journal_blocks,
			    TR_JOURNAL_MAX);
	if (args->reserve_permille > TR_RESERVE_MAX_PERMILLE)
		return fail(fault, TR_PLAN_RESERVE, TR_NO_DEVICE, args->reserve_permille,
			    TR_RESERVE_MAX_PERMILLE);
	if (args->virtual_blocks > TR_MAX_VIRTUAL_BLOCKS)
		return fail(fault, TR_PLAN_VIRTUAL_MAX, TR_NO_DEVICE, args->virtual_blocks,
			    TR_MAX_VIRTUAL_BLOCKS);
	if (args->overcommit_blocks > TR_MAX_VIRTUAL_BLOCKS)
		return fail(fault, TR_PLAN_VIRTUAL_MAX, TR_NO_DEVICE, args->overcommit_blocks,
			    TR_MAX_VIRTUAL_BLOCKS);
	return args->has_meta ? check_align(&args->meta, args->nr_tiers, fault) : 0;
}

/* ---- where the metadata goes ------------------------------------------------ */

/* The device next to the primary holds the mirror, synchronous if it can keep
 * up: no fsync waits for a hard disk unless that was asked for.
 */
static void choose_mirror(struct tr_plan *plan, const struct tr_plan_args *args)
{
	u32 next = args->has_meta ? 0 : 1;
	bool sync;

	if (args->has_meta)
		sync = class_rank(args->tier[next].class) <= 1;
	else
		sync = tr_comparable(args->tier[0].class, args->tier[next].class);
	plan->primary = args->has_meta ? args->nr_tiers : 0;
	plan->mirror = args->mirror == TR_MIRROR_NONE ? TR_NO_DEVICE : next;
	plan->mirror_lazy = args->mirror == TR_MIRROR_LAZY ||
			    (args->mirror == TR_MIRROR_AUTO && !sync);
}

/* Directory pages above @leaves scattered over @span: one level at a time, at
 * worst each leaf has a page of its own.
 */
static u64 dir_pages(u64 leaves, u64 span)
{
	u64 pages = 0;

	while (span > 1) {
		span = div_up(span, TERRACE_DIR_ENTRIES);
		pages += span < leaves ? span : leaves;
	}
	return pages;
}

/* What one batch of a checkpoint wants at once, on a volume of any size. */
#define PAGES_SPARE	256

/* Enough for every region that can be mapped at all, also after the volume
 * has grown to all its room; a quarter more, so that a checkpoint can write
 * the new copy of a page beside the old one.
 */
static u64 pages_area(const struct tr_plan_args *args)
{
	u64 raw = 0, regions, mapped, pages = 0;
	u32 i;

	for (i = 0; i < args->nr_tiers; i++) {
		u64 chunks = tr_chunks(args->tier[i].blocks);

		raw += div_up(args->tier[i].blocks, TERRACE_REGION_BLOCKS);
		pages += chunks + dir_pages(chunks, chunks);
	}
	regions = div_up(args->virtual_blocks, TERRACE_REGION_BLOCKS);
	if (!args->virtual_blocks)
		regions = raw + div_up(args->overcommit_blocks, TERRACE_REGION_BLOCKS);
	if (regions < raw)
		regions = raw;
	mapped = regions < 4 * raw ? regions : 4 * raw;
	pages += 2 * mapped + dir_pages(mapped, regions);
	return pages + pages / 4 + PAGES_SPARE;
}

static u64 journal_size(const struct tr_plan_args *args)
{
	u64 blocks = args->tier[0].blocks / TR_JOURNAL_SHARE;

	if (args->journal_blocks)
		return args->journal_blocks;
	if (blocks < TR_JOURNAL_MIN)
		return TR_JOURNAL_MIN;
	return blocks < TR_JOURNAL_MAX ? blocks : TR_JOURNAL_MAX;
}

static void lay_out_metadata(struct tr_super *super, const struct tr_plan_args *args)
{
	u64 pages = pages_area(args), bitmap = 0, total;

	super->journal_start = TR_JOURNAL_START;
	super->journal_blocks = journal_size(args);
	do {
		bitmap++;
		total = super->journal_start + super->journal_blocks + 2 * bitmap + pages;
	} while (bitmap * TERRACE_MBIT_BITS < total);
	super->bitmap_blocks = bitmap;
	super->bitmap_start[0] = super->journal_start + super->journal_blocks;
	super->bitmap_start[1] = super->bitmap_start[0] + bitmap;
	super->meta_blocks = total;
}

/* ---- how much room that leaves ------------------------------------------------ */

u64 tr_chunks(u64 data_blocks)
{
	return div_up(data_blocks, TERRACE_CHUNK_BLOCKS);
}

/* Of a full shelf: the owner table, and one owner block per 250 others. */
static u64 shelf_overhead(void)
{
	u64 rest = TERRACE_CHUNK_BLOCKS - TERRACE_TABLE_BLOCKS;

	return TERRACE_TABLE_BLOCKS + div_up(rest, TERRACE_OWNERS_PER_BLOCK + 1);
}

u64 tr_reserve(u32 kind, u64 data_blocks, u32 permille)
{
	u64 share = data_blocks / 1000 * permille + div_up(data_blocks % 1000 * permille, 1000);

	switch (kind) {
	case TERRACE_KIND_SLOTS:
		return share < TR_RESERVE_MIN ? TR_RESERVE_MIN : share;
	case TERRACE_KIND_SHELVES:
		return share + TR_RESERVE_SHELVES * TERRACE_CHUNK_BLOCKS +
		       tr_chunks(data_blocks) * shelf_overhead();
	default:
		return 0;
	}
}

/* The permille is not kept: at worst it comes out one larger. */
u64 tr_reserve_grown(u32 kind, u64 old_blocks, u64 old_reserve, u64 data_blocks)
{
	u32 permille = 0;

	while (permille < TR_RESERVE_MAX_PERMILLE &&
	       tr_reserve(kind, old_blocks, permille) < old_reserve)
		permille++;
	return tr_reserve(kind, data_blocks, permille);
}

/* Pages of all tiers' space, with their directories. */
static u64 space_pages(const struct tr_super *super)
{
	u64 pages = 0;
	u32 i;

	for (i = 0; i < super->nr_tiers; i++) {
		u64 chunks = tr_chunks(super->tier[i].data_blocks);

		pages += chunks + dir_pages(chunks, chunks);
	}
	return pages;
}

static u64 needed(const struct tr_super *super, u64 mapped, u64 regions)
{
	u64 pages = space_pages(super) + 2 * mapped + dir_pages(mapped, regions);

	return pages + pages / 16 + PAGES_SPARE;
}

u64 tr_pages_needed(const struct tr_super *super)
{
	u64 raw = 0, regions;
	u32 i;

	for (i = 0; i < super->nr_tiers; i++)
		raw += div_up(super->tier[i].data_blocks, TERRACE_REGION_BLOCKS);
	regions = div_up(super->virtual_blocks, TERRACE_REGION_BLOCKS);
	return needed(super, regions < 4 * raw ? regions : 4 * raw, regions);
}

bool tr_pages_scarce(const struct tr_super *super, u64 regions)
{
	return needed(super, regions, regions) > super->meta_blocks - tr_first_page(super);
}

u64 tr_dirs_above(const struct tr_super *super, u64 regions, u64 pages)
{
	u64 dirs = dir_pages(pages, regions);
	u32 i;

	for (i = 0; i < super->nr_tiers; i++)
		dirs += dir_pages(pages, tr_chunks(super->tier[i].data_blocks));
	return dirs;
}

u64 tr_pages_of_new(u64 nr, u64 regions)
{
	return nr + dir_pages(nr, regions);
}

u64 tr_pages_kept(const struct tr_super *super, u64 regions)
{
	u64 blocks = 0;
	u32 i;

	for (i = 0; i < super->nr_tiers; i++)
		blocks += super->tier[i].data_blocks;
	return space_pages(super) + blocks / TR_LONGER_PAGE +
	       TR_BATCH_BLOCKS + TR_BATCH_SLACK + tr_dirs_above(super, regions, TR_BATCH_PAGES);
}

u64 tr_room(const struct tr_super *super)
{
	u64 room = 0, homes = 0;
	u32 i;

	for (i = 0; i < super->nr_tiers; i++) {
		const struct tr_super_tier *tier = &super->tier[i];

		if (tier->kind != TERRACE_KIND_HOME)
			room += tier->data_blocks - tier->reserve_blocks;
		else if (tier->data_blocks > homes)
			homes = tier->data_blocks;
	}
	return room + homes;
}

/* ---- the plan ------------------------------------------------------------------- */

static bool holds_metadata(const struct tr_plan *plan, u32 nr)
{
	return nr == plan->primary || nr == plan->mirror;
}

static u32 label_flags(const struct tr_plan *plan, u32 nr, bool atomic)
{
	u32 flags = atomic ? TERRACE_LABEL_ATOMIC : 0;

	if (nr == plan->primary)
		flags |= TERRACE_LABEL_META;
	if (nr == plan->mirror)
		flags |= plan->mirror_lazy ? TERRACE_LABEL_META_LAZY : TERRACE_LABEL_META_SYNC;
	return flags;
}

/* What every device gets; data_start is also the end of the metadata. */
static void plan_label(struct tr_plan *plan, const struct tr_plan_args *args,
		       const struct tr_plan_device *dev, u32 nr)
{
	struct tr_label *label = &plan->label[nr];
	u64 unit = dev->align_blocks > TR_DATA_ALIGN ? dev->align_blocks : TR_DATA_ALIGN;
	u64 end = TR_META_START;

	label->version = TERRACE_FORMAT_VERSION;
	memcpy(label->volume_uuid, args->uuid, TERRACE_UUID_BYTES);
	memcpy(label->tier_uuid, dev->uuid, TERRACE_UUID_BYTES);
	memcpy(label->name, args->name, TERRACE_NAME_BYTES - 1);
	label->generation = 1;
	label->tier_index = nr;
	label->class = dev->class;
	label->kind = dev->kind;
	label->flags = label_flags(plan, nr, dev->atomic);
	label->atomic_bytes = dev->atomic_bytes;
	label->align_blocks = dev->align_blocks;
	label->device_blocks = dev->blocks;
	if (holds_metadata(plan, nr)) {
		label->meta_start = round_to(TR_META_START, dev->align_blocks);
		label->meta_blocks = plan->super.meta_blocks;
		end = label->meta_start + label->meta_blocks;
	}
	label->data_start = round_to(end, unit);
}

static int plan_tier(struct tr_plan *plan, const struct tr_plan_args *args, u32 nr,
		     struct tr_plan_fault *fault)
{
	const struct tr_plan_device *dev = &args->tier[nr];
	struct tr_super_tier *tier = &plan->super.tier[nr];
	struct tr_label *label = &plan->label[nr];
	u32 permille = args->reserve_permille ? args->reserve_permille : TR_RESERVE_PERMILLE;
	bool shelves = dev->kind == TERRACE_KIND_SHELVES;
	u64 least = shelves ? (TR_RESERVE_SHELVES + 1) * TERRACE_CHUNK_BLOCKS : TERRACE_REGION_BLOCKS;
	u64 data;

	plan_label(plan, args, dev, nr);
	if (dev->blocks < label->data_start + least)
		return fail(fault, TR_PLAN_TOO_SMALL, nr, dev->blocks, label->data_start + least);
	data = dev->blocks - label->data_start;
	if (shelves)
		data -= data % TERRACE_CHUNK_BLOCKS;
	label->data_blocks = data;

	memcpy(tier->uuid, dev->uuid, TERRACE_UUID_BYTES);
	tier->class = dev->class;
	tier->kind = dev->kind;
	tier->data_blocks = data;
	tier->reserve_blocks = tr_reserve(dev->kind, data, permille);
	if (tier->reserve_blocks >= data && dev->kind != TERRACE_KIND_HOME)
		return fail(fault, TR_PLAN_TOO_SMALL, nr, dev->blocks,
			    label->data_start + tier->reserve_blocks + TERRACE_CHUNK_BLOCKS);
	return 0;
}

static int plan_meta_device(struct tr_plan *plan, const struct tr_plan_args *args,
			    struct tr_plan_fault *fault)
{
	struct tr_plan_device dev = args->meta;
	struct tr_label *label = &plan->label[args->nr_tiers];
	u64 end;

	dev.class = TERRACE_CLASS_META;
	dev.kind = TERRACE_KIND_NONE;
	plan_label(plan, args, &dev, args->nr_tiers);
	label->tier_index = TERRACE_META_DEVICE;
	label->data_start = 0;
	end = label->meta_start + label->meta_blocks;
	if (dev.blocks < end)
		return fail(fault, TR_PLAN_TOO_SMALL, args->nr_tiers, dev.blocks, end);
	return 0;
}

/* By default all the room, in whole regions. */
static int plan_size(struct tr_plan *plan, const struct tr_plan_args *args,
		     struct tr_plan_fault *fault)
{
	struct tr_super *super = &plan->super;
	u64 room = tr_room(super), size = args->virtual_blocks;

	plan->room_blocks = room;
	if (!size) {
		size = room + args->overcommit_blocks;
		size -= size % TERRACE_REGION_BLOCKS;
	}
	if (!size || size > room + args->overcommit_blocks)
		return fail(fault, TR_PLAN_VIRTUAL, TR_NO_DEVICE, size,
			    room + args->overcommit_blocks);
	if (size > TR_MAX_VIRTUAL_BLOCKS)
		return fail(fault, TR_PLAN_VIRTUAL_MAX, TR_NO_DEVICE, size,
			    TR_MAX_VIRTUAL_BLOCKS);
	super->virtual_blocks = size;
	super->overcommit_blocks = size > room ? size - room : 0;
	super->map_depth = tr_dir_depth(div_up(size, TERRACE_REGION_BLOCKS));
	return 0;
}

static void plan_super(struct tr_super *super, const struct tr_plan_args *args)
{
	memcpy(super->volume_uuid, args->uuid, TERRACE_UUID_BYTES);
	super->generation = 2;
	super->flags = TERRACE_SUPER_CLEAN;
	super->nr_tiers = args->nr_tiers;
	super->region_shift = TERRACE_REGION_SHIFT;
	super->chunk_shift = TERRACE_CHUNK_SHIFT;
	super->tail_nonce = args->first_nonce;
	super->tail_prev_crc = args->first_crc;
	super->next_id = 1;
	lay_out_metadata(super, args);
}

int tr_plan_make(struct tr_plan *plan, const struct tr_plan_args *args,
		 struct tr_plan_fault *fault)
{
	u32 i;
	int r;

	memset(plan, 0, sizeof(*plan));
	fail(fault, TR_PLAN_OK, TR_NO_DEVICE, 0, 0);
	r = check_args(args, fault);
	if (r)
		return r;
	choose_mirror(plan, args);
	plan_super(&plan->super, args);
	plan->nr_devices = args->nr_tiers + args->has_meta;
	for (i = 0; i < args->nr_tiers; i++) {
		r = plan_tier(plan, args, i, fault);
		if (r)
			return r;
	}
	if (args->has_meta) {
		r = plan_meta_device(plan, args, fault);
		if (r)
			return r;
	}
	return plan_size(plan, args, fault);
}

int tr_plan_add(struct tr_plan *plan, const struct tr_plan_args *args, const struct tr_super *super,
		struct tr_plan_fault *fault)
{
	u32 nr = super->nr_tiers;
	u64 have, need;
	int r;

	memset(plan, 0, sizeof(*plan));
	fail(fault, TR_PLAN_OK, TR_NO_DEVICE, 0, 0);
	if (nr >= TERRACE_MAX_TIERS)
		return fail(fault, TR_PLAN_TIERS, TR_NO_DEVICE, nr + 1, TERRACE_MAX_TIERS);
	plan->super = *super;
	plan->primary = TR_NO_DEVICE;
	plan->mirror = TR_NO_DEVICE;
	r = check_tier(args, nr, fault);
	if (!r)
		r = plan_tier(plan, args, nr, fault);
	if (r)
		return r;
	plan->super.nr_tiers++;
	plan->super.generation++;
	plan->nr_devices = plan->super.nr_tiers;
	plan->room_blocks = tr_room(&plan->super);
	have = super->meta_blocks - tr_first_page(super);
	need = tr_pages_needed(&plan->super);
	return have < need ? fail(fault, TR_PLAN_PAGES, TR_NO_DEVICE, have, need) : 0;
}
