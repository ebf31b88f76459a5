/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A kernel of one thread, so that a unit test can include a whole stage of kmod/ (discard.c,
 * say) and play the stages around it itself. Every header that these include and pure code
 * may not is here; which one was asked for makes no difference.
 *
 *	#include "kernel.h"
 *	#include "../../kmod/discard.c"
 *
 * What a function of another stage does is the test's business, and so is when: what a second
 * CPU would do is done in a function that is called at that place, or in one of the hooks.
 *
 * - Locks know whether they are held: taking one twice, or lockdep_assert_held() of one that
 *   is not, ends the test. kernel_unlocked, if set, runs after a spinlock was given up,
 *   kernel_locks before a mutex is taken: who had it until then.
 * - Work is queued and does not run, until kernel_work_run(). A queue is an object that
 *   can be freed: whoever queues something there afterwards is found by ASan.
 * - Nobody can sleep: waiting for what is not so calls kernel_waits, once, which has to make it so.
 * - kernel_refuse: the allocation that is this many from now finds no memory; none that must.
 */
#ifndef TERRACE_COMPAT_KERNEL_H
#define TERRACE_COMPAT_KERNEL_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <errno.h>
#include <linux/bitmap.h>
#include <linux/build_bug.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/string.h>
#include <asm/barrier.h>
#include <asm/byteorder.h>

/* of the module's own style */
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define __percpu
#define __acquires(x)
#define IS_ENABLED(option)	0
#define HZ			250
#define jiffies			kernel_jiffies
#define msecs_to_jiffies(ms)	((unsigned long)(ms) * HZ / 1000)
#define time_after(a, b)	((long)((b) - (a)) < 0)
#define time_before(a, b)	time_after(b, a)
#define get_jiffies_64()	((u64)(u32)kernel_jiffies)	/* jiffies of 32 bits that have not wrapped yet */
#define time_before64(a, b)	((s64)((a) - (b)) < 0)
#define ktime_get_ns()		0ull
#define current			NULL
#define cond_resched()		((void)0)

typedef unsigned int gfp_t, blk_opf_t;
typedef u8 blk_status_t;
typedef int refcount_t;

static unsigned long kernel_jiffies = 1000;
static void (*kernel_waits)(void);
static u32 kernel_refuse;

static inline void __attribute__((format(printf, 1, 2))) kernel_says(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

static inline void kernel_bug(const char *what)
{
	kernel_says("BUG: %s", what);
	abort();
}

#define DMINFO		kernel_says
#define DMERR		kernel_says
#define DMERR_LIMIT	kernel_says
#define DMWARN		kernel_says
#define DMWARN_LIMIT	kernel_says
#define WARN_ON_ONCE(condition) __extension__ ({ bool _warn = (condition); if (_warn) kernel_bug(#condition); _warn; })

/* ---- pointers that are errors, atomics ---------------------------------------- */

static inline void *ERR_PTR(long error) { return (void *)error; }
static inline long PTR_ERR(const void *pointer) { return (long)pointer; }
static inline bool IS_ERR(const void *pointer) { return (unsigned long)pointer >= (unsigned long)-4095; }
static inline bool IS_ERR_OR_NULL(const void *pointer) { return !pointer || IS_ERR(pointer); }

typedef struct { int counter; } atomic_t;
typedef struct { s64 counter; } atomic64_t;

#define atomic_set(v, n)		((v)->counter = (n))
#define atomic_read(v)			((v)->counter)
#define atomic_read_acquire(v)		((v)->counter)
#define atomic_inc(v)			((void)(v)->counter++)
#define atomic_dec(v)			((void)(v)->counter--)
#define atomic_dec_return_release(v)	(--(v)->counter)
#define atomic_dec_and_test(v)		(!--(v)->counter)
#define atomic64_read(v)		((v)->counter)
#define atomic64_inc(v)			((void)(v)->counter++)
#define xchg(at, value)			__extension__ ({ __typeof__(*(at)) _old = *(at); *(at) = (value); _old; })
#define smp_load_acquire(at)		(*(at))
#define smp_store_release(at, value)	(*(at) = (value))
#define smp_mb__after_atomic()		((void)0)
#define smp_mb()			((void)0)
#define set_bit				__set_bit
#define clear_bit			__clear_bit
#define test_and_clear_bit		__test_and_clear_bit
#define this_cpu_inc(v)			((v)++)
#define this_cpu_inc_return(v)		(++(v))
#define this_cpu_read(v)		(v)
#define this_cpu_write(v, n)		((v) = (n))

static inline unsigned long find_next_and_bit(const unsigned long *a, const unsigned long *b, unsigned long size,
					      unsigned long at)
{
	while (at < size && !(test_bit(at, a) && test_bit(at, b)))
		at++;
	return at;
}

static inline unsigned long bitmap_find_next_zero_area(const unsigned long *map, unsigned long size, unsigned long at,
							unsigned int nr, unsigned long align)
{
	for (unsigned int n = 0; at + n < size && n < nr; ) {
		if (!test_bit(at + n, map)) {
			n++;
			continue;
		}
		at += n + 1;
		n = 0;
	}
	return at + nr <= size ? at : size;
}

static inline void bitmap_andnot(unsigned long *to, const unsigned long *a, const unsigned long *b, unsigned int bits)
{
	for (unsigned int word = 0; word < BITS_TO_LONGS(bits); word++)
		to[word] = a[word] & ~b[word];
}

/* ---- lists -------------------------------------------------------------------- */

struct list_head { struct list_head *next, *prev; };
struct rcu_head { void *next; };

#define LIST_HEAD(name)		struct list_head name = { &name, &name }
#define list_entry		container_of
#define list_first_entry(head, type, member)	list_entry((head)->next, type, member)
#define list_first_entry_or_null(head, type, member) \
	(list_empty(head) ? NULL : list_first_entry(head, type, member))
#define list_next_entry(at, member)		list_entry((at)->member.next, __typeof__(*(at)), member)
#define list_entry_is_head(at, head, member)	(&(at)->member == (head))
#define list_for_each_entry_from(at, head, member) \
	for (; !list_entry_is_head(at, head, member); at = list_next_entry(at, member))
#define list_for_each_entry(at, head, member) \
	for (at = list_first_entry(head, __typeof__(*at), member); !list_entry_is_head(at, head, member); \
	     at = list_next_entry(at, member))
#define list_for_each_entry_safe(at, n, head, member) \
	for (at = list_first_entry(head, __typeof__(*at), member), n = list_next_entry(at, member); \
	     !list_entry_is_head(at, head, member); at = n, n = list_next_entry(n, member))
#define list_empty_careful	list_empty

static inline void INIT_LIST_HEAD(struct list_head *list) { list->next = list->prev = list; }
static inline bool list_empty(const struct list_head *head) { return head->next == head; }

static inline void list_add(struct list_head *entry, struct list_head *head)
{
	*entry = (struct list_head){ head->next, head };
	head->next->prev = entry;
	head->next = entry;
}

static inline void list_add_tail(struct list_head *entry, struct list_head *head) { list_add(entry, head->prev); }

static inline void list_del(struct list_head *entry)
{
	entry->next->prev = entry->prev;
	entry->prev->next = entry->next;
}

static inline void list_move(struct list_head *entry, struct list_head *head)
{
	list_del(entry);
	list_add(entry, head);
}

static inline void list_splice_init(struct list_head *from, struct list_head *to)
{
	while (!list_empty(from))
		list_move(from->prev, to);
}

static inline void list_splice_tail_init(struct list_head *from, struct list_head *to)
{
	list_splice_init(from, to->prev);
}

/* ---- locks -------------------------------------------------------------------- */

struct kernel_lock { bool held; };
typedef struct kernel_lock spinlock_t;
struct mutex { bool held; };
typedef struct { unsigned int sequence; } seqcount_t;

static void (*kernel_unlocked)(spinlock_t *lock);
static void (*kernel_locks)(struct mutex *mutex);

static inline void kernel_take(bool *held)
{
	if (*held)
		kernel_bug("a lock is taken twice");
	*held = true;
}

static inline void kernel_give(bool *held)
{
	if (!*held)
		kernel_bug("a lock is given up that is not held");
	*held = false;
}

static inline void spin_lock(spinlock_t *lock) { kernel_take(&lock->held); }

static inline void spin_unlock(spinlock_t *lock)
{
	kernel_give(&lock->held);
	if (kernel_unlocked)
		kernel_unlocked(lock);
}

static inline void mutex_lock(struct mutex *mutex)
{
	if (kernel_locks)
		kernel_locks(mutex);
	kernel_take(&mutex->held);
}

#define spin_lock_init(lock)			((lock)->held = false)
#define spin_lock_irq				spin_lock
#define spin_unlock_irq				spin_unlock
#define spin_lock_irqsave(lock, flags)		((flags) = 0, spin_lock(lock))
#define spin_unlock_irqrestore(lock, flags)	((void)(flags), spin_unlock(lock))
#define mutex_init(mutex)			((mutex)->held = false)
#define mutex_unlock(mutex)			kernel_give(&(mutex)->held)
#define lockdep_assert_held(lock)		do { if (!(lock)->held) kernel_bug("not held: " #lock); } while (0)
#define rcu_read_lock()				((void)0)
#define rcu_read_unlock()			((void)0)

/* ---- waiting ------------------------------------------------------------------ */

struct wait_queue_head { int sleepers; };
typedef struct wait_queue_head wait_queue_head_t;
struct completion { bool done; };
struct semaphore { int count; };

#define wait_event(queue, condition) do {				\
	(void)(queue);							\
	if (!(condition) && kernel_waits)				\
		kernel_waits();						\
	if (!(condition))						\
		kernel_bug("waits for ever: " #condition);		\
} while (0)
#define init_waitqueue_head(queue)	((queue)->sleepers = 0)
#define wake_up_all(queue)		((void)(queue))
#define sema_init(semaphore, n)		((semaphore)->count = (n))
#define init_completion(c)		((c)->done = false)
#define reinit_completion		init_completion
#define complete(c)			((c)->done = true)
#define wait_for_completion_io(c)	wait_event(c, (c)->done)
#define num_online_cpus()		2

/* ---- work --------------------------------------------------------------------- */

struct workqueue_struct { u64 queued; };
struct work_struct {
	void (*func)(struct work_struct *work);
	struct workqueue_struct *wq;	/* if queued */
	bool queued;
	struct list_head list;
};
struct delayed_work { struct work_struct work; };

static LIST_HEAD(kernel_work);
static struct workqueue_struct kernel_long_wq;

#define system_long_wq		(&kernel_long_wq)
#define INIT_WORK(work, fn)	(*(work) = (struct work_struct){ .func = (fn) })
#define INIT_DELAYED_WORK(delayed, fn)	INIT_WORK(&(delayed)->work, fn)
#define to_delayed_work(at)	container_of(at, struct delayed_work, work)

static inline bool queue_work(struct workqueue_struct *wq, struct work_struct *work)
{
	wq->queued++;
	if (work->queued)
		return false;
	work->queued = true;
	work->wq = wq;
	list_add_tail(&work->list, &kernel_work);
	return true;
}

static inline void cancel_work_sync(struct work_struct *work)
{
	if (work->queued)
		list_del(&work->list);
	work->queued = false;
}

/* Times do not pass: a test runs by hand what would run then. */
#define mod_delayed_work(wq, delayed, delay)	((void)(wq)->queued++, (void)(delayed), (void)(delay))
#define queue_delayed_work			mod_delayed_work
#define cancel_delayed_work_sync(delayed)	((void)(delayed))

/* Whoever waits for work that is queued has it done. */
static inline void flush_work(struct work_struct *work)
{
	if (!work->queued)
		return;
	cancel_work_sync(work);
	work->func(work);
}

static inline void flush_workqueue(struct workqueue_struct *wq)
{
	struct work_struct *work, *next;

	list_for_each_entry_safe(work, next, &kernel_work, list)
		if (work->wq == wq)
			flush_work(work);
}

/* What is queued now, and what that queues. */
static inline void kernel_work_run(void)
{
	while (!list_empty(&kernel_work)) {
		struct work_struct *work = list_first_entry(&kernel_work, struct work_struct, list);

		cancel_work_sync(work);
		work->func(work);
	}
}

/* ---- memory ------------------------------------------------------------------- */

typedef struct { int nr; } mempool_t;
struct xarray { void *root; };
struct kmem_cache;

#define __GFP_NORETRY	(1u << 0)
#define __GFP_NOWARN	(1u << 1)
#define __GFP_NOFAIL	(1u << 2)
#define __GFP_MEMALLOC	(1u << 3)
#define GFP_NOIO	(1u << 4)
#define GFP_KERNEL	(1u << 5)

static inline void *kernel_memory(size_t bytes, gfp_t gfp)
{
	void *memory = NULL;

	if ((gfp & __GFP_NOFAIL) || !kernel_refuse || --kernel_refuse)
		memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
	if (memory)
		memset(memory, 0, bytes);
	return memory;
}

#define kmalloc				kernel_memory
#define kzalloc				kernel_memory
#define kvmalloc			kernel_memory
#define kvzalloc			kernel_memory
#define vmalloc(bytes)			kernel_memory(bytes, GFP_KERNEL)
#define kcalloc(n, size, gfp)		kernel_memory((size_t)(n) * (size), gfp)
#define kvcalloc			kcalloc
#define kvmalloc_array			kcalloc
#define __get_free_page(gfp)		((unsigned long)kernel_memory(4096, gfp))
#define free_page(at)			free((void *)(at))
#define kfree				free
#define kvfree				free
#define vfree				free

/* ---- bios --------------------------------------------------------------------- */

#define REQ_OP_BITS		8
#define REQ_OP_READ		0u
#define REQ_OP_WRITE		1u
#define REQ_OP_DISCARD		3u
#define REQ_OP_WRITE_ZEROES	9u
#define REQ_SYNC		(1u << 8)
#define REQ_FUA			(1u << 9)
#define REQ_PREFLUSH		(1u << 10)
#define REQ_BACKGROUND		(1u << 11)
#define REQ_NOWAIT		(1u << 12)
#define REQ_POLLED		(1u << 13)
#define BIO_MAX_VECS		256

#define BLK_STS_OK		0
#define BLK_STS_NOSPC		3
#define BLK_STS_RESOURCE	9
#define BLK_STS_IOERR		10
#define BLK_STS_DM_REQUEUE	11
#define BLK_STS_AGAIN		12

struct block_device { bool write_cache; };
struct bvec_iter { sector_t bi_sector; unsigned int bi_size; };
struct bio_set { unsigned int front_pad; };
struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	blk_opf_t bi_opf;
	blk_status_t bi_status;
	struct bvec_iter bi_iter;
	void (*bi_end_io)(struct bio *bio);
	void *bi_private;
	unsigned int kernel_front_pad;
};
struct bio_list { struct bio *head, *tail; };

/* A test says what becomes of them. */
void submit_bio(struct bio *bio);
#define submit_bio_noacct	submit_bio

#define bio_op(bio)		((bio)->bi_opf & ((1u << REQ_OP_BITS) - 1))
#define bio_set_dev(bio, dev)	((bio)->bi_bdev = (dev))
#define bdev_write_cache(dev)	((dev)->write_cache)
#define bio_uninit(bio)		((void)(bio))
#define zero_fill_bio(bio)	((void)(bio))
#define bio_kmalloc(vecs, gfp)	((struct bio *)kernel_memory(sizeof(struct bio), gfp))

static inline void bio_endio(struct bio *bio) { bio->bi_end_io(bio); }

static inline void bio_init(struct bio *bio, struct block_device *dev, void *vecs, u16 nr, blk_opf_t opf)
{
	*bio = (struct bio){ .bi_bdev = dev, .bi_opf = opf };
}

static inline int bioset_init(struct bio_set *set, unsigned int nr, unsigned int front_pad, int flags)
{
	set->front_pad = front_pad;
	return 0;
}

#define bioset_exit(set)	((void)(set))

static inline struct bio *bio_alloc_clone(struct block_device *dev, struct bio *bio, gfp_t gfp, struct bio_set *set)
{
	struct bio *clone = (struct bio *)((u8 *)kernel_memory(set->front_pad + sizeof(*clone), __GFP_NOFAIL) + set->front_pad);

	*clone = (struct bio){ .bi_bdev = dev, .bi_opf = bio->bi_opf, .bi_iter = bio->bi_iter, .kernel_front_pad = set->front_pad };
	return clone;
}

static inline void bio_put(struct bio *bio) { free((u8 *)bio - bio->kernel_front_pad); }

static inline void bio_advance(struct bio *bio, unsigned int bytes)
{
	bio->bi_iter.bi_sector += bytes >> 9;
	bio->bi_iter.bi_size -= bytes;
}

static inline void bio_list_init(struct bio_list *list) { list->head = list->tail = NULL; }
static inline bool bio_list_empty(const struct bio_list *list) { return !list->head; }

static inline void bio_list_add(struct bio_list *list, struct bio *bio)
{
	bio->bi_next = NULL;
	if (list->tail)
		list->tail->bi_next = bio;
	else
		list->head = bio;
	list->tail = bio;
}

static inline struct bio *bio_list_pop(struct bio_list *list)
{
	struct bio *bio = list->head;

	if (bio && !(list->head = bio->bi_next))
		list->tail = NULL;
	return bio;
}

static inline void bio_list_merge(struct bio_list *to, struct bio_list *from)
{
	struct bio *bio;

	while ((bio = bio_list_pop(from)))
		bio_list_add(to, bio);
}

static inline blk_status_t errno_to_blk_status(int err)
{
	return err == -ENOSPC ? BLK_STS_NOSPC : err == -ENOMEM ? BLK_STS_RESOURCE : err ? BLK_STS_IOERR : BLK_STS_OK;
}

static inline int blk_status_to_errno(blk_status_t status)
{
	return status == BLK_STS_NOSPC ? -ENOSPC : status == BLK_STS_RESOURCE ? -ENOMEM : status ? -EIO : 0;
}

/* ---- device-mapper, and what headers name in passing ------------------------------ */

struct attribute { const char *name; u16 mode; };
struct dm_target;
struct mapped_device;
struct io_uring_cmd { const void *cmd; };
struct queue_limits { unsigned int max_discard_sectors; };
struct vm_area_struct { unsigned long vm_flags; };

#define VM_MAYWRITE	1
#define dm_disk(md)	(md)
#define disk_devt(disk)	((void)(disk), 0)

/* What is kept of each bio lies right before it. */
static inline void *dm_per_bio_data(struct bio *bio, size_t bytes) { return (u8 *)bio - bytes; }
static inline struct bio *dm_bio_from_per_bio_data(void *data, size_t bytes) { return (struct bio *)((u8 *)data + bytes); }

#define TP_PROTO(...)		__VA_ARGS__
#define TRACE_EVENT(name, proto, ...)					\
	static inline void trace_##name(proto) {}			\
	static inline bool trace_##name##_enabled(void) { return false; }

#endif
