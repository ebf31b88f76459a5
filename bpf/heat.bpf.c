// SPDX-License-Identifier: GPL-2.0
/*
 * Block heat: what a volume is asked for, gathered per CPU.
 *
 *	terrace_access		the module's raw tracepoint (numbers only): an entry per range
 *				of blocks, with a count of hits
 *	terrace_end		how long those took that the module's own sampling tells of
 *
 * For example, a scan of 64 KiB reads leaves one entry of 1024 blocks per 4 MiB;
 * a block read 50 times between two drains one entry with hits = 50.
 *
 * Tables are written by the CPU they belong to, with preemption off, and a
 * program never interrupts itself, so nothing is locked. The daemon turns `half`
 * over at each drain and reads the other half one drain later, when whoever was
 * still writing to it is long done.
 *
 * Reads by threads in `ignored` heat nothing: compactions. They are counted. Who marks them is the daemon,
 * and lsm.bpf.c, which shares these maps, at once (compacting.bpf.h).
 *
 * Reads that were not fast and discards are never sampled away; see
 * sense/heat.c for how `mask` adapts.
 */
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "terrace.h"
#include "terrace_bpf.h"
#include "compacting.bpf.h"

char LICENSE[] SEC("license") = "GPL";

const volatile __u32 volume_dev;			/* as the kernel numbers it */
__u32 half;
__u32 mask;						/* of so many + 1 accesses one is kept */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct terrace_heat_table);
	__uint(max_entries, 2);				/* 2 per CPU, set when loading */
} heat SEC(".maps");

static struct terrace_heat_table *table_now(void)
{
	__u32 key = bpf_get_smp_processor_id() * 2 + (half & 1);

	return bpf_map_lookup_elem(&heat, &key);
}

/* An access goes on where the last entry ended: a scan. */
static int extends(struct terrace_heat_table *t, __u64 block, __u32 count, __u16 kind)
{
	struct terrace_heat_entry *last = &t->entry[(t->nr - 1) & (TERRACE_HEAT_ENTRIES - 1)];

	if (!t->nr || last->kind != kind || last->hits != 1 || last->block + last->count != block ||
	    last->count + count > TERRACE_HEAT_MERGE)
		return 0;
	last->count += count;
	return 1;
}

static void add(struct terrace_heat_table *t, __u64 block, __u32 count, __u16 kind)
{
	__u32 slot = (block * 0x9e3779b97f4a7c15ull) >> 53;
	__u32 n = t->slot[slot & (TERRACE_HEAT_SLOTS - 1)];
	struct terrace_heat_entry *e = &t->entry[n & (TERRACE_HEAT_ENTRIES - 1)];

	if (n < t->nr && e->block == block && e->count == count && e->kind == kind &&
	    e->hits < 0xffff) {
		e->hits++;
		return;
	}
	if (extends(t, block, count, kind))
		return;
	n = t->nr;
	if (n >= TERRACE_HEAT_ENTRIES) {
		t->dropped++;
		return;
	}
	e = &t->entry[n & (TERRACE_HEAT_ENTRIES - 1)];
	e->block = block;
	e->count = count;
	e->kind = kind;
	e->hits = 1;
	t->slot[slot & (TERRACE_HEAT_SLOTS - 1)] = n;
	t->nr = n + 1;
}

/* dev, block, count, op, where, thread */
SEC("raw_tp/terrace_access")
int heat_access(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 op = ctx->args[3], where = ctx->args[4];
	struct terrace_heat_table *t;

	if ((__u32)ctx->args[0] != volume_dev)
		return 0;
	t = table_now();
	if (!t)
		return 0;
	if (op == TERRACE_OP_WRITE ||
	    (op == TERRACE_OP_READ && !(where & (TERRACE_WHERE_SLOW | TERRACE_WHERE_NOWHERE))))
		if (mask && t->skipped++ & mask)
			return 0;
	if (op == TERRACE_OP_READ && !(where & TERRACE_WHERE_NOWHERE))
		t->reads[where & (TERRACE_HEAT_TIERS - 1)]++;
	if (op == TERRACE_OP_READ && is_ignored(ctx->args[5])) {
		t->ignored++;
		return 0;
	}
	add(t, ctx->args[1], ctx->args[2], (where & 0xfff) | op << 12);
	return 0;
}

/* ---- how long they took ------------------------------------------------------------ */

/* dev, tier, op, nanoseconds */
SEC("raw_tp/terrace_end")
int heat_end(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 tier = ctx->args[1] & (TERRACE_HEAT_TIERS - 1), op = ctx->args[2] & 1;
	struct terrace_heat_table *t;

	if ((__u32)ctx->args[0] != volume_dev)
		return 0;
	t = table_now();
	if (t)
		t->latency[tier][op][terrace_heat_bucket(ctx->args[3] / 1000)]++;
	return 0;
}
