// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl leave: the clean exit. A volume in use becomes a plain device,
 * without an unmount.
 *
 *	0  NAME terrace
 *	1  NAME linear -> NAME-terrace, which is the volume (relay.h)
 *	2  NAME mirror -> NAME-terrace and DEV: the kernel copies, and sends each
 *	   write to both
 *	3  both are read and compared; what differs is compared again later
 *	4  NAME suspended: what still differs is copied and compared, DEV is
 *	   flushed, its table (linear DEV) loaded, the labels of the tiers zeroed
 *	5  NAME linear -> DEV
 *
 * What stops it, and what is there then:
 *	power cut in 0 to 4	the volume, complete: every write that ended is on it,
 *				durable if it was flushed; DEV holds a part that
 *				nothing leads to. The next call begins anew
 *	… in 4, labels zeroed	DEV, complete: NAME was suspended, all that had
 *				ended is on it and flushed; the volume is gone
 *	… in 5			DEV, complete
 *	Ctrl-C in 1 to 3	the volume goes back up: 0
 *	kill -9 in 1 to 4	NAME works as it is (4, and parts of 1: I/O waits);
 *				the same call goes on, --undo goes back (both put
 *				back labels that are zeroed first: labels.h)
 *	… in 5			DEV, complete; the same call removes NAME-terrace
 *	DEV fails		the failed write waits for us: back to 0, it is
 *				repeated there
 *	the volume fails	the same: NAME has its errors again, DEV is not it
 *
 * The mirror's log is in memory: it says what is in sync, never that a half
 * written DEV is the volume.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "args.h"
#include "compare.h"
#include "device.h"
#include "interrupt.h"
#include "labels.h"
#include "mirror.h"
#include "names.h"
#include "probe.h"
#include "relay.h"
#include "tabled.h"
#include "term.h"
#include "tiers.h"

#define LEAVE_ANEW	(-1)	/* no result: there is nothing to go on with */

struct leave {
	struct relay relay;
	const char *to;
	u32 major, minor;	/* of the device */
	bool yes, force, json;
	struct compare compare;
};

/* ---- refusals --------------------------------------------------------------------------------- */

static int refuse_volume(const struct leave *l)
{
	struct ctl_tier tiers[TERRACE_MAX_TIERS];
	struct dm_volume v;
	int r;
	u32 nr;

	if (dm_named(&v, l->relay.name))
		return CTL_PROBLEM;
	if (v.suspended || v.read_only) {
		ctl_error("volume '%s' is %s", v.name, v.suspended ? "suspended" : "read-only");
		return CTL_PROBLEM;
	}
	r = tabled_check(l->relay.params, l->relay.uuid, v.name) ? CTL_PROBLEM : CTL_OK;
	nr = tiers_read(&v, tiers);
	for (u32 t = 0; t < nr; t++) {
		if (!tiers[t].missing)
			continue;
		ctl_error("tier %u of volume '%s' is missing: not all of it can be copied; terracectl salvage reads out what is left",
			  t, v.name);
		r = CTL_PROBLEM;
	}
	return r;
}

static int refuse_device(struct leave *l)
{
	u64 need = l->relay.sectors / TERRACE_BLOCK_SECTORS;
	struct device dev;
	char *found = NULL;
	int r;

	if (device_open(&dev, l->to, DEVICE_WRITE))
		return CTL_PROBLEM;
	l->major = major(dev.rdev);
	l->minor = minor(dev.rdev);
	r = probe_contents(&dev, &found);
	if (!dev.is_block)
		ctl_error("%s is no block device", l->to);
	else if (dev.blocks < need)
		ctl_error("%s has %s, the volume %s: a device at least as large is needed", l->to,
			  size_text(dev.blocks), size_text(need));
	else if (r)
		ctl_error("%s: cannot be read: %s", l->to, strerror(-r));
	else if (found && !l->force)
		ctl_error("%s %s: nothing changed; --force overwrites it", l->to, found);
	r = r || !dev.is_block || dev.blocks < need || (found && !l->force);
	free(found);
	device_close(&dev);
	return r ? CTL_PROBLEM : CTL_OK;
}

static bool confirmed(const struct leave *l)
{
	char *question = ctl_text("Copy volume '%s' (%s) to %s, use that from then on, and free the volume's devices?",
				  l->relay.name, size_text(l->relay.sectors / TERRACE_BLOCK_SECTORS), l->to);
	bool yes = l->yes || term_confirm(question);

	free(question);
	return yes;
}

/* ---- 2: the mirror ------------------------------------------------------------------------------ */

static int make_mirror(const struct leave *l)
{
	struct dm_line below;
	char *params;
	int r = dm_table_line(l->relay.below, &below);

	if (r)
		return r;
	params = mirror_params(makedev(below.major, below.minor), makedev(l->major, l->minor), 0);
	r = dm_load(l->relay.name, l->relay.sectors, "mirror", params);
	free(params);
	if (r)
		return r;
	r = dm_resume(l->relay.name, false);
	if (r)
		dm_clear(l->relay.name);
	return r;
}

/* ---- 4: the switch ------------------------------------------------------------------------------- */

static int load_plain(const struct leave *l)
{
	char *params = ctl_text("%u:%u 0", l->major, l->minor);
	int r = dm_load(l->relay.name, l->relay.sectors, "linear", params);

	free(params);
	return r;
}

/* NAME is suspended with all that ended on both sides. On failure the labels are as before. */
static int switch_over(struct leave *l, const struct found_volume *v)
{
	int r = compare_settle(&l->compare);

	if (!r)
		r = load_plain(l);
	if (r)
		return r;
	r = labels_take(v);
	if (!r)
		r = dm_resume(l->relay.name, false);
	if (r)
		labels_back(l->relay.uuid);
	return r;
}

/* What an activation by a metadata copy alone could still find. */
static void forget_metadata(const struct found_volume *v)
{
	for (u32 i = 0; i < v->nr_devices; i++) {
		const struct tr_label *label = &v->device[i].label;
		struct device dev;

		if (!label->meta_blocks || device_open(&dev, v->device[i].path, DEVICE_WRITE))
			continue;
		device_zero(&dev, label->meta_start, 2);
		device_flush(&dev);
		device_close(&dev);
	}
}

static int finish(struct leave *l, const struct mirror *m)
{
	struct found_volume *v;
	struct found found;
	int r;

	tabled_find(&found, l->relay.params, 0);
	v = tabled_volume(&found, l->relay.uuid);
	r = v && tabled_has_all(v, l->relay.params) ? 0 : -ENODEV;
	if (r)
		ctl_error("not all devices of volume '%s' carry its labels", l->relay.name);
	if (!r)
		r = dm_suspend(l->relay.name, true);
	if (!r)
		r = mirror_in_step(m);
	if (!r)
		r = switch_over(l, v);
	if (!r) {
		compare_free(&l->compare);
		labels_forget(l->relay.uuid);
		relay_end(&l->relay);
		forget_metadata(v);
	}
	find_free(&found);
	return r;
}

/* ---- all of it ------------------------------------------------------------------------------------ */

static int undo(struct leave *l, const char *why)
{
	fprintf(stderr, "%s: volume '%s' goes back to what it was\n", why, l->relay.name);
	if (relay_in(&l->relay, l->relay.params))
		ctl_error("terracectl leave --undo %s tries again", l->relay.name);
	return CTL_PROBLEM;
}

static int report(const struct leave *l)
{
	struct json_object *o;

	if (!l->json) {
		printf("/dev/mapper/%s is on %s now: %llu bytes copied and compared, %llu of them again at the end\n"
		       "The volume's devices are free. After the next boot it is %s that has to be mounted.\n",
		       l->relay.name, l->to, (unsigned long long)l->relay.sectors * 512,
		       (unsigned long long)l->compare.again_bytes, l->to);
		return CTL_OK;
	}
	o = json_object_new_object();
	json_object_object_add(o, "device", json_object_new_string(l->to));
	json_object_object_add(o, "bytes", json_object_new_uint64(l->relay.sectors * 512));
	json_object_object_add(o, "compared_again_bytes", json_object_new_uint64(l->compare.again_bytes));
	ctl_json_print(o);
	return CTL_OK;
}

static bool mirrors(const struct leave *l)
{
	struct dm_line line;

	return !dm_table_line(l->relay.name, &line) && !strcmp(line.target, "mirror");
}

static int run_leave(struct leave *l)
{
	const struct mirror m = { .name = l->relay.name, .from = "the volume", .to = l->to };
	char *below = ctl_text("/dev/mapper/%s", l->relay.below);
	int r = 0;

	interrupt_watch();
	if (!mirrors(l)) {
		r = relay_out(&l->relay);
		if (!r)
			r = make_mirror(l);
	} else {
		/* what it leads to may have been stopped, by one that could not start it again */
		r = relay_out(&l->relay);
		/* killed in 4: the plain table must not slip in */
		if (!r)
			r = dm_clear(l->relay.name);
		if (!r)
			r = dm_resume(l->relay.name, false);
	}
	if (!r)
		r = mirror_copy(&m);
	if (!r)
		r = compare_devices(&l->compare, below, l->to, 0, l->relay.sectors / TERRACE_BLOCK_SECTORS);
	if (!r)
		r = finish(l, &m);
	compare_free(&l->compare);
	free(below);
	if (r && !l->relay.begun)
		return CTL_PROBLEM;
	return r ? undo(l, r == -EINTR ? "interrupted" : "failed") : report(l);
}

/* It must be the one that the mirror has. */
static int same_device(struct leave *l)
{
	struct dm_line line;
	struct stat st;
	char *want;
	int r = CTL_OK;

	if (stat(l->to, &st) || !S_ISBLK(st.st_mode)) {
		ctl_error("%s is no block device", l->to);
		return CTL_PROBLEM;
	}
	l->major = major(st.st_rdev);
	l->minor = minor(st.st_rdev);
	want = ctl_text(" %u:%u 0 ", l->major, l->minor);
	if (mirrors(l) && !dm_table_line(l->relay.name, &line) && !strstr(line.params, want)) {
		ctl_error("'%s' is being copied to another device (%s): name that one, or --undo first",
			  l->relay.name, line.params);
		r = CTL_PROBLEM;
	}
	free(want);
	return r;
}

/* Killed in 5: what was written since is on the device alone. */
static int end_it(struct leave *l, dev_t dev, bool back)
{
	if (back || same_device(l) || makedev(l->major, l->minor) != dev) {
		char *path = find_path(dev);

		ctl_error("volume '%s' has left already: terracectl leave --to %s %s ends it", l->relay.name,
			  path ? path : "DEVICE", l->relay.name);
		free(path);
		return CTL_PROBLEM;
	}
	labels_forget(l->relay.uuid);
	return relay_end(&l->relay) ? CTL_PROBLEM : report(l);
}

/* Killed in 4: the volume is as before as soon as it has its labels again. NAME still waits. */
static int take_up(struct leave *l, bool back)
{
	dev_t left = relay_elsewhere(&l->relay);	/* in 5 */

	if (left)
		return end_it(l, left, back);
	if (l->relay.begun && labels_back(l->relay.uuid))
		return CTL_PROBLEM;
	if (back)
		return relay_in(&l->relay, l->relay.params) ? CTL_PROBLEM : CTL_OK;
	if (!l->relay.begun || !mirrors(l))
		return LEAVE_ANEW;
	fprintf(stderr, "'%s' is being copied already: going on\n", l->relay.name);
	return same_device(l) ? CTL_PROBLEM : run_leave(l);
}

static int leave_volume(struct leave *l, const char *name, bool back)
{
	int r;

	if (relay_find(&l->relay, name))
		return CTL_PROBLEM;
	if (back && !l->relay.begun) {
		ctl_error("volume '%s' is not leaving", name);
		return CTL_PROBLEM;
	}
	r = take_up(l, back);
	if (r != LEAVE_ANEW)
		return r;
	r = l->relay.begun ? 0 : refuse_volume(l);
	if (!r)
		r = refuse_device(l);
	if (!r && !confirmed(l))
		r = CTL_PROBLEM;
	return r ? r : run_leave(l);
}

static const char help_text[] =
"usage: terracectl leave --to DEVICE [OPTION]... NAME\n"
"       terracectl leave --undo NAME\n"
"\n"
"The clean exit: copies a volume in use to a plain device, compares every byte,\n"
"and switches /dev/mapper/NAME to it, without an unmount. The volume's devices are\n"
"free then: their labels are removed. Until the switch the volume is complete:\n"
"Ctrl-C or a failure of DEVICE undoes everything, a power cut leaves the volume.\n"
"Killed, the same call goes on, and --undo goes back.\n"
"\n"
"DEVICE must be as large as the volume, not in use, and empty. While it is copied\n"
"it comes to look like the volume (the same filesystem UUID): after a power cut\n"
"wipe it (wipefs -a) before anything is mounted by UUID.\n"
"\n"
"  --to DEVICE  the plain device\n"
"  --undo       take back a leave that was killed\n"
"  --yes        do not ask\n"
"  --force      overwrite what DEVICE holds\n"
"  --json       as JSON\n"
"  --help       this text\n"
"\n"
"Exit status: 0 done, 1 refused, failed or interrupted, 2 wrong usage.\n"
"\n"
"Examples:\n"
"  terracectl leave --to /dev/sdc db\n"
"  terracectl leave --undo db\n";

static int leave_run(const struct ctl_command *cmd, int argc, char **argv)
{
	struct leave l = { 0 };
	bool back = false;
	const struct args_option options[] = {
		{ .name = "to", .text = &l.to }, { .name = "undo", .flag = &back },
		{ .name = "yes", .flag = &l.yes }, { .name = "force", .flag = &l.force },
		{ .name = "json", .flag = &l.json }, { .name = NULL },
	};
	int r = args_one_volume(cmd, argc, argv, options);

	if (r != ARGS_GO_ON)
		return r;
	if (!l.to == !back)
		return ctl_usage(cmd, "%s", back ? "--undo needs no --to" : "where to? --to DEVICE");
	return leave_volume(&l, argv[optind], back);
}

const struct ctl_command ctl_leave_command = {
	.name = "leave",
	.summary = "turn a volume in use into a plain device",
	.help = help_text,
	.run = leave_run,
};
