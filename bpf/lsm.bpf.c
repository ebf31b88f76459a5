// SPDX-License-Identifier: GPL-2.0
/*
 * The life of files on watched filesystems: created, appended to, synced,
 * closed, read through, renamed, unlinked, dead. It is what a database made of
 * immutable files (an LSM tree) shows of itself from below.
 *
 * Reads and writes are followed here and told once per TERRACE_FILE_STEP in a
 * row, so that the daemon's work depends on bytes, not on calls:
 *
 *	pread 4 KiB at 0, 4 KiB, 8 KiB, ...	one READ event per 128 KiB; per 64 KiB of a thread that writes a file
 *	pread 4 KiB anywhere but at 0		none
 *	pread 4 KiB at 0, again and again	one per 100 ms
 *
 * A thread that reads tables through while it writes one compacts: it is marked at once, for the daemon hears of it
 * only with its next tick, and takes back what it finds to be none. Only names that are tables' for certain count here.
 *
 * A thread has a cursor of its own in each file: queries do not disturb what a
 * compaction reads. Death is the eviction of an inode without names: an open
 * snapshot keeps its files alive.
 *
 * All hooks are entries, or ends, of functions that 6.1 and 6.12 share. Of types only the
 * fields below are used, found by name (CO-RE). Maps are bounded: the least
 * recently used cursor is forgotten, which its writer's close tells. Events that find no room are counted.
 */
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "kernel.bpf.h"
#include "terrace_bpf.h"
#include "work.bpf.h"

#define FMODE_WRITE	0x2
#define FMODE_CREATED	0x100000
#define ATTR_SIZE	8
#define FALLOC_FL_KEEP_SIZE 1
#define O_APPEND	02000
#define PAGE		4096
#define AGAIN_NS	100000000ull	/* between two times that a thread tells of the beginning of a file */
#define SKIP		65536	/* a row of reads may leave out so much: what was cached */

char LICENSE[] SEC("license") = "GPL";

__u64 lost;	/* events; what was lost is not told, only that */
__u32 woken;	/* whoever reads them, since he has read last */

struct cursor_key {
	__u64 inode;
	__u32 dev;
	__u32 thread;		/* 0: the file's writer, whoever that is */
};

struct cursor {
	__u64 next;		/* where the row goes on */
	__u64 told;		/* up to here */
	__u64 begun_ns;		/* when its beginning was told last */
	__u32 generation;
	__u32 flags;		/* TERRACE_FILE_ASTRAY */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, __u8);
	__uint(max_entries, 64);
} watched SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, struct cursor_key);
	__type(value, struct cursor);
	__uint(max_entries, 32768);
} cursors SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

static int is_watched(struct inode *inode)
{
	__u32 dev;

	if (!inode)
		return 0;
	dev = inode->i_sb->s_dev;
	return bpf_map_lookup_elem(&watched, &dev) != NULL;
}

static struct terrace_file_event *event_of(struct inode *inode, __u8 what)
{
	struct terrace_file_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	__u64 id = bpf_get_current_pid_tgid();

	if (!e) {
		__sync_fetch_and_add(&lost, 1);
		return NULL;
	}
	__builtin_memset(e, 0, sizeof(*e));
	e->nanoseconds = bpf_ktime_get_ns();
	e->inode = inode->i_ino;
	e->generation = inode->i_generation;
	e->dev = inode->i_sb->s_dev;
	e->thread = (__u32)id;
	e->process = id >> 32;
	e->size = inode->i_size;
	e->what = what;
	return e;
}

/* Whoever reads them comes by often enough, but for these: see lsm_fd() in daemon/sense/lsm.h. */
static void submit(struct terrace_file_event *e)
{
	int now = e->what == TERRACE_FILE_DIED || e->what == TERRACE_FILE_CLOSED || (e->what == TERRACE_FILE_WRITTEN && !e->from);

	now = now && !woken;
	if (now)
		woken = 1;
	bpf_ringbuf_submit(e, now ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

static void tell(struct inode *inode, __u8 what)
{
	struct terrace_file_event *e = event_of(inode, what);

	if (e)
		submit(e);
}

/* Whether its name is a table's. */
static int tell_named(struct inode *inode, __u8 what, struct dentry *dentry)
{
	struct terrace_file_event *e = event_of(inode, what);
	int table;
	long n;

	if (!e)
		return 0;
	n = bpf_probe_read_kernel_str(e->name, sizeof(e->name), dentry->d_name.name);
	table = names_table(e->name, n);
	e->parent = dentry->d_parent->d_inode->i_ino;
	submit(e);
	return table;
}

/* ---- reads and writes ---------------------------------------------------------------- */

static struct cursor_key key_of(struct inode *inode, __u32 thread)
{
	struct cursor_key key = {
		.inode = inode->i_ino, .dev = inode->i_sb->s_dev, .thread = thread,
	};

	return key;
}

static void tell_row(struct inode *inode, __u8 what, struct cursor *c, __u32 flags)
{
	struct terrace_file_event *e = event_of(inode, what);

	if (e) {
		e->from = c->told;
		e->to = c->next;
		e->flags = flags;
		submit(e);
	}
	c->told = c->next;
}

/* The last of the row began at @last. How far its thread's output has come belongs to that. */
static void tell_read(struct inode *inode, struct cursor *c, __u64 last)
{
	struct cursor_key key = key_of(inode, 0);
	struct terrace_file_event *e;
	struct cursor *out;
	__u64 written = 0;

	key.inode = now_writes();
	out = bpf_map_lookup_elem(&cursors, &key);
	if (out)
		written = out->next;
	e = event_of(inode, TERRACE_FILE_READ);
	if (e) {
		e->from = c->told;
		e->to = c->next;
		e->last = last;
		e->output = out ? key.inode : 0;
		e->written = written;
		submit(e);
	}
	c->told = c->next;
}

/* One more of @bytes would be too much at once, of a thread that writes; asked once for each step. */
static int is_worth_telling(const struct cursor *c, __u64 before, __u64 bytes)
{
	return before - c->told < TERRACE_FILE_STEP_WRITING && c->next + bytes - c->told > TERRACE_FILE_STEP_WRITING &&
	       now_writes();
}

static int passes_end(const struct inode *inode, __u64 before, __u64 after)
{
	__u64 mark = inode->i_size - terrace_file_rest(inode->i_size);

	return before < mark && after >= mark;
}

static void follow_read(struct inode *inode, __u64 from, __u64 bytes)
{
	struct cursor_key key = key_of(inode, (__u32)bpf_get_current_pid_tgid());
	struct cursor fresh = { .next = from + bytes, .told = from };
	struct cursor *c = bpf_map_lookup_elem(&cursors, &key);
	__u64 before, now;

	if (from >= inode->i_size)
		return;
	fresh.generation = inode->i_generation;
	fresh.begun_ns = c && c->generation == fresh.generation ? c->begun_ns : 0;
	if (!c || c->generation != fresh.generation || from + PAGE < c->next || from > c->next + SKIP) {
		/* elsewhere: a query; or a file from its beginning, which is worth telling */
		now = from ? 0 : bpf_ktime_get_ns();
		/* not told: what follows in a row is told from the beginning on */
		if (!from && (now - fresh.begun_ns >= AGAIN_NS || bytes >= TERRACE_FILE_STEP || passes_end(inode, 0, bytes))) {
			fresh.begun_ns = now;
			tell_read(inode, &fresh, from);
			reads_through();
		}
		/* In place: each query comes here, and a new entry takes longer than all the rest of this. */
		if (c)
			*c = fresh;
		else
			bpf_map_update_elem(&cursors, &key, &fresh, BPF_ANY);
		return;
	}
	if (from + bytes <= c->next)
		return;
	before = c->next;
	c->next = from + bytes;
	if (c->next - c->told >= TERRACE_FILE_STEP || passes_end(inode, before, c->next) || is_worth_telling(c, before, bytes)) {
		tell_read(inode, c, before);
		reads_through();
	}
}

/* Only files whose creation was seen have this cursor. */
static void follow_write(struct file *file, struct inode *inode, __u64 from, __u64 bytes)
{
	struct cursor_key key = key_of(inode, 0);
	struct cursor *c = bpf_map_lookup_elem(&cursors, &key);

	if (!c || c->generation != inode->i_generation)
		return;
	if (file->f_flags & O_APPEND)
		from = c->next;
	/* direct I/O writes a last page again when it is full */
	if (from > c->next || from + PAGE < c->next)
		c->flags |= TERRACE_FILE_ASTRAY;
	if (from + bytes > c->next)
		c->next = from + bytes;
	if (c->next - c->told >= TERRACE_FILE_STEP)
		tell_row(inode, TERRACE_FILE_WRITTEN, c, c->flags);
}

SEC("fentry/rw_verify_area")
int BPF_PROG(on_rw, int write, struct file *file, const long long *ppos, unsigned long count)
{
	struct inode *inode = file->f_inode;
	__u64 from = 0;

	if (!ppos || !is_watched(inode))
		return 0;
	bpf_probe_read_kernel(&from, sizeof(from), ppos);
	if (write)
		follow_write(file, inode, from, count);
	else
		follow_read(inode, from, count);
	return 0;
}

/* Databases that map their files read by faults. */
SEC("fentry/filemap_map_pages")
int BPF_PROG(on_map, struct vm_fault *vmf, unsigned long first, unsigned long last)
{
	struct file *file = vmf->vma->vm_file;

	if (file && is_watched(file->f_inode))
		follow_read(file->f_inode, first * PAGE, (last - first + 1) * PAGE);
	return 0;
}

/* ---- names and life -------------------------------------------------------------------- */

SEC("fentry/security_file_open")
int BPF_PROG(on_open, struct file *file)
{
	struct inode *inode = file->f_inode;
	struct cursor fresh = { };
	struct cursor_key key;

	if (!(file->f_mode & FMODE_CREATED) || !is_watched(inode))
		return 0;
	fresh.generation = inode->i_generation;
	key = key_of(inode, 0);
	bpf_map_update_elem(&cursors, &key, &fresh, BPF_ANY);
	writes(inode->i_ino, tell_named(inode, TERRACE_FILE_CREATED, file->f_path.dentry));
	return 0;
}

/* What every fsync of ext4 and xfs begins with; vfs_fsync_range() may be inlined into its callers. */
SEC("fentry/file_write_and_wait_range")
int BPF_PROG(on_sync, struct file *file)
{
	if (is_watched(file->f_inode))
		tell(file->f_inode, TERRACE_FILE_SYNCED);
	return 0;
}

/* The last descriptor of an open goes. */
SEC("fentry/locks_remove_file")
int BPF_PROG(on_close, struct file *file)
{
	struct cursor none = { .flags = TERRACE_FILE_UNSEEN };
	struct inode *inode = file->f_inode;
	struct cursor_key key;
	struct cursor *c;

	if (!(file->f_mode & FMODE_WRITE) || !is_watched(inode))
		return 0;
	key = key_of(inode, 0);
	c = bpf_map_lookup_elem(&cursors, &key);
	/* Without it was there before, or has been forgotten: whoever knows it waits for this. */
	if (!c || c->generation != inode->i_generation)
		c = &none;
	tell_row(inode, TERRACE_FILE_CLOSED, c, c->flags);
	has_written(inode->i_ino);
	return 0;
}

/* ---- blocks that are its own no longer ------------------------------------------------------- */

static void tell_changed(struct inode *inode, __u32 flags)
{
	struct terrace_file_event *e;

	if (!is_watched(inode))
		return;
	e = event_of(inode, TERRACE_FILE_CHANGED);
	if (!e)
		return;
	e->flags = flags;
	submit(e);
}

/* truncate(2) and all its kin, when they are done: the daemon asks where the rest lies. */
SEC("fexit/notify_change")
int BPF_PROG(on_cut, void *map, struct dentry *dentry, struct iattr *attr)
{
	if (attr->ia_valid & ATTR_SIZE)
		tell_changed(dentry->d_inode, 0);
	return 0;
}

/* Holes, collapsed and inserted ranges; room ahead takes nothing away. */
SEC("fexit/vfs_fallocate")
int BPF_PROG(on_fallocate, struct file *file, int mode)
{
	if (mode & ~FALLOC_FL_KEEP_SIZE)
		tell_changed(file->f_inode, 0);
	return 0;
}

/* What filesystems begin with when files are to share blocks. */
SEC("fentry/generic_remap_file_range_prep")
int BPF_PROG(on_share, struct file *in, long long at, struct file *out)
{
	tell_changed(in->f_inode, TERRACE_FILE_SHARED);
	tell_changed(out->f_inode, TERRACE_FILE_SHARED);
	return 0;
}

SEC("fentry/vfs_rename")
int BPF_PROG(on_rename, struct renamedata *rd)
{
	struct inode *inode = rd->old_dentry->d_inode;

	if (is_watched(inode))
		tell_named(inode, TERRACE_FILE_RENAMED, rd->new_dentry);
	return 0;
}

SEC("fentry/vfs_unlink")
int BPF_PROG(on_unlink, void *map, struct inode *dir, struct dentry *dentry)
{
	struct terrace_file_event *e;

	if (!is_watched(dentry->d_inode))
		return 0;
	e = event_of(dentry->d_inode, TERRACE_FILE_UNLINKED);
	if (!e)
		return 0;
	e->size = dentry->d_inode->i_nlink - 1;
	submit(e);
	return 0;
}

SEC("fentry/clear_inode")
int BPF_PROG(on_death, struct inode *inode)
{
	struct cursor_key key;

	if (inode->i_nlink || !is_watched(inode))
		return 0;
	key = key_of(inode, 0);
	bpf_map_delete_elem(&cursors, &key);
	tell(inode, TERRACE_FILE_DIED);
	return 0;
}
