// SPDX-License-Identifier: GPL-2.0-or-later
/* Filesystems in the list of mounts: where they are seen, what lies below them now, and who is told. */
#include "policy_lib.h"

#include <errno.h>
#include <string.h>

#include "sense/mounts.h"

#define DEV(major, minor) ((major) << 20 | (minor))

/* The devices: 8:N lies on the volume from `at[N]` on; 0: not at all; negative: an error after one piece. */
static int64_t at[32];
static uint64_t length;

int stack_find(unsigned int major, unsigned int minor, unsigned int volume_major, unsigned int volume_minor, struct stack *out)
{
	assert_int_equal(major, 8);
	assert_int_equal(volume_major, 253);
	assert_int_equal(volume_minor, 0);
	out->nr = at[minor] != 0;
	out->piece[0] = (struct stack_piece){ .from = 0, .length = length, .to = (uint64_t)at[minor] };
	return at[minor] > 0 ? 0 : at[minor] ? (int)at[minor] : -ENODEV;
}

static struct mounts ms;
static int mounted, unmounted, restacked, refused, refuses;
static char path[MOUNT_PATH], why[200];

static int on_mounted(void *ctx, const struct mount *m)
{
	assert_ptr_equal(ctx, &ms);
	snprintf(path, sizeof(path), "%s", m->path);
	mounted++;
	return refuses;
}

static void on_unmounted(void *ctx, const struct mount *m)
{
	(void)ctx;
	(void)m;
	unmounted++;
}

static void on_restacked(void *ctx, const struct mount *m)
{
	(void)ctx;
	(void)m;
	restacked++;
}

static void on_refused(void *ctx, const char *where, const char *reason)
{
	(void)ctx;
	(void)where;
	snprintf(why, sizeof(why), "%s", reason);
	refused++;
}

static int setup(void **state)
{
	const struct mounts_tell tell = {
		.mounted = on_mounted, .unmounted = on_unmounted, .restacked = on_restacked, .refused = on_refused, .ctx = &ms,
	};

	(void)state;
	memset(&ms, 0, sizeof(ms));
	memset(at, 0, sizeof(at));
	length = 1 << 30;
	mounted = unmounted = restacked = refused = refuses = 0;
	mounts_init(&ms, 253, 0, &tell);
	return 0;
}

static void list(const char *text)
{
	FILE *f = fmemopen((void *)text, strlen(text), "r");

	assert_non_null(f);
	mounts_round(&ms);
	mounts_read(&ms, f);
	fclose(f);
}

static void paths_are_decoded(void **state)
{
	(void)state;
	at[1] = 4096;
	list("36 35 0:22 / /proc rw - proc proc rw\n"
	     "37 35 8:1 / /a\\040b\\134c\\011\\12x rw,noatime master:1 - ext4 /dev/sda1 rw\n");
	assert_string_equal(path, "/a b\\c\t\\12x");
	assert_int_equal(mounted, 1);
	assert_int_equal(mounts_count(&ms), 1);
	assert_false(mounts_now(&ms, DEV(8, 1))->xfs);
	assert_null(mounts_now(&ms, DEV(8, 2)));
	list("");
	assert_int_equal(unmounted, 1);
	assert_int_equal(mounts_count(&ms), 0);
}

/* A folder of it is mounted elsewhere first; then that alone is left; then it is made anew. */
static void the_whole_is_preferred_and_what_was_is_kept(void **state)
{
	(void)state;
	at[1] = 4096;
	list("36 35 8:1 /etc/hosts /c/hosts rw - xfs /dev/sda1 rw\n37 35 8:1 / /a rw - xfs /dev/sda1 rw\n38 35 8:1 / /b rw - xfs /dev/sda1 rw\n");
	assert_string_equal(mounts_now(&ms, DEV(8, 1))->path, "/a");
	list("38 35 8:1 / /b rw - xfs /dev/sda1 rw\n37 35 8:1 / /a rw - xfs /dev/sda1 rw\n");
	assert_string_equal(mounts_now(&ms, DEV(8, 1))->path, "/a");
	list("36 35 8:1 /db /d rw - xfs /dev/sda1 rw\n38 35 8:1 / /b rw - xfs /dev/sda1 rw\n");
	assert_string_equal(mounts_now(&ms, DEV(8, 1))->path, "/b");
	list("36 35 8:1 /db /d rw - xfs /dev/sda1 rw\n");
	assert_string_equal(mounts_now(&ms, DEV(8, 1))->path, "/d");
	assert_int_equal(mounted, 1);
	assert_int_equal(unmounted, 0);
	list("36 35 8:1 / /d rw - ext4 /dev/sda1 rw\n");
	assert_false(mounts_now(&ms, DEV(8, 1))->xfs);
	assert_int_equal(mounted, 2);
	assert_int_equal(unmounted, 1);
}

/* Growth at its end moves nothing; anything else is told once, at the next moment at which it is asked for. */
static void moves_are_told_once(void **state)
{
	(void)state;
	at[1] = 4096;
	list("36 35 8:1 / /a rw - xfs /dev/sda1 rw\n");
	length += 1 << 20;
	mounts_round(&ms);
	assert_int_equal(mounts_now(&ms, DEV(8, 1))->stack.piece[0].length, length);
	assert_int_equal(restacked, 0);
	at[1] = 8192;
	assert_int_equal(mounts_now(&ms, DEV(8, 1))->stack.piece[0].to, 4096);
	for (int i = 0; i < 3; i++) {
		mounts_round(&ms);
		assert_int_equal(mounts_now(&ms, DEV(8, 1))->stack.piece[0].to, 8192);
		assert_int_equal(restacked, 1);
	}
	length -= 1 << 20;
	list("36 35 8:1 / /a rw - xfs /dev/sda1 rw\n");
	assert_int_equal(restacked, 2);
	/* off the volume */
	at[1] = 0;
	mounts_round(&ms);
	assert_null(mounts_now(&ms, DEV(8, 1)));
	assert_int_equal(unmounted, 1);
	assert_int_equal(refused, 1);
	at[1] = 4096;
	list("36 35 8:1 / /a rw - xfs /dev/sda1 rw\n");
	assert_int_equal(mounted, 2);
}

static void what_is_left_out_is_told_once(void **state)
{
	char text[4096] = "", line[512];

	(void)state;
	for (int i = 1; i <= MOUNTS + 1; i++) {
		at[i] = 4096;
		snprintf(line, sizeof(line), "36 35 8:%d / /m%d rw - xfs /dev/sda rw\n", i, i);
		strcat(text, line);
	}
	list(text);
	list(text);
	assert_int_equal(mounts_count(&ms), MOUNTS);
	assert_int_equal(refused, 1);
	assert_non_null(strstr(why, "too many filesystems"));
	setup(NULL);
	at[1] = -E2BIG;
	at[3] = -EOPNOTSUPP;
	for (int i = 0; i < 2; i++)
		list("36 35 8:1 / /a rw - xfs /dev/sda rw\n36 35 8:2 / /b rw - xfs /dev/sda rw\n36 35 8:3 / /c rw - xfs /dev/sda rw\n");
	assert_int_equal(refused, 2);
	assert_non_null(strstr(why, "only part"));
	assert_int_equal(mounts_count(&ms), 0);
	/* its path is too long, or nobody will have it */
	setup(NULL);
	at[1] = 4096;
	snprintf(text, sizeof(text), "36 35 8:1 / /%0*d rw - xfs /dev/sda rw\n", MOUNT_PATH, 1);
	list(text);
	assert_int_equal(refused, 1);
	assert_int_equal(mounts_count(&ms), 0);
	refuses = -ENOSPC;
	list("36 35 8:1 / /a rw - xfs /dev/sda rw\n");
	assert_int_equal(mounts_count(&ms), 0);
	assert_int_equal(unmounted, 0);
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(paths_are_decoded),
		TEST(the_whole_is_preferred_and_what_was_is_kept),
		TEST(moves_are_told_once),
		TEST(what_is_left_out_is_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
