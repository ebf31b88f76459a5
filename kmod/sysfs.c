// SPDX-License-Identifier: GPL-2.0
/*
 * A directory per live volume, by the name of its disk as filesystems do:
 *
 *   /sys/fs/terrace/dm-3/WORD	the words of the volume (status.c)
 *   …/tierN/WORD		the words of tier N
 *   …/tune/NAME		the tunables (tune.c), to be read and written
 *
 * Life: tr_sysfs_remove() takes the files away, which waits for whoever is
 * inside one and refuses everybody later, with the file still open as well.
 * Then it waits for the last reference to the kobjects. So no show or store
 * ever sees a volume that is being freed, and no release runs in a module
 * that is gone. They take no lock: the removal cannot wait for I/O.
 */
#include <linux/completion.h>
#include <linux/slab.h>

#include "terrace.h"

struct node {
	struct kobject kobj;
	struct completion released;
	struct terrace *tr;		/* NULL: never made */
	struct tr_tier *tier;		/* of a tier's directory */
};

struct tr_sysfs {
	struct node volume, tune;
	struct node tier[TERRACE_MAX_TIERS];
};

static struct kset *volumes_kset;

static struct node *node_of(struct kobject *kobj)
{
	return container_of(kobj, struct node, kobj);
}

static void node_release(struct kobject *kobj)
{
	complete(&node_of(kobj)->released);
}

/* --- words --------------------------------------------------------------- */

static ssize_t word_show(struct kobject *kobj, struct attribute *attr, char *buf)
{
	const struct tr_word *word = container_of(attr, struct tr_word, attr);
	struct node *node = node_of(kobj);

	if (word->number)
		return sysfs_emit(buf, "%llu\n", word->number(node->tr, node->tier));
	return sysfs_emit(buf, "%s\n", word->text(node->tr, node->tier));
}

static umode_t word_visible(struct kobject *kobj, struct attribute *attr, int n)
{
	const struct tr_word *word = container_of(attr, struct tr_word, attr);

	return tr_word_applies(word, node_of(kobj)->tier) ? attr->mode : 0;
}

static const struct sysfs_ops word_ops = { .show = word_show };

#define MAX_WORDS	32

static struct attribute *volume_attrs[MAX_WORDS + 1];
static struct attribute *tier_attrs[MAX_WORDS + 1];

static const struct attribute_group volume_group = { .attrs = volume_attrs };
static const struct attribute_group tier_group = {
	.attrs = tier_attrs, .is_visible = word_visible,
};

static const struct attribute_group *volume_groups[] = { &volume_group, NULL };
static const struct attribute_group *tier_groups[] = { &tier_group, NULL };

static const struct kobj_type volume_type = {
	.release = node_release, .sysfs_ops = &word_ops, .default_groups = volume_groups,
};

static const struct kobj_type tier_type = {
	.release = node_release, .sysfs_ops = &word_ops, .default_groups = tier_groups,
};

/* --- tunables ------------------------------------------------------------ */

static struct attribute tune_attr[TR_NR_TUNES];
static struct attribute *tune_attrs[TR_NR_TUNES + 1];

static ssize_t tune_show(struct kobject *kobj, struct attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", tr_tune(node_of(kobj)->tr, attr - tune_attr));
}

static ssize_t tune_store(struct kobject *kobj, struct attribute *attr, const char *buf,
			  size_t count)
{
	char *word = kasprintf(GFP_KERNEL, "%s=%.*s", attr->name, (int)min_t(size_t, count, 64),
			       buf);
	int err;

	if (!word)
		return -ENOMEM;
	err = tr_tune_change(node_of(kobj)->tr, strim(word));
	kfree(word);
	return err ?: count;
}

static const struct sysfs_ops tune_ops = { .show = tune_show, .store = tune_store };
static const struct attribute_group tune_group = { .attrs = tune_attrs };
static const struct attribute_group *tune_groups[] = { &tune_group, NULL };

static const struct kobj_type tune_type = {
	.release = node_release, .sysfs_ops = &tune_ops, .default_groups = tune_groups,
};

/* --- a volume's directories ---------------------------------------------- */

static void node_put(struct node *node)
{
	kobject_put(&node->kobj);
	wait_for_completion(&node->released);
	node->tr = NULL;
}

static void node_remove(struct node *node)
{
	if (!node->tr)
		return;
	kobject_del(&node->kobj);
	node_put(node);
}

static int node_add(struct node *node, const struct kobj_type *type, struct node *parent,
		    struct terrace *tr, struct tr_tier *tier, const char *name)
{
	int err;

	init_completion(&node->released);
	node->tr = tr;
	node->tier = tier;
	if (!parent)
		node->kobj.kset = volumes_kset;
	err = kobject_init_and_add(&node->kobj, type, parent ? &parent->kobj : NULL, "%s", name);
	if (err)
		node_put(node);
	return err;
}

static int add_all(struct terrace *tr, struct tr_sysfs *sysfs)
{
	char name[16];
	int err;
	u32 t;

	err = node_add(&sysfs->volume, &volume_type, NULL, tr, NULL,
		       dm_disk(tr->md)->disk_name);
	if (!err)
		err = node_add(&sysfs->tune, &tune_type, &sysfs->volume, tr, NULL, "tune");
	for (t = 0; t < tr->nr_tiers && !err; t++) {
		snprintf(name, sizeof(name), "tier%u", t);
		err = node_add(&sysfs->tier[t], &tier_type, &sysfs->volume, tr, &tr->tier[t],
			       name);
	}
	return err;
}

void tr_sysfs_remove(struct terrace *tr)
{
	u32 t;

	if (!tr->sysfs)
		return;
	for (t = 0; t < tr->nr_tiers; t++)
		node_remove(&tr->sysfs->tier[t]);
	node_remove(&tr->sysfs->tune);
	node_remove(&tr->sysfs->volume);
	kfree(tr->sysfs);
	tr->sysfs = NULL;
}

/* A volume without its directory still works. */
void tr_sysfs_add(struct terrace *tr)
{
	int err = -ENOMEM;

	tr->sysfs = kzalloc(sizeof(*tr->sysfs), GFP_KERNEL);
	if (tr->sysfs)
		err = add_all(tr, tr->sysfs);
	if (!err)
		return;
	DMWARN("%s: no directory in /sys/fs/terrace (%d)", tr->name, err);
	tr_sysfs_remove(tr);
}

/* --- the module's -------------------------------------------------------- */

static void list_words(struct tr_word *word, struct attribute **attr)
{
	u32 k;

	for (k = 0; word[k].attr.name && !WARN_ON_ONCE(k == MAX_WORDS); k++)
		attr[k] = &word[k].attr;
}

int tr_sysfs_init(void)
{
	u32 k;

	list_words(tr_volume_words, volume_attrs);
	list_words(tr_tier_words, tier_attrs);
	for (k = 0; k < TR_NR_TUNES; k++) {
		tune_attr[k].name = tr_tune_info[k].name;
		tune_attr[k].mode = 0644;
		tune_attrs[k] = &tune_attr[k];
	}
	volumes_kset = kset_create_and_add("terrace", NULL, fs_kobj);
	return volumes_kset ? 0 : -ENOMEM;
}

void tr_sysfs_exit(void)
{
	kset_unregister(volumes_kset);
}
