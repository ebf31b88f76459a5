/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A simulated volume behind the loop's port: the model of tests/replay, with orders that are
 * carried out some ticks later, and faults on demand.
 */
#ifndef TESTS_SIM_LIB_H
#define TESTS_SIM_LIB_H

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy_lib.h"

#include "../replay/volume.c"
#include "loop/engine.h"

#define SIM_QUEUE	512
#define SIM_HEARD	65536

struct sim {
	struct port port;
	struct volume v;
	struct engine e;
	struct engine_config c;
	char dir[64];
	uint64_t now_ns;
	struct prng prng;

	struct terrace_move queue[SIM_QUEUE];
	uint32_t queued, delay, waited;
	struct port_access heard[SIM_HEARD];
	uint32_t nr_heard;
	struct sense sense;	/* its counts of latency, where `timed` */
	bool timed;
	double hit_us, hit_moving_us, miss_us;	/* ... by where a read is served, and by whether orders are under way */
	uint64_t cpu_idle, cpu_all;	/* the machine's; 0: does not tell */
	double busy_ns, slow_ns;	/* latency of the foreground, and when orders are under way */

	int submit_error;	/* the next submits fail with it */
	int order_error;	/* the next orders end with it */
	bool no_room;		/* orders find none */
	uint32_t room_for;	/* of what is to be raised there is room for so many blocks each time; 0: for all */
	bool gone;
	bool knows_claims, claimed, blind, tells_where;
	uint32_t sample;	/* one access in so many is told, 0: each ... */
	uint64_t told;		/* ... and so many were */
	bool spares;		/* told that fewer would do */
	bool samples;		/* what regions hold; odd ones do not shrink */
	bool solid;		/* no region does */
	bool mute;		/* ... but no answer ever comes */
	uint16_t loose[64];	/* so many of a region's first blocks are, where not fast */
	uint16_t runs[64];	/* ... and in so many runs */
	uint64_t sampled;	/* reads for samples, counted with all others */
	struct tails marks;	/* of the kernel: DEAD, no order raises or keeps these blocks; a write lifts it */
	double slow_fill;	/* share of the slow tier in use */
	uint64_t kept_back;	/* blocks of each fast tier that no raise gets */
	uint64_t top;		/* blocks of the first of two slots tiers, 0: there is one */
	uint32_t to_full;	/* raises to it that found no room */
	uint8_t *nowhere;	/* by block: holds nothing; NULL: all do */
	bool uncounted;		/* ... which summaries do not know yet */
	uint64_t unreadable;	/* this region's bitmaps are, or 0: none */
	bool suspended;		/* no region's bitmaps are told now */
	uint32_t regions_asked;	/* how often they were asked for */
	bool deep;		/* what is raised lies on a further tier, of shelves as well */
	bool home_full;		/* there is a home tier in between, with no room inside its drive */
	const char *slow_class;
	uint64_t asked[8];
	uint32_t nr_asked, packed_odd, packed_even, plain_odd, plain_even;
	bool answered[128];	/* a sample of the region has come, and no order since */
	uint32_t packed_in_vain;	/* ... which said that it does not shrink, and was not heeded */
	uint32_t submits, most_queued;
	uint32_t clustered, warmed, unwarmed;	/* orders of several blocks in a cluster; see sim_see_warm() */
	uint32_t scrubs, table_scrubs, most_scrubs;	/* of regions, of shelves; so many at once */
	uint64_t bad_region, damaged_region, busy_region;	/* of what scrubs find; 0: none; the last once */
	uint64_t io_errors;	/* of the slow tier */
	char log[8192];
};

static struct sim *sim_of(struct port *port)
{
	return (struct sim *)port;
}

static int sim_shape(struct port *port, struct port_shape *out)
{
	struct sim *s = sim_of(port);

	*out = (struct port_shape){
		.blocks = s->v.blocks, .regions = s->v.regions, .max_orders = 256, .max_batch = 64,
		.uuid = { 1, 2, 3 },
	};
	return s->gone ? -ENODEV : 0;
}

static int sim_state(struct port *port, struct port_state *out)
{
	struct sim *s = sim_of(port);

	if (s->gone)
		return -ENODEV;
	*out = (struct port_state){
		.nr_tiers = 2, .writable = true, .reads = s->v.reads + s->sampled, .fast_reads = s->v.fast_hits,
		.writes = s->v.operations - s->v.reads, .busy_ns = (uint64_t)s->busy_ns,
		.cpu_idle = s->cpu_idle, .cpu_all = s->cpu_all,
	};
	out->tier[0] = (struct port_tier){
		.kind = TERRACE_KIND_SLOTS, .class = "optane", .used_blocks = s->v.fast_used,
		.blocks = s->v.fast_total, .reserve_blocks = s->kept_back,
	};
	out->tier[1] = (struct port_tier){
		.kind = TERRACE_KIND_SHELVES,
		.used_blocks = (uint64_t)(s->slow_fill * (double)s->v.blocks),
		.blocks = s->v.blocks, .free_shelves = 10,
	};
	snprintf(out->tier[1].class, sizeof(out->tier[1].class), "%s", s->slow_class);
	out->tier[1].io_errors = s->io_errors;
	if (s->deep) {
		out->nr_tiers = 3;
		out->tier[2] = out->tier[1];
	}
	if (s->top) {
		uint64_t full = s->top - s->kept_back, used = s->v.fast_used < full ? s->v.fast_used : full;

		out->nr_tiers = 3;
		out->tier[2] = out->tier[1];
		out->tier[1] = out->tier[0];
		out->tier[0].blocks = s->top;
		out->tier[0].used_blocks = used;
		out->tier[1].blocks -= s->top;
		out->tier[1].used_blocks -= used;
	}
	if (s->home_full) {
		out->nr_tiers = 3;
		out->tier[2] = out->tier[1];
		out->tier[1] = (struct port_tier){
			.kind = TERRACE_KIND_HOME, .class = "csd", .used_blocks = s->v.blocks / 2, .blocks = s->v.blocks,
			.full = true,
		};
	}
	return 0;
}

/* One access in `sample`, slow reads as the loop has asked for. */
static bool sim_tells(struct sim *s, struct port_access *a)
{
	uint32_t one_in = s->sample;

	if (!one_in)
		return true;
	a->always = a->op == PORT_READ && a->where == PORT_SLOW;
	if (a->always && s->port.slow_sampling < one_in)
		one_in = s->port.slow_sampling ? s->port.slow_sampling : 1;
	if (prng_below(&s->prng, one_in))
		return false;
	s->told++;
	return true;
}

static int sim_drain(struct port *port, uint32_t most, port_see_fn see, void *ctx)
{
	struct sim *s = sim_of(port);
	uint32_t n = s->nr_heard < most ? s->nr_heard : most;

	for (uint32_t i = 0; i < n; i++)
		if (sim_tells(s, &s->heard[i]))
			see(ctx, &s->heard[i]);
	s->nr_heard = 0;
	return (int)n;
}

static void sim_each_slow(struct port *port, bool yes)
{
	struct sim *s = sim_of(port);

	if (s->sample)
		port->slow_sampling = yes ? 1 : s->sample;
}

static void sim_spare(struct port *port, bool yes)
{
	sim_of(port)->spares = yes;
}

static uint32_t sim_loose(const struct sim *s, uint64_t region, struct terrace_region *out)
{
	uint32_t n = 0;

	for (uint32_t i = 0; region < 64 && i < s->loose[region]; i++) {
		if (s->v.place[region * REGION_BLOCKS + i] != PLACE_PACKED)
			continue;
		n++;
		if (!out)
			continue;
		out->packed[i / 64] &= ~(1ull << i % 64);
		out->present[i / 64] |= 1ull << i % 64;
	}
	return n;
}

static bool sim_is_nowhere(const struct sim *s, uint64_t block)
{
	return s->nowhere && s->nowhere[block];
}

/* Those of a region go from its packs, and from its slots, in which the model leaves them. */
static void sim_count_nowhere(const struct sim *s, uint64_t region, struct terrace_summary *out)
{
	for (uint64_t b = region * REGION_BLOCKS; s->nowhere && !s->uncounted && b < (region + 1) * REGION_BLOCKS; b++) {
		if (!s->nowhere[b])
			continue;
		out->packed -= s->v.place[b] != PLACE_DIRTY;
		out->fast -= s->v.place[b] != PLACE_PACKED;
		out->dirty -= s->v.place[b] == PLACE_DIRTY;
	}
}

static int sim_summaries(struct port *port, uint64_t first, uint32_t nr, struct terrace_summary *out)
{
	struct sim *s = sim_of(port);

	if (s->gone)
		return -ENODEV;
	for (uint32_t i = 0; i < nr; i++) {
		const struct volume_region *r = &s->v.region[first + i];
		double live = r->packed > 0 ? 1 - r->garbage / r->packed : 1;

		out[i] = (struct terrace_summary){
			.fast = (uint16_t)(r->dirty + r->clean), .dirty = (uint16_t)r->dirty,
			.packed = (uint16_t)(REGION_BLOCKS - r->dirty),
			.garbage = (uint16_t)((1 - live) * REGION_BLOCKS),
			.packs = (uint8_t)r->packs, .packed_blocks = (uint16_t)r->packed,
		};
		out[i].loose = (uint16_t)sim_loose(s, first + i, NULL);
		out[i].packed -= out[i].loose;
		sim_count_nowhere(s, first + i, &out[i]);
	}
	return (int)nr;
}

static int sim_regions(struct port *port, uint64_t first, uint32_t nr, bool runs, struct terrace_region *out)
{
	struct sim *s = sim_of(port);

	for (uint32_t k = 0; k < nr; k++) {
		struct upmask_input in;

		if (s->unreadable && first + k == s->unreadable)
			return -EIO;
		volume_masks(&s->v, first + k, &in);
		for (uint64_t i = 0; s->nowhere && i < REGION_BLOCKS; i++)
			if (sim_is_nowhere(s, (first + k) * REGION_BLOCKS + i)) {
				in.fast.bits[i / 64] &= ~(1ull << i % 64);
				in.packed.bits[i / 64] &= ~(1ull << i % 64);
			}
		memset(&out[k], 0, sizeof(out[k]));
		memcpy(out[k].fast, in.fast.bits, sizeof(out[k].fast));
		memcpy(out[k].packed, in.packed.bits, sizeof(out[k].packed));
		memcpy(out[k].present, in.fast.bits, sizeof(out[k].present));
		sim_loose(s, first + k, &out[k]);
		out[k].copies = runs && first + k < 64 ? s->runs[first + k] : 0;
		out[k].status = s->suspended ? (uint32_t)-EBUSY : 0;
		s->regions_asked++;
	}
	return s->gone ? -ENODEV : (int)nr;
}

/* Counts the blocks that come first in their cluster, and those that should have, being warmer than one that does. */
static void sim_see_warm(struct sim *s, const struct terrace_move *m)
{
	struct warmth_region known;
	uint32_t cluster[16], nr = 0;
	struct upmask_input in;

	if (!m->shift)
		return;
	s->clustered++;
	volume_masks(&s->v, m->region, &in);
	assert_true(warmth_look(&s->e.warmth, m->region, true, &known) >= 0);
	for (uint32_t i = 0; i <= REGION_BLOCKS; i++) {
		bool mine = i < REGION_BLOCKS && !(m->up[i / 64] >> i % 64 & 1) &&
			    (upmask_test(&in.fast, i) || m->mode == TERRACE_MOVE_MERGE);

		if (mine)
			cluster[nr++] = i;
		if (nr < 1u << m->shift && i < REGION_BLOCKS)
			continue;
		for (uint32_t k = 0; k < nr; k++)
			for (uint32_t j = 0; j < nr; j++) {
				bool first = m->warm[cluster[k] / 64] >> cluster[k] % 64 & 1;
				bool other = m->warm[cluster[j] / 64] >> cluster[j] % 64 & 1;

				s->warmed += first && k == j;
				s->unwarmed += !first && known.level[cluster[k]] > known.level[cluster[j]] &&
					       (other || known.level[cluster[k]] == 3);
			}
		nr = 0;
	}
}

static int sim_submit(struct port *port, struct terrace_move *moves, uint32_t nr)
{
	struct sim *s = sim_of(port);

	s->submits++;
	if (s->gone)
		return -ENODEV;
	if (s->submit_error)
		return s->submit_error;
	if (s->queued + nr > 256)
		return -EAGAIN;
	for (uint32_t k = 0; k < nr; k++)
		sim_see_warm(s, &moves[k]);
	memcpy(&s->queue[s->queued], moves, nr * sizeof(*moves));
	s->queued += nr;
	if (s->queued > s->most_queued)
		s->most_queued = s->queued;
	return (int)nr;
}

static int sim_sample(struct port *port, uint64_t region, const uint64_t *blocks)
{
	struct sim *s = sim_of(port);

	for (uint32_t i = 0; i < PORT_SAMPLE_BLOCKS; i++)
		assert_true(blocks[i] / REGION_BLOCKS == region && (s->v.place[blocks[i]] != PLACE_PACKED ||
								    blocks[i] % REGION_BLOCKS < s->loose[region]));
	if (s->nr_asked == 8)
		return -EBUSY;
	s->asked[s->nr_asked++] = region;
	s->sampled += PORT_SAMPLE_BLOCKS;
	return 0;
}

static int sim_gains(struct port *port, struct port_gain *out, uint32_t most)
{
	struct sim *s = sim_of(port);
	uint32_t n = s->nr_asked < most ? s->nr_asked : most;

	if (s->mute)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		double gain = s->solid || s->asked[i] % 2 ? 1 : 2;

		if (s->asked[i] < 128)
			s->answered[s->asked[i]] = true;
		out[i] = (struct port_gain){ .region = s->asked[i], .lz4 = gain, .zstd_4 = gain, .zstd_16 = gain };
	}
	s->nr_asked = 0;
	return (int)n;
}

/* What there is room for of @up, beside @fast; false: that is not all. */
static bool sim_fits(const struct sim *s, struct upmask *up, const struct upmask *fast)
{
	uint32_t n = 0, left = 0;

	for (uint32_t i = 0; s->room_for && i < REGION_BLOCKS; i++)
		if (upmask_test(up, i) && !upmask_test(fast, i) && n++ >= s->room_for) {
			up->bits[i / 64] &= ~(1ull << i % 64);
			left++;
		}
	return !left;
}

static void sim_carry_out(struct sim *s, const struct terrace_move *m, struct terrace_result *r)
{
	double written = s->v.slow_written, read = s->v.slow_read;
	uint64_t promoted = s->v.promoted, demoted = s->v.demoted, dropped = s->v.dropped;
	uint32_t low = s->top ? 2 : 1;
	struct upmask up, dead;
	struct upmask_input in;

	if (m->mode != TERRACE_MOVE_RAISE && m->region < 128) {
		s->packed_in_vain += s->answered[m->region] && m->region % 2 && m->codec;
		s->answered[m->region] = false;
	}
	if (m->mode != TERRACE_MOVE_RAISE && m->codec)
		*(m->region % 2 ? &s->packed_odd : &s->packed_even) += 1;
	else if (m->mode != TERRACE_MOVE_RAISE)
		*(m->region % 2 ? &s->plain_odd : &s->plain_even) += 1;
	memcpy(up.bits, m->up, sizeof(up.bits));
	volume_masks(&s->v, m->region, &in);
	tails_mask(&s->marks, m->region, &dead);
	for (uint32_t w = 0; w < UPMASK_WORDS; w++)
		up.bits[w] = (up.bits[w] & ~dead.bits[w]) | (m->mode == TERRACE_MOVE_RAISE ? in.fast.bits[w] : 0);
	if (m->mode == TERRACE_MOVE_RAISE && !sim_fits(s, &up, &in.fast))
		r->status = TERRACE_RESULT_PARTLY;
	volume_move(&s->v, m->region, &up, m->mode == TERRACE_MOVE_RAISE ? MOVE_RAISE :
		    m->mode == TERRACE_MOVE_MERGE ? MOVE_MERGE : MOVE_APPEND);
	r->up = (uint32_t)(s->v.promoted - promoted);
	r->down = (uint32_t)(s->v.demoted - demoted);
	r->dropped = (uint32_t)(s->v.dropped - dropped);
	r->written_bytes[m->tier_up] = r->up * 4096ull;
	r->written_bytes[low] = (uint64_t)((s->v.slow_written - written) * 4096);
	/* A raise finds its blocks in the promotion cache. */
	r->read_bytes[low] = m->mode == TERRACE_MOVE_RAISE ? 0 : (uint64_t)((s->v.slow_read - read) * 4096);
	if (m->mode == TERRACE_MOVE_MERGE && m->region < 64) {
		uint32_t loose = sim_loose(s, m->region, NULL);

		r->down += loose;
		r->read_bytes[low] += loose * 4096ull;
		r->written_bytes[low] += loose * 2048ull;
		s->loose[m->region] = 0;
	}
	if (s->deep && m->mode == TERRACE_MOVE_RAISE)
		r->read_bytes[2] = r->up * 4096ull;
	r->packed_bytes = s->solid ? r->down * 4096ull : r->written_bytes[low];
}

static void sim_scrub(struct sim *s, const struct terrace_move *m, struct terrace_result *r)
{
	uint32_t at_once = 0;

	for (uint32_t k = 0; k < s->queued; k++)
		at_once += s->queue[k].mode == TERRACE_MOVE_SCRUB;
	if (at_once > s->most_scrubs)
		s->most_scrubs = at_once;
	*(m->tier_down ? &s->table_scrubs : &s->scrubs) += 1;
	if (m->tier_down || !m->region || (m->region != s->bad_region && m->region != s->damaged_region &&
					   m->region != s->busy_region)) {
		r->read_bytes[1] = 4096;
		return;
	}
	r->status = m->region == s->busy_region ? TERRACE_RESULT_FAILED : TERRACE_RESULT_PARTLY;
	r->error = m->region == s->busy_region ? -EBUSY : -EIO;
	if (m->region == s->busy_region)
		s->busy_region = 0;
	if (m->region != s->bad_region)
		return;
	r->unreadable = 3;
	r->bad_block = m->region * REGION_BLOCKS + 1;
}

static int sim_results(struct port *port, struct terrace_result *out, uint32_t most)
{
	struct sim *s = sim_of(port);
	uint32_t n = 0;

	if (s->gone)
		return -ENODEV;
	if (s->queued && s->waited++ < s->delay)
		return 0;
	s->waited = 0;
	for (; n < most && n < s->queued; n++) {
		out[n] = (struct terrace_result){
			.cookie = s->queue[n].cookie, .region = s->queue[n].region, .mode = s->queue[n].mode,
			.status = TERRACE_RESULT_DONE, .bad_block = ~0ull,
		};
		if (s->queue[n].mode == TERRACE_MOVE_SCRUB)
			sim_scrub(s, &s->queue[n], &out[n]);
		else if (s->top && !s->queue[n].tier_up && s->v.fast_used >= s->top - s->kept_back && s->queue[n].mode == TERRACE_MOVE_RAISE) {
			s->to_full++;
			out[n].status = TERRACE_RESULT_NO_ROOM;
			out[n].error = -ENOSPC;
		} else if (s->no_room || (s->queue[n].mode == TERRACE_MOVE_RAISE && s->kept_back &&
					  s->v.fast_used + s->kept_back >= s->v.fast_total)) {
			out[n].status = TERRACE_RESULT_NO_ROOM;
			out[n].error = -ENOSPC;
		} else if (s->order_error) {
			out[n].status = TERRACE_RESULT_FAILED;
			out[n].error = s->order_error;
		} else {
			sim_carry_out(s, &s->queue[n], &out[n]);
		}
	}
	s->queued -= n;
	memmove(s->queue, s->queue + n, s->queued * sizeof(s->queue[0]));
	return (int)n;
}

static int sim_claim(struct port *port, bool on)
{
	struct sim *s = sim_of(port);

	if (!s->knows_claims)
		return -EOPNOTSUPP;
	s->claimed = on;
	return 0;
}

static void sim_close(struct port *port)
{
	(void)port;
}

static const struct port_ops sim_ops = {
	.shape = sim_shape, .state = sim_state, .drain = sim_drain, .each_slow = sim_each_slow, .spare = sim_spare, .summaries = sim_summaries,
	.regions = sim_regions, .submit = sim_submit, .results = sim_results, .claim = sim_claim,
	.close = sim_close,
};

static const struct port_ops sim_sampling_ops = {
	.shape = sim_shape, .state = sim_state, .drain = sim_drain, .summaries = sim_summaries,
	.regions = sim_regions, .submit = sim_submit, .results = sim_results, .claim = sim_claim,
	.sample = sim_sample, .gains = sim_gains, .close = sim_close,
};

static const struct port_ops sim_blind_ops = {
	.shape = sim_shape, .state = sim_state, .summaries = sim_summaries, .regions = sim_regions,
	.submit = sim_submit, .results = sim_results, .claim = sim_claim, .close = sim_close,
};

static void sim_log(void *ctx, enum engine_level level, const char *line)
{
	struct sim *s = ctx;
	size_t used = strlen(s->log);

	if (level != ENGINE_DEBUG)
		snprintf(s->log + used, sizeof(s->log) - used, "%s\n", line);
}

/* ---- for the tests -------------------------------------------------------------------- */

/* All packed, the fast tier empty; the loop is not open yet, so that the test can set things. */
static inline struct sim *sim_create(uint64_t blocks, uint64_t fast)
{
	struct sim *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	assert_true(volume_init(&s->v, blocks, fast, 0.5));
	strcpy(s->dir, access("/dev/shm", W_OK) ? "/tmp/loop-test-XXXXXX" : "/dev/shm/loop-test-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	s->port = (struct port){
		.ops = &sim_ops, .summaries_per_tick = 4096, .sampling = 1,
	};
	tuning_defaults(&s->c.tuning);
	s->c.tuning.miniature.most_share = 1;	/* real volumes are larger */
	s->c = (struct engine_config){
		.directory = s->dir, .tuning = s->c.tuning, .heat = HEAT_RALT, .rule = CHOOSE_APPROX,
		.cache_blocks = 1024, .fill = 0.85, .claim = true, .retain = true, .seed = 1, .log = sim_log, .log_ctx = s,
	};
	s->c.tuning.budget.bytes_per_second = 0;
	s->c.tuning.budget.in_flight = 256;
	for (int t = 0; t < TERRACE_MAX_RESULT_TIERS; t++) {
		s->c.budget[t] = s->c.tuning.budget;
		s->c.endurance[t] = s->c.tuning.endurance;
	}
	s->slow_fill = 0.5;
	s->slow_class = "hdd";
	s->knows_claims = true;
	s->tells_where = true;
	s->slow_ns = 100e3;
	s->prng.state = 42;
	s->now_ns = 1000000000;
	return s;
}

static inline void sim_open(struct sim *s)
{
	if (s->blind)
		s->port.ops = &sim_blind_ops;
	else if (s->samples)
		s->port.ops = &sim_sampling_ops;
	assert_int_equal(engine_open(&s->e, &s->c, &s->port, s->now_ns), 0);
}

static inline void sim_time(struct sim *s, bool fast)
{
	double us = !fast ? s->miss_us : s->queued ? s->hit_moving_us : s->hit_us;
	uint32_t bucket = 0;

	s->busy_ns += us * 1e3;
	while (bucket < TERRACE_HEAT_BUCKETS - 1 && us > (double)(1ull << bucket))
		bucket++;
	s->sense.counts.latency[!fast][0][bucket] += s->timed;
	s->port.sense = &s->sense;
}

static inline void sim_access(struct sim *s, uint64_t block, bool write)
{
	bool fast = write ? volume_write(&s->v, block) : volume_read(&s->v, block);

	if (write)
		tails_cut(&s->marks, block, 1);
	if (write && s->nowhere)
		s->nowhere[block] = 0;
	if (s->miss_us > 0)
		sim_time(s, fast);
	else
		s->busy_ns += s->queued ? s->slow_ns : 100e3;
	if (s->nr_heard < SIM_HEARD)
		s->heard[s->nr_heard++] = (struct port_access){
			.block = block, .count = 1, .op = write ? PORT_WRITE : PORT_READ,
			.where = s->tells_where ? fast ? PORT_FAST : PORT_SLOW : PORT_UNKNOWN,
		};
}

/* The blocks hold nothing from now on; nobody has heard of it. */
static inline void sim_unmap(struct sim *s, uint64_t block, uint64_t nr)
{
	if (!s->nowhere)
		s->nowhere = calloc(s->v.regions, REGION_BLOCKS);
	assert_non_null(s->nowhere);
	memset(s->nowhere + block, 1, nr);
}

/* How often @what stands in @text. */
static inline uint32_t times(const char *text, const char *what)
{
	uint32_t n = 0;

	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		n++;
	return n;
}

static inline int sim_tick(struct sim *s)
{
	s->now_ns += 100000000;
	return engine_tick(&s->e, s->now_ns);
}

/* @ops of a hotspot: @hot blocks spread over the volume get @share of them. */
static inline void sim_hotspot(struct sim *s, uint64_t ops, uint64_t hot, double share, double writes)
{
	uint64_t stride = s->v.blocks / hot;

	for (uint64_t i = 0; i < ops; i++) {
		bool in = prng_unit(&s->prng) < share;
		uint64_t block = in ? prng_below(&s->prng, hot) * stride : prng_below(&s->prng, s->v.blocks);

		sim_access(s, block, prng_unit(&s->prng) < writes);
		if (i % 64 == 63)
			assert_int_equal(sim_tick(s), 0);
	}
}

/* Hit rate of the next @ops reads. */
static inline double sim_hit_rate(struct sim *s, uint64_t ops, uint64_t hot)
{
	uint64_t reads = s->v.reads, hits = s->v.fast_hits;

	sim_hotspot(s, ops, hot, 0.95, 0);
	return (double)(s->v.fast_hits - hits) / (double)(s->v.reads - reads);
}

/* Of the last decisions of that kind, those that are explained so. */
static inline uint32_t sim_explained(const struct sim *s, enum why why, const char *text)
{
	char line[400];
	uint32_t n = 0;

	for (uint64_t i = 0; i < ENGINE_DECISIONS && i < s->e.decisions; i++) {
		explain_text(&s->e.decision[i], line, sizeof(line));
		n += s->e.decision[i].why == why && strstr(line, text);
	}
	return n;
}

static inline void sim_remove(struct sim *s)
{
	char command[128];

	engine_close(&s->e);
	volume_exit(&s->v);
	free(s->nowhere);
	snprintf(command, sizeof(command), "rm -rf %s", s->dir);
	assert_int_equal(system(command), 0);
	free(s);
}

#endif
