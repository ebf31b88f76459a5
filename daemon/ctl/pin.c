// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl pin and unpin: blocks that stay on the fast tiers, or off them,
 * whatever the policy thinks of them.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "args.h"
#include "control.h"
#include "runs.h"

static int too_many(const struct terrace_hello *hello)
{
	ctl_error("too many pieces: the pins and hints of a volume may form at most %u ranges; pin a range of blocks around them, or fewer files",
		  hello->max_ranges);
	return -ENOSPC;
}

static int pin_run_of_blocks(int fd, const struct terrace_hello *hello, const struct run *run, u32 what)
{
	struct terrace_range range = { .block = run->first, .nr = run->nr, .what = what };
	int r;

	if (!ioctl(fd, TERRACE_IOC_RANGE, &range))
		return 0;
	r = -errno;
	if (r == -ENOSPC)
		too_many(hello);
	else
		ctl_error("blocks %llu-%llu: %s", (unsigned long long)run->first,
			  (unsigned long long)(run->first + run->nr - 1), strerror(-r));
	return r;
}

/* All or, after a refusal, none of those that came new. */
static int pin_all(int fd, const struct terrace_hello *hello, const struct runs *runs, u32 what)
{
	u32 done = 0;
	int r = 0;

	/* the kernel takes some ms for each */
	if (what != TERRACE_RANGE_UNPIN && runs->nr > hello->max_ranges)
		return too_many(hello);
	while (done < runs->nr && !r) {
		r = pin_run_of_blocks(fd, hello, &runs->run[done], what);
		done += !r;
	}
	for (u32 i = 0; r && what != TERRACE_RANGE_UNPIN && i < done; i++)
		pin_run_of_blocks(fd, hello, &runs->run[i], TERRACE_RANGE_UNPIN);
	return r;
}

static int pin_runs(struct runs *runs, const char *name, u32 what, bool json)
{
	static const char *const done[] = { "?", "pinned fast", "pinned slow", "unpinned" };
	struct terrace_hello hello;
	struct json_object *o;
	int fd, r;

	fd = control_open(&runs->volume, &hello);
	if (fd < 0)
		return CTL_PROBLEM;
	r = pin_all(fd, &hello, runs, what);
	close(fd);
	if (r)
		return CTL_PROBLEM;
	if (json) {
		o = json_object_new_object();
		json_object_object_add(o, "volume", json_object_new_string(runs->volume.name));
		json_object_object_add(o, "done", json_object_new_string(done[what]));
		json_object_object_add(o, "ranges", json_object_new_uint64(runs->nr));
		json_object_object_add(o, "blocks", json_object_new_uint64(runs_blocks(runs)));
		ctl_json_print(o);
	} else {
		printf("%s: %s: %llu blocks in %u ranges of volume '%s'\n", name, done[what],
		       (unsigned long long)runs_blocks(runs), runs->nr, runs->volume.name);
	}
	return CTL_OK;
}

static int pin_words(const struct ctl_command *cmd, int nr, char **word, u32 what, bool json)
{
	struct runs runs;
	int r = runs_check_words(cmd, nr, word);

	if (r)
		return r;
	r = runs_of(&runs, word[0], word[1]) ? CTL_PROBLEM : CTL_OK;
	runs_sort(&runs);
	if (!r)
		r = pin_runs(&runs, word[0], what, json);
	runs_free(&runs);
	return r;
}

static const char pin_help[] =
"usage: terracectl pin [--slow] [--json] FILE|FOLDER\n"
"       terracectl pin [--slow] [--json] NAME [BLOCK[-LAST]]\n"
"\n"
"Keeps the blocks of a file, of all files in a folder, or of a volume, on the\n"
"fast tiers: once there, no order and no janitor takes them down. Pinning moves\n"
"nothing by itself: terracectl move brings them up. --slow keeps them off: they\n"
"are not promoted, and new writes go past the fast tiers.\n"
"A pin is on the blocks where the file is now: parts that are written anew\n"
"elsewhere (appended, or copied on write) are not pinned. Pins last until unpin\n"
"or until the volume is deactivated: repeat them at boot.\n"
"\n"
"  --slow    off the fast tiers instead of on them\n"
"  --json    as JSON\n"
"  --help    this text\n"
"\n"
"Exit status: 0 done, 1 refused (nothing is pinned then), 2 wrong usage.\n"
"\n"
"Examples:\n"
"  terracectl pin /var/lib/mysql/ibdata1\n"
"  terracectl pin --slow /srv/backup/\n"
"  terracectl pin db 0-8191\n";

static int pin_run(const struct ctl_command *cmd, int argc, char **argv)
{
	bool slow = false, json = false;
	const struct args_option options[] = {
		{ .name = "slow", .flag = &slow }, { .name = "json", .flag = &json }, { .name = NULL },
	};
	int r = args_parse(cmd, argc, argv, options);

	return r != ARGS_GO_ON ? r :
	       pin_words(cmd, argc - optind, argv + optind,
			 slow ? TERRACE_RANGE_PIN_SLOW : TERRACE_RANGE_PIN_FAST, json);
}

static const char unpin_help[] =
"usage: terracectl unpin [--json] FILE|FOLDER\n"
"       terracectl unpin [--json] NAME [BLOCK[-LAST]]\n"
"\n"
"Takes pins of terracectl pin away, from all the blocks named. Moves nothing.\n"
"\n"
"  --json    as JSON\n"
"  --help    this text\n"
"\n"
"Exit status: 0 done, 1 refused, 2 wrong usage.\n"
"\n"
"Examples:\n"
"  terracectl unpin /var/lib/mysql/ibdata1\n"
"  terracectl unpin db\n";

static int unpin_run(const struct ctl_command *cmd, int argc, char **argv)
{
	bool json = false;
	int r = args_plain(cmd, argc, argv, &json);

	return r != ARGS_GO_ON ? r :
	       pin_words(cmd, argc - optind, argv + optind, TERRACE_RANGE_UNPIN, json);
}

const struct ctl_command ctl_pin_command = {
	.name = "pin",
	.summary = "keep blocks on the fast tiers, or off them",
	.help = pin_help,
	.run = pin_run,
};

const struct ctl_command ctl_unpin_command = {
	.name = "unpin",
	.summary = "take pins away",
	.help = unpin_help,
	.run = unpin_run,
};
