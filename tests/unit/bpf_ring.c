// SPDX-License-Identifier: GPL-2.0-or-later
/* The ring of what happens to files: a tick hears so much of it and no more, however fast events come. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "policy_lib.h"

#include "sense/lsm.h"

#define RING	8192u	/* about what it holds */

/* The kernel and libbpf, as far as they are asked here. */
static ring_buffer_sample_fn hear;
static void *hearer;
static char room[4096];
static int waiting;		/* events; negative: others come as fast as these are taken */
static int most;		/* taken before this is called endless */

int bpf_object__open_skeleton(struct bpf_object_skeleton *s, const struct bpf_object_open_opts *opts)
{
	(void)s;
	(void)opts;
	return 0;
}

int bpf_object__load_skeleton(struct bpf_object_skeleton *s)
{
	for (int i = 0; i < s->map_cnt; i++)
		if (s->maps[i].mmaped)
			*s->maps[i].mmaped = room;
	return 0;
}

int bpf_object__attach_skeleton(struct bpf_object_skeleton *s)
{
	(void)s;
	return 0;
}

void bpf_object__destroy_skeleton(struct bpf_object_skeleton *s)
{
	free(s->maps);
	free(s->progs);
	free(s);
}

int bpf_map__fd(const struct bpf_map *map)
{
	(void)map;
	return 0;
}

struct ring_buffer *ring_buffer__new(int fd, ring_buffer_sample_fn fn, void *ctx, const struct ring_buffer_opts *opts)
{
	(void)fd;
	(void)opts;
	hear = fn;
	hearer = ctx;
	return (struct ring_buffer *)room;
}

void ring_buffer__free(struct ring_buffer *ring)
{
	(void)ring;
}

/* As libbpf does it: on while there are events, unless who hears says no; then that one is taken all the same. */
int ring_buffer__consume(struct ring_buffer *ring)
{
	struct terrace_file_event e = { .what = TERRACE_FILE_READ };
	int taken = 0;

	(void)ring;
	while (waiting && taken < most) {
		int err;

		waiting -= waiting > 0;
		taken++;
		err = hear(hearer, &e, sizeof(e));
		if (err < 0)
			return err;
	}
	return taken;
}

static int enough = -1;

static bool on_event(void *ctx, const struct terrace_file_event *e)
{
	assert_int_equal(e->what, TERRACE_FILE_READ);
	return ++*(int *)ctx != enough;
}

static void a_tick_ends_however_fast_events_come(void **state)
{
	struct lsm_sense *l;
	char why[200];
	int seen = 0;

	(void)state;
	assert_int_equal(lsm_open(&l, NULL, on_event, &seen, why, sizeof(why)), 0);
	waiting = -1;
	most = 1 << 20;
	assert_true(lsm_drain(l) > 0);
	assert_in_range(seen, RING, 4 * RING);
	/* those that are left are heard of with the next ones, each once */
	waiting = 3 * RING;
	seen = 0;
	for (int i = 0; i < 4; i++)
		assert_true(lsm_drain(l) >= 0);
	assert_int_equal(seen, 3 * RING);
	assert_int_equal(lsm_drain(l), 0);
	/* nor when they are dear: what hears them says when it has had enough */
	waiting = RING;
	seen = 0;
	enough = 100;
	assert_true(lsm_drain(l) >= 0);
	assert_int_equal(seen, 100);
	assert_true(lsm_drain(l) >= 0);
	assert_int_equal(seen, RING);
	lsm_close(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tick_ends_however_fast_events_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
