/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints; Documentation/target.md says what they mean. Their arguments are
 * numbers only: an out-of-tree module has no type information, and BPF programs
 * (raw tracepoints) can read these all the same.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM terrace

#if !defined(DM_TERRACE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define DM_TERRACE_TRACE_H

#include <linux/kdev_t.h>
#include <linux/tracepoint.h>

TRACE_EVENT(terrace_access,
	TP_PROTO(u32 dev, u64 block, u32 count, u32 op, u32 where, u32 thread),
	TP_ARGS(dev, block, count, op, where, thread),
	TP_STRUCT__entry(
		__field(u32, dev)
		__field(u32, count)
		__field(u64, block)
		__field(u32, op)
		__field(u32, where)
		__field(u32, thread)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->count = count;
		__entry->block = block;
		__entry->op = op;
		__entry->where = where;
		__entry->thread = thread;
	),
	TP_printk("dev=%u:%u block=%llu count=%u op=%u where=%u thread=%u", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->block, __entry->count, __entry->op, __entry->where,
		  __entry->thread)
);

TRACE_EVENT(terrace_end,
	TP_PROTO(u32 dev, u32 tier, u32 op, u64 nanoseconds),
	TP_ARGS(dev, tier, op, nanoseconds),
	TP_STRUCT__entry(
		__field(u64, nanoseconds)
		__field(u32, dev)
		__field(u32, tier)
		__field(u32, op)
	),
	TP_fast_assign(
		__entry->nanoseconds = nanoseconds;
		__entry->dev = dev;
		__entry->tier = tier;
		__entry->op = op;
	),
	TP_printk("dev=%u:%u tier=%u op=%u nanoseconds=%llu", MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->tier, __entry->op, __entry->nanoseconds)
);

TRACE_EVENT(terrace_move,
	TP_PROTO(u32 dev, u64 region, u32 mode, s32 error, u32 down, u32 up, u32 dropped, u32 raced),
	TP_ARGS(dev, region, mode, error, down, up, dropped, raced),
	TP_STRUCT__entry(
		__field(u64, region)
		__field(u32, dev)
		__field(u32, mode)
		__field(s32, error)
		__field(u32, down)
		__field(u32, up)
		__field(u32, dropped)
		__field(u32, raced)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->region = region;
		__entry->mode = mode;
		__entry->error = error;
		__entry->down = down;
		__entry->up = up;
		__entry->dropped = dropped;
		__entry->raced = raced;
	),
	TP_printk("dev=%u:%u region=%llu mode=%u error=%d down=%u up=%u dropped=%u raced=%u",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->region, __entry->mode,
		  __entry->error, __entry->down, __entry->up, __entry->dropped, __entry->raced)
);

TRACE_EVENT(terrace_commit,
	TP_PROTO(u32 dev, u64 durable, u64 nanoseconds),
	TP_ARGS(dev, durable, nanoseconds),
	TP_STRUCT__entry(
		__field(u64, durable)
		__field(u64, nanoseconds)
		__field(u32, dev)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->durable = durable;
		__entry->nanoseconds = nanoseconds;
	),
	TP_printk("dev=%u:%u durable=%llu nanoseconds=%llu", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->durable, __entry->nanoseconds)
);

TRACE_EVENT(terrace_promote,
	TP_PROTO(u32 dev, u64 block, u32 count, u32 tier),
	TP_ARGS(dev, block, count, tier),
	TP_STRUCT__entry(
		__field(u64, block)
		__field(u32, dev)
		__field(u32, count)
		__field(u32, tier)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->block = block;
		__entry->count = count;
		__entry->tier = tier;
	),
	TP_printk("dev=%u:%u block=%llu count=%u tier=%u", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->block, __entry->count, __entry->tier)
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
