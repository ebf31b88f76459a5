// SPDX-License-Identifier: GPL-2.0-or-later
/* Tables that are found by their names: in all folders of a filesystem, and in no other's. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "policy_lib.h"

#include "sense/finder.h"

static char root[] = "/tmp/finder.XXXXXX";
static struct walk *walk;
static int kind;	/* of handles */
static uint32_t slow_us;

/* Handles as ext4 (1) and xfs (0x81) make them. */
int name_to_handle_at(int folder, const char *name, struct file_handle *handle, int *mount, int flags)
{
	const uint32_t generation = 77;
	struct stat st;

	(void)flags;
	*mount = 1;
	usleep(slow_us);
	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW))
		return -1;
	handle->handle_type = kind;
	handle->handle_bytes = kind == 1 ? 8 : 12;
	memcpy(handle->f_handle, &st.st_ino, kind == 1 ? 4 : 8);
	memcpy(handle->f_handle + (kind == 1 ? 4 : 8), &generation, 4);
	return 0;
}

static void file(const char *path, const char *text)
{
	char whole[200];
	FILE *f;

	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	f = fopen(whole, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void folder(const char *path)
{
	char whole[200];

	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	assert_int_equal(mkdir(whole, 0700), 0);
}

static uint32_t dev_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return major(st.st_dev) << 20 | minor(st.st_dev);
}

static int setup(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s && mkdir %s", root, root);
	assert_int_equal(system(command), 0);
	walk = calloc(1, sizeof(*walk));
	snprintf(walk->root, sizeof(walk->root), "%s", root);
	walk->dev = dev_of(root);
	walk->profiles = FILE_PROFILES;
	kind = 1;
	slow_us = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(walk);
	return 0;
}

static void tables_are_found_in_all_folders(void **state)
{
	struct stat st;

	(void)state;
	for (int i = 0; i < 2; i++) {
		teardown(NULL);
		setup(NULL);
		kind = i ? 0x81 : 1;
		folder("a");
		folder("a/b");
		file("a/000001.sst", "one");
		file("a/b/mc-2-big-Data.db", "four");
		file("a/000003.log", "none");		/* no table */
		file("a/000004.sst", "");		/* nothing in it */
		file("a/anything", "generic");		/* may be one, but is not called so */
		finder_read(walk);
		assert_int_equal(walk->nr, 2);
		assert_int_equal(walk->counts.left, 0);
		assert_string_equal(walk->table[0].name, "000001.sst");
		assert_int_equal(walk->table[0].size, 3);
		assert_int_equal(walk->table[0].id.generation, 77);
		assert_int_equal(walk->table[0].id.dev, walk->dev);
		assert_string_equal(walk->table[1].name, "mc-2-big-Data.db");
		snprintf(walk->root, sizeof(walk->root), "%s/a/b", root);
		assert_int_equal(stat(walk->root, &st), 0);
		assert_int_equal(walk->table[1].parent, st.st_ino);
	}
}

/* Neither by a link, nor if something else is mounted there. */
static void nothing_of_other_filesystems_is_found(void **state)
{
	char path[200];

	(void)state;
	folder("a");
	file("a/000001.sst", "one");
	snprintf(path, sizeof(path), "%s/link", root);
	assert_int_equal(symlink("a", path), 0);
	snprintf(path, sizeof(path), "%s/000002.sst", root);
	assert_int_equal(symlink("a/000001.sst", path), 0);
	finder_read(walk);
	assert_int_equal(walk->nr, 1);
	walk->nr = 0;
	walk->dev++;
	finder_read(walk);
	assert_int_equal(walk->nr, 0);
}

static void what_is_found_is_bounded(void **state)
{
	char name[32];

	(void)state;
	for (uint32_t i = 0; i < FINDER_TABLES + 7; i++) {
		snprintf(name, sizeof(name), "%06u.sst", i);
		file(name, "x");
	}
	finder_read(walk);
	assert_int_equal(walk->nr, FINDER_TABLES);
	assert_int_equal(walk->counts.left, 7);
}

/* Nobody waits for it: not the daemon's tick, nor its end. */
static void nobody_waits_for_a_walk(void **state)
{
	struct mount m = { .major = walk->dev >> 20, .minor = walk->dev & 0xfffff };
	struct found_file found;
	struct finder_counts c;
	struct finder *f;
	int heard = 0;

	(void)state;
	snprintf(m.path, sizeof(m.path), "%s", root);
	file("000001.sst", "one");
	file("000002.sst", "two");
	slow_us = 100000;
	assert_int_equal(finder_open(&f), 0);
	assert_true(finder_walk(f, &m, FILE_PROFILES));
	assert_false(finder_walk(f, &m, FILE_PROFILES));
	assert_false(finder_next(f, &found));
	for (int i = 0; i < 400 && heard < 2; i++) {
		heard += finder_next(f, &found);
		usleep(heard ? 0 : 10000);
	}
	assert_int_equal(heard, 2);
	assert_false(finder_walk(f, &m, FILE_PROFILES));	/* it has not been heard to its end */
	assert_false(finder_next(f, &found));
	assert_true(finder_walk(f, &m, FILE_PROFILES));
	finder_counts(f, &c);
	assert_int_equal(c.walks, 1);
	assert_int_equal(c.tables, 2);
	slow_us = 300000;
	usleep(20000);
	alarm(20);
	finder_close(f);
	usleep(900000);		/* it ends by itself */
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tables_are_found_in_all_folders, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_of_other_filesystems_is_found, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_found_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_waits_for_a_walk, setup, teardown),
	};
	char command[100];
	int failed;

	if (!mkdtemp(root))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command) || failed;
}
