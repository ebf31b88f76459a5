/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The loop of one volume: sense -> decide -> act.
 *
 *	engine.c	open, close, one tick in order
 *	hear.c		accesses into heat, ghost cache, miniatures, promotion cache
 *	nowhere.c	heat of what was discarded unheard is forgotten
 *	whatif.c	what other settings would hit, told to people
 *	limits.c	brake, idle boost, budgets, endurance, governor: what moves may do now
 *	threshold.c	the clock's pinning threshold, tuned by itself
 *	demote.c	room: choose a region, keep what is hot, order the rest down
 *	promote.c	slow-read blocks that are hot: by flush, or in an epoch
 *	heirs.c		heat passed on from a compaction's inputs to its outputs; what of it is raised at once
 *	loose.c		what lies loose on shelves is packed, when that disturbs nobody
 *	gains.c		samples of what goes down: is packing worth it, and with which codec
 *	orders.c	orders under way, what came of them
 *	scrub.c		every few days all that is on slow tiers is read and verified
 *	explain.c	the last decisions, for people
 *	keep.c		what has to survive a restart, beside the heat
 *
 * It reads no clock (time is an argument), prints nothing (messages go to `log`), and waits for
 * nothing: a tick takes a few milliseconds.
 */
#ifndef TERRACE_LOOP_ENGINE_H
#define TERRACE_LOOP_ENGINE_H

#include "decide/repay.h"
#include "decide/tails.h"
#include "loop/book.h"
#include "loop/warmth.h"
#include "loop/whatif.h"

#define ENGINE_ORDERS		256u	/* under way at a time */
#define ENGINE_DECISIONS	256u	/* kept for `explain` */
#define ENGINE_CACHE		4096u	/* the promotion cache holds at most */
#define ENGINE_HEIRS		4096u	/* blocks born hot that wait to be raised */
#define ENGINE_VAIN		256u	/* regions in which an epoch has found nothing */
#define ENGINE_LONELY		4096u	/* regions whose blocks went up without neighbours */
#define ENGINE_COLD		16384u	/* ranges whose heat is to be forgotten */

enum why {
	WHY_ROOM,		/* the fast tier is full */
	WHY_FLUSH,		/* slow-read blocks turned out hot */
	WHY_EPOCH,		/* a read-triggered epoch */
	WHY_HEIR,		/* born hot */
	WHY_LOOSE,		/* uncompressed on the shelves */
	WHYS,
};

enum engine_level {
	ENGINE_ERROR,
	ENGINE_WARNING,
	ENGINE_NOTICE,
	ENGINE_DEBUG,
};

typedef void (*engine_log_fn)(void *ctx, enum engine_level level, const char *line);

struct engine_config {
	const char *directory;		/* exists; heat and endurance survive there */
	struct tuning tuning;
	/* of each tier; those of `tuning` where none is given */
	struct budget_tunables budget[TERRACE_MAX_RESULT_TIERS];
	bool own_rate[TERRACE_MAX_RESULT_TIERS];	/* its bandwidth was set for that tier alone */
	struct endurance_tunables endurance[TERRACE_MAX_RESULT_TIERS];
	struct price_tunables price[TERRACE_MAX_RESULT_TIERS];	/* nothing set: by class */
	enum heat_kind heat;
	enum choose_rule rule;
	uint32_t cache_blocks;		/* promotion cache, ENGINE_CACHE at most */
	double fill;			/* RALT: share of the fast tier filled by score under skew */
	double pin_share;		/* of the fast tier, for tails of tables; 0: none are kept */
	bool retain;			/* hot blocks stay fast when room is made */
	bool evaluate;			/* decide and explain, order nothing */
	bool claim;			/* keep the kernel's janitor out */
	bool debug;			/* each decision is logged: costs more than to make one */
	uint32_t scrub_days;		/* between two scrubs of the volume; 0: none */
	uint64_t seed;
	engine_log_fn log;
	void *log_ctx;
};

/* What a move was decided by, for people; of one for room that is its score. */
struct grounds {
	uint32_t found;		/* hot blocks of the batch, or of the region below; heirs and tails that wait; loose blocks */
	double enough;		/* hot blocks of a batch */
	uint32_t again;		/* slow reads of what had been read before, where these decided; else 0 */
	uint32_t neighbours;	/* that go up with it */
	bool first_sight;	/* hot or not */
	bool rest;		/* of a batch that was judged before */
	double estimate;	/* of hot blocks below, before they were looked for */
	uint64_t credit;	/* blocks that the epoch may raise */
	uint32_t runs;		/* that loose blocks are scattered over; 0: they are packed to save room */
	double gain;		/* what packing saves; 1: nothing */
};

/* A move that was decided on. */
struct plan {
	uint64_t region;
	enum why why;
	enum terrace_move_mode mode;
	uint32_t tier_up;		/* set when it is given */
	struct upmask up, fast, slow;
	struct upmask spare;	/* fast, and would be in `up`, were they not banned: see fill_move() */
	uint32_t goes_down, goes_up, retained;
	struct codec_choice codec;
	double read_down, write_down, write_up;	/* bytes, estimated, of tier_down and tier_up */
	double score, benefit, cost;
	enum choose_rule rule;
	uint32_t looked_at;
	bool hot_too;		/* nothing else was found */
	struct grounds grounds;
};

struct decision {
	uint64_t number;
	uint64_t at_ns;
	uint64_t region;
	enum why why;
	enum choose_rule rule;
	uint8_t mode;
	uint8_t status;		/* TERRACE_RESULT_*, 0: under way */
	bool hot_too;
	int error;
	uint32_t looked_at, goes_down, goes_up, retained;
	double score, benefit, cost;
	struct grounds grounds;
	uint32_t down, up, dropped, raced;
	uint64_t took_ns;
};

struct order {
	uint64_t cookie;	/* 0: free */
	uint64_t decision;
	double cpu_us;		/* charged for it */
	struct plan plan;
};

/* A brake that hears what one tier, or all of them, take to serve users: a sample, gathered until it is enough to judge by. */
struct pedal {
	struct brake brake;
	uint64_t seen[TERRACE_HEAT_BUCKETS];	/* of the sense's counts */
	double us;		/* with orders under way */
	uint64_t ops;
	uint32_t ticks;
	double quiet_us;	/* without */
	uint64_t quiet_ops;
};

#define GAIN_WAITS	8u

/* A choice that waits for a sample of its region. */
struct gain_wait {
	enum { GAIN_FREE, GAIN_ASKED, GAIN_THERE } state;
	bool known;
	enum why why;		/* WHY_ROOM, WHY_LOOSE */
	struct choice choice;
	struct codec_sample gain;
	uint64_t asked_ns;
	uint32_t goes_down;
};

/* A pass, the last or the one under way. */
struct scrub {
	uint64_t began_s, ended_s;	/* wall clock; 0: not yet */
	uint64_t passes;		/* that have ended */
	bool going;
	uint32_t tier;			/* 0: at regions; else at shelves of this one ... */
	uint64_t next;			/* ... this is the next */
	uint64_t regions, tables, read_bytes;
	uint64_t unreadable, damaged, bad_tables;	/* blocks; regions that lose nothing yet; shelves */
	uint64_t cookie, cookies;	/* of the order under way, 0: none; the last */
	uint64_t again_ns, saved_ns;
	uint32_t told;
	int save_error;
};

struct engine_stats {
	uint64_t accesses, slow_reads;
	uint64_t choices, choice_failures;
	uint64_t orders[WHYS];
	uint64_t done, partly, failed, cancelled, no_room;
	uint64_t retained;
	uint64_t promoted_by_flush, promoted_by_compaction, promoted_by_epoch, promoted_as_heirs;
	uint64_t epoch_looks;		/* into regions, for what is hot and lies below */
	uint64_t neighbour_looks;	/* ... for neighbours of what goes up */
	uint64_t first_sight;		/* of those by flush: not hot, but there was room */
	uint64_t flushes, flushes_kept, flushes_dropped;
	uint64_t demoted, dropped, raced;
	uint64_t packed_loose, loose_left;	/* blocks; regions that do not shrink */
	uint64_t gathered;		/* regions that lay scattered */
	uint64_t samples, incompressible;	/* regions looked into; orders that pack nothing for it */
	uint64_t not_sampled;		/* that would have been, had a CPU been idle */
	uint64_t bequests, heirs, hot_heirs;	/* compactions; blocks that inherited; were hot by it */
	uint64_t bequests_cut, heirs_left;	/* too large; hot, but not raised for want of room to remember */
	uint64_t heat_left;		/* discarded blocks whose heat was left to fade: too many ranges at once */
	uint64_t promoted_dead;
	uint64_t retained_dead;
	uint64_t written_once;		/* blocks of writes that heated nothing */
	uint64_t not_retained_dead;	/* hot, but sent down because they were banned */
	uint64_t written_anew;		/* were to be, but the kernel had seen them written since */
	uint64_t pressed;		/* went down for room though they may be hot */
	uint64_t pinned;		/* blocks kept in orders though they are not hot, being tails */
	uint64_t held_by_budget, held_by_cpu, held_by_endurance, held_by_governor, held_by_room;
	uint64_t read_bytes[TERRACE_MAX_RESULT_TIERS];
	uint64_t written_bytes[TERRACE_MAX_RESULT_TIERS];
};

struct engine {
	struct engine_config c;
	struct port *port;
	struct port_shape shape;
	struct port_state state, before;
	uint64_t now_ns, last_ns, opened_ns;
	uint64_t ticks;
	struct prng prng;

	uint32_t up, down;		/* tiers that moves go between: the fastest of slots, the first that is none */
	uint64_t fast_blocks, fast_used;
	uint64_t fast_most;		/* of them, without the reserve */
	const char *idle_because;	/* no moves at all, and why; NULL: they go on */
	uint64_t room_again_ns;		/* until then nothing goes down: there was no room for it */
	uint64_t heirs_again_ns;	/* heirs that found no room wait until then */

	bool senses;			/* single blocks */
	bool rests;			/* room for new blocks waits for idle time, the load being uniform */
	struct warmth warmth;
	struct book book;
	struct shards shards;
	struct whatif whatif;
	struct repay repay;
	struct recency cache;		/* promotion cache: blocks read slowly */
	uint32_t fresh;			/* entered since the last flush */
	uint32_t again;			/* reads, since then, of what was there already */
	bool held;			/* of which limits held some back */
	uint64_t heir[ENGINE_HEIRS];	/* blocks that are to be raised */
	uint32_t nr_heirs;
	uint32_t heirs_waited;		/* of them, the first: found no room once */
	struct ralt_range cold[ENGINE_COLD];	/* discarded, still to be forgotten */
	uint32_t nr_cold;
	uint32_t cold_looks;		/* left in this tick, into what is discarded */
	uint64_t forgot_ns;		/* when that was last done */
	struct {
		bool going;		/* a round through all heat */
		uint64_t next;		/* block */
		uint64_t began_ns;
		uint64_t again;		/* another follows when the book has gone round so often; 0: none */
		uint64_t lost;		/* accesses, by the sense, when it began */
	} nowhere;
	uint64_t unsettled;		/* heirs since RALT's buffer was last written out for them */
	struct tails *tails;		/* stay on the fast tier, hot or not */
	struct tails *dead;		/* of dead files: counted when they go up, or stay there */
	struct tails *banned;		/* those of them that the kernel has marked, and not yet been told to let go */
	struct tails *hinted;		/* logs': the kernel leaves them where they are */
	struct tails *once;		/* tables' and logs', which are written once: that heats nothing */
	struct tails *passed_on;	/* whose heat others have inherited, until it is forgotten: the hot set has room for the heirs alone */
	uint64_t passed_serial, passed_ns;	/* those up to here were there when the others last went, which was then */
	struct tails *placed[2];	/* whose room was another's a moment ago: in these three ticks, and the three before */
	void *memory[11];

	struct watermark watermark;
	uint64_t room;			/* promotions that fit */
	uint64_t above;			/* blocks above the high mark */
	struct admit_room filled;
	bool presses;			/* choices and plans of now look at no heat */
	uint32_t vain_ticks;		/* in a row that found only hot blocks */
	uint64_t vain_told_ns;
	struct epoch epoch;
	uint64_t epoch_credit;		/* blocks that it may raise */
	uint64_t epoch_hand;		/* the next region whose turn it is ... */
	uint32_t epoch_entry;		/* ... and the next entry of the promotion cache */
	struct {
		uint64_t region;	/* + 1 */
		uint64_t until_ns;
	} epoch_vain[ENGINE_VAIN];	/* where nothing was found: a look reads RALT's runs */
	uint32_t epoch_vain_ticks;	/* in a row */
	struct engine_lonely {
		uint64_t region;	/* + 1 */
		uint32_t vain, left_out;	/* batches, in a row */
	} lonely[ENGINE_LONELY];
	struct governor governor;
	enum governor_reason told_up, told_down;
	double spent_ns;		/* by promotions, this epoch of the governor */
	double room_ns, plain_ns;	/* by demotions; what they would be if nothing were kept */
	struct port_state judged;	/* when that epoch began */
	uint64_t judged_slow_reads;
	struct budget budget[TERRACE_MAX_RESULT_TIERS];
	struct endurance endurance[TERRACE_MAX_RESULT_TIERS];
	bool told_worn[TERRACE_MAX_RESULT_TIERS];
	uint32_t told_critical[TERRACE_MAX_RESULT_TIERS];
	struct pedal mean;		/* of the volume, where a sense tells no more than that */
	struct pedal pedal[TERRACE_HEAT_TIERS][2];	/* of each tier's reads and writes */
	uint64_t timed_ns;		/* when such were last told */
	struct cpu cpu;
	uint64_t cpu_reads, cpu_fast_reads;	/* when the CPUs were last looked at */
	double share;			/* of the budgets that brakes leave */
	bool listens;			/* one of them: no order is to be given */
	struct idle idle;
	double boost;
	struct climb climb;		/* of the pinning threshold */
	bool climbs;
	double climb_from;		/* as configured */
	uint64_t climb_reads, climb_fast_reads;	/* when its epoch began */
	double moved_ns;			/* by all moves, since then */
	uint64_t loose_hand;		/* the next region to look at */
	struct gain_wait gains[GAIN_WAITS];
	uint32_t gains_waiting;
	uint64_t sampling;		/* reads for samples that may not have been counted yet */
	struct codec_sample gain;	/* what packing gained, learnt from results and samples */
	uint32_t gain_samples;		/* up to as many as count alike */
	uint64_t gain_learnt;		/* decisions before the last of them */
	uint64_t known_regions;		/* that were not sampled, or as one in so many */

	struct scrub scrub;
	uint64_t wall_s;		/* seconds since 1970, set by who ticks; 0: not known, no scrubs */
	uint64_t failing_ns[TERRACE_MAX_RESULT_TIERS];	/* when its drive last failed a request; 0: never */

	bool claimed;
	int claim_error;		/* as last told */
	int set_error;			/* likewise: the sense's */
	struct order order[ENGINE_ORDERS];
	uint32_t under_way;
	uint64_t cookies;
	struct terrace_move batch[64];
	uint32_t batched;
	const char *refused;		/* why the last order that a limit held back was; NULL: the last one was given */
	uint64_t refused_ns;
	uint64_t leaving, coming;	/* blocks of orders under way */
	uint64_t coming_to[TERRACE_MAX_RESULT_TIERS];
	uint64_t heat_again_ns;			/* when the heat store could last not be opened */
	uint64_t complained_ns, heat_told_ns;	/* when trouble was last told */
	int save_error;

	struct decision decision[ENGINE_DECISIONS];
	uint64_t decisions;
	struct engine_stats stats;
};

/* 0 or -errno after a message. */
int engine_open(struct engine *e, const struct engine_config *c, struct port *port, uint64_t now_ns);

/* One round. -ENODEV: the volume has gone; other errors were logged and will be tried again. */
int engine_tick(struct engine *e, uint64_t now_ns);

/* Orders under way stay with the port, whose close ends them. */
void engine_close(struct engine *e);

/* New tunables and limits; sizes of the heat store stay until the next start. */
void engine_retune(struct engine *e, const struct engine_config *c);

/* Blocks [block, + nr) of the volume are the bytes from @offset on of a file. */
struct engine_range {
	uint64_t block, nr, offset;
};

struct engine_file {
	const struct engine_range *range;
	uint32_t nr;
	uint64_t size;
	const struct inherit_step *step;	/* of an input; `at` counts whole blocks of each output */
	uint32_t nr_steps;
};

/*
 * Outputs, in the order they were written, take over the heat of the inputs they were made of; the hot part goes up.
 * Those before the @first have done so before; @more: others will follow.
 */
void engine_inherit(struct engine *e, const struct engine_file *input, uint32_t nr_in,
		    const struct engine_file *output, uint32_t nr_out, uint32_t first, bool more);

/* The fast tier is as full as `admit.fill`: what comes has to be worth its place. */
bool engine_crowded(const struct engine *e);
/* admit.fill, as much lower as a large reserve has the marks. */
double engine_first_fill(const struct engine *e);
/* Blocks of a range that are in the hot set; not those that fill the fast tier beyond it. */
uint64_t engine_hot_set(struct engine *e, uint64_t block, uint64_t nr);

/* The blocks stay on the fast tier, or come back to it, until they are let go or others need the room. */
void engine_pin(struct engine *e, uint64_t block, uint64_t nr);
void engine_unpin(struct engine *e, uint64_t block, uint64_t nr);

/* Why no block moves at all now; NULL: nothing keeps them. */
const char *engine_still(const struct engine *e);
/* What promotions are about: that they go on, or why not. */
const char *engine_promotions(const struct engine *e);

/* What lay there is no more: its heat is forgotten, soon and together with others. */
void engine_forget(struct engine *e, uint64_t block, uint64_t nr);

/* Somebody's, as of now, or no longer: what is heard to have been discarded there within three ticks was another's. */
void engine_placed(struct engine *e, uint64_t block, uint64_t nr, bool yes);

/* ... what overlaps with this at once: it is about to be given other heat. */
void engine_forget_now(struct engine *e, uint64_t block, uint64_t nr);

/* A dead file's: how many of them orders raise all the same is counted.  @yes: false: they are in use again. */
void engine_dead(struct engine *e, uint64_t block, uint64_t nr, bool yes);

/*
 * The kernel has marked a dead file's blocks, or its marks have been taken back: until then they are neither hot nor kept,
 * whatever their heat.  Blocks that are heard of being written are let go here as well.
 */
void engine_ban(struct engine *e, uint64_t block, uint64_t nr, bool yes);

/* The kernel has been told to leave these on the fast tiers, or no longer: they do not count as what could go down. */
void engine_hinted(struct engine *e, uint64_t block, uint64_t nr, bool yes);
/*
 * What lies there is written once, when it is made: whoever reads it will tell whether it is hot. Counted as accesses, the
 * writes of a compaction would age all that is hot by as much as the fast tier is smaller than what it writes.
 */
void engine_once(struct engine *e, uint64_t block, uint64_t nr, bool yes);

/* --- between the files of the loop -------------------------------------------- */

void engine_log(struct engine *e, enum engine_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

int hear(struct engine *e);
/* Blocks that hold nothing, and have heat: it is forgotten as if a discard were heard. */
void hear_nowhere(struct engine *e, uint64_t block, uint64_t nr);
/* All regions are to be looked through for blocks that are nowhere, but have heat. */
void nowhere_begin(struct engine *e);
void nowhere_tick(struct engine *e);
/* Time goes by for those that were placed. */
void placed_by(struct engine *e);
/* Blocks of the volume that hold something, as far as is known. */
uint64_t hear_mapped(const struct engine *e);
bool hear_skewed(const struct engine *e);
/* Neither reads nor writes favour any blocks. */
bool hear_uniform(const struct engine *e);
/* Enough of them have been heard to say what an LRU would have. */
bool hear_knows_reads(const struct engine *e);

void limits_init(struct engine *e);
void limits_tick(struct engine *e);
/* Intervals in which a brake found users too slow. */
uint64_t limits_braked(const struct engine *e);
/* Nobody has used the volume for a while. */
bool limits_idle(const struct engine *e);
double limits_read_ns(const struct engine *e, uint32_t tier);
/* Until its head is elsewhere; 0: it has none. */
double limits_seek_ns(const struct engine *e, uint32_t tier);
double limits_busy_ns(const struct engine *e, uint32_t tier, double bytes);

void threshold_init(struct engine *e);
/* What is configured has been read anew, and is in force; @before: what was. */
void threshold_retune(struct engine *e, const struct tuning *before);
/* At the end of an epoch of the governor. */
void threshold_step(struct engine *e);

void gains_tick(struct engine *e);
bool gains_busy(const struct engine *e, uint64_t region);
/* True: blocks of @from are looked into first; gains_next() tells when the plan may go, until gains_done(). */
bool gains_wait(struct engine *e, const struct choice *c, const struct plan *p, const struct upmask *from);
struct gain_wait *gains_next(struct engine *e, enum why why);
void gains_done(struct engine *e, struct gain_wait *w);

void demote(struct engine *e, uint64_t blocks);
void pack_loose(struct engine *e);
void promote(struct engine *e);
void promote_epoch(struct engine *e);
void heirs_tick(struct engine *e);
void promote_heirs(struct engine *e);
/* What was to be raised there is no more. */
void promote_not(struct engine *e, uint64_t block, uint64_t nr);
/* Up with it at the next occasion; false: too many wait. */
bool promote_soon(struct engine *e, uint64_t block);
bool promote_again(struct engine *e, uint64_t block);	/* it found no room */

void orders_init(struct engine *e);
void orders_learn_gain(struct engine *e, const struct codec_sample *s);
/* For blocks of this mean coldness; @gain: a sample of them, NULL: by what samples and packing have gained so far. */
struct codec_choice orders_codec(const struct engine *e, double coldness, const struct codec_sample *gain);
bool orders_busy(const struct engine *e, uint64_t region);
/* Is one of loose blocks under way? */
bool orders_loose(const struct engine *e);
/* 0; -EAGAIN: a limit says not now; -EDQUOT: endurance; -EBUSY: too many under way. */
int orders_give(struct engine *e, const struct plan *plan);
/* None would be given now, and why is told. */
bool orders_wait_for_cpu(struct engine *e);
int orders_send(struct engine *e);
int orders_collect(struct engine *e);

struct decision *explain_add(struct engine *e, const struct plan *plan);
struct decision *explain_find(struct engine *e, uint64_t number);
/* One line of text, as `explain` and the debug log show it. */
void explain_text(const struct decision *d, char *line, size_t bytes);
const char *why_name(enum why why);

/* What there is of `scrub` in the state directory.  0 or -errno. */
int scrub_load(struct engine *e);
void scrub_save(struct engine *e);
void scrub_tick(struct engine *e);
/* One line: what is scrubbed now, and why. */
void scrub_text(const struct engine *e, char *line, size_t bytes);
/* False: it is of no scrub. */
bool scrub_ended(struct engine *e, const struct terrace_result *r);

int keep_load(struct engine *e);
/* @ends: no more will be spent until the next start. */
int keep_save(struct engine *e, bool ends);
/* More has been spent, or promised, than is written down. */
bool keep_is_due(const struct engine *e);

#endif
