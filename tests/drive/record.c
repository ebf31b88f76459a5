// SPDX-License-Identifier: GPL-2.0
/*
 * A record of what reaches the drives, for programs that build the states
 * power cuts could leave (tests/explore).
 *
 *	echo 64m > /sys/module/dm_drive/parameters/record	begin, with so much room
 *	/dev/drive-record		write: append a mark; read: the record
 *	echo 0 > .../record		end, and forget
 *
 * All drives and all marks share one order: each record is appended under one
 * lock, a command's before it can have an effect, its completion before anybody
 * is told. So every prefix of the record is a moment at which the power could
 * have gone. What does not fit is dropped, which the last record and the
 * kernel's log say.
 */
#include <linux/highmem.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "drive.h"
#include "record.h"

#define HEAD_BYTES	sizeof(struct drive_record)

static DEFINE_MUTEX(record_mutex);	/* beginning, ending, reading */
static DEFINE_SPINLOCK(record_lock);	/* protects the following; taken in interrupts */
static u8 *room;
static size_t room_bytes, used_bytes;
static bool full;
static u16 nr_drives;
static u64 last_id;
static u32 generation;			/* of the record: drives introduce themselves to each */

static void overrun(void)
{
	struct drive_record *r = (void *)(room + used_bytes);

	memset(r, 0, HEAD_BYTES);
	r->kind = RECORD_OVERRUN;
	used_bytes += HEAD_BYTES;
	full = true;
	DMERR("the record is full: what comes now is not in it");
}

/* Room for a record with @bytes of data, its head filled in; or NULL. */
static struct drive_record *append(u8 kind, u16 drive, u32 bytes)
{
	size_t size = HEAD_BYTES + ALIGN(bytes, 8);
	struct drive_record *r;

	lockdep_assert_held(&record_lock);
	if (!room || full)
		return NULL;
	if (used_bytes + size + HEAD_BYTES > room_bytes) {
		overrun();
		return NULL;
	}
	r = (void *)(room + used_bytes);
	memset(r, 0, HEAD_BYTES);
	r->kind = kind;
	r->drive = drive;
	r->data_bytes = bytes;
	used_bytes += size;
	return r;
}

static void introduce(struct drive *d)
{
	struct drive_record *r;
	struct drive_record_drive *who;

	if (d->recorded_in == generation)
		return;
	r = append(RECORD_DRIVE, nr_drives, sizeof(*who));
	if (!r)
		return;
	who = (void *)(r + 1);
	memset(who, 0, sizeof(*who));
	who->bytes = d->bytes;
	who->atom = d->config.atom;
	strscpy(who->name, d->name, sizeof(who->name));
	d->recorded_as = nr_drives++;
	d->recorded_in = generation;
}

static struct drive_record *append_of(struct drive *d, u8 kind, u32 bytes)
{
	if (!room)
		return NULL;
	introduce(d);
	return append(kind, d->recorded_as, bytes);
}

/**
 * drive_record_command() - a write, discard or flush takes effect
 * @d: the drive
 * @op: the command; of a write the data are still all to be moved
 */
void drive_record_command(struct drive *d, struct drive_op *op)
{
	bool data = op->cmd.kind == DRIVE_WRITE;
	struct bvec_iter iter = op->iter;
	struct drive_record *r;
	unsigned long flags;

	if (!READ_ONCE(room))
		return;
	spin_lock_irqsave(&record_lock, flags);
	r = append_of(d, op->cmd.kind == DRIVE_FLUSH ? RECORD_FLUSH : data ? RECORD_WRITE : RECORD_ZERO,
		      data ? op->cmd.bytes : 0);
	if (r) {
		op->recorded = r->id = ++last_id;
		r->start = op->cmd.start;
		r->bytes = op->cmd.kind == DRIVE_FLUSH ? 0 : op->cmd.bytes;
		r->flags = op->fua ? RECORD_DURABLE : 0;
		if (data)
			drive_media_take(r + 1, op->bio, &iter, op->cmd.bytes);
	}
	spin_unlock_irqrestore(&record_lock, flags);
}

/**
 * drive_record_done() - it has completed; nobody knows yet
 * @d: the drive
 * @op: the command
 * @durable: of a write: and it needs no flush
 */
void drive_record_done(struct drive *d, const struct drive_op *op, bool durable)
{
	struct drive_record *r;
	unsigned long flags;

	if (!op->recorded)
		return;
	spin_lock_irqsave(&record_lock, flags);
	r = append_of(d, op->cmd.kind == DRIVE_FLUSH ? RECORD_FLUSHED : RECORD_DONE, 0);
	if (r) {
		r->id = op->recorded;
		r->flags = durable ? RECORD_DURABLE : 0;
	}
	spin_unlock_irqrestore(&record_lock, flags);
}

/* After a power cut, before the log is forgotten: its blocks as they are now. */
void drive_record_cut(struct drive *d)
{
	struct drive_write *w;
	struct drive_undo *u;
	struct drive_record *r;
	struct page *page;
	unsigned long flags;

	if (!READ_ONCE(room))
		return;
	spin_lock_irqsave(&record_lock, flags);
	append_of(d, RECORD_CUT, 0);
	list_for_each_entry(w, &d->log, log) {
		list_for_each_entry(u, &w->blocks, of_write) {
			r = append_of(d, RECORD_LEFT, BLOCK_BYTES);
			if (!r)
				continue;
			r->start = u->block << BLOCK_SHIFT;
			r->bytes = BLOCK_BYTES;
			page = drive_media_page(d, u->block);
			if (page)
				memcpy(r + 1, page_address(page), BLOCK_BYTES);
			else
				memset(r + 1, 0, BLOCK_BYTES);
		}
	}
	spin_unlock_irqrestore(&record_lock, flags);
}

/* ---- user space ---- */

static ssize_t read_record(struct file *file, char __user *to, size_t bytes, loff_t *at)
{
	unsigned long flags;
	size_t end;
	ssize_t r;

	mutex_lock(&record_mutex);
	spin_lock_irqsave(&record_lock, flags);
	end = used_bytes;
	spin_unlock_irqrestore(&record_lock, flags);
	r = simple_read_from_buffer(to, bytes, at, room, end);
	mutex_unlock(&record_mutex);
	return r;
}

/* A mark that finds no record is no error: who marks need not know. */
static ssize_t write_mark(struct file *file, const char __user *from, size_t bytes, loff_t *at)
{
	u8 data[RECORD_MAX_MARK];
	struct drive_record *r;
	unsigned long flags;

	if (!bytes || bytes > sizeof(data))
		return -EINVAL;
	if (copy_from_user(data, from, bytes))
		return -EFAULT;
	spin_lock_irqsave(&record_lock, flags);
	r = append(RECORD_MARK, 0, bytes);
	if (r)
		memcpy(r + 1, data, bytes);
	spin_unlock_irqrestore(&record_lock, flags);
	return bytes;
}

static const struct file_operations record_fops = {
	.owner = THIS_MODULE,
	.read = read_record,
	.write = write_mark,
	.llseek = default_llseek,
};

static struct miscdevice record_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "drive-record",
	.fops = &record_fops,
	.mode = 0600,
};

static void begin(u8 *buffer, size_t bytes)
{
	unsigned long flags;
	u8 *old;

	mutex_lock(&record_mutex);
	spin_lock_irqsave(&record_lock, flags);
	old = room;
	room = buffer;
	room_bytes = bytes;
	used_bytes = 0;
	full = false;
	nr_drives = 0;
	generation++;
	spin_unlock_irqrestore(&record_lock, flags);
	mutex_unlock(&record_mutex);
	vfree(old);
}

static int set_record(const char *text, const struct kernel_param *kp)
{
	u8 *buffer = NULL;
	u64 bytes;

	if (drive_parse_number(strim((char *)text), &bytes, false) || bytes > MAX_RECORD_BYTES)
		return -EINVAL;
	if (bytes) {
		buffer = vzalloc(bytes);
		if (!buffer)
			return -ENOMEM;
	}
	begin(buffer, bytes);
	return 0;
}

static int get_record(char *text, const struct kernel_param *kp)
{
	return sysfs_emit(text, "%zu of %zu%s\n", used_bytes, room_bytes, full ? " full" : "");
}

static const struct kernel_param_ops record_ops = { .set = set_record, .get = get_record };
module_param_cb(record, &record_ops, NULL, 0600);
MODULE_PARM_DESC(record, "Size of a record of all writes and flushes, 0: none");

int drive_record_init(void)
{
	return misc_register(&record_device);
}

void drive_record_exit(void)
{
	misc_deregister(&record_device);
	begin(NULL, 0);
}
