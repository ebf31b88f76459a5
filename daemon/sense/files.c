// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files by inode, and what each event means for them; jobs are in jobs.c.  See files.h.
 */
#include "sense/files.h"

#include <string.h>

#include "sense/jobs.h"

/* ---- names ------------------------------------------------------------------------------ */

#define LOOK_NS		5000000000ull	/* between looks for outputs that grow no more */
#define QUIET_NS	60000000000ull	/* they have been closed unheard; one that is slower than that is told anew */

#define LOG_STEP	(1u << 20)	/* between two times that a log is told to grow, while it is not known where it will lie */

#define ROCKSDB		FILE_PROFILE_ROCKSDB
#define LEVELDB		FILE_PROFILE_LEVELDB
#define CASSANDRA	FILE_PROFILE_CASSANDRA

static const struct name {
	uint32_t profiles;
	enum file_kind kind;
	enum file_pins pins;
	bool at_end;
	const char *text;
} names[] = {
	{ ROCKSDB | LEVELDB, FILE_TABLE, FILE_PINS_END, true, ".sst" },
	{ ROCKSDB | LEVELDB, FILE_TABLE, FILE_PINS_END, true, ".ldb" },
	{ ROCKSDB, FILE_TABLE, FILE_PINS_END, true, ".blob" },
	{ CASSANDRA, FILE_TABLE, FILE_PINS_NOTHING, true, "-Data.db" },
	{ ROCKSDB | LEVELDB, FILE_META, FILE_PINS_NOTHING, false, "MANIFEST" },
	{ ROCKSDB | LEVELDB, FILE_META, FILE_PINS_NOTHING, false, "CURRENT" },
	{ ROCKSDB | LEVELDB, FILE_META, FILE_PINS_NOTHING, false, "LOG" },
	{ ROCKSDB | LEVELDB, FILE_META, FILE_PINS_NOTHING, false, "LOCK" },
	{ ROCKSDB, FILE_META, FILE_PINS_NOTHING, false, "OPTIONS" },
	{ ROCKSDB, FILE_META, FILE_PINS_NOTHING, false, "IDENTITY" },
	{ ROCKSDB | LEVELDB, FILE_META, FILE_PINS_NOTHING, true, ".dbtmp" },
	{ CASSANDRA, FILE_META, FILE_PINS_ALL, true, "-Index.db" },
	{ CASSANDRA, FILE_META, FILE_PINS_ALL, true, "-Filter.db" },
	{ CASSANDRA, FILE_META, FILE_PINS_ALL, true, "-Partitions.db" },
	{ CASSANDRA, FILE_META, FILE_PINS_ALL, true, "-Rows.db" },
	{ CASSANDRA, FILE_META, FILE_PINS_NOTHING, true, "-Summary.db" },
	{ CASSANDRA, FILE_META, FILE_PINS_NOTHING, true, "-Statistics.db" },
	{ CASSANDRA, FILE_META, FILE_PINS_NOTHING, true, "-TOC.txt" },
	{ CASSANDRA, FILE_META, FILE_PINS_NOTHING, true, "-Digest.crc32" },
	{ CASSANDRA, FILE_META, FILE_PINS_NOTHING, true, "-CompressionInfo.db" },
	{ ROCKSDB | LEVELDB, FILE_LOG, FILE_PINS_NOTHING, true, ".log" },
	{ CASSANDRA, FILE_LOG, FILE_PINS_NOTHING, false, "CommitLog-" },
};

static bool is_called(const struct name *n, const char *name)
{
	size_t length = strlen(name), part = strlen(n->text);

	return n->at_end ? length > part && !strcmp(name + length - part, n->text) : !strncmp(name, n->text, part);
}

static const struct name *name_of(const char *name, uint32_t profiles)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].profiles & profiles && is_called(&names[i], name))
			return &names[i];
	return NULL;
}

enum file_kind file_kind_of(const char *name, uint32_t profiles)
{
	const struct name *n = name_of(name, profiles);

	if (n)
		return n->kind;
	return profiles & FILE_PROFILE_GENERIC ? FILE_UNKNOWN : FILE_OTHER;
}

enum file_pins file_pins_of(const char *name, uint32_t profiles)
{
	const struct name *n = name_of(name, profiles);

	return n ? n->pins : FILE_PINS_NOTHING;
}

/* ---- the table of files --------------------------------------------------------------- */

static uint32_t hash(const struct file_id *id)
{
	uint64_t x = (id->inode ^ (uint64_t)id->dev << 40) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(x >> 40) % FILES_MAX;
}

bool file_is(const struct file_id *a, const struct file_id *b)
{
	return a->inode == b->inode && a->generation == b->generation && a->dev == b->dev;
}

static struct file *find(struct files *f, const struct file_id *id)
{
	for (uint32_t n = f->chain[hash(id)]; n; n = f->file[n - 1].next)
		if (file_is(&f->file[n - 1].id, id))
			return &f->file[n - 1];
	return NULL;
}

const struct file *files_find(const struct files *f, const struct file_id *id)
{
	return find((struct files *)f, id);
}

const struct file *files_next_open(const struct files *f, uint32_t *at)
{
	while (*at < FILES_MAX) {
		const struct file *file = &f->file[(*at)++];

		if (file->serial && file->open && file->kind != FILE_META && file->kind != FILE_OTHER)
			return file;
	}
	return NULL;
}

static void has_no_name(struct files *f, struct file *file)
{
	uint32_t n = (uint32_t)(file - f->file) + 1;

	file->nameless = true;
	file->older = f->newest;
	*(f->newest ? &f->file[f->newest - 1].newer : &f->oldest) = n;
	f->newest = n;
}

static void has_name(struct files *f, struct file *file)
{
	if (!file->nameless)
		return;
	*(file->older ? &f->file[file->older - 1].newer : &f->oldest) = file->newer;
	*(file->newer ? &f->file[file->newer - 1].older : &f->newest) = file->older;
	file->nameless = false;
	file->older = file->newer = 0;
}

static void forget(struct files *f, struct file *file)
{
	uint32_t *link = &f->chain[hash(&file->id)], n = (uint32_t)(file - f->file) + 1;

	while (*link && *link != n)
		link = &f->file[*link - 1].next;
	if (*link)
		*link = file->next;
	has_name(f, file);
	f->nr--;
	memset(file, 0, sizeof(*file));
}

/* What was told of its growth holds no longer: nobody will hear that it is closed. */
static void let_go(struct files *f, struct file *file)
{
	if (file->told && file->open && f->tell.left)
		f->tell.left(f->tell.ctx, file);
	file->told = false;
}

static void lose(struct files *f, struct file *file)
{
	let_go(f, file);
	jobs_forgotten(f, file);
	forget(f, file);
}

/*
 * The next free place, else that of the oldest one without a name, which was only read, else the next one: the oldest, if
 * files die roughly in order.  Where there is none free that is not looked for: files may be read faster than that.
 */
static struct file *place(struct files *f)
{
	struct file *next = &f->file[(f->last + 1) % FILES_MAX];

	for (uint32_t i = 1; f->nr < FILES_MAX && i <= FILES_MAX; i++) {
		struct file *file = &f->file[(f->last + i) % FILES_MAX];

		if (!file->serial)
			return file;
	}
	next = f->oldest ? &f->file[f->oldest - 1] : next;
	f->stats.forgotten_files++;
	lose(f, next);
	return next;
}

static struct file *make(struct files *f, const struct file_id *id)
{
	struct file *file = place(f);
	uint32_t *head = &f->chain[hash(id)];

	f->last = (uint32_t)(file - f->file);
	*file = (struct file){ .id = *id, .serial = ++f->serial, .next = *head };
	*head = f->last + 1;
	f->nr++;
	return file;
}

static void call_it(struct files *f, struct file *file, const char *name, uint64_t parent)
{
	has_name(f, file);
	memset(file->name, 0, sizeof(file->name));
	memcpy(file->name, name, strnlen(name, sizeof(file->name) - 1));
	file->parent = parent;
	file->kind = file_kind_of(file->name, f->profiles);
	file->pins = file_pins_of(file->name, f->profiles);
}

static void name_it(struct files *f, struct file *file, const struct terrace_file_event *e)
{
	char name[sizeof(e->name)];

	memcpy(name, e->name, sizeof(name));
	name[sizeof(name) - 1] = 0;
	call_it(f, file, name, e->parent);
}

/* What is closed again of it is complete. */
void files_found(struct files *f, const struct file_id *id, uint64_t parent, const char *name, uint64_t size)
{
	struct file *file = find(f, id) ?: make(f, id);

	call_it(f, file, name, parent);
	file->synced = true;
	if (!file->open)
		file->size = size;
}

/* ---- events ------------------------------------------------------------------------------ */

static void created(struct files *f, const struct file_id *id, const struct terrace_file_event *e)
{
	struct file *file = find(f, id);

	if (file)		/* its death was lost */
		lose(f, file);
	file = make(f, id);
	name_it(f, file, e);
	file->open = true;
	file->thread = e->thread;
	f->stats.created++;
	jobs_created(f, file, e);
}

/* Logs, manifests and the like are often deleted without ever having been synced; their room has been allocated all the same. */
static bool is_complete(const struct file *file)
{
	if (file->astray || !file->size || file->kind == FILE_OTHER)
		return false;
	return file->kind == FILE_LOG || file->kind == FILE_META || file->synced;
}

static void closed(struct files *f, struct file *file, const struct terrace_file_event *e)
{
	/* Cut, or written on: RocksDB deletes large files piece by piece. It lies elsewhere now. */
	if (!file->open) {
		file->size = e->size;
		if ((is_complete(file) || !file->size) && f->tell.table)
			f->tell.table(f->tell.ctx, file);
		return;
	}
	file->open = false;
	file->size = e->size;
	file->astray |= e->flags & (TERRACE_FILE_ASTRAY | TERRACE_FILE_UNSEEN);
	f->stats.forgotten_writers += (e->flags & TERRACE_FILE_UNSEEN) != 0;
	f->stats.closed++;
	jobs_closed(f, file);
	if (is_complete(file) && f->tell.table)
		f->tell.table(f->tell.ctx, file);
	else if (!is_complete(file) && f->tell.left)
		f->tell.left(f->tell.ctx, file);
}

static void log_grows(struct files *f, struct file *file)
{
	if (file->kind != FILE_LOG || !file->open || file->written <= file->sought || !f->tell.log)
		return;
	file->sought = file->written + LOG_STEP;
	f->tell.log(f->tell.ctx, file);
}

static void begins(struct files *f, struct file *file, const struct terrace_file_event *e)
{
	if (!e->from && file->open && !file->told && file->kind == FILE_TABLE && f->tell.begun)
		f->tell.begun(f->tell.ctx, file);
}

void files_lies(struct files *f, const struct file_id *id, uint64_t bytes)
{
	struct file *file = find(f, id);

	if (file && bytes > file->sought)
		file->sought = bytes;
}

void files_lie_elsewhere(struct files *f)
{
	for (uint32_t i = 0; i < FILES_MAX; i++)
		f->file[i].sought = 0;
}

static void was_read(struct files *f, struct file *file, const struct file_id *id,
		     const struct terrace_file_event *e)
{
	/* One from before our time has no name, and is judged by what happens to it. */
	if (!file) {
		file = make(f, id);
		has_no_name(f, file);
	}
	if (!file->open)
		file->size = e->size;
	jobs_read(f, file, e);
}

static void died(struct files *f, struct file *file)
{
	f->stats.died++;
	jobs_died(f, file);
	if (f->tell.died)
		f->tell.died(f->tell.ctx, file);
	forget(f, file);
}

void files_event(struct files *f, const struct terrace_file_event *e)
{
	struct file_id id = { .inode = e->inode, .generation = e->generation, .dev = e->dev };
	struct file *file = find(f, &id);

	f->stats.events++;
	if (e->what == TERRACE_FILE_CREATED) {
		created(f, &id, e);
		return;
	}
	if (e->what == TERRACE_FILE_READ) {
		was_read(f, file, &id, e);
		return;
	}
	if (e->what == TERRACE_FILE_SYNCED || e->what == TERRACE_FILE_UNLINKED)
		jobs_synced(f, file, e->thread);
	if (e->what == TERRACE_FILE_CHANGED && f->tell.changed)
		f->tell.changed(f->tell.ctx, &id, e->flags & TERRACE_FILE_SHARED);
	/* One that was forgotten may still have a place. */
	if (!file && e->what == TERRACE_FILE_DIED && f->tell.died)
		f->tell.died(f->tell.ctx, &(struct file){ .id = id });
	if (!file)
		return;
	switch (e->what) {
	case TERRACE_FILE_SYNCED:
		file->synced = true;
		break;
	case TERRACE_FILE_WRITTEN:
		file->written = e->to;
		file->written_ns = e->nanoseconds;
		file->astray |= e->flags & TERRACE_FILE_ASTRAY;
		jobs_written(f, file, e);
		begins(f, file, e);
		log_grows(f, file);
		break;
	case TERRACE_FILE_CLOSED:
		closed(f, file, e);
		break;
	case TERRACE_FILE_RENAMED:
		name_it(f, file, e);
		jobs_renamed(f, file);
		break;
	case TERRACE_FILE_UNLINKED:
		file->unlinked = !e->size;
		break;
	case TERRACE_FILE_DIED:
		died(f, file);
		break;
	}
}

void files_tick(struct files *f, uint64_t now_ns)
{
	jobs_tick(f, now_ns);
	if (now_ns < f->looked_ns + LOOK_NS)
		return;
	f->looked_ns = now_ns;
	for (uint32_t i = 0; i < FILES_MAX; i++)
		if (f->file[i].told && now_ns >= f->file[i].written_ns + QUIET_NS)
			let_go(f, &f->file[i]);
}

void files_init(struct files *f, uint32_t profiles, const struct files_tell *tell)
{
	f->profiles = profiles;
	f->tell = *tell;
}

void files_profiles(struct files *f, uint32_t profiles)
{
	f->profiles = profiles;
}

void files_end(struct files *f)
{
	jobs_end(f);
}

void files_rest(struct files *f)
{
	jobs_rest(f);
}
