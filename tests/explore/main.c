// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * explore: every moment of a recorded run is one at which the power may go.
 *
 *	explore [OPTION]... RECORD
 *
 * RECORD is /dev/drive-record (tests/drive/record.c) from before the volume
 * was made, with the oracle's marks. From the mark "explore" on, at each moment
 * before something becomes durable, and before each new stage of a commit,
 * states are built that a power cut could have left: what is durable, and some
 * of the writes that are not, whole or torn. Each is given to the product's
 * offline check and read back with the product's own code, and each block must
 * hold what it may. States that are alike count once. Other marks: pause; mode
 * NAME; crash (the machine has, its drives have not); size BYTES is acknowledged;
 * note N, which goes into what is saved.
 *
 *	--seed N	of all choices (1)
 *	--per N		states per moment at most (12)
 *	--states N	about so many in all: moments are left out, evenly (0: none are)
 *	--fill		at moments that were left out, what has fewer than 50 states all the same
 *	--seconds N	stop then, and say how far it came
 *	--workers N	processes (2)
 *	--mode NAME	only moments in that mode
 *	--counts FILE	adds to the counts of FILE: those of several records
 *	--need TYPE=N	fail with fewer states of that record type
 *	--table		print the states of each record type, mode and stage
 *	--limit N	violations printed in full (5)
 *	--at MOMENT --state K	only this one, with all that is known of it
 *	--save FOLDER	with --at: the images, where they are not zeros, and the ledger; else of --sample N states, evenly
 *	--picks		one state of each record type, mode and stage, for --at and --state
 *
 * Exit status: 0 all is well, 1 a promise is broken, 2 usage or trouble.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "explore.h"

struct options {
	const char *record, *save, *counts, *mode, *need;
	u64 seed, states, at, state, sample;
	u32 per, seconds, workers, limit;
	bool table, one, fill, picks;
};

struct set {
	u64 *slot;
	u64 room, nr;
};

struct walk {
	const struct options *o;
	struct log log;
	struct world world;
	struct kinds kinds;
	struct promises promises;
	struct counts *counts;		/* of all workers */
	struct picks *picks;		/* likewise */
	struct set seen;		/* images that were counted */
	struct set judged;		/* images and what was promised then */
	u32 worker;
	bool exploring, dry;
	bool filling;			/* only what there is too little of */
	u64 share;			/* moments in 1<<32 that are looked at */
	u64 moments;
	u64 note;			/* of the workload, the last one */
	time_t until;
};

void give_up(const char *format, ...)
{
	va_list args;

	fputs("explore: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

/* ---- a set of hashes ------------------------------------------------------------ */

static bool place(struct set *s, u64 key)
{
	u64 i = stamp_mix(key) & (s->room - 1);

	while (s->slot[i] && s->slot[i] != key)
		i = (i + 1) & (s->room - 1);
	if (s->slot[i])
		return false;
	s->slot[i] = key;
	return true;
}

/* True: it was not there. */
static bool add(struct set *s, u64 key)
{
	struct set old = *s;

	key |= 1;
	if (s->nr * 2 >= s->room) {
		s->room = old.room ? old.room * 2 : 4096;
		s->slot = calloc(s->room, sizeof(*s->slot));
		if (!s->slot)
			give_up("no memory for hashes");
		for (u64 i = 0; i < old.room; i++)
			if (old.slot[i])
				place(s, old.slot[i]);
		free(old.slot);
	}
	if (!place(s, key))
		return false;
	s->nr++;
	return true;
}

/* ---- one state -------------------------------------------------------------------- */

static void save_image(const struct image *i, const char *folder)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.img", folder, i->name);
	f = fopen(path, "w");
	if (!f)
		give_up("%s: %s", path, strerror(errno));
	for (u64 s = 0; s < i->nr_sectors; s++)
		if (i->hash[s] && (fseek(f, s * SECTOR, SEEK_SET) || fwrite(i->bytes + s * SECTOR, SECTOR, 1, f) != 1))
			give_up("%s: %s", path, strerror(errno));
	if (fclose(f) || truncate(path, i->nr_sectors * SECTOR))
		give_up("%s: %s", path, strerror(errno));
}

#define PIECE (1u << 20)

static bool piece_used(const struct image *i, u64 piece)
{
	for (u64 s = piece * (PIECE / SECTOR); s < i->nr_sectors && s < (piece + 1) * (PIECE / SECTOR); s++)
		if (i->hash[s])
			return true;
	return false;
}

/* Where it is not zeros: first MiB and how many. A machine reads holes as slowly as all else. */
static void save_used(const struct image *i, const char *folder)
{
	u64 nr = (i->nr_sectors * SECTOR + PIECE - 1) / PIECE, n;
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.used", folder, i->name);
	f = fopen(path, "w");
	for (u64 piece = 0; f && piece < nr; piece += n ? n : 1) {
		for (n = 0; piece + n < nr && piece_used(i, piece + n); n++)
			;
		if (n)
			fprintf(f, "%llu %llu\n", (unsigned long long)piece, (unsigned long long)n);
	}
	if (!f || fclose(f))
		give_up("%s: %s", path, strerror(errno));
}

static void save_state(const struct walk *k, u32 at, u32 state)
{
	char folder[4000], path[4096];
	FILE *f;

	snprintf(folder, sizeof(folder), "%s/%u-%u", k->o->save, at, state);
	mkdir(k->o->save, 0755);
	if (mkdir(folder, 0755) && errno != EEXIST)
		give_up("%s: %s", folder, strerror(errno));
	for (u32 i = 0; i < k->world.nr_images; i++) {
		save_image(&k->world.image[i], folder);
		save_used(&k->world.image[i], folder);
	}
	snprintf(path, sizeof(path), "%s/ledger", folder);
	if (k->promises.ledger && ledger_save(k->promises.ledger, path))
		give_up("%s: cannot be written", path);
	if (!k->note)
		return;
	snprintf(path, sizeof(path), "%s/note", folder);
	f = fopen(path, "w");
	if (!f || fprintf(f, "%llu\n", (unsigned long long)k->note) < 0 || fclose(f))
		give_up("%s: cannot be written", path);
}

static void print_pending(const struct walk *k)
{
	static const char * const fates[] = { "lost", "there", "torn" };

	for (u32 n = 0; n < k->world.nr_pending; n++) {
		const struct pending *p = &k->world.pending[n];
		const struct drive_record *r = k->log.record[p->at];

		printf("  %s: record %u, %s %llu KiB at %llu KiB of %s, %s%s\n", fates[p->fate], p->at,
		       r->kind == RECORD_ZERO ? "zeros" : write_kind_names[p->kind], (unsigned long long)r->bytes / 1024,
		       (unsigned long long)r->start / 1024, k->world.image[r->drive].name,
		       p->done_at ? "completed" : "under way", r->flags & RECORD_DURABLE ? ", FUA" : "");
	}
}

static void report(const struct walk *k, u32 at, u32 state, const char *which, const char *said)
{
	u64 nr = __atomic_add_fetch(&k->counts->broken, 1, __ATOMIC_RELAXED);

	if (nr > k->o->limit)
		return;
	printf("explore: BROKEN: seed %llu, moment %u of %u, state %u (%s; %u writes not durable, mode %s):\n%s",
	       (unsigned long long)k->o->seed, at, k->log.nr, state, which, k->world.nr_pending,
	       k->kinds.mode[k->kinds.now], said);
	if (!k->o->one)
		printf("again: explore --seed %llu --at %u --state %u %s\n", (unsigned long long)k->o->seed, at, state,
		       k->o->record);
	fflush(stdout);
}

static void judge_state(struct walk *k, u32 at, u32 state, const char *which)
{
	char *said = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&said, &size);

	if (!out)
		give_up("no memory for what is said");
	if (!recover(&k->world, &k->promises, out)) {
		fclose(out);
		report(k, at, state, which, said);
	} else {
		fclose(out);
	}
	free(said);
}

static void try_state(struct walk *k, u32 at, u32 state)
{
	const char *which = choose(&k->world, stamp_mix(k->o->seed) ^ stamp_mix(at), state);

	if (k->filling && kinds_enough(&k->kinds, &k->world, k->counts))
		return;
	world_build(&k->world);
	if (k->o->one) {
		printf("moment %u, state %u: %s of %u\n", at, state, which, k->world.nr_pending);
		print_pending(k);
		judge_state(k, at, state, which);
		if (k->o->save)
			save_state(k, at, state);
	} else if (k->world.hash / 2 % k->o->workers == k->worker) {
		__atomic_add_fetch(&k->counts->states, 1, __ATOMIC_RELAXED);
		if (add(&k->seen, k->world.hash)) {
			u64 nr = __atomic_add_fetch(&k->counts->distinct, 1, __ATOMIC_RELAXED);

			kinds_count(&k->kinds, &k->world, k->counts);
			kinds_pick(&k->kinds, &k->world, k->picks, k->world.hash ^ k->o->seed,
				   (struct picked){ .at = at, .state = state });
			if (k->o->save && k->o->sample && nr % k->o->sample == 0)
				save_state(k, at, state);
		}
		if (add(&k->judged, k->world.hash ^ stamp_mix(k->promises.sharpened)))
			judge_state(k, at, state, which);
		else
			__atomic_add_fetch(&k->counts->known, 1, __ATOMIC_RELAXED);
	}
	world_unbuild(&k->world);
}

/* ---- the walk ------------------------------------------------------------------------ */

static bool chosen(const struct walk *k, u32 at)
{
	return k->share >> 32 || stamp_mix(at ^ stamp_mix(k->o->seed ^ 0x51a7e)) >> 32 < k->share;
}

static void look(struct walk *k, u32 at)
{
	u32 nr = k->world.nr_pending;

	k->moments++;
	k->filling = !k->o->one && !chosen(k, at);
	if (k->dry || (k->filling && !k->o->fill))
		return;
	if (k->o->one) {
		try_state(k, at, k->o->state);
		return;
	}
	if (k->worker == 0 && !k->filling)
		k->counts->moments++;
	nr = nr ? k->o->per : 1;
	for (u32 state = 0; state < nr; state++)
		try_state(k, at, state);
}

static bool is_word(const struct drive_record *r, const char *word, const char **rest, char *text)
{
	size_t n = strlen(word);

	memcpy(text, log_data(r), r->data_bytes);
	text[r->data_bytes] = 0;
	text[strcspn(text, "\n")] = 0;
	*rest = text + n + (text[n] == ' ');
	return !strncmp(text, word, n) && (text[n] == ' ' || !text[n]);
}

static void take_mark(struct walk *k, const struct drive_record *r)
{
	char text[RECORD_MAX_MARK + 1];
	const char *rest;
	struct mark mark;

	if (r->data_bytes == sizeof(mark)) {
		memcpy(&mark, log_data(r), sizeof(mark));
		if (mark.magic == MARK_MAGIC) {
			promises_mark(&k->promises, &mark);
			return;
		}
	}
	if (is_word(r, "explore", &rest, text)) {
		kinds_layout(&k->kinds, &k->world);
		k->exploring = true;
	} else if (is_word(r, "pause", &rest, text)) {
		k->exploring = false;
	} else if (is_word(r, "mode", &rest, text)) {
		kinds_mode(&k->kinds, rest);
	} else if (is_word(r, "crash", &rest, text)) {
		promises_cut(&k->promises);
	} else if (is_word(r, "size", &rest, text)) {
		k->promises.size = strtoull(rest, NULL, 0);
	} else if (is_word(r, "note", &rest, text)) {
		k->note = strtoull(rest, NULL, 0);
	} else {
		give_up("a mark '%s'", text);
	}
}

static bool is_moment(const struct walk *k, u32 at, u32 kind)
{
	if (!k->exploring || (k->o->mode && strcmp(k->o->mode, k->kinds.mode[k->kinds.now])))
		return false;
	if (k->o->one)
		return at == k->o->at;
	return world_settles(&k->world, at) || kinds_turns(&k->kinds, k->log.record[at], kind) || at == k->log.nr - 1;
}

static void walk(struct walk *k)
{
	world_init(&k->world, &k->log);
	kinds_init(&k->kinds);
	for (u32 at = 0; at < k->log.nr; at++) {
		const struct drive_record *r = k->log.record[at];
		u32 kind = kinds_of(&k->kinds, r);

		if (is_moment(k, at, kind))
			look(k, at);
		if (k->until && time(NULL) >= k->until) {
			if (!k->worker)
				printf("explore: the time is over at record %u of %u\n", at, k->log.nr);
			break;
		}
		kinds_step(&k->kinds, &k->world, r, kind);
		world_step(&k->world, at, kind);
		if (r->kind == RECORD_MARK)
			take_mark(k, r);
		else if (r->kind == RECORD_CUT)
			promises_cut(&k->promises);
	}
}

/* How many moments are there? Only then one knows which share to look at. */
static u64 count_moments(struct walk *k)
{
	struct walk *dry = calloc(1, sizeof(*dry));
	u64 nr;

	dry->o = k->o;
	dry->log = k->log;
	dry->kinds = k->kinds;
	dry->dry = true;
	walk(dry);
	nr = dry->moments;
	memcpy(k->kinds.mode, dry->kinds.mode, sizeof(k->kinds.mode));
	k->kinds.nr_modes = dry->kinds.nr_modes;
	if (!dry->exploring && !nr)
		give_up("the record has no mark 'explore'");
	return nr;
}

/* ---- workers ------------------------------------------------------------------------------ */

static int work(struct walk *k)
{
	pid_t pid[64];
	int bad = 0;

	fflush(stdout);
	for (u32 n = 0; n < k->o->workers; n++) {
		pid[n] = fork();
		if (pid[n] < 0)
			give_up("fork: %s", strerror(errno));
		if (!pid[n]) {
			k->worker = n;
			walk(k);
			fflush(stdout);
			_exit(0);
		}
	}
	for (u32 n = 0; n < k->o->workers; n++) {
		int status;

		if (waitpid(pid[n], &status, 0) != pid[n] || status)
			bad = 1;
	}
	return bad;
}

static u64 number(const char *text, u64 max)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 0);

	if (!*text || *end || n > max)
		give_up("'%s': a number up to %llu, please", text, max);
	return n;
}

/* Has it been tried at all? */
static bool has_needed(const struct options *o, const struct counts *c, const struct counts *before)
{
	const char *value = o->need ? strchr(o->need, '=') : "";
	u64 least, nr;

	if (!o->need)
		return true;
	if (!value)
		give_up("--need TYPE=N");
	least = number(value + 1, UINT32_MAX);
	nr = kinds_of_type(c, o->need, value - o->need) - kinds_of_type(before, o->need, value - o->need);
	printf("explore: %llu states of record type %.*s\n", nr, (int)(value - o->need), o->need);
	return nr >= least;
}

static int run(struct walk *k)
{
	const struct options *o = k->o;
	u64 moments = 0;
	struct counts before;
	time_t began = time(NULL);

	log_open(&k->log, o->record);
	k->counts = mmap(NULL, sizeof(*k->counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	k->picks = mmap(NULL, sizeof(*k->picks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	k->share = 1ull << 32;
	if (o->counts)
		kinds_load(&k->kinds, k->counts, o->counts);
	before = *k->counts;
	if (o->one) {
		walk(k);
		printf("%s\n", k->counts->broken ? "BROKEN" : "all is well");
		return k->counts->broken ? 1 : 0;
	}
	moments = count_moments(k);
	if (o->states && moments * o->per > o->states)
		k->share = ((o->states << 32) / (moments * o->per));
	if (o->seconds)
		k->until = time(NULL) + o->seconds;
	if (work(k))
		give_up("a worker failed");
	if (o->picks)
		kinds_print_picks(&k->kinds, k->picks);
	if (o->table)
		kinds_print(&k->kinds, k->counts);
	if (o->counts)
		kinds_save(&k->kinds, k->counts, o->counts);
	printf("explore: %llu states at %llu of %llu moments, %llu of them distinct, %llu broken; %ld s, seed %llu\n",
	       k->counts->states - before.states, k->counts->moments - before.moments, moments,
	       k->counts->distinct - before.distinct, k->counts->broken - before.broken, (long)(time(NULL) - began), o->seed);
	if (!has_needed(o, k->counts, &before)) {
		printf("explore: too few: %s\n", o->need);
		return 1;
	}
	return k->counts->broken > before.broken;
}

/* ---- command line ----------------------------------------------------------------------------- */

static const struct option longs[] = {
	{ "seed", 1, NULL, 's' }, { "per", 1, NULL, 'p' }, { "states", 1, NULL, 'n' }, { "seconds", 1, NULL, 't' },
	{ "workers", 1, NULL, 'w' }, { "counts", 1, NULL, 'c' }, { "mode", 1, NULL, 'm' }, { "need", 1, NULL, 'N' }, { "table", 0, NULL, 'T' }, { "fill", 0, NULL, 'f' }, { "limit", 1, NULL, 'L' }, { "at", 1, NULL, 'a' },
	{ "state", 1, NULL, 'k' }, { "save", 1, NULL, 'S' }, { "sample", 1, NULL, 'e' }, { "picks", 0, NULL, 'P' }, { }
};

int main(int argc, char **argv)
{
	struct options o = { .seed = 1, .per = 12, .workers = 2, .limit = 5 };
	struct walk *k = calloc(1, sizeof(*k));
	int key;

	while ((key = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (key) {
		case 's': o.seed = number(optarg, UINT64_MAX); break;
		case 'p': o.per = number(optarg, 10000); break;
		case 'n': o.states = number(optarg, 1ull << 31); break;
		case 't': o.seconds = number(optarg, 86400); break;
		case 'w': o.workers = number(optarg, 64); break;
		case 'm': o.mode = optarg; break;
		case 'N': o.need = optarg; break;
		case 'c': o.counts = optarg; break;
		case 'T': o.table = true; break;
		case 'f': o.fill = true; break;
		case 'L': o.limit = number(optarg, 1000000); break;
		case 'a': o.at = number(optarg, UINT32_MAX); o.one = true; break;
		case 'k': o.state = number(optarg, UINT32_MAX); o.one = true; break;
		case 'S': o.save = optarg; break;
		case 'P': o.picks = true; break;
		case 'e': o.sample = number(optarg, UINT32_MAX); break;
		default: give_up("usage: see the first comment of tests/explore/main.c");
		}
	}
	if (optind != argc - 1 || !o.workers || !o.per)
		give_up("explore [OPTION]... RECORD");
	o.record = argv[optind];
	k->o = &o;
	return run(k);
}
