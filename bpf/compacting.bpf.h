/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Threads that compact: their reads heat nothing. Written by lsm.bpf.c and the daemon, read by heat.bpf.c, which are
 * loaded apart: the daemon makes these maps of one the other's.
 */
#ifndef TERRACE_COMPACTING_BPF_H
#define TERRACE_COMPACTING_BPF_H

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);				/* thread */
	__type(value, __u8);
	__uint(max_entries, TERRACE_HEAT_IGNORED);
} ignored SEC(".maps");

/* Whether there may be any; the daemon says no when it has found none. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} any_ignored SEC(".maps");

static inline int is_ignored(__u32 thread)
{
	__u32 zero = 0, *any = bpf_map_lookup_elem(&any_ignored, &zero);

	return any && *any && bpf_map_lookup_elem(&ignored, &thread);
}

static inline void ignore(__u32 thread)
{
	__u32 zero = 0, *any = bpf_map_lookup_elem(&any_ignored, &zero);
	__u8 one = 1;

	if (any && !bpf_map_update_elem(&ignored, &thread, &one, BPF_ANY))
		*any = 1;
}

#endif
