/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Everything that differs between the kernels we build for (6.1 .. 6.12), in
 * one place. Checked in their headers, not from memory.
 */
#ifndef DM_TERRACE_COMPAT_H
#define DM_TERRACE_COMPAT_H

#include <linux/blkdev.h>
#include <linux/io_uring.h>
#include <linux/mm.h>
#include <linux/version.h>

/* 6.9 split the limit in what the device can do and what the user allows. */
static inline void tr_limits_discard(struct queue_limits *limits, unsigned int sectors)
{
#if KERNEL_VERSION(6, 9, 0) <= LINUX_VERSION_CODE
	limits->max_hw_discard_sectors = sectors;
#endif
	limits->max_discard_sectors = sectors;
}

/* 6.3 lets no driver write vm_flags itself. */
static inline void tr_vm_never_write(struct vm_area_struct *vma)
{
#if KERNEL_VERSION(6, 3, 0) <= LINUX_VERSION_CODE
	vm_flags_clear(vma, VM_MAYWRITE);
#else
	vma->vm_flags &= ~VM_MAYWRITE;
#endif
}

/* 6.4 hands drivers the whole SQE, 6.8 moved all this to a header of its own. */
#if KERNEL_VERSION(6, 8, 0) <= LINUX_VERSION_CODE
#include <linux/io_uring/cmd.h>
#endif
static inline const void *tr_uring_payload(const struct io_uring_cmd *cmd)
{
#if KERNEL_VERSION(6, 4, 0) <= LINUX_VERSION_CODE
	return cmd->sqe->cmd;
#else
	return cmd->cmd;
#endif
}

/* 6.7 hands out shrinkers; before, they lie in the user's object as `own`. */
#if KERNEL_VERSION(6, 7, 0) <= LINUX_VERSION_CODE
#define tr_shrinker_data(shrinker, type)	((type *)(shrinker)->private_data)
#define tr_shrinker_end(shrinker)		shrinker_free(shrinker)
#define tr_shrinker_start(object, count, scan, name) ({				\
	struct shrinker *_shrinker = shrinker_alloc(0, "terrace:%s", name);	\
										\
	if (_shrinker) {							\
		_shrinker->private_data = (object);				\
		_shrinker->count_objects = (count);				\
		_shrinker->scan_objects = (scan);				\
		_shrinker->seeks = DEFAULT_SEEKS;				\
		shrinker_register(_shrinker);					\
	}									\
	_shrinker; })
#else
#define TR_SHRINKER_OWN
#define tr_shrinker_data(shrinker, type)	container_of(shrinker, type, own)
#define tr_shrinker_end(shrinker) do {						\
	if (shrinker)								\
		unregister_shrinker(shrinker);					\
} while (0)
#define tr_shrinker_start(object, count, scan, name) ({				\
	(object)->own.count_objects = (count);					\
	(object)->own.scan_objects = (scan);					\
	(object)->own.seeks = DEFAULT_SEEKS;					\
	register_shrinker(&(object)->own, "terrace:%s", name) ? NULL : &(object)->own; })
#endif

/* 6.5 gave block device modes a type of their own. */
#if KERNEL_VERSION(6, 5, 0) <= LINUX_VERSION_CODE
#define TR_MODE_MAY_WRITE	BLK_OPEN_WRITE
#else
#define TR_MODE_MAY_WRITE	FMODE_WRITE
#endif

#endif
