/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What threads do with tables, as far as it tells at once who compacts: one that has begun to read a table from its
 * beginning and writes another. A query may read the first block of a table, but creates none.
 *
 * What it reads before its first output is a scan's as well as a compaction's. Databases keep threads for compactions: one that has
 * been seen to compact is taken for one that does again, until it has read so much and written nothing.
 */
#ifndef TERRACE_WORK_BPF_H
#define TERRACE_WORK_BPF_H

#include "compacting.bpf.h"

#define READS_TRUSTED	64	/* told ones: 8 MiB in a row, or as many inputs begun */

__u32 marks;		/* the use is switched on */

struct work {
	__u64 output;		/* the table it writes, its inode; 0: none */
	__u64 grows;		/* the same, or what it has created last, whatever its name */
	__u32 reads;
	__u32 trusted;		/* so many reads more are a compaction's, for it was one before */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, __u32);
	__type(value, struct work);
	__uint(max_entries, 1024);
} works SEC(".maps");

static struct work *work_of(__u32 thread)
{
	struct work none = { };

	if (!bpf_map_lookup_elem(&works, &thread))
		bpf_map_update_elem(&works, &thread, &none, BPF_ANY);
	return bpf_map_lookup_elem(&works, &thread);
}

static void judge(__u32 thread, struct work *w)
{
	if (!marks || !w->reads)
		return;
	if (w->output)
		w->trusted = READS_TRUSTED;
	else if (w->trusted)
		w->trusted--;
	else
		return;
	ignore(thread);
}

static void reads_through(void)
{
	__u32 thread = bpf_get_current_pid_tgid();
	struct work *w = work_of(thread);

	if (!w)
		return;
	w->reads = 1;
	judge(thread, w);
}

static void writes(__u64 inode, int table)
{
	__u32 thread = bpf_get_current_pid_tgid();
	struct work *w = work_of(thread);

	if (!w)
		return;
	if (table || !w->output)
		w->grows = inode;
	if (!table)
		return;
	w->output = inode;
	judge(thread, w);
}

/* What this thread is writing; 0: nothing that is known. */
static __u64 now_writes(void)
{
	__u32 thread = bpf_get_current_pid_tgid();
	struct work *w = bpf_map_lookup_elem(&works, &thread);

	return w ? w->grows : 0;
}

static void has_written(__u64 inode)
{
	__u32 thread = bpf_get_current_pid_tgid();
	struct work *w = bpf_map_lookup_elem(&works, &thread);

	if (w && w->grows == inode)
		w->grows = 0;
	if (w && w->output == inode) {
		w->output = 0;
		w->reads = 0;
	}
}

/* ".sst", ".ldb"; @bytes: with its end. */
static int names_table(const char *name, long bytes)
{
	if (bytes < 6 || bytes > TERRACE_FILE_NAME)
		return 0;
	name += bytes - 5;
	return name[0] == '.' && ((name[1] == 's' && name[2] == 's' && name[3] == 't') ||
				  (name[1] == 'l' && name[2] == 'd' && name[3] == 'b'));
}

#endif
