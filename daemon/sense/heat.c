// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Loads bpf/heat.bpf.c for one volume and drains its tables; see heat.h.
 *
 * Two tables per CPU.  A drain reads and empties the ones that were not written since the last
 * drain, then turns over.  So no table is read before a whole tick has passed since it was last
 * current, and a program that picked it just before runs for microseconds, with preemption off.
 * Should a machine be stopped for a tick just there, one access may be lost or told oddly.
 */
#include "sense/heat.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "heat.skel.h"

#define QUIET_DRAINS	32	/* before more is looked at again */
#define OTHERS		3	/* this drain's, the next one's, and those that are being filled */
#define DOUBT_DRAINS	5	/* a thread that lsm.bpf.c has marked is ignored so long if nobody else says so */

struct heat_unspared {	/* what was found to be worth its cost, before */
	uint32_t rate, slow_rate, mask;
};

struct heat_sense {
	struct sense sense;
	struct heat *bpf;
	char *tables;		/* mapped */
	size_t bytes, stride;
	uint32_t cpus;
	struct heat_module module;
	bool few_slow;		/* as few slow reads as hits will do */
	struct heat_unspared unspared;
	uint32_t others;	/* tables to come that are still of another pace */
	uint32_t slow;		/* one in so many of them is told */
	bool opened, changed;	/* `changed`: the tables to come are still of the rate before */
	int error[2];		/* why the module tells as before: of hits, slow reads */
	struct heat_rate rate, slow_rate;
	struct heat_pace pace;
	struct timespec turned;
	/* where the drain under way has come to */
	uint32_t half, cpu, entry;
	uint32_t mask;		/* that its tables were filled with */
	uint32_t fullest, dropped, slow_dropped;
	struct heat_tally tally;
	/* who is ignored: by the daemon's word; bpf/compacting.bpf.h has others, too */
	int ignored[2];
	uint32_t known[TERRACE_HEAT_IGNORED], nr_known;
};

/* ---- pure ------------------------------------------------------------------------------- */

static void set_pace(struct heat_pace *pace, uint32_t mask)
{
	pace->changed = mask != pace->mask;
	pace->mask = mask;
	pace->quiet = 0;
}

void heat_adapt(struct heat_pace *pace, uint32_t busy, uint32_t fullest, uint32_t dropped)
{
	if (pace->changed) {
		pace->changed = false;
		return;
	}
	if (dropped || fullest > busy) {
		set_pace(pace, pace->mask < HEAT_MASK_MOST ? pace->mask << 1 | 1 : pace->mask);
		return;
	}
	/* Twice as much will fit: not the other way next time. */
	pace->quiet = fullest < busy / 4 ? pace->quiet + 1 : 0;
	if (pace->quiet >= QUIET_DRAINS)
		set_pace(pace, pace->mask >> 1);
}

bool heat_rate(struct heat_rate *rate, uint32_t worth, uint64_t told, double seconds)
{
	double a_second = (double)told / (seconds > 0.001 ? seconds : 0.001);
	uint32_t before = rate->now;

	/* Up at once, for each costs the load; down when it has been quiet. */
	for (; a_second > worth && rate->now < rate->most; a_second /= 2)
		rate->now = rate->now * 2 < rate->most ? rate->now * 2 : rate->most;
	rate->quiet = a_second < worth / 4.0 ? rate->quiet + 1 : 0;
	if (rate->quiet >= QUIET_DRAINS) {
		rate->now = rate->now > 1 ? rate->now / 2 : 1;
		rate->quiet = 0;
	}
	return rate->now != before;
}

uint32_t heat_tell(const struct terrace_heat_entry *e, port_see_fn see, void *ctx)
{
	struct port_access a = { .block = e->block, .count = e->count, .op = (enum port_op)(e->kind >> 12) };

	if (a.op > PORT_DISCARD || !a.count)
		return 0;
	a.where = e->kind & TERRACE_WHERE_NOWHERE ? PORT_NOWHERE :
		  e->kind & TERRACE_WHERE_SLOW ? PORT_SLOW : PORT_FAST;
	a.always = a.op == PORT_READ && a.where != PORT_FAST;
	for (uint32_t i = 0; i < e->hits; i++)
		see(ctx, &a);
	return e->hits;
}

static bool may_be_left_out(const struct terrace_heat_entry *e)
{
	return !(e->kind & (TERRACE_WHERE_SLOW | TERRACE_WHERE_NOWHERE)) || e->kind >> 12 == TERRACE_OP_WRITE;
}

void heat_count(struct heat_tally *t, const struct terrace_heat_entry *e)
{
	if (may_be_left_out(e)) {
		t->entries++;
		t->told += e->hits;
	} else if (e->kind >> 12 == TERRACE_OP_READ) {
		t->slow += e->hits;
	}
}

uint32_t heat_dropped(const struct heat_tally *t, uint32_t nr, uint32_t dropped)
{
	return t->entries >= nr / 2 ? dropped : 0;
}

/* ---- draining ------------------------------------------------------------------------------ */

static struct terrace_heat_table *table(const struct heat_sense *h, uint32_t cpu, uint32_t half)
{
	return (void *)(h->tables + h->stride * (cpu * 2 + half));
}

/* What a table has counted, and then it is empty.  Stale slots are harmless: they are compared. */
static void empty(struct heat_sense *h, struct terrace_heat_table *t)
{
	struct sense_counts *c = &h->sense.counts;
	uint32_t dropped;

	if (h->tally.entries > h->fullest)
		h->fullest = h->tally.entries;
	dropped = heat_dropped(&h->tally, t->nr, t->dropped);
	h->dropped += dropped;
	h->slow_dropped += t->dropped - dropped;
	h->tally.entries = 0;
	c->ignored += t->ignored;
	h->sense.lost += t->dropped;
	for (int tier = 0; tier < TERRACE_HEAT_TIERS; tier++) {
		c->reads[tier] += t->reads[tier];
		for (int op = 0; op < 2; op++)
			for (int b = 0; b < TERRACE_HEAT_BUCKETS; b++)
				c->latency[tier][op][b] += t->latency[tier][op][b];
	}
	memset(t->reads, 0, sizeof(t->reads));
	memset(t->latency, 0, sizeof(t->latency));
	t->dropped = 0;
	t->ignored = 0;
	t->nr = 0;
}

enum { HITS, SLOW };

/* Has the module tell one in @n of them, if it can be told. */
static bool set_rate(struct heat_sense *h, int whose, uint32_t n)
{
	const struct heat_module *m = &h->module;

	h->error[whose] = (whose == SLOW ? m->set_slow : m->set)(m->ctx, n);
	h->sense.set_error = h->error[HITS] ? h->error[HITS] : h->error[SLOW];
	return !h->error[whose];
}

/* As if it had been told at the rate that @rate is at, of which it was one in @now. */
static uint64_t at_rate(const struct heat_rate *rate, uint64_t told, uint32_t now)
{
	return told * now / rate->now;
}

static void set_slow(struct heat_sense *h, uint32_t n)
{
	if (!h->module.slow_now || n == h->slow || !set_rate(h, SLOW, n))
		return;
	h->slow = n;
	h->changed = true;
}

static void set_hits(struct heat_sense *h, uint32_t n)
{
	if (n == h->module.now)
		return;
	if (!set_rate(h, HITS, n)) {
		h->rate.now = h->module.now;	/* asked again when that is not enough */
		return;
	}
	h->module.now = n;
	h->changed = true;
}

/*
 * Hits are never told more often than slow reads: what is heard at two rates is thinned to the lower one (loop/hear.c), and
 * that is the hits'. So more slow reads are asked for before more hits, and fewer hits before fewer slow reads, for the module may refuse.
 */
static void set_rates(struct heat_sense *h)
{
	uint32_t hits = h->rate.now > h->slow_rate.now ? h->rate.now : h->slow_rate.now;
	uint32_t slow = h->few_slow ? hits : h->slow_rate.now;

	if (slow < h->slow)
		set_slow(h, slow);
	set_hits(h, hits > h->slow ? hits : h->slow);
	set_slow(h, slow < h->module.now ? slow : h->module.now);
}

static uint32_t worth(const struct heat_sense *h, uint32_t most)
{
	return h->sense.spared ? most / HEAT_SPARED : most;
}

static void adapt_module(struct heat_sense *h, uint32_t mask)
{
	struct timespec now;
	double seconds;

	clock_gettime(CLOCK_MONOTONIC, &now);
	seconds = (double)(now.tv_sec - h->turned.tv_sec) + (double)(now.tv_nsec - h->turned.tv_nsec) * 1e-9;
	h->turned = now;
	if (!h->changed) {
		heat_rate(&h->rate, worth(h, HEAT_TOLD), at_rate(&h->rate, (h->tally.told + h->dropped) * (mask + 1), h->module.now), seconds);
		if (h->module.slow_now)
			heat_rate(&h->slow_rate, worth(h, HEAT_SLOW_TOLD),
				  at_rate(&h->slow_rate, h->tally.slow + h->slow_dropped, h->slow), seconds);
	}
	h->changed = false;
	set_rates(h);
}

static void heat_each_slow(struct sense *sense, bool yes)
{
	((struct heat_sense *)sense)->few_slow = !yes;
}

static uint32_t less(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* And as before at once: what was worth it then was found out slowly. Where it is too much by now, that shows in a drain or two. */
static void heat_spare(struct sense *sense, bool yes)
{
	struct heat_sense *h = (struct heat_sense *)sense;

	if (yes == sense->spared)
		return;
	sense->spared = yes;
	h->others = OTHERS;
	if (yes) {
		h->unspared = (struct heat_unspared){ h->rate.now, h->slow_rate.now, h->pace.mask };
		return;
	}
	h->rate.now = less(h->rate.now, h->unspared.rate);
	h->slow_rate.now = less(h->slow_rate.now, h->unspared.slow_rate);
	set_pace(&h->pace, less(h->pace.mask, h->unspared.mask));
}

static uint32_t *known(struct heat_sense *h, uint32_t thread)
{
	for (uint32_t i = 0; i < h->nr_known; i++)
		if (h->known[i] == thread)
			return &h->known[i];
	return NULL;
}

/* Marks count how long nobody has confirmed them. */
static void doubt(struct heat_sense *h)
{
	uint32_t thread, next, zero = 0, any = 0;
	uint8_t drains;
	int more;

	for (more = bpf_map_get_next_key(h->ignored[0], NULL, &next); !more && any <= TERRACE_HEAT_IGNORED; any++) {
		thread = next;
		more = bpf_map_get_next_key(h->ignored[0], &thread, &next);
		if (known(h, thread) || bpf_map_lookup_elem(h->ignored[0], &thread, &drains))
			continue;
		if (drains++ < DOUBT_DRAINS)
			bpf_map_update_elem(h->ignored[0], &thread, &drains, BPF_EXIST);
		else
			bpf_map_delete_elem(h->ignored[0], &thread);
	}
	bpf_map_update_elem(h->ignored[1], &zero, &any, BPF_ANY);
}

/*
 * All tables are read: the other half's turn, at a pace that fits.  What the next drain reads was told at the rates of
 * until now: these are what it comes with.
 */
static void turn(struct heat_sense *h)
{
	uint32_t mask = h->mask;

	h->mask = h->pace.mask;
	h->sense.sampling = h->module.now * (h->mask + 1);
	h->sense.slow_sampling = h->slow;
	adapt_module(h, mask);
	doubt(h);
	/* The module's rate is what sparing changes: what its tables hold then says something of the program's. */
	if (h->others)
		h->others--;
	else
		heat_adapt(&h->pace, worth(h, HEAT_BUSY), h->fullest, h->dropped);
	h->fullest = h->dropped = h->slow_dropped = h->cpu = h->entry = 0;
	h->tally.told = h->tally.slow = 0;
	h->bpf->bss->mask = h->pace.mask;
	__atomic_store_n(&h->bpf->bss->half, h->half, __ATOMIC_RELEASE);
	h->half ^= 1;
}

static int heat_drain(struct sense *sense, uint32_t most, port_see_fn see, void *ctx)
{
	struct heat_sense *h = (struct heat_sense *)sense;
	uint32_t n = 0;

	for (; h->cpu < h->cpus; h->cpu++, h->entry = 0) {
		struct terrace_heat_table *t = table(h, h->cpu, h->half);
		uint32_t nr = t->nr < TERRACE_HEAT_ENTRIES ? t->nr : TERRACE_HEAT_ENTRIES;

		while (h->entry < nr) {
			if (n >= most)
				return (int)n;
			heat_count(&h->tally, &t->entry[h->entry]);
			n += heat_tell(&t->entry[h->entry++], see, ctx);
		}
		empty(h, t);
	}
	turn(h);
	return (int)n;
}

static void heat_ignore(struct sense *sense, uint32_t thread, bool yes)
{
	struct heat_sense *h = (struct heat_sense *)sense;
	uint32_t *at = known(h, thread), zero = 0, any = 1;
	uint8_t one = 1;

	if (!yes) {
		if (at)
			*at = h->known[--h->nr_known];
		bpf_map_delete_elem(h->ignored[0], &thread);
		return;
	}
	if (!at && h->nr_known < TERRACE_HEAT_IGNORED)
		h->known[h->nr_known++] = thread;
	bpf_map_update_elem(h->ignored[0], &thread, &one, BPF_ANY);
	bpf_map_update_elem(h->ignored[1], &zero, &any, BPF_ANY);
}

static void heat_close(struct sense *sense)
{
	struct heat_sense *h = (struct heat_sense *)sense;

	if (h->tables)
		munmap(h->tables, h->bytes);
	heat__destroy(h->bpf);
	/* For whoever listens next. */
	if (h->opened) {
		set_rate(h, HITS, h->module.most);
		if (h->module.slow_now)
			set_rate(h, SLOW, 1);
	}
	free(h);
}

/* ---- opening ------------------------------------------------------------------------------- */

/* libbpf tells much; what matters is said in one line by who asked. */
static int silent(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

static int load(struct heat_sense *h, uint32_t dev)
{
	int err;

	h->bpf = heat__open();
	if (!h->bpf)
		return -errno;
	h->bpf->rodata->volume_dev = dev;
	err = bpf_map__set_max_entries(h->bpf->maps.heat, h->cpus * 2);
	if (!err)
		err = heat__load(h->bpf);
	if (!err)
		err = heat__attach(h->bpf);
	if (err) {
		heat__destroy(h->bpf);
		h->bpf = NULL;
	}
	return err;
}

static int map_tables(struct heat_sense *h)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	h->stride = (sizeof(struct terrace_heat_table) + 7) & ~(size_t)7;	/* as the kernel rounds */
	h->bytes = (h->stride * h->cpus * 2 + page - 1) & ~(page - 1);
	h->tables = mmap(NULL, h->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(h->bpf->maps.heat), 0);
	if (h->tables != MAP_FAILED)
		return 0;
	h->tables = NULL;
	return -errno;
}

/* Of each hit, until there are many; of each slow read: whoever listened before may have been killed. */
static void begin_telling(struct heat_sense *h)
{
	h->opened = true;
	h->rate = h->slow_rate = (struct heat_rate){ .now = 1, .most = h->module.most };
	if (!set_rate(h, HITS, 1))
		h->rate.now = h->module.now;
	h->module.now = h->rate.now;
	h->sense.sampling = h->module.now;
	h->slow = h->module.slow_now && !set_rate(h, SLOW, 1) ? h->module.slow_now : 1;
	h->sense.slow_sampling = h->slow;
	clock_gettime(CLOCK_MONOTONIC, &h->turned);
}

int heat_open(unsigned int major, unsigned int minor, const struct heat_module *module, struct sense **out,
	      char *why, size_t bytes)
{
	struct heat_sense *h = calloc(1, sizeof(*h));
	int cpus = libbpf_num_possible_cpus(), err;

	why[0] = 0;
	libbpf_set_print(silent);
	if (!h || cpus < 1) {
		free(h);
		return -ENOMEM;
	}
	h->cpus = (uint32_t)cpus;
	h->module = *module;
	h->half = 1;	/* the programs begin with 0 */
	h->sense = (struct sense){
		.drain = heat_drain, .close = heat_close, .ignore = heat_ignore, .each_slow = heat_each_slow, .spare = heat_spare,
		.name = "bpf", .slow_always = true,
	};
	err = load(h, major << 20 | minor);
	if (!err)
		err = map_tables(h);
	if (!err) {
		h->ignored[0] = bpf_map__fd(h->bpf->maps.ignored);
		h->ignored[1] = bpf_map__fd(h->bpf->maps.any_ignored);
		h->sense.ignored = h->ignored;
	}
	if (err) {
		snprintf(why, bytes, "the kernel refuses BPF programs: %s", strerror(-err));
		heat_close(&h->sense);
		return err;
	}
	begin_telling(h);
	*out = &h->sense;
	return 0;
}
