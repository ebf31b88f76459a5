// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * oracle: does a block device keep its promises?
 *
 *	oracle create --ledger FILE (--device DEV | --blocks N) [--seed N]
 *	oracle run    --ledger FILE --device DEV [OPTION]...
 *	oracle verify --ledger FILE --device DEV --clean|--crash|--older [OPTION]...
 *	oracle show   --ledger FILE [BLOCK]...
 *	oracle cuts   --ledger FILE --device DEV --volume NAME --table LINE
 *		--drives NAME,... [--check COMMAND] [--beside COMMAND] [--cuts N] [--suspend] [OPTION]...
 *
 * create: a ledger of a device that holds zeros. run: random operations,
 * reads are checked at once; the ledger then says what may be there. Runs on
 * the same ledger go on where the last one ended. verify: reads everything
 * back: --clean exactly, --crash what may be there after a power cut, --older any
 * value that the block ever had (which leaves the ledger as it is).
 *
 * run:	--ops N (per thread), --seconds N, --threads N, --depth N, --seed N
 *	--max-kb N of one I/O, --min-discard-kb N, --max-discard-kb N, --stream-ops N writes in a row
 *	--first BLOCK, --blocks N: where; --hot PCT of it to the first sixteenth
 *	--overlap PCT may overlap others under way; --nospc-ok; --eio-ok: go on
 *	--marks FILE: what begins and ends is written there as well, see mark.h
 *	--weights write=40,fua=4,read=30,discard=4,zero=2,flush=6,stream=1
 * verify: --touched: only what a run touched, and one in --sample N of the rest
 *	--keep: leave the ledger as it is; --eio FILE: blocks that give EIO go there,
 *	in runs, FIRST NR on a line; --only FILE: nothing but the blocks that stand there, likewise
 * both: --limit N violations printed
 * cuts: power cuts on drive models until --cuts or --seconds, see cuts.c
 *
 * FILE.log has the runs' operations in order, B at their begin, E at their end.
 *
 * Exit status: 0 good, 1 a promise is broken, 2 usage or trouble, 3 an
 * operation failed: the run stopped there.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cuts.h"
#include "oracle.h"

const char * const kind_names[NR_KINDS] = { "write", "fua", "read", "discard", "zero", "flush", "stream" };

void trouble(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("oracle: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(EXIT_TROUBLE);
}

void *io_buffer(size_t bytes)
{
	void *p = NULL;

	if (posix_memalign(&p, STAMP_BLOCK, bytes))
		trouble("out of memory");
	memset(p, 0x5a, bytes);
	return p;
}

/* A plain file will do where only the bookkeeping is tested. */
void device_open(struct device *d, const char *path, bool writable)
{
	int flags = writable ? O_RDWR : O_RDONLY;
	struct stat st;

	d->fd = open(path, flags | O_DIRECT);
	if (d->fd < 0 && errno == EINVAL)
		d->fd = open(path, flags);
	if (d->fd < 0 || fstat(d->fd, &st))
		trouble("%s: %s", path, strerror(errno));
	d->is_file = S_ISREG(st.st_mode);
	d->bytes = st.st_size;
	if (!d->is_file && ioctl(d->fd, BLKGETSIZE64, &d->bytes))
		trouble("%s: %s", path, strerror(errno));
}

static struct cut_options cut = { .cuts = UINT64_MAX };

static struct ledger *load(const struct options *o)
{
	int err;
	struct ledger *l = ledger_load(o->ledger, &err);

	if (!l)
		trouble("%s: %s", o->ledger, strerror(-err));
	return l;
}

static void save(const struct options *o, const struct ledger *l)
{
	int err = ledger_save(l, o->ledger);

	if (err)
		trouble("%s: %s", o->ledger, strerror(-err));
}

/* ---- commands ---- */

static int do_create(struct options *o)
{
	struct device d;
	struct ledger *l;

	if (o->device) {
		device_open(&d, o->device, false);
		if (o->blocks == UINT32_MAX)
			o->blocks = d.bytes / STAMP_BLOCK;
		close(d.fd);
	}
	if (o->blocks == UINT32_MAX || !o->blocks)
		trouble("create: --device or --blocks, please");
	l = ledger_create(o->blocks, stamp_mix(o->seed));
	save(o, l);
	ledger_destroy(l);
	return EXIT_GOOD;
}

static int do_run(struct options *o)
{
	struct ledger *l = load(o);
	int result;

	if (o->blocks > ledger_blocks(l))
		o->blocks = ledger_blocks(l);
	if (o->first + (uint64_t)o->blocks > ledger_blocks(l))
		o->blocks = o->first < ledger_blocks(l) ? ledger_blocks(l) - o->first : 0;
	if (!o->blocks)
		trouble("no blocks to work on");
	if (o->max_blocks > o->blocks)
		o->max_blocks = o->blocks;
	result = run_workload(o, l);
	if (result != EXIT_BROKEN)
		save(o, l);
	ledger_destroy(l);
	return result;
}

static int do_verify(struct options *o)
{
	struct ledger *l = load(o);
	int result = verify(o, l);

	if (result == EXIT_GOOD && !o->keep)
		save(o, l);
	ledger_destroy(l);
	return result;
}

static int do_cuts(struct options *o)
{
	struct ledger *l = load(o);
	int result;

	if (!cut.volume || !cut.table || !cut.drives)
		trouble("cuts: --volume, --table and --drives, please");
	if (o->blocks > ledger_blocks(l))
		o->blocks = ledger_blocks(l);
	if (!o->seconds)
		o->seconds = UINT32_MAX;
	cut.ops = o->ops;
	result = cut_power(&cut, o, l);
	if (result == EXIT_GOOD)
		save(o, l);
	ledger_destroy(l);
	return result;
}

static void show_block(const struct ledger *l, uint32_t block)
{
	uint64_t values[64];
	uint32_t nr, k;
	char name[40];

	printf("%u%s now", block, ledger_touched(l, block) ? "*" : "");
	nr = ledger_now(l, block, values, 64);
	for (k = 0; k < nr && k < 64; k++)
		printf(" %s", stamp_name(values[k], name));
	printf(" crash");
	nr = ledger_survivors(l, block, values, 64);
	for (k = 0; k < nr && k < 64; k++)
		printf(" %s", stamp_name(values[k], name));
	putchar('\n');
}

static int do_show(struct options *o, char **blocks)
{
	struct ledger *l = load(o);
	uint32_t b;

	if (!*blocks)
		for (b = 0; b < ledger_blocks(l); b++)
			show_block(l, b);
	for (; *blocks; blocks++) {
		b = strtoul(*blocks, NULL, 0);
		if (b >= ledger_blocks(l))
			trouble("block %s is beyond the ledger's %u", *blocks, ledger_blocks(l));
		show_block(l, b);
	}
	ledger_destroy(l);
	return EXIT_GOOD;
}

/* ---- command line ---- */

static uint64_t number(const char *name, const char *text, uint64_t max)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 0);

	if (!*text || *end || n > max)
		trouble("--%s %s: a number up to %llu, please", name, text, (unsigned long long)max);
	return n;
}

static void set_weights(struct options *o, char *text)
{
	char *word, *value;
	uint32_t k;

	memset(o->weight, 0, sizeof(o->weight));
	for (word = strtok(text, ","); word; word = strtok(NULL, ",")) {
		value = strchr(word, '=');
		if (!value)
			trouble("--weights: kind=number,...");
		*value++ = 0;
		for (k = 0; k < NR_KINDS && strcmp(word, kind_names[k]); k++)
			;
		if (k == NR_KINDS)
			trouble("--weights: no kind '%s'", word);
		o->weight[k] = number(word, value, 1000000);
	}
}

static const struct option longs[] = {
	{ "device", 1, NULL, 'd' }, { "ledger", 1, NULL, 'l' }, { "seed", 1, NULL, 's' }, { "ops", 1, NULL, 'n' },
	{ "seconds", 1, NULL, 't' }, { "threads", 1, NULL, 'j' }, { "depth", 1, NULL, 'q' }, { "blocks", 1, NULL, 'b' },
	{ "first", 1, NULL, 'f' }, { "max-kb", 1, NULL, 'm' }, { "max-discard-kb", 1, NULL, 'D' }, { "min-discard-kb", 1, NULL, 'i' }, { "stream-ops", 1, NULL, 'S' },
	{ "hot", 1, NULL, 'h' }, { "overlap", 1, NULL, 'o' }, { "weights", 1, NULL, 'w' }, { "limit", 1, NULL, 'L' },
	{ "sample", 1, NULL, 'e' }, { "nospc-ok", 0, NULL, 'N' }, { "eio-ok", 0, NULL, 'O' }, { "eio", 1, NULL, 'E' }, { "clean", 0, NULL, 'C' }, { "crash", 0, NULL, 'X' },
	{ "volume", 1, NULL, 'V' }, { "table", 1, NULL, 'B' }, { "drives", 1, NULL, 'R' }, { "check", 1, NULL, 'c' }, { "beside", 1, NULL, 'Z' },
	{ "cuts", 1, NULL, 'P' }, { "suspend", 0, NULL, 'u' }, { "marks", 1, NULL, 'M' },
	{ "touched", 0, NULL, 'T' }, { "keep", 0, NULL, 'K' }, { "older", 0, NULL, 'U' }, { "only", 1, NULL, 'F' }, { "help", 0, NULL, '?' }, { }
};

static bool mode_given;

static void set_option(struct options *o, int key, const char *name)
{
	switch (key) {
	case 'd': o->device = optarg; break;
	case 'l': o->ledger = optarg; break;
	case 's': o->seed = number(name, optarg, UINT64_MAX); break;
	case 'n': o->ops = number(name, optarg, 0xffffff); break;
	case 't': o->seconds = number(name, optarg, 86400); break;
	case 'j': o->threads = number(name, optarg, 64); break;
	case 'q': o->depth = number(name, optarg, 16); break;
	case 'b': o->blocks = number(name, optarg, UINT32_MAX); break;
	case 'f': o->first = number(name, optarg, UINT32_MAX); break;
	case 'm': o->max_blocks = number(name, optarg, 16384) * 1024 / STAMP_BLOCK; break;
	case 'D': o->max_discard = number(name, optarg, 1u << 30) / 4; break;
	case 'i': o->min_discard = number(name, optarg, 1u << 30) / 4; break;
	case 'S': o->stream_ops = number(name, optarg, 1000000); break;
	case 'h': o->hot = number(name, optarg, 100); break;
	case 'o': o->overlap = number(name, optarg, 100); break;
	case 'w': set_weights(o, optarg); break;
	case 'L': o->limit = number(name, optarg, 1000000); break;
	case 'e': o->sample = number(name, optarg, 1000000); break;
	case 'N': o->nospc_ok = true; break;
	case 'O': o->eio_ok = true; break;
	case 'E': o->eio = optarg; break;
	case 'C': mode_given = true; break;
	case 'X': o->crash = mode_given = true; break;
	case 'V': cut.volume = optarg; break;
	case 'B': cut.table = optarg; break;
	case 'R': cut.drives = optarg; break;
	case 'c': cut.check = optarg; break;
	case 'Z': cut.beside = optarg; break;
	case 'P': cut.cuts = number(name, optarg, UINT32_MAX); break;
	case 'u': cut.suspend = true; break;
	case 'M': o->marks = optarg; break;
	case 'T': o->touched = true; break;
	case 'K': o->keep = true; break;
	case 'U': o->older = o->keep = mode_given = true; break;
	case 'F': o->only = optarg; break;
	default: trouble("usage: see the first comment of tests/oracle/main.c");
	}
}

int main(int argc, char **argv)
{
	struct options o = {
		.seed = 1, .ops = 1000, .blocks = UINT32_MAX, .threads = 1, .depth = 8, .max_blocks = 256, .max_discard = 4096,
		.stream_ops = 16, .hot = 50, .overlap = 5, .limit = 10,
		.weight = { [KIND_WRITE] = 40, [KIND_FUA] = 4, [KIND_READ] = 30, [KIND_DISCARD] = 4, [KIND_ZERO] = 2,
			    [KIND_FLUSH] = 6, [KIND_STREAM] = 1 },
	};
	const char *command = argc > 1 ? argv[1] : "";
	int key, which = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1) {
		optind = 2;
		while ((key = getopt_long(argc, argv, "", longs, &which)) != -1)
			set_option(&o, key, longs[which].name);
	}
	if (!o.ledger)
		trouble("--ledger FILE, please");
	if (!o.threads || !o.depth || !o.max_blocks || !o.max_discard || !o.stream_ops)
		trouble("threads, depth, sizes and stream-ops are at least 1");
	if (o.min_discard > o.max_discard)
		trouble("discards of at least %u blocks and at most %u", o.min_discard, o.max_discard);
	if (!strcmp(command, "create"))
		return do_create(&o);
	if (!strcmp(command, "show"))
		return do_show(&o, argv + optind);
	if (!o.device)
		trouble("--device DEV, please");
	if (!strcmp(command, "run"))
		return do_run(&o);
	if (!strcmp(command, "cuts"))
		return do_cuts(&o);
	if (!strcmp(command, "verify")) {
		if (!mode_given)
			trouble("verify: --clean or --crash");
		return do_verify(&o);
	}
	trouble("unknown command '%s': create, run, verify, show, cuts", command);
}
