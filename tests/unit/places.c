// SPDX-License-Identifier: GPL-2.0-or-later
/* Places of tables: as many as files are known, whatever their inodes; beyond that the oldest goes, and is told. */
#include "policy_lib.h"

#include "decide/prng.h"
#include "sense/places.h"

static struct places *places;
static struct extent extent[EXTENTS_MOST];
static uint64_t told, told_inode;

static void on_forgotten(void *ctx, const struct place *p)
{
	assert_ptr_equal(ctx, &told);
	assert_true(p->nr > 0);
	told++;
	told_inode = p->id.inode;
}

static int setup(void **state)
{
	(void)state;
	places = calloc(1, sizeof(*places));
	places->forgets = on_forgotten;
	places->ctx = &told;
	told = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	places_exit(places);
	free(places);
	return 0;
}

static struct file_id id_of(uint64_t inode)
{
	return (struct file_id){ .inode = inode, .generation = 1, .dev = 7 };
}

static void keep(uint64_t inode, uint32_t nr)
{
	const struct file_id id = id_of(inode);

	places_keep(places, &id, extent, nr);
	assert_non_null(places_find(places, &id));
}

/* Inodes one after the other, as ext4 gives them, in steps, and by chance. */
static void as_many_as_files_are_kept(void **state)
{
	static const uint64_t step[] = { 1, 2, 64, 4096, 1ull << 32, 0 };

	for (size_t k = 0; k < sizeof(step) / sizeof(step[0]); k++) {
		struct prng p = { 5 };
		uint64_t inode[FILES_MAX];

		for (uint32_t i = 0; i < FILES_MAX; i++) {
			inode[i] = step[k] ? 1000 + i * step[k] : prng_below(&p, 1ull << 48);
			keep(inode[i], 1);
		}
		assert_int_equal(places->forgotten, 0);
		for (uint32_t i = 0; i < FILES_MAX; i++) {
			const struct file_id id = id_of(inode[i]);

			assert_non_null(places_find(places, &id));
		}
		teardown(state);
		setup(state);
	}
}

static void the_oldest_goes_and_is_told(void **state)
{
	uint64_t n = 1;

	(void)state;
	while (!told && n < 100 * FILES_MAX)
		keep(n++, 1);
	assert_true(n > FILES_MAX);
	assert_int_equal(places->forgotten, 1);
	assert_true(told_inode < n / 2);
	/* one that is asked again stays what it is, and is the newest */
	for (uint64_t i = 0; i < 10 * PLACES; i++) {
		keep(1 << 20, 1 + i % 3);
		keep(n++, 1);
	}
	assert_int_equal(places->forgotten, told);
	assert_true(told_inode != 1 << 20);
}

/* Tables in thousands of pieces: of them all there are so many. */
static void extents_are_bounded(void **state)
{
	struct file_id id;

	(void)state;
	for (uint64_t n = 1; n <= 2 * FILES_MAX; n++) {
		keep(n, EXTENTS_MOST);
		assert_true(places->nr <= PLACES_EXTENTS);
	}
	assert_true(told > 0);
	id = id_of(2 * FILES_MAX);
	assert_int_equal(places_find(places, &id)->nr, EXTENTS_FIRST);
	assert_int_equal(places->forgotten, told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(as_many_as_files_are_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(the_oldest_goes_and_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(extents_are_bounded, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
