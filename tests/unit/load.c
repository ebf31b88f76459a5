// SPDX-License-Identifier: GPL-2.0-or-later
/* A region that is loaded without what an open discard took of it is counted anew, also where no record may say so. */
#include "core_lib.h"
#include "kernel.h"

#include "../../kmod/load.c"

/* Stages that are not asked of a region which has a good page. They are not there: a call of one ends the test. */
#pragma weak tr_array_free
#pragma weak tr_credit_force__f
#pragma weak tr_mode_lower
#pragma weak tr_region_grow
#pragma weak tr_region_mark_dirty__f
#pragma weak tr_region_packs_grow
#pragma weak tr_table_page_make

#define THIS	5
#define NR	20			/* of its blocks */
#define SEQ	100			/* of its page */

static struct terrace *tr;
static struct tr_region *slot;
static u64 page[2 * TERRACE_BLOCK_BYTES / sizeof(u64)];
static u64 discard;			/* the newest one over it */
static u32 records, marks;

/* ---- the stages around it -------------------------------------------------------------- */

void *tr_page_get(struct terrace *volume) { return kzalloc(sizeof(page), GFP_KERNEL); }
void tr_page_put(struct terrace *volume, void *memory) { kfree(memory); }

int tr_page_read(struct terrace *volume, enum terrace_tree id, u32 tier, u64 number, void *buf, struct tr_entry *entry)
{
	memcpy(buf, page, sizeof(page));
	*entry = (struct tr_entry){ .block = 1, .blocks = 1, .seq = SEQ };
	return 0;
}

struct tr_region *tr_region_alloc(struct terrace *volume, u64 number)
{
	struct tr_region *region = kzalloc(sizeof(*region), GFP_KERNEL);

	tr_leaf_init(&region->leaf);
	region->number = number;
	return region;
}

struct tr_array *tr_array_alloc(struct terrace *volume, u32 nr, bool high)
{
	struct tr_array *array = kzalloc(sizeof(*array) + nr * sizeof(u32), GFP_KERNEL);

	array->cap = nr;
	return array;
}

void tr_region_free(struct terrace *volume, struct tr_region *region)
{
	kfree(container_of(region->leaf.low, struct tr_array, low[0]));
	kfree(region);
}

u32 tr_region_forget__f(struct tr_region *region, u32 i, u32 n)
{
	tr_leaf_clear(&region->leaf, i, n);
	return 0;
}

u32 tr_region_unmap__f(struct terrace *volume, struct tr_region *region, u32 i, u32 n)
{
	tr_leaf_clear(&region->leaf, i, n);
	records++;
	return 1;
}

struct tr_packs *tr_region_packs(const struct tr_region *region) { return NULL; }
struct tr_region **tr_table_slot__f(struct terrace *volume, u64 number) { return &slot; }
struct tr_region *tr_region_find(struct terrace *volume, u64 number) { return slot; }
bool tr_region_pin(struct tr_region *region) { return true; }
void tr_region_put(struct tr_region *region) {}
u64 tr_discard_pending__f(struct terrace *volume, u64 number) { return discard; }
struct tr_delta *tr_recover_find_delta(struct terrace *volume, u64 number) { return NULL; }
void tr_recover_drop_delta(struct terrace *volume, u64 number, struct tr_delta *delta) {}
void tr_memory_check(struct terrace *volume) {}
void tr_journal_unreserve(struct terrace *volume, u32 credits) {}
int tr_journal_reserve_wait(struct terrace *volume, u32 credits) { return 0; }

void tr_summary_loaded(struct terrace *volume, u64 number, bool changed)
{
	assert_non_null(slot);		/* there first: see refresh() */
	marks += changed;
}

/* ---- a region with a page ------------------------------------------------------------------ */

static int setup(void **state)
{
	struct tr_region *region;

	tr = kzalloc(sizeof(*tr), GFP_KERNEL);
	tr->nr_tiers = 1;
	tr->tier[0].data_blocks = 1000;
	tr->summary = (struct tr_summary *)tr;	/* there is one */
	region = tr_region_alloc(tr, THIS);
	assert_int_equal(tr_leaf_replace(&region->leaf, tr_array_alloc(tr, NR, false)->low, NULL, NR), 0);
	assert_int_equal(tr_leaf_set(&region->leaf, 0, NR, tr_place(0, 100)), 0);
	tr_map_encode(page, &region->leaf, NULL, 0);
	tr_region_free(tr, region);
	discard = records = marks = 0;
	return 0;
}

static int teardown(void **state)
{
	tr_region_free(tr, slot);
	slot = NULL;
	kfree(tr);
	return 0;
}

static void one_that_is_as_its_page_says_is_not(void **state)
{
	discard = SEQ - 1;
	tr_region_put(tr_region_get(tr, THIS, false));
	assert_int_equal(slot->leaf.nr, NR);
	assert_int_equal(marks, 0);
}

static void what_a_discard_took_is(void **state)
{
	discard = SEQ + 1;
	tr_region_put(tr_region_get(tr, THIS, false));
	assert_int_equal(slot->leaf.nr, 0);
	assert_int_equal(records, 1);
	assert_int_equal(marks, 1);
}

static void so_it_is_on_a_volume_that_is_read_only(void **state)
{
	discard = SEQ + 1;
	tr->mode = TR_MODE_READ_ONLY;
	tr_region_put(tr_region_get(tr, THIS, false));
	assert_int_equal(slot->leaf.nr, 0);
	assert_int_equal(records, 0);
	assert_int_equal(marks, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_that_is_as_its_page_says_is_not, setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_discard_took_is, setup, teardown),
		cmocka_unit_test_setup_teardown(so_it_is_on_a_volume_that_is_read_only, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
