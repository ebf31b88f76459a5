// SPDX-License-Identifier: GPL-2.0
/*
 * The trees of pages: one for the map, one per tier for its space. Leaves
 * (map pages, space pages) are found through directories of 128 entries; the
 * superblock holds each tree's root entry.
 *
 * Directories are cached and loaded on demand; clean ones may be evicted.
 * Only a checkpoint changes them (checkpoint_mutex), so a dirty directory
 * stands still while its image is being written; everybody else only reads
 * entries. The cache is guarded by pages_mutex, which also covers the reads
 * of directories, but not those of leaves: a leaf's blocks may be freed and
 * reused under the reader. Then the page does not match the entry that was
 * taken before, and the entry has changed: read it again.
 *
 * An entry is set only after the page it names has been written. So whatever
 * the cache names can be read back.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "meta.h"

#define DIR_MEMORY	(TERRACE_BLOCK_BYTES + sizeof(struct tr_dir))
#define DIRTY_DIRS	128		/* so many are written before the end of a checkpoint */

/* --- reading one page ---------------------------------------------------- */

/* What became of reading a page from the copies. */
struct fetched {
	u32 bad;		/* mask of copies that did not have it */
	u32 unread;		/* … of those, whose drive did not even answer */
	int why;		/* errno of the last bad one */
};

/*
 * From the copies in turn, one that was dropped last: a page proves itself.
 * -EIO: no good one, but one that could not be read may yet be it; another
 * error: all of them are damaged.
 */
static int fetch(struct terrace *tr, const struct tr_page_id *id, const struct tr_entry *entry,
		 void *buf, struct fetched *how)
{
	u32 bytes = entry->blocks * TERRACE_BLOCK_BYTES;
	u32 k, c, first = tr_meta_live(tr, 0) ? 0 : 1;
	int err;

	memset(how, 0, sizeof(*how));
	if (!tr_entry_ok(&tr->super, entry))
		return how->why = -EUCLEAN;
	for (k = 0; k < TR_COPIES; k++) {
		c = (first + k) % TR_COPIES;
		if (!tr->meta[c].bdev)
			continue;
		err = tr_meta_read(tr, c, entry->block, buf, entry->blocks);
		if (err)
			how->unread |= BIT(c);
		else
			err = tr_page_check(buf, bytes, id, entry, tr->super.volume_uuid);
		if (!err)
			return 0;
		how->bad |= BIT(c);
		how->why = err;
	}
	return how->unread || !how->bad ? -EIO : -EUCLEAN;
}

static const char *which(u32 copies)
{
	return copies == 3 ? "0 and 1" : copies == 2 ? "1" : "0";
}

static void report(struct terrace *tr, const struct tr_page_id *id, const struct tr_entry *entry,
		   const struct fetched *how, int err)
{
	const char *then = err ? "its blocks cannot be served" : "the other copy was used";
	u32 damaged = how->bad & ~how->unread;

	if (damaged || !how->unread)
		DMWARN_LIMIT("%s: page of tree %u tier %u level %u number %llu at meta block %llu is damaged on copy %s (%d), %s",
			     tr->name, id->tree, id->tier, id->level, id->index, entry->block,
			     which(damaged), how->why, then);
	if (how->unread)
		DMWARN_LIMIT("%s: page of tree %u tier %u level %u number %llu at meta block %llu: the drive of copy %s cannot be read (%d), %s for now",
			     tr->name, id->tree, id->tier, id->level, id->index, entry->block,
			     which(how->unread), how->why, then);
}

static u32 leaf_magic(const struct tr_tree *tree)
{
	return tree->id == TERRACE_TREE_MAP ? TERRACE_MAP_MAGIC : TERRACE_SPACE_MAGIC;
}

int tr_page_lookup(struct terrace *tr, enum terrace_tree id, u32 tier, u64 number,
		   struct tr_entry *entry)
{
	int err;

	mutex_lock(&tr->pages_mutex);
	err = tr_tree_lookup__f(tr, tr_tree_of(tr, id, tier), number, entry);
	mutex_unlock(&tr->pages_mutex);
	return err;
}

int tr_page_read(struct terrace *tr, enum terrace_tree id, u32 tier, u64 number,
		 void *buf, struct tr_entry *entry)
{
	struct tr_tree *tree = tr_tree_of(tr, id, tier);
	struct tr_page_id page_id = {
		.magic = leaf_magic(tree), .index = number, .tier = tree->tier, .tree = tree->id,
	};
	struct tr_entry again;
	struct fetched how;
	int err, moved;

	err = tr_page_lookup(tr, id, tier, number, entry);
	while (!err) {
		err = fetch(tr, &page_id, entry, buf, &how);
		if (!how.bad && !err)
			return 0;
		/* Damaged, or replaced and its blocks reused while we read? */
		moved = tr_page_lookup(tr, id, tier, number, &again);
		if (!moved && again.block == entry->block && again.seq == entry->seq &&
		    again.crc == entry->crc) {
			report(tr, &page_id, entry, &how, err);
			return err;
		}
		if (!err)
			return 0;	/* it was good when we began */
		*entry = again;
		err = moved;
	}
	return err;
}

/* --- the cache of directories -------------------------------------------- */

static unsigned long dir_key(const struct tr_tree *tree, u32 level, u64 index)
{
	BUILD_BUG_ON(sizeof(unsigned long) < sizeof(u64));	/* keys are 64 bits */
	return (u64)tree->slot << 60 | (u64)level << 56 | index;
}

static struct tr_dir *dir_find(struct terrace *tr, struct tr_tree *tree, u32 level, u64 number)
{
	struct tr_meta *m = tr->pages;
	struct tr_dir *dir;

	dir = xa_load(&m->dirs, dir_key(tree, level, tr_dir_index(number, level)));
	if (dir && !dir->is_dirty)
		list_move_tail(&dir->list, &m->clean);
	return dir;
}

static void dir_free(struct terrace *tr, struct tr_dir *dir)
{
	xa_erase(&tr->pages->dirs, dir_key(dir->tree, dir->level, dir->index));
	list_del(&dir->list);
	if (dir->is_dirty)
		tr->pages->nr_dirty_dirs--;
	atomic64_sub(DIR_MEMORY, &tr->memory);
	tr_map_free(dir->disk, dir->pool);
	kfree(dir);
}

/* An empty directory in the cache, not on disk. */
static struct tr_dir *dir_create(struct terrace *tr, struct tr_tree *tree, u32 level, u64 number)
{
	/* Bounded: there are no more dirty ones than DIRTY_DIRS and what one batch
	 * of pages changes, the others are evicted.
	 */
	struct tr_dir *dir = kzalloc(sizeof(*dir), TR_GFP_MUST);
	int err;

	dir->tree = tree;
	dir->level = level;
	dir->index = tr_dir_index(number, level);
	dir->disk = tr_map_alloc(tr, NULL, TERRACE_BLOCK_BYTES, &dir->pool);
	memset(dir->disk, 0, TERRACE_BLOCK_BYTES);
	err = xa_err(xa_store(&tr->pages->dirs, dir_key(tree, level, dir->index), dir,
			      TR_GFP_MUST));
	if (err) {
		tr_map_free(dir->disk, dir->pool);
		kfree(dir);
		return ERR_PTR(err);
	}
	list_add_tail(&dir->list, &tr->pages->clean);
	atomic64_add(DIR_MEMORY, &tr->memory);
	return dir;
}

static struct tr_page_id dir_id(const struct tr_tree *tree, u32 level, u64 index)
{
	return (struct tr_page_id){
		.magic = TERRACE_DIR_MAGIC, .index = index, .level = level,
		.tier = tree->tier, .tree = tree->id,
	};
}

static struct tr_dir *dir_read(struct terrace *tr, struct tr_tree *tree, u32 level, u64 number,
			       const struct tr_entry *entry)
{
	struct tr_dir *dir = dir_create(tr, tree, level, number);
	struct fetched how = { .why = -EUCLEAN };
	struct tr_page_id id;
	int err;

	if (IS_ERR(dir))
		return dir;
	id = dir_id(tree, level, dir->index);
	err = entry->blocks == 1 ? fetch(tr, &id, entry, dir->disk, &how) : -EUCLEAN;
	if (err || how.bad)
		report(tr, &id, entry, &how, err);
	if (!err)
		return dir;
	dir_free(tr, dir);
	return ERR_PTR(err);
}

/* The entry that names @level on the way to @number; @parent NULL: the root. */
static void get_entry(const struct tr_tree *tree, const struct tr_dir *parent, u32 level,
		      u64 number, struct tr_entry *entry)
{
	if (parent)
		tr_entry_decode(entry, &parent->disk->entry[tr_dir_slot(number, level + 1)]);
	else
		*entry = tree->root;
}

struct tr_dir *tr_dir_get__f(struct terrace *tr, struct tr_tree *tree, u32 level, u64 number,
			     bool create)
{
	struct tr_dir *dir = NULL;
	struct tr_entry entry;
	u32 at;

	lockdep_assert_held(&tr->pages_mutex);
	for (at = level; at <= tree->depth && !dir; at++)	/* lowest one cached */
		dir = dir_find(tr, tree, at, number);
	at = dir ? dir->level : tree->depth + 1;
	while (at > level) {
		get_entry(tree, dir, --at, number, &entry);
		if (entry.block)
			dir = dir_read(tr, tree, at, number, &entry);
		else if (create)
			dir = dir_create(tr, tree, at, number);
		else
			return NULL;
		if (IS_ERR(dir))
			return dir;
	}
	return dir;
}

/*
 * Who needs all directories above the leaves, one after the other, has those that share a parent
 * read together. What does not come, or does not look right, is left to tr_dir_get__f(), which
 * asks again, and the other copy, and says what is wrong.
 */
void tr_dirs_ahead__f(struct terrace *tr, struct tr_tree *tree, u64 number)
{
	u32 i, c = tr_meta_live(tr, 0) ? 0 : 1;
	struct tr_dir *parent, *dir;
	struct tr_entry *entry;
	struct tr_meta_io io;
	void *buf;

	lockdep_assert_held(&tr->pages_mutex);
	parent = tree->depth > 1 ? tr_dir_get__f(tr, tree, 2, number, false) : NULL;
	if (IS_ERR_OR_NULL(parent) || !tr_meta_live(tr, c))
		return;
	number = tr_dir_index(number, 2);
	entry = kvcalloc(TERRACE_DIR_ENTRIES, sizeof(*entry), GFP_KERNEL | __GFP_NOWARN);
	buf = kvmalloc(TERRACE_DIR_ENTRIES * TERRACE_BLOCK_BYTES, GFP_KERNEL | __GFP_NOWARN);
	tr_meta_io_start(&io);
	for (i = 0; entry && buf && i < TERRACE_DIR_ENTRIES; i++) {
		tr_entry_decode(&entry[i], &parent->disk->entry[i]);
		if (entry[i].block && entry[i].blocks == 1 && tr_entry_ok(&tr->super, &entry[i]) &&
		    !dir_find(tr, tree, 1, number + ((u64)i << TERRACE_DIR_SHIFT)))
			tr_meta_submit(tr, &io, c, REQ_OP_READ, entry[i].block,
				       buf + i * TERRACE_BLOCK_BYTES, 1);
		else
			entry[i].block = 0;
	}
	tr_meta_wait(&io);
	for (i = 0; entry && buf && !io.copy[c].status && i < TERRACE_DIR_ENTRIES; i++) {
		u64 at = number + ((u64)i << TERRACE_DIR_SHIFT);
		struct tr_page_id id = dir_id(tree, 1, at);

		if (!entry[i].block || tr_page_check(buf + i * TERRACE_BLOCK_BYTES, TERRACE_BLOCK_BYTES,
						     &id, &entry[i], tr->super.volume_uuid))
			continue;
		dir = dir_create(tr, tree, 1, at);
		if (!IS_ERR(dir))
			memcpy(dir->disk, buf + i * TERRACE_BLOCK_BYTES, TERRACE_BLOCK_BYTES);
	}
	kvfree(buf);
	kvfree(entry);
}

/* Numbers that the tree, as deep as it is, does not reach. */
static bool beyond(const struct tr_tree *tree, u64 number)
{
	return tree->depth < TR_MAX_DEPTH && number >> (tree->depth * TERRACE_DIR_SHIFT);
}

int tr_tree_lookup__f(struct terrace *tr, struct tr_tree *tree, u64 number,
		      struct tr_entry *entry)
{
	struct tr_dir *dir = NULL;

	lockdep_assert_held(&tr->pages_mutex);
	memset(entry, 0, sizeof(*entry));
	if (beyond(tree, number))
		return -ENOENT;
	if (tree->depth) {
		dir = tr_dir_get__f(tr, tree, 1, number, false);
		if (IS_ERR_OR_NULL(dir))
			return dir ? PTR_ERR(dir) : -ENOENT;
	}
	get_entry(tree, dir, 0, number, entry);
	return entry->block ? 0 : -ENOENT;
}

u64 tr_pages_evict(struct terrace *tr, u64 bytes)
{
	struct tr_dir *dir, *next;
	u64 freed = 0;

	mutex_lock(&tr->pages_mutex);
	list_for_each_entry_safe(dir, next, &tr->pages->clean, list) {
		if (freed >= bytes)
			break;
		dir_free(tr, dir);
		freed += DIR_MEMORY;
	}
	mutex_unlock(&tr->pages_mutex);
	return freed;
}

/* --- changes, by the checkpoint ------------------------------------------ */

static void dir_mark_dirty(struct terrace *tr, struct tr_dir *dir)
{
	if (dir->is_dirty)
		return;
	dir->is_dirty = true;
	list_move_tail(&dir->list, &tr->pages->dirty[dir->level]);
	tr->pages->nr_dirty_dirs++;
}

/* Names the page of @level on the way to @number in its parent. */
static int set_entry(struct terrace *tr, struct tr_tree *tree, u32 level, u64 number,
		     const struct tr_entry *entry)
{
	struct tr_dir *parent = NULL;
	struct tr_entry old;

	if (level < tree->depth) {
		parent = tr_dir_get__f(tr, tree, level + 1, number, true);
		if (IS_ERR(parent))
			return PTR_ERR(parent);
	}
	get_entry(tree, parent, level, number, &old);
	if (!old.block && !entry->block)
		return 0;
	if (old.block)
		tr_metaspace_put__f(tr, old.block, old.blocks);
	if (parent) {
		tr_entry_encode(&parent->disk->entry[tr_dir_slot(number, level + 1)], entry);
		dir_mark_dirty(tr, parent);
	} else {
		tree->root = *entry;
	}
	return 0;
}

int tr_tree_set__f(struct terrace *tr, struct tr_tree *tree, u64 number,
		   const struct tr_entry *entry)
{
	lockdep_assert_held(&tr->pages_mutex);
	lockdep_assert_held(&tr->checkpoint_mutex);
	return set_entry(tr, tree, 0, number, entry);
}

/* Sums up @dir's children; false: it has none. */
static bool dir_sum(const struct tr_dir *dir, struct tr_entry *sum)
{
	struct tr_entry entry;
	u64 count = 0;
	u32 i, nr = 0;

	for (i = 0; i < TERRACE_DIR_ENTRIES; i++) {
		tr_entry_decode(&entry, &dir->disk->entry[i]);
		nr += !!entry.block;
		count += entry.count;
	}
	sum->count = min_t(u64, count, U32_MAX);
	return nr;
}

/* Puts an image of @dir into the batch. */
static void dir_out(struct terrace *tr, struct tr_dir *dir, u64 generation, u64 seq)
{
	struct tr_batch *batch = tr->pages->batch;
	struct tr_page_id id = dir_id(dir->tree, dir->level, dir->index);
	struct tr_entry sum = { .blocks = 1, .seq = seq };
	bool keep = dir_sum(dir, &sum);
	struct tr_out *out = tr_batch_add(batch, keep);
	struct terrace_dir_disk *disk = out->page;

	out->tree = dir->tree;
	out->number = dir->index;
	out->dir = dir;
	if (!keep)
		return;
	tr_page_start(disk, &id, 1, seq, generation, tr->super.volume_uuid);
	memcpy(disk->entry, dir->disk->entry, sizeof(disk->entry));
	out->entry = sum;
}

static int dirs_written(struct terrace *tr, struct tr_batch *batch)
{
	int err = 0, failed;
	u32 k;

	mutex_lock(&tr->pages_mutex);
	for (k = 0; k < batch->nr; k++) {
		struct tr_entry *entry = &batch->out[k].entry;
		struct tr_dir *dir = batch->out[k].dir;

		failed = set_entry(tr, dir->tree, dir->level, dir->index, entry);
		if (failed) {		/* stays dirty; its image is waste */
			if (entry->block)
				tr_metaspace_put__f(tr, entry->block, entry->blocks);
			err = failed;
			continue;
		}
		dir->is_dirty = false;
		tr->pages->nr_dirty_dirs--;
		list_move_tail(&dir->list, &tr->pages->clean);
		if (!batch->out[k].page)
			dir_free(tr, dir);
	}
	mutex_unlock(&tr->pages_mutex);
	return err;
}

int tr_dirs_write(struct terrace *tr, u64 generation, u64 seq)
{
	struct tr_meta *m = tr->pages;
	struct tr_batch *batch = m->batch;
	struct tr_dir *dir;
	u32 level;
	int err;

	lockdep_assert_held(&tr->checkpoint_mutex);
	for (level = 1; level <= TR_MAX_DEPTH; level++) {
		while (!list_empty(&m->dirty[level])) {
			tr_batch_start(batch);
			mutex_lock(&tr->pages_mutex);
			list_for_each_entry(dir, &m->dirty[level], list) {
				if (tr_batch_full(batch))
					break;
				dir_out(tr, dir, generation, seq);
			}
			mutex_unlock(&tr->pages_mutex);
			err = tr_batch_write(tr, batch, false) ?: dirs_written(tr, batch);
			if (err)
				return err;
		}
	}
	return 0;
}

bool tr_dirs_many(struct terrace *tr)
{
	return tr->pages->nr_dirty_dirs >= DIRTY_DIRS;
}

/* Puts directories above the root until the tree reaches @leaves leaves. */
static int tree_grow(struct terrace *tr, struct tr_tree *tree, u64 leaves)
{
	struct tr_dir *top;

	while (tree->depth < tr_dir_depth(leaves)) {
		if (tree->root.block) {
			top = dir_create(tr, tree, tree->depth + 1, 0);
			if (IS_ERR(top))
				return PTR_ERR(top);
			tr_entry_encode(&top->disk->entry[0], &tree->root);
			dir_mark_dirty(tr, top);
			/* The old root lives on as its child. */
			memset(&tree->root, 0, sizeof(tree->root));
		}
		tree->depth++;
	}
	return 0;
}

int tr_trees_grow(struct terrace *tr)
{
	u32 t;
	int err;

	lockdep_assert_held(&tr->checkpoint_mutex);
	mutex_lock(&tr->pages_mutex);
	err = tree_grow(tr, &tr->pages->tree[0], tr->nr_regions);
	for (t = 0; t < tr->nr_tiers && !err; t++)
		err = tree_grow(tr, &tr->pages->tree[1 + t],
				DIV_ROUND_UP_ULL(tr->tier[t].next_blocks, TERRACE_CHUNK_BLOCKS));
	mutex_unlock(&tr->pages_mutex);
	return err;
}

/* --- set-up -------------------------------------------------------------- */

struct tr_tree *tr_tree_of(struct terrace *tr, enum terrace_tree id, u32 tier)
{
	return &tr->pages->tree[id == TERRACE_TREE_MAP ? 0 : 1 + tier];
}

int tr_trees_init(struct terrace *tr)
{
	const struct tr_super *super = &tr->super;
	struct tr_tree *tree = tr->pages->tree;
	u32 t;

	tree[0].root = super->map_root;
	tree[0].depth = super->map_depth;
	tree[0].id = TERRACE_TREE_MAP;
	for (t = 0; t < super->nr_tiers; t++) {
		u64 chunks = DIV_ROUND_UP_ULL(super->tier[t].data_blocks, TERRACE_CHUNK_BLOCKS);

		tree[1 + t].root = super->tier[t].space_root;
		tree[1 + t].depth = tr_dir_depth(chunks);
		tree[1 + t].id = TERRACE_TREE_SPACE;
		tree[1 + t].tier = t;
		tree[1 + t].slot = 1 + t;
	}
	tr->pages->batch = tr_batch_create();
	return tr->pages->batch ? 0 : -ENOMEM;
}

void tr_trees_exit(struct terrace *tr)
{
	struct tr_dir *dir;
	unsigned long key;

	xa_for_each(&tr->pages->dirs, key, dir)
		dir_free(tr, dir);
	xa_destroy(&tr->pages->dirs);
	tr_batch_destroy(tr->pages->batch);
	tr->pages->batch = NULL;
}
