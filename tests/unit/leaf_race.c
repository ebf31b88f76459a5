// SPDX-License-Identifier: GPL-2.0-or-later
/* Every interleaving of a reader with arrays being replaced stays inside the arrays. */
#include "core_lib.h"
#include <pthread.h>
#include <semaphore.h>
#include <asm/barrier.h>

/*
 * leaf.c is compiled into this test; the reader hands the turn over at its
 * barriers, the writer before each store that a reader may see.
 */
static void turn_over(void);
#undef smp_rmb
#undef WRITE_ONCE
#define smp_rmb() turn_over()
#define WRITE_ONCE(x, value)						\
	do {								\
		turn_over();						\
		*(volatile __typeof__(x) *)&(x) = (value);		\
	} while (0)
#include "../../kmod/core/leaf.c"

enum { READER, WRITER, NR_THREADS };
#define READER_PIECES	3		/* two barriers */
#define REPLACES	2		/* of four stores each */
#define WRITER_PIECES	(4 * REPLACES + 1)

static __thread int self = -1;		/* -1: the test itself, before and after */
static sem_t go[NR_THREADS], done;
static bool ended[NR_THREADS];
static struct tr_leaf leaf;
static u32 to_cap[REPLACES];
static bool with_high[REPLACES];
static u64 answer;

static void turn_over(void)
{
	if (self < 0)
		return;
	sem_post(&done);
	sem_wait(&go[self]);
}

/* All arrays of a case, freed when it is over: as if a grace period were that long. */
static void *arrays_used[2 * (REPLACES + 1)];
static u32 nr_arrays;

static void *array(u32 bytes)
{
	return arrays_used[nr_arrays++] = bytes ? room_for(bytes) : NULL;
}

static void put_arrays(u32 cap, bool high)
{
	u32 *low = array(cap * sizeof(u32));
	u8 *bytes = array(high ? cap : 0);

	assert_int_equal(tr_leaf_replace(&leaf, low, bytes, cap), 0);
}

static void *reader(void *arg)
{
	self = READER;
	sem_wait(&go[READER]);
	answer = tr_leaf_at(&leaf, (uintptr_t)arg);
	ended[READER] = true;
	sem_post(&done);
	return NULL;
}

static void *writer(void *arg)
{
	u32 i;

	(void)arg;
	self = WRITER;
	sem_wait(&go[WRITER]);
	for (i = 0; i < REPLACES; i++)
		put_arrays(to_cap[i], with_high[i]);
	ended[WRITER] = true;
	sem_post(&done);
	return NULL;
}

/* Bit k of @order: whose piece runs k-th. */
static void run(u32 order, u32 rank)
{
	pthread_t thread[NR_THREADS];
	u32 k, who;

	ended[READER] = ended[WRITER] = false;
	assert_int_equal(pthread_create(&thread[READER], NULL, reader, (void *)(uintptr_t)rank), 0);
	assert_int_equal(pthread_create(&thread[WRITER], NULL, writer, NULL), 0);
	for (k = 0; k < READER_PIECES + WRITER_PIECES; k++) {
		who = order >> k & 1 ? READER : WRITER;
		assert_false(ended[who]);
		sem_post(&go[who]);
		sem_wait(&done);
	}
	assert_true(ended[READER] && ended[WRITER]);
	pthread_join(thread[READER], NULL);
	pthread_join(thread[WRITER], NULL);
}

static void one_case(u32 order, u32 first_cap, bool first_high, u32 rank)
{
	tr_leaf_init(&leaf);
	nr_arrays = 0;
	put_arrays(first_cap, first_high);
	run(order, rank);
	while (nr_arrays)
		free(arrays_used[--nr_arrays]);
}

static void no_order_of_events_leads_past_an_array(void **state)
{
	static const u32 cap[] = { 0, 1, 64 };
	u32 order, shape, first, k, rest;

	(void)state;
	for (order = 0; order < 1u << (READER_PIECES + WRITER_PIECES); order++) {
		if (hweight32(order) != READER_PIECES)
			continue;
		for (shape = 0; shape < 54; shape++) {
			rest = shape / 3;
			first = shape % 3;
			for (k = 0; k < REPLACES; k++, rest /= 3) {
				to_cap[k] = cap[rest % 3];
				with_high[k] = shape / 27 || k;
			}
			one_case(order, cap[first], shape / 27, 63);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_order_of_events_leads_past_an_array),
	};
	int i;

	for (i = 0; i < NR_THREADS; i++)
		sem_init(&go[i], 0, 0);
	sem_init(&done, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
