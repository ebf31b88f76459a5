// SPDX-License-Identifier: GPL-2.0-or-later
/* Nobody is at work for a suspended volume any more: neither who parked a bio that was sent back, nor what the last commit sets going. Afterwards what waited goes on. */
#include "core_lib.h"
#include "kernel.h"

/* ---- what only the start of a volume needs ---------------------------------------- */

struct dm_dev { struct block_device *bdev; const char *name; };
struct dm_target { void *table; };

#define DEFINE_MUTEX(name)	struct mutex name
#define NSEC_PER_USEC		1000ull
#define FMODE_WRITE		2
#define rcu_barrier()		((void)0)
#define dm_table_get_mode(table)	((void)(table), FMODE_WRITE)
#define dm_table_get_md(table)	((struct mapped_device *)(table))
#define dm_device_name(md)	((void)(md), "vol")
#define strscpy(to, from, n)	((void)snprintf(to, n, "%s", from))
#define alloc_workqueue(...)	((struct workqueue_struct *)NULL)
#define alloc_ordered_workqueue	alloc_workqueue
#define destroy_workqueue(wq)	((void)(wq))
#define alloc_percpu(type)	((type *)NULL)
#define free_percpu(at)		((void)(at))

#include "../../kmod/volume.c"

/* Stages that a suspension does not ask. They are not there: a call of one ends the test. */
#pragma weak tr_appends_exit
#pragma weak tr_appends_init
#pragma weak tr_arrays_shrink
#pragma weak tr_arrays_trim
#pragma weak tr_checkpoint_kick
#pragma weak tr_chunks_evict
#pragma weak tr_close
#pragma weak tr_control_add
#pragma weak tr_control_remove
#pragma weak tr_defer_exit
#pragma weak tr_defer_init
#pragma weak tr_discard_work
#pragma weak tr_discards_exit
#pragma weak tr_discards_init
#pragma weak tr_failing_unwatch
#pragma weak tr_failing_watch
#pragma weak tr_flight_init
#pragma weak tr_homes_init
#pragma weak tr_indexes_evict
#pragma weak tr_janitor_init
#pragma weak tr_labels_exit
#pragma weak tr_labels_init
#pragma weak tr_moves_forget
#pragma weak tr_open
#pragma weak tr_orders_forget
#pragma weak tr_packing_exit
#pragma weak tr_packing_init
#pragma weak tr_pages_evict
#pragma weak tr_promotion_evict
#pragma weak tr_ranges_exit
#pragma weak tr_regions_age
#pragma weak tr_regions_evict
#pragma weak tr_regions_exit
#pragma weak tr_regions_init
#pragma weak tr_reserve_exit
#pragma weak tr_reserve_fill
#pragma weak tr_reserve_init
#pragma weak tr_reserve_low
#pragma weak tr_shelves_aside_fn
#pragma weak tr_shelves_init
#pragma weak tr_space_exit
#pragma weak tr_space_init
#pragma weak tr_space_start
#pragma weak tr_stop
#pragma weak tr_stretches_forget
#pragma weak tr_summary_tick
#pragma weak tr_super_open
#pragma weak tr_sysfs_add
#pragma weak tr_sysfs_remove
#pragma weak tr_throttle_init
#pragma weak tr_trim_init
#pragma weak tr_unpackers_forget

/*
 * volume.c whole; its queues and what runs there are played here. A worker of io_wq that parks a bio
 * for want of room asks for a commit and a refill when it has let go of the lock. A suspend
 * without a flush may send the bio back in between: with that the volume has no bio
 * any more, and is quiesced, and, if the next table is of another target, freed.
 */
static struct terrace *tr;
static struct workqueue_struct queues[7];
static struct work_struct walker;	/* the rest of what parks a bio */
static bool suspended, checkpoint_fails;
static bool open_records;		/* that no commit has seen */
static u32 runs;			/* of works that write to the drives */
static u32 counted;			/* times that marked summaries were asked for */

/* Whatever runs here writes to the drives, and may set the next one going. */
static void at_drives(void)
{
	runs++;
	if (suspended)
		fail_msg("something writes to the drives of a suspended volume");
}

static void refill_fn(struct work_struct *work) { at_drives(); }

static void free_fn(struct work_struct *work)
{
	at_drives();
	queue_work(tr->room_wq, &tr->refill_work);	/* room was made, shelves are full */
}

static void commit_fn(struct work_struct *work)
{
	at_drives();
	open_records = false;
	queue_work(tr->meta_wq, &tr->journal.free_work);
}

static void walker_fn(struct work_struct *work)
{
	queue_work(tr->commit_wq, &tr->journal.commit_work);
	queue_work(tr->room_wq, &tr->refill_work);
}

static void discard_fn(struct work_struct *work) { open_records = true; }
static void nothing_fn(struct work_struct *work) {}

/* ---- the stages around it -------------------------------------------------------------- */

void tr_queries_quiesce(struct terrace *volume) {}
void tr_event(struct terrace *volume, enum terrace_event_type type, u32 tier, u64 region, u64 value) {}
void tr_stretches_quiesce(struct terrace *volume) {}
void tr_appends_quiesce(struct terrace *volume) {}
void tr_checkpoint_hold(struct terrace *volume) {}
void tr_checkpoint_release(struct terrace *volume) {}
void tr_shelves_put_back(struct terrace *volume) {}
void tr_homes_kick(struct terrace *volume) {}
void tr_trim_kick(struct terrace *volume) {}
void tr_control_resume(struct terrace *volume) {}
void tr_summary_wake(struct terrace *volume) { counted += !volume->stopping; }
void submit_bio(struct bio *bio) { kernel_bug("a bio is sent"); }

/* One that cannot read a page commits nothing. */
int tr_checkpoint(struct terrace *volume, bool clean)
{
	if (checkpoint_fails)
		return -EIO;
	return tr_commit(volume);
}

int tr_commit(struct terrace *volume)
{
	if (!open_records)
		return 0;
	queue_work(volume->commit_wq, &volume->journal.commit_work);
	flush_work(&volume->journal.commit_work);
	return 0;
}

static int setup(void **state)
{
	tr = kzalloc(sizeof(*tr), GFP_KERNEL);
	tr->io_wq = &queues[0];
	tr->commit_wq = &queues[1];
	tr->room_wq = &queues[2];
	tr->meta_wq = &queues[3];
	INIT_WORK(&tr->refill_work, refill_fn);
	INIT_WORK(&tr->evict_work, nothing_fn);
	INIT_WORK(&tr->sweep_work, nothing_fn);
	INIT_WORK(&tr->janitor_work, refill_fn);
	INIT_WORK(&tr->discard_work, discard_fn);
	INIT_WORK(&tr->journal.commit_work, commit_fn);
	INIT_WORK(&tr->journal.free_work, free_fn);
	INIT_WORK(&walker, walker_fn);
	suspended = checkpoint_fails = open_records = false;
	runs = counted = 0;
	INIT_LIST_HEAD(&tr->discards);
	return 0;
}

static int teardown(void **state)
{
	suspended = false;
	kernel_work_run();
	kfree(tr);
	return 0;
}

static void suspend(void)
{
	tr_volume_quiesce(tr);
	suspended = true;
	kernel_work_run();	/* whoever was forgotten goes on */
	assert_false(open_records);
}

/* ---- what is under way when it comes ------------------------------------------------------ */

static void who_parked_a_bio_is_waited_for(void **state)
{
	queue_work(tr->io_wq, &walker);
	tr->noflush = true;
	suspend();
	assert_false(tr->noflush);
	assert_true(runs >= 3);		/* what he asked for was done, not left out */
}

/* On a volume that is not writable no checkpoint and no commit come in between. */
static void who_parked_a_bio_of_a_volume_that_is_read_only_is_waited_for(void **state)
{
	queue_work(tr->io_wq, &walker);
	tr->mode = TR_MODE_READ_ONLY;
	suspend();
}

static void what_the_last_commit_sets_going_is_waited_for(void **state)
{
	open_records = true;
	suspend();
	assert_true(runs >= 3);
}

static void what_a_failed_checkpoint_has_not_committed_is(void **state)
{
	checkpoint_fails = true;
	open_records = true;
	suspend();
}

/* The discard's worker writes records, which the checkpoint must see. */
static void the_worker_of_discards_is_waited_for(void **state)
{
	queue_work(tr->meta_wq, &tr->discard_work);
	suspend();
	assert_true(runs >= 3);
}

static void what_makes_room_stops(void **state)
{
	queue_work(tr->room_wq, &tr->refill_work);
	queue_work(tr->meta_wq, &tr->janitor_work);
	tr->janitor_busy = true;
	suspend();
	assert_int_equal(runs, 1);	/* the refill; the janitor is not waited for */
	assert_false(tr->janitor_busy);
}

/* ---- afterwards ---------------------------------------------------------------------------- */

static void summaries_are_counted_when_it_goes_on(void **state)
{
	suspend();
	suspended = false;
	tr_volume_wake(tr);
	assert_int_equal(counted, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_parked_a_bio_is_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(who_parked_a_bio_of_a_volume_that_is_read_only_is_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(what_the_last_commit_sets_going_is_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_failed_checkpoint_has_not_committed_is, setup, teardown),
		cmocka_unit_test_setup_teardown(the_worker_of_discards_is_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(what_makes_room_stops, setup, teardown),
		cmocka_unit_test_setup_teardown(summaries_are_counted_when_it_goes_on, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
