// SPDX-License-Identifier: GPL-2.0
/*
 * New writes slow down before room runs out, so that the janitor keeps up and
 * nobody runs into a wall.
 *
 * The delay is the product of two shares, each from 0 to 1: how far the
 * emptiest slots tier that new writes may use is between janitor_high and full (all in use but its
 * reserve), and how few free shelves are left below it. While there are shelves, a full slots tier costs
 * writers nothing: they overflow at the speed of the shelves. Overwrites in
 * place need no room and are never delayed.
 *
 * Delayed bios wait on a list; a worker sleeps once for all that are there
 * and sends them the deferred way, which does not ask again.
 */
#include <linux/delay.h>
#include <linux/sched/clock.h>
#include <linux/sched/stat.h>

#include "io.h"
#include "sense.h"

#define ONE		1024		/* a whole share */
#define SHELVES_LOW	2		/* free, above the reserve: ROOM event */
#define GIVE_WAY_US	5
#define TURN_NS		10000
/* Free, above the reserve: from here on the delay grows. Not before the janitor cleans (SHELF_LOW there), or writers
 * would be slow for good where shelves are few and nobody has to make any free.
 */
#define SCARCE_SHELVES	2

static u32 fullness(struct terrace *tr, const struct tr_tier *tier)
{
	u64 high = tr_space_mark(tr, tier, TR_TUNE_JANITOR_HIGH), most = tr_space_most(tier);
	u64 used = tr_space_used(tier);

	if (used < high)
		return 0;
	return used >= most ? ONE : div64_u64((used - high) * ONE, most - high);
}

static u32 scarcity(const struct tr_tier *tier)
{
	u32 keep = tr_shelves_kept(tier);
	u32 free = READ_ONCE(tier->free_shelves);
	u32 few = min_t(u32, SCARCE_SHELVES, max_t(u32, tier->nr_chunks / 4, 1));

	if (free <= keep)
		return ONE;
	return free - keep >= few ? 0 : (few - (free - keep)) * ONE / few;
}

/* Says so once when a tier comes to its low watermark, and once when it leaves it. */
static void tell_low(struct terrace *tr, struct tr_tier *tier)
{
	bool low = tier->kind == TERRACE_KIND_SLOTS ? fullness(tr, tier) > 0 :
		   tier->kind == TERRACE_KIND_HOME ? tr_home_full(tier) :
		   READ_ONCE(tier->free_shelves) <= tr_shelves_kept(tier) + SHELVES_LOW;

	if (low == READ_ONCE(tier->low))
		return;
	WRITE_ONCE(tier->low, low);
	tr_event(tr, TERRACE_EVENT_ROOM, tier->number, TR_NO_REGION, low);
}

void tr_throttle_update(struct terrace *tr)
{
	u32 avoid = tr_tune(tr, TR_TUNE_AVOID_TIERS), full = ONE, scarce = ONE, t;
	bool shelves = false, slots = false;

	for (t = 0; t < tr->nr_tiers; t++) {
		struct tr_tier *tier = &tr->tier[t];

		if (tier->missing || !tier->data_blocks)
			continue;
		tell_low(tr, tier);
		if (tier->kind == TERRACE_KIND_SLOTS && !(avoid >> t & 1)) {
			slots = true;
			full = min(full, fullness(tr, tier));
		}
		if (tier->kind != TERRACE_KIND_SHELVES)
			continue;
		shelves = true;
		scarce = min(scarce, scarcity(tier));	/* one with room is enough */
	}
	/* Without shelves nobody makes room: waiting would not help. */
	if (!shelves || !slots)
		scarce = 0;
	WRITE_ONCE(tr->throttle.us,
		   div_u64((u64)tr_tune(tr, TR_TUNE_THROTTLE_US) * full * scarce, ONE * ONE));
}

void tr_work_gently(struct terrace *tr)
{
	bool wanted = tr_room_is_waited_for(tr) || READ_ONCE(tr->throttle.us);

	if (task_nice(current) >= 0)	/* else a rescuer, when memory is short */
		set_user_nice(current, wanted ? 0 : MAX_NICE);
}

void tr_work_normally(void)
{
	if (task_nice(current) > 0)
		set_user_nice(current, 0);
}

static bool had_its_turn(void)
{
#ifdef CONFIG_SCHED_INFO
	return local_clock() - current->sched_info.last_arrival >= TURN_NS;
#else
	return true;
#endif
}

/*
 * Not cond_resched(), nor schedule(): whoever was woken while this worker slept may stand
 * behind it, for a waker is put in front by some milliseconds of its share, which at nice 19
 * are dozens of microseconds, and several workers that wake together use theirs up one after
 * the other. Who sleeps for a moment leaves the CPU to whoever waits for it. Falling asleep and waking up takes
 * some microseconds itself, so who has just got the CPU keeps it for as long.
 */
void tr_give_way(void)
{
	if (task_nice(current) > 0 && !single_task_running() && had_its_turn())
		usleep_idle_range(GIVE_WAY_US, 2 * GIVE_WAY_US);
	else
		cond_resched();
}

void tr_throttle(struct terrace *tr, struct bio *bio)
{
	struct tr_throttle *throttle = &tr->throttle;
	unsigned long flags;

	this_cpu_inc(tr->stats->throttled);
	spin_lock_irqsave(&throttle->lock, flags);
	bio_list_add(&throttle->bios, bio);
	spin_unlock_irqrestore(&throttle->lock, flags);
	queue_work(tr->io_wq, &throttle->work);
}

static void throttle_fn(struct work_struct *work)
{
	struct terrace *tr = container_of(work, struct terrace, throttle.work);
	struct tr_throttle *throttle = &tr->throttle;
	u32 us = READ_ONCE(throttle->us);
	struct bio_list bios;
	struct bio *bio;

	if (us)
		usleep_range(us, us + us / 8);
	spin_lock_irq(&throttle->lock);
	bios = throttle->bios;
	bio_list_init(&throttle->bios);
	spin_unlock_irq(&throttle->lock);
	while ((bio = bio_list_pop(&bios)))
		tr_defer(tr, bio);
	tr_throttle_update(tr);
}

void tr_throttle_init(struct terrace *tr)
{
	spin_lock_init(&tr->throttle.lock);
	bio_list_init(&tr->throttle.bios);
	INIT_WORK(&tr->throttle.work, throttle_fn);
}
