// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The workload: threads, each with a ring of its own, each following a list of
 * operations that depends on the seed, the run's number and the thread's, and
 * on nothing else. Writes, reads and flushes are asynchronous; discards are
 * ioctls, while the thread's other operations are still under way.
 *
 * Operations that would overlap one under way wait for it, but for a few that
 * need not (--overlap): where order is known the check is sharp, where it is
 * not the device is tried harder.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "mark.h"
#include "oracle.h"

struct request {
	enum kind kind;
	bool busy;
	uint32_t first, count;
	uint32_t op;			/* of the ledger */
	uint64_t began;			/* read, flush */
	uint32_t mark;			/* number of its mark */
	void *data;
};

struct worker {
	struct run *run;
	pthread_t thread;
	uint32_t number;
	uint64_t random, issued, next_version;
	struct io_uring ring;
	struct request *requests;
	uint32_t under_way;
	uint32_t stream_left, stream_at;
};

struct run {
	const struct options *o;
	struct ledger *l;
	struct device device;
	pthread_mutex_t lock;		/* ledger, counters, log */
	FILE *log;
	int marks;			/* written under the lock, so in the order of the ledger */
	uint32_t nr_marks;
	time_t until;
	bool stop;
	int error;			/* first errno of a failed operation */
	uint64_t count[NR_KINDS], blocks[NR_KINDS], nospc, eio, broken;
};

static uint64_t random_bits(struct worker *w)
{
	w->random = stamp_mix(w->random);
	return w->random >> 8;
}

static uint32_t below(struct worker *w, uint32_t n)
{
	return n ? random_bits(w) % n : 0;
}

static bool stopped(struct run *r)
{
	return __atomic_load_n(&r->stop, __ATOMIC_RELAXED);
}

static void stop(struct run *r)
{
	__atomic_store_n(&r->stop, true, __ATOMIC_RELAXED);
}

/* ---- what ended ---- */

static void complain(struct run *r, const char *what)
{
	if (r->broken++ < r->o->limit)
		printf("oracle: BROKEN: %s\n", what);
	stop(r);
}

static void check_read(struct run *r, struct request *q)
{
	uint32_t k;

	for (k = 0; k < q->count; k++) {
		uint64_t value;
		const char *wrong = judge(r->l, q->first + k, (char *)q->data + k * (size_t)STAMP_BLOCK, false, q->began, &value);

		if (wrong)
			complain(r, wrong);
	}
}

static void failed(struct run *r, struct request *q, int error)
{
	if (error == ENOSPC && r->o->nospc_ok) {
		r->nospc++;
		return;
	}
	if (error == EIO && r->o->eio_ok) {
		r->eio++;
		return;
	}
	if (!r->error) {
		r->error = error;
		if (!r->o->quiet)
			printf("oracle: %s of %u blocks at %u: %s\n", kind_names[q->kind], q->count, q->first, strerror(error));
	}
	stop(r);
}

static void ended(struct run *r, struct request *q, int error)
{
	pthread_mutex_lock(&r->lock);
	switch (q->kind) {
	case KIND_READ:
		if (!error)
			check_read(r, q);
		ledger_read_end(r->l, q->began);
		break;
	case KIND_FLUSH:
		if (!error)
			ledger_flush_end(r->l, q->began);
		mark(r->marks, (struct mark){ .kind = MARK_FLUSHED, .id = q->mark, .well = !error });
		break;
	default:
		ledger_end(r->l, q->op, !error);
		mark(r->marks, (struct mark){ .kind = MARK_END, .id = q->mark, .well = !error });
	}
	if (r->log)
		fprintf(r->log, "E %s %u+%u %s\n", kind_names[q->kind], q->first, q->count, error ? strerror(error) : "well");
	if (error)
		failed(r, q, error);
	pthread_mutex_unlock(&r->lock);
}

static void send_io(struct worker *w, struct request *q);

static void reap_one(struct worker *w, struct io_uring_cqe *cqe)
{
	struct request *q = io_uring_cqe_get_data(cqe);
	int want = q->kind == KIND_FLUSH ? 0 : (int)(q->count * STAMP_BLOCK);
	int error = cqe->res == want ? 0 : cqe->res < 0 ? -cqe->res : EIO;

	io_uring_cqe_seen(&w->ring, cqe);
	w->under_way--;
	/* A suspended device answers I/O that must not wait so, and io_uring
	 * passes some of that on: nothing has been done, try again.
	 */
	if (error == EAGAIN) {
		usleep(1000);
		send_io(w, q);
		return;
	}
	ended(w->run, q, error);
	q->busy = false;
}

static void reap(struct worker *w, bool wait)
{
	struct io_uring_cqe *cqe;

	if (!w->under_way)
		return;
	if (wait && io_uring_wait_cqe(&w->ring, &cqe) == 0)
		reap_one(w, cqe);
	while (w->under_way && io_uring_peek_cqe(&w->ring, &cqe) == 0)
		reap_one(w, cqe);
}

/* ---- what begins ---- */

static void begin(struct worker *w, struct request *q)
{
	struct run *r = w->run;
	uint64_t version = 0, k;
	char name[40];

	if (q->kind == KIND_READ) {
		q->began = ledger_read_begin(r->l);
	} else if (q->kind == KIND_FLUSH) {
		q->began = ledger_flush_begin(r->l);
		q->mark = ++r->nr_marks;
		mark(r->marks, (struct mark){ .kind = MARK_FLUSH, .id = q->mark });
	} else {
		if (q->kind == KIND_WRITE || q->kind == KIND_FUA)
			version = (uint64_t)ledger_runs(r->l) << 32 | (uint64_t)w->number << 24 | ++w->next_version;
		q->op = ledger_begin(r->l, q->first, q->count, version, q->kind == KIND_FUA);
		q->mark = ++r->nr_marks;
		mark(r->marks, (struct mark){ .kind = MARK_BEGIN, .id = q->mark, .fua = q->kind == KIND_FUA, .first = q->first,
				       .count = q->count, .version = version });
	}
	r->count[q->kind]++;
	r->blocks[q->kind] += q->count;
	if (r->log)
		fprintf(r->log, "B %s %u+%u %s\n", kind_names[q->kind], q->first, q->count, stamp_name(version, name));
	for (k = 0; version && k < q->count; k++)
		stamp_fill((char *)q->data + k * STAMP_BLOCK, ledger_salt(r->l), q->first + k, version);
}

static bool is_read_or_flush(enum kind kind)
{
	return kind == KIND_READ || kind == KIND_FLUSH;
}

/* Waits until nothing is under way where @q wants to change something. */
static bool begin_alone(struct worker *w, struct request *q, bool overlap)
{
	struct run *r = w->run;

	for (;;) {
		pthread_mutex_lock(&r->lock);
		if (is_read_or_flush(q->kind) || overlap || !ledger_busy(r->l, q->first, q->count)) {
			begin(w, q);
			pthread_mutex_unlock(&r->lock);
			return true;
		}
		pthread_mutex_unlock(&r->lock);
		if (stopped(r))
			return false;
		if (w->under_way)
			reap(w, true);
		else
			usleep(100);
	}
}

static int discard(struct run *r, struct request *q)
{
	uint64_t range[2] = { (uint64_t)q->first * STAMP_BLOCK, (uint64_t)q->count * STAMP_BLOCK };
	int err;

	if (r->device.is_file)
		err = fallocate(r->device.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, range[0], range[1]);
	else
		err = ioctl(r->device.fd, q->kind == KIND_DISCARD ? BLKDISCARD : BLKZEROOUT, range);
	return err ? errno : 0;
}

static void submit(struct worker *w, struct request *q)
{
	if (q->kind == KIND_DISCARD || q->kind == KIND_ZERO)
		ended(w->run, q, discard(w->run, q));
	else
		send_io(w, q);
}

static void send_io(struct worker *w, struct request *q)
{
	struct run *r = w->run;
	struct io_uring_sqe *sqe;
	uint64_t offset = (uint64_t)q->first * STAMP_BLOCK;
	int n;

	sqe = io_uring_get_sqe(&w->ring);
	if (q->kind == KIND_READ)
		io_uring_prep_read(sqe, r->device.fd, q->data, q->count * STAMP_BLOCK, offset);
	else if (q->kind == KIND_FLUSH)
		io_uring_prep_fsync(sqe, r->device.fd, 0);
	else
		io_uring_prep_write(sqe, r->device.fd, q->data, q->count * STAMP_BLOCK, offset);
	if (q->kind == KIND_FUA)
		sqe->rw_flags = RWF_DSYNC;
	io_uring_sqe_set_data(sqe, q);
	q->busy = true;
	w->under_way++;
	while ((n = io_uring_submit(&w->ring)) == -EAGAIN || n == -EBUSY || n == -EINTR)
		reap(w, true);
	if (n < 0)
		trouble("io_uring_submit: %s", strerror(-n));
}

/* ---- which ---- */

/* Small sizes often, all up to @max: each power of two as likely as any other. */
static uint32_t random_size(struct worker *w, uint32_t max)
{
	uint32_t bits = 1;

	while (bits < 31 && 1u << bits <= max)
		bits++;
	bits = below(w, bits);
	bits = (1u << bits) + below(w, 1u << bits);
	return bits > max ? max : bits;
}

static void random_place(struct worker *w, struct request *q)
{
	const struct options *o = w->run->o;
	uint32_t span = o->blocks;

	if (below(w, 100) < o->hot && span / 16)
		span /= 16;
	if (q->count > o->blocks)
		q->count = o->blocks;
	q->first = below(w, span);
	if (q->first + q->count > o->blocks)
		q->first = o->blocks - q->count;
	q->first += o->first;
}

static enum kind random_kind(struct worker *w)
{
	const struct options *o = w->run->o;
	uint32_t sum = 0, k, pick;

	for (k = 0; k < NR_KINDS; k++)
		sum += o->weight[k];
	pick = below(w, sum);
	for (k = 0; pick >= o->weight[k]; k++)
		pick -= o->weight[k];
	return k;
}

static void stream_on(struct worker *w, struct request *q)
{
	const struct options *o = w->run->o;

	q->kind = KIND_WRITE;
	q->count = o->max_blocks;
	q->first = w->stream_at;
	if (q->first + q->count >= o->first + o->blocks) {
		q->count = o->first + o->blocks - q->first;
		w->stream_left = 1;
	}
	w->stream_at += q->count;
	w->stream_left--;
}

static void choose(struct worker *w, struct request *q)
{
	const struct options *o = w->run->o;

	q->first = o->first;
	q->count = 0;
	if (w->stream_left && below(w, 3)) {
		stream_on(w, q);
		return;
	}
	q->kind = random_kind(w);
	switch (q->kind) {
	case KIND_FLUSH:
		return;
	case KIND_STREAM:
		q->count = o->max_blocks;
		random_place(w, q);
		w->stream_left = o->stream_ops;
		w->stream_at = q->first;
		stream_on(w, q);
		return;
	case KIND_DISCARD:
	case KIND_ZERO:
		q->count = o->min_discard ? o->min_discard + below(w, o->max_discard - o->min_discard + 1) :
					    random_size(w, o->max_discard);
		break;
	default:
		q->count = random_size(w, o->max_blocks);
	}
	random_place(w, q);
}

static struct request *free_request(struct worker *w)
{
	uint32_t k;

	for (;;) {
		reap(w, false);
		for (k = 0; k < w->run->o->depth; k++)
			if (!w->requests[k].busy)
				return &w->requests[k];
		reap(w, true);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct run *r = w->run;
	const struct options *o = r->o;

	while (!stopped(r) && w->issued < o->ops && (!r->until || time(NULL) < r->until)) {
		struct request *q = free_request(w);
		bool overlap;

		choose(w, q);
		overlap = below(w, 100) < o->overlap;
		w->issued++;
		if (begin_alone(w, q, overlap))
			submit(w, q);
	}
	while (w->under_way)
		reap(w, true);
	return NULL;
}

static void prepare(struct worker *w, struct run *r, uint32_t number)
{
	const struct options *o = r->o;
	uint32_t k;
	int err;

	w->run = r;
	w->number = number;
	w->random = stamp_mix(stamp_mix(o->seed + ledger_runs(r->l)) + number);
	w->requests = calloc(o->depth, sizeof(*w->requests));
	for (k = 0; k < o->depth; k++)
		w->requests[k].data = io_buffer(o->max_blocks * (size_t)STAMP_BLOCK);
	err = io_uring_queue_init(o->depth, &w->ring, 0);
	if (err)
		trouble("io_uring: %s", strerror(-err));
}

static void finish(struct worker *w)
{
	uint32_t k;

	io_uring_queue_exit(&w->ring);
	for (k = 0; k < w->run->o->depth; k++)
		free(w->requests[k].data);
	free(w->requests);
}

static void report(struct run *r)
{
	enum kind k;

	printf("oracle: run %u:", ledger_runs(r->l));
	for (k = 0; k < NR_KINDS; k++)
		if (r->count[k])
			printf(" %s=%llu/%llu", kind_names[k], (unsigned long long)r->count[k], (unsigned long long)r->blocks[k]);
	if (r->nospc)
		printf(" nospc=%llu", (unsigned long long)r->nospc);
	if (r->eio)
		printf(" eio=%llu", (unsigned long long)r->eio);
	printf("%s\n", r->broken ? " BROKEN" : r->error ? " (stopped by an error)" : "");
}

int run_workload(const struct options *o, struct ledger *l)
{
	struct run r = { .o = o, .l = l, .lock = PTHREAD_MUTEX_INITIALIZER };
	struct worker *w = calloc(o->threads, sizeof(*w));
	char path[4096];
	uint32_t k;

	device_open(&r.device, o->device, true);
	if (r.device.bytes / STAMP_BLOCK < o->first + (uint64_t)o->blocks)
		trouble("%s has %llu bytes, less than %u blocks", o->device, (unsigned long long)r.device.bytes, o->first + o->blocks);
	r.marks = mark_open(o, l);
	snprintf(path, sizeof(path), "%s.log", o->ledger);
	r.log = fopen(path, ledger_runs(l) ? "a" : "w");
	ledger_next_run(l);
	if (r.log)
		fprintf(r.log, "run %u seed %llu\n", ledger_runs(l), (unsigned long long)o->seed);
	if (o->seconds)
		r.until = time(NULL) + o->seconds;
	for (k = 0; k < o->threads; k++)
		prepare(&w[k], &r, k);
	for (k = 0; k < o->threads; k++)
		if (pthread_create(&w[k].thread, NULL, work, &w[k]))
			trouble("pthread_create failed");
	for (k = 0; k < o->threads; k++)
		pthread_join(w[k].thread, NULL);
	for (k = 0; k < o->threads; k++)
		finish(&w[k]);
	free(w);
	if (r.log)
		fclose(r.log);
	mark_close(r.marks);
	close(r.device.fd);
	if (!o->quiet)
		report(&r);
	return r.broken ? EXIT_BROKEN : r.error ? EXIT_DARK : EXIT_GOOD;
}
