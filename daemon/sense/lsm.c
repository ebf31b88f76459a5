// SPDX-License-Identifier: GPL-2.0-or-later
/* Loads bpf/lsm.bpf.c; see lsm.h. */
#include "sense/lsm.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lsm.skel.h"

#define MOST	8192u	/* events a drain, about what the ring holds: what comes meanwhile waits for the next one */

struct lsm_sense {
	struct lsm *bpf;
	struct ring_buffer *ring;
	lsm_see_fn see;
	void *ctx;
	uint32_t seen;		/* in this drain */
};

static int hear(void *ctx, void *data, size_t bytes)
{
	struct lsm_sense *l = ctx;
	const struct terrace_file_event *e = data;
	bool more = true;

	if (bytes >= sizeof(*e) && e->what && e->what < TERRACE_FILE_WHATS)
		more = l->see(l->ctx, e);
	/* libbpf goes on while events come, and they may come faster than they are heard; this one is taken all the same */
	return ++l->seen < MOST && more ? 0 : -EAGAIN;
}

/* libbpf tells much; what matters is said in one line by who asked. */
static int silent(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

static int load(struct lsm_sense *l, const int *ignored)
{
	int err = 0;

	l->bpf = lsm__open();
	if (!l->bpf)
		return -errno;
	if (ignored)
		err = bpf_map__reuse_fd(l->bpf->maps.ignored, ignored[0]) ?:
		      bpf_map__reuse_fd(l->bpf->maps.any_ignored, ignored[1]);
	if (!err)
		err = lsm__load(l->bpf);
	if (!err)
		err = lsm__attach(l->bpf);
	if (err)
		return err;
	l->ring = ring_buffer__new(bpf_map__fd(l->bpf->maps.events), hear, l, NULL);
	return l->ring ? 0 : -errno;
}

void lsm_mark(struct lsm_sense *l, bool yes)
{
	l->bpf->bss->marks = yes;
}

int lsm_open(struct lsm_sense **out, const int *ignored, lsm_see_fn see, void *ctx, char *why, size_t bytes)
{
	struct lsm_sense *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->see = see;
	l->ctx = ctx;
	libbpf_set_print(silent);
	err = load(l, ignored);
	if (err) {
		snprintf(why, bytes, "the kernel refuses the BPF programs for files: %s", strerror(-err));
		lsm_close(l);
		return err;
	}
	*out = l;
	return 0;
}

void lsm_close(struct lsm_sense *l)
{
	ring_buffer__free(l->ring);
	lsm__destroy(l->bpf);
	free(l);
}

int lsm_watch(struct lsm_sense *l, unsigned int major, unsigned int minor, bool on)
{
	int map = bpf_map__fd(l->bpf->maps.watched);
	uint32_t dev = major << 20 | minor;
	uint8_t one = 1;

	if (on)
		return bpf_map_update_elem(map, &dev, &one, BPF_ANY) ? -errno : 0;
	return bpf_map_delete_elem(map, &dev) && errno != ENOENT ? -errno : 0;
}

int lsm_drain(struct lsm_sense *l)
{
	int got;

	l->seen = 0;
	__atomic_store_n(&l->bpf->bss->woken, 0, __ATOMIC_SEQ_CST);
	got = ring_buffer__consume(l->ring);
	return got == -EAGAIN ? (int)l->seen : got;
}

int lsm_fd(const struct lsm_sense *l)
{
	return bpf_map__fd(l->bpf->maps.events);
}

uint64_t lsm_lost(const struct lsm_sense *l)
{
	return __atomic_load_n(&l->bpf->bss->lost, __ATOMIC_RELAXED);
}
