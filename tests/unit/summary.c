// SPDX-License-Identifier: GPL-2.0-or-later
/* A summary that says it is exact is, whenever its region comes and goes; one that is not says so, and keeps what was counted last. */
#include "core_lib.h"
#include "kernel.h"

/* ---- what only summaries need -------------------------------------------------------- */

#define PAGE_SHIFT			12
#define PAGE_ALIGN(bytes)		(((bytes) + 4095) & ~4095ull)
#define atomic64_add(n, v)		((void)((v)->counter += (n)))
#define atomic64_sub(n, v)		((void)((v)->counter -= (n)))
#define vmalloc_user			vmalloc
#define remap_vmalloc_range(vma, at, page)	((void)(vma), (void)(at), (void)(page), 0)
#define synchronize_rcu()		((void)0)
#define ktime_get()			0ll
#define ktime_ms_delta(a, b)		((a) - (b))
typedef s64 ktime_t;

#include "../../kmod/summary.c"

/*
 * summary.c whole; table of regions, their pages and what recovery left are played here.
 *
 * A region comes and goes while its summary is made: its change is marked, a worker counts a
 * moment later. Whatever the worker meets, of these one must hold when nobody has anything
 * left to do: the summary is not STALE and says what the region is; or it is STALE, the
 * region is not loaded, `fast` is that of its page.
 */
#define REGIONS		4
#define THIS		1		/* the region that the tests are about */
#define FIRST		1000		/* record of this activation */
#define FAST		0		/* tiers */
#define SLOW		1

struct played {
	struct tr_region region;
	u32 low[TERRACE_REGION_BLOCKS];
	struct tr_packs *packs;
	struct tr_entry page;		/* block 0: none */
	bool loaded, recovered;
	u32 next;			/* block that the next write is to */
};

static struct terrace *tr;
static struct workqueue_struct queue;
static struct played *of;
static struct vm_area_struct vma;
static u64 record;
static u32 finds, lookups, counts;
static bool gently;			/* whoever runs makes way for others */
static int unread;			/* the errno of a directory */
static u32 unchecked;			/* directories that came since memory was looked at last */
/* What others do: after the so manieth look into the table, while a directory is read. */
static void (*at_find)(void), (*at_lookup)(void);
static u32 at_find_nr;

/* ---- the stages around it -------------------------------------------------------------- */

struct tr_region *tr_region_find(struct terrace *volume, u64 number)
{
	struct tr_region *found = of[number].loaded ? &of[number].region : NULL;

	if (at_find && number == THIS && ++finds == at_find_nr)
		at_find();
	return found;
}

bool tr_region_pin(struct tr_region *region)
{
	counts++;
	region->pins++;
	return true;
}

void tr_region_put(struct tr_region *region) { region->pins--; }

struct tr_packs *tr_region_packs(const struct tr_region *region)
{
	return container_of(region, struct played, region)->packs;
}

int tr_page_lookup(struct terrace *volume, enum terrace_tree id, u32 tier, u64 number, struct tr_entry *entry)
{
	int err = unread ?: of[number].page.block ? 0 : -ENOENT;

	if (gently)
		fail_msg("who waits for pages_mutex waits for all that the worker makes way for");
	lookups++;
	unchecked++;
	*entry = of[number].page;
	if (at_lookup)
		at_lookup();
	return err;
}

struct tr_delta *tr_recover_find_delta(struct terrace *volume, u64 region)
{
	return of[region].recovered ? (struct tr_delta *)&of[region] : NULL;
}

/* 600 blocks were in each pack */
bool tr_index_peek(struct terrace *volume, u64 id, u32 *nr_blocks, u8 *codec)
{
	*nr_blocks = 600;
	return true;
}

bool tr_ranges_mask(struct terrace *volume, u64 region, u32 marks, u64 *mask) { return false; }
void tr_memory_check(struct terrace *volume)
{
	if (unchecked > 1)
		fail_msg("%u directories came at once", unchecked);
	unchecked = 0;
}

void tr_work_gently(struct terrace *volume) { gently = true; }
void tr_work_normally(void) { gently = false; }
void tr_give_way(void) { assert_true(gently); }

/* ---- what happens to a region ------------------------------------------------------------ */

static void load(u64 number)
{
	of[number].loaded = true;
	of[number].region.age = tr->tick;
	tr_summary_loaded(tr, number, false);
}

/* So many blocks more on the tier. */
static void write_to(u64 number, u32 nr, u32 tier)
{
	struct tr_region *region = &of[number].region;

	assert_true(of[number].loaded);
	spin_lock_irq(&region->lock);
	assert_int_equal(tr_leaf_set(&region->leaf, of[number].next, nr, tr_place(tier, 100)), 0);
	of[number].next += nr;
	region->age = tr->tick;
	region->last_seq = record++;
	tr_summary_touch(tr, number);
	spin_unlock_irq(&region->lock);
}

/* On shelves its place is another one afterwards. The rest is as it was. */
static void overwrite(u64 number)
{
	of[number].region.last_seq = record++;
	tr_summary_touch_later(tr, number);
}

static u32 on_fast(u64 number)
{
	u64 mask[TR_LEAF_WORDS] = {};

	tr_leaf_on_tiers(&of[number].region.leaf, BIT(FAST), mask);
	return bitmap_weight((unsigned long *)mask, TERRACE_REGION_BLOCKS);
}

static void checkpoint(u64 number)
{
	struct tr_region *region = &of[number].region;
	bool any = region->leaf.nr || of[number].packs;

	of[number].page = (struct tr_entry){
		.block = any, .blocks = any, .age = region->age, .seq = region->last_seq, .count = on_fast(number),
	};
}

static void evict(u64 number)
{
	assert_int_equal(of[number].region.pins, 0);
	of[number].loaded = false;
}

static void evict_this(void) { evict(THIS); }
static void load_this(void) { load(THIS); }

static const struct terrace_summary *says(u64 number) { return &tr->summary->entry[number]; }
static bool is_stale(u64 number) { return says(number)->flags & TERRACE_SUMMARY_STALE; }
static bool is_marked(u64 number) { return test_bit(number, tr->summary->changed); }

/* The worker has its turn: of what is marked now. */
static void work(void)
{
	summary_fn(&tr->summary->work.work);
	assert_false(gently);
}

static void work_later(void) { later_fn(&tr->summary->later_work.work); }

static void tick(void)
{
	tr->tick++;
	tr_summary_tick(tr);
	work();
}

/* Until nobody has anything to do. */
static void settle(void)
{
	at_find = at_lookup = NULL;
	kernel_locks = NULL;
	work_later();
	for (u32 i = 0; i < 3; i++)
		work();
	for (u64 number = 0; number < REGIONS; number++) {
		assert_false(is_marked(number));
		if (of[number].loaded)
			assert_false(is_stale(number));
		assert_int_equal(says(number)->fast, of[number].loaded ? on_fast(number) : of[number].page.count);
	}
}

/* ---- a volume ------------------------------------------------------------------------------ */

static int setup(void **state)
{
	tr = kzalloc(sizeof(*tr), GFP_KERNEL);
	of = kcalloc(REGIONS, sizeof(*of), GFP_KERNEL);
	tr->nr_regions = REGIONS;
	tr->meta_wq = &queue;
	tr->nr_tiers = 2;
	tr->tier[FAST].kind = TERRACE_KIND_SLOTS;
	tr->tier[SLOW].kind = TERRACE_KIND_SHELVES;
	tr->tunes.value[TR_TUNE_MEMORY_MB] = 100;
	tr->journal.first_record = record = FIRST;
	for (u64 number = 0; number < REGIONS; number++) {
		tr_leaf_init(&of[number].region.leaf);
		assert_int_equal(tr_leaf_replace(&of[number].region.leaf, of[number].low, NULL, TERRACE_REGION_BLOCKS), 0);
		of[number].region.number = number;
	}
	finds = lookups = counts = 0;
	gently = false;
	unread = unchecked = 0;
	tr->tick = 7;
	return 0;
}

static int teardown(void **state)
{
	at_find = at_lookup = NULL;
	kernel_locks = NULL;
	tr_summary_exit(tr);
	assert_int_equal(atomic64_read(&tr->memory), 0);
	for (u64 number = 0; number < REGIONS; number++)
		kfree(of[number].packs);
	kfree(of);
	kfree(tr);
	return 0;
}

static void map_summaries(void) { assert_int_equal(tr_summary_map(tr, &vma, 0), 0); }

/* It has 20 fast blocks, 30 loose ones, and 500 in a pack of 600, 8 of which have a clean slot; that is counted. */
static void counted(void)
{
	struct tr_pack pack = { .id = 77, .blocks = 250 };

	load(THIS);
	of[THIS].packs = kzalloc(tr_packs_bytes(1), GFP_KERNEL);
	tr_packs_init(of[THIS].packs, 1);
	assert_int_equal(tr_packs_add(of[THIS].packs, &pack), 0);
	assert_int_equal(tr_packs_put(of[THIS].packs, 77, 500, 500), 0);
	write_to(THIS, 12, FAST);
	write_to(THIS, 30, SLOW);
	of[THIS].next = 500;
	write_to(THIS, 8, FAST);
	checkpoint(THIS);
	map_summaries();
	settle();
	assert_int_equal(says(THIS)->fast, 20);
	assert_int_equal(says(THIS)->dirty, 12);
	assert_int_equal(says(THIS)->loose, 30);
	of[THIS].next = 100;
}

/* What was counted before stands, but for what the page says better. */
static void assert_as_counted(u16 fast, u16 dirty)
{
	const struct terrace_summary *s = says(THIS);

	assert_int_equal(s->fast, fast);
	assert_int_equal(s->dirty, dirty);
	assert_int_equal(s->loose, 30);
	assert_int_equal(s->packed, 500);
	assert_int_equal(s->packs, 1);
	assert_int_equal(s->packed_blocks, 250);
	assert_int_equal(s->garbage, 100);
	assert_int_equal(s->overwritten, 100 * 255 / 600);
}

/* ---- changed, and gone before it was counted -------------------------------------------------- */

static void what_was_not_counted_in_time_is_stale(void **state)
{
	counted();
	write_to(THIS, 50, FAST);
	checkpoint(THIS);
	evict(THIS);
	settle();
	assert_true(is_stale(THIS));
	assert_as_counted(70, 12);
	load(THIS);
	settle();
	assert_as_counted(70, 62);
}

/* What has gone down is neither fast nor, as far as is known, anywhere else: the daemon adds up dirty, loose and packed. */
static void what_went_down_is_still_counted(void **state)
{
	counted();
	spin_lock_irq(&of[THIS].region.lock);
	tr_leaf_clear(&of[THIS].region.leaf, 0, 9);
	tr_leaf_clear(&of[THIS].region.leaf, 500, 8);
	of[THIS].region.last_seq = record++;
	tr_summary_touch(tr, THIS);
	spin_unlock_irq(&of[THIS].region.lock);
	checkpoint(THIS);
	evict(THIS);
	settle();
	assert_true(is_stale(THIS));
	assert_as_counted(3, 12);
}

static void nothing_is_left_of_a_region_without_a_page(void **state)
{
	static const struct terrace_summary nothing = { .age = 255 };

	counted();
	tr_packs_clear(of[THIS].packs, 0, TERRACE_REGION_BLOCKS);
	kfree(of[THIS].packs);
	of[THIS].packs = NULL;
	tr_leaf_clear(&of[THIS].region.leaf, 0, TERRACE_REGION_BLOCKS);
	tr_summary_touch(tr, THIS);
	checkpoint(THIS);
	evict(THIS);
	settle();
	assert_memory_equal(says(THIS), &nothing, sizeof(nothing));
}

static void gone_while_unread(int err)
{
	u64 queued;

	counted();
	write_to(THIS, 50, FAST);
	checkpoint(THIS);
	evict(THIS);
	unread = err;
	queued = queue.queued;
	work();
	assert_int_equal(queue.queued, queued);
	unread = 0;
	assert_true(is_stale(THIS));
	assert_as_counted(20, 12);
}

/* A directory that cannot be read says nothing. It is asked again with the next tick, not over and over. */
static void an_unread_directory_is_asked_again(void **state)
{
	static const int failure[] = { -EIO, -ENOMEM };

	for (u32 k = 0; k < ARRAY_SIZE(failure); k++) {
		gone_while_unread(failure[k]);
		tick();
		assert_true(is_stale(THIS));
		assert_as_counted(70, 12);
		load(THIS);
		settle();
		assert_as_counted(70, 62);
		teardown(state);
		setup(state);
	}
}

static void a_damaged_one_is_not(void **state)
{
	gone_while_unread(-EUCLEAN);
	assert_false(is_marked(THIS));
	load(THIS);
	settle();
	assert_as_counted(70, 62);
}

/* With the first mmap all of them may come. Each time it is looked whether they are too much for memory_mb. */
static void directories_are_memory_of_the_map(void **state)
{
	map_summaries();
	work();
	assert_int_equal(lookups, REGIONS);
	assert_int_equal(unchecked, 0);
}

/* ---- it comes while the worker is at it --------------------------------------------------------- */

static void changed_and_gone(void)
{
	counted();
	write_to(THIS, 50, FAST);
	checkpoint(THIS);
	evict(THIS);
	finds = 0;
}

/* The worker waits for the directory, and has not said STALE yet if it says so at the end only. */
static void one_that_is_loaded_while_its_page_is_looked_up_is_counted(void **state)
{
	changed_and_gone();
	at_lookup = load_this;
	work();
	assert_int_equal(lookups, REGIONS - 1 + 1);
	settle();
	assert_as_counted(70, 62);
}

static void write_and_go(void)
{
	load(THIS);
	write_to(THIS, 7, FAST);
	checkpoint(THIS);
	evict(THIS);
}

static void what_comes_and_goes_meanwhile_is_looked_up_again(void **state)
{
	changed_and_gone();
	at_lookup = write_and_go;
	work();
	settle();
	assert_true(is_stale(THIS));
	assert_as_counted(77, 12);
}

/* The worker has not found it; who loads it may not find a STALE summary. */
static void one_that_is_loaded_before_its_summary_is_stale_is_counted(void **state)
{
	for (at_find_nr = 1;; at_find_nr++) {
		changed_and_gone();
		at_find = load_this;
		work();
		if (!of[THIS].loaded)
			break;
		settle();
		assert_as_counted(70, 62);
		teardown(state);
		setup(state);
	}
	assert_int_equal(at_find_nr, 3);
}

/* Whoever looks meanwhile does not read STALE where the worker has all it needs. */
static void never_stale(void) { assert_false(is_stale(THIS)); }

static void what_is_loaded_is_not_stale_at_any_moment(void **state)
{
	counted();
	write_to(THIS, 50, FAST);
	finds = 0;
	at_find = never_stale;
	for (at_find_nr = 1; at_find_nr < 5; at_find_nr++) {
		finds = 0;
		work();
		write_to(THIS, 1, FAST);
	}
	settle();
}

/* ---- marks that are done with ---------------------------------------------------------------------- */

/* The worker waits for an order's end, which counts; then the region goes. */
static void order_ends_and_region_goes(struct mutex *mutex)
{
	kernel_locks = NULL;
	tr_summary_now(tr, THIS);
	checkpoint(THIS);
	evict(THIS);
}

static void what_an_order_has_counted_is_not_stale(void **state)
{
	counted();
	write_to(THIS, 50, FAST);
	kernel_locks = order_ends_and_region_goes;
	work();
	assert_null(kernel_locks);
	settle();
	assert_false(is_stale(THIS));
	assert_as_counted(70, 62);
}

/* An order's region is counted, given back, and gone before the order says that it is at its end. */
static void an_order_at_the_end_takes_no_count_away(void **state)
{
	counted();
	evict(THIS);
	tr_summary_now(tr, THIS);
	settle();
	assert_false(is_stale(THIS));
	assert_as_counted(20, 12);
}

/* ... and what it has changed is not counted yet. Nobody waits for its directory: that is the worker's. */
static void an_order_at_the_end_believes_no_old_count(void **state)
{
	u64 queued;

	counted();
	write_to(THIS, 50, FAST);
	checkpoint(THIS);
	evict(THIS);
	lookups = 0;
	queued = queue.queued;
	tr_summary_now(tr, THIS);
	assert_int_equal(lookups, 0);
	assert_true(is_stale(THIS));
	assert_as_counted(20, 12);
	assert_true(is_marked(THIS) && queue.queued > queued);
	work();
	assert_as_counted(70, 12);
	settle();
}

/* An overwrite on shelves changes nothing that is counted. */
static void an_overwrite_makes_nothing_stale(void **state)
{
	counted();
	overwrite(THIS);
	checkpoint(THIS);
	evict(THIS);
	settle();
	assert_false(is_stale(THIS));
	assert_as_counted(20, 12);
}

/* It is loaded, and the index of its pack is read. */
static void load_and_mark(void)
{
	load(THIS);
	tr_summary_touch_later(tr, THIS);
}

static void a_mark_for_later_is_not_lost(void **state)
{
	counted();
	overwrite(THIS);
	evict(THIS);
	finds = 0;
	at_find_nr = 1;
	at_find = load_and_mark;
	tr_summary_now(tr, THIS);
	assert_true(of[THIS].loaded);
	assert_true(test_bit(THIS, tr->summary->later));
	settle();
}

/* The volume stops for a while, as of a suspend: what is marked is looked at afterwards. */
static void marks_outlive_a_stop(void **state)
{
	u64 queued;

	counted();
	overwrite(THIS);
	write_to(THIS, 50, FAST);
	tr->stopping = true;
	work_later();
	work();
	assert_as_counted(20, 12);
	tr->stopping = false;
	queued = queue.queued;
	tr_summary_wake(tr);
	assert_int_equal(queue.queued, queued + 2);
	settle();
	assert_as_counted(70, 62);
	assert_true(bitmap_empty(tr->summary->later, REGIONS));
}

/* ---- ages --------------------------------------------------------------------------------------------- */

static void a_page_of_this_activation_tells_the_age(void **state)
{
	counted();
	for (u32 i = 0; i < 20; i++)
		tick();
	assert_int_equal(says(THIS)->age, 20);
	write_to(THIS, 50, FAST);
	checkpoint(THIS);
	tr->tick += 3;
	evict(THIS);
	settle();
	assert_int_equal(says(THIS)->age, 3);
	tick();
	assert_int_equal(says(THIS)->age, 4);
}

/* Its page is from when it was written. */
static void a_page_tells_no_age_of_what_was_read_since(void **state)
{
	counted();
	for (u32 i = 0; i < 20; i++) {
		of[THIS].region.age++;
		tick();
	}
	assert_int_equal(says(THIS)->age, 0);
	tr_summary_touch(tr, THIS);	/* a move has ended that moved nothing */
	evict(THIS);
	settle();
	assert_true(is_stale(THIS));
	assert_int_equal(says(THIS)->age, 0);
}

/* Ticks begin anew with each activation. */
static void an_older_page_does_not(void **state)
{
	record = FIRST - 100;
	counted();
	for (u32 i = 0; i < 20; i++)
		tick();
	of[THIS].page.age = 200;
	tr_summary_touch(tr, THIS);	/* a move has ended that moved nothing */
	evict(THIS);
	settle();
	assert_true(is_stale(THIS));
	assert_int_equal(says(THIS)->age, 20);
}

/* ... but nothing else is known of one that was never counted: of two pages the older one is the older one. */
static void of_what_was_never_counted_the_page_tells_it(void **state)
{
	record = FIRST - 100;
	load(THIS);
	load(THIS + 1);
	write_to(THIS, 50, FAST);
	tr->tick += 10;
	write_to(THIS + 1, 60, FAST);
	checkpoint(THIS);
	checkpoint(THIS + 1);
	evict(THIS);
	evict(THIS + 1);
	tr->tick = 0;
	map_summaries();
	settle();
	assert_true(is_stale(THIS));
	assert_int_equal(says(THIS)->fast, 50);
	assert_int_equal(says(THIS)->loose, 0);
	assert_int_equal(says(THIS)->age, says(THIS + 1)->age + 10);
}

/* ---- what recovery left --------------------------------------------------------------------------------- */

static void settled(void)
{
	of[THIS].page = (struct tr_entry){ .block = 1, .blocks = 1, .seq = FIRST - 1, .count = 33 };
	of[THIS].recovered = false;
	tr_summary_touch(tr, THIS);
}

static void what_recovery_found_without_a_page_is_not_nothing(void **state)
{
	of[THIS].recovered = true;
	map_summaries();
	settle();
	assert_true(is_stale(THIS));
	assert_false(is_stale(THIS + 1));
	settled();
	settle();
	assert_true(is_stale(THIS));
	assert_int_equal(says(THIS)->fast, 33);
}

/* A checkpoint writes its page right now. */
static void page_comes(void)
{
	if (of[THIS].recovered && lookups == THIS + 1) {
		settled();
		clear_bit(THIS, tr->summary->changed);	/* should settle.c touch nothing */
	}
}

static void nor_while_its_page_is_being_written(void **state)
{
	of[THIS].recovered = true;
	map_summaries();
	at_lookup = page_comes;
	work();
	assert_false(of[THIS].recovered);
	assert_true(is_stale(THIS));
	of[THIS].page.count = 0;
	settle();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(what_was_not_counted_in_time_is_stale),
		TEST(what_went_down_is_still_counted),
		TEST(nothing_is_left_of_a_region_without_a_page),
		TEST(an_unread_directory_is_asked_again),
		TEST(a_damaged_one_is_not),
		TEST(directories_are_memory_of_the_map),
		TEST(one_that_is_loaded_while_its_page_is_looked_up_is_counted),
		TEST(what_comes_and_goes_meanwhile_is_looked_up_again),
		TEST(one_that_is_loaded_before_its_summary_is_stale_is_counted),
		TEST(what_is_loaded_is_not_stale_at_any_moment),
		TEST(what_an_order_has_counted_is_not_stale),
		TEST(an_order_at_the_end_takes_no_count_away),
		TEST(an_order_at_the_end_believes_no_old_count),
		TEST(an_overwrite_makes_nothing_stale),
		TEST(a_mark_for_later_is_not_lost),
		TEST(marks_outlive_a_stop),
		TEST(a_page_of_this_activation_tells_the_age),
		TEST(a_page_tells_no_age_of_what_was_read_since),
		TEST(an_older_page_does_not),
		TEST(of_what_was_never_counted_the_page_tells_it),
		TEST(what_recovery_found_without_a_page_is_not_nothing),
		TEST(nor_while_its_page_is_being_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
