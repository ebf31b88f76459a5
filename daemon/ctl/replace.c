// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * terracectl replace: another drive for a tier, while the volume is in use.
 *
 *	0  the tier is on OLD
 *	1  the tier is on NAME-replace: OLD's label, and behind it a mirror of
 *	   OLD and DEVICE. The kernel copies, and sends each write to both
 *	2  both are read and compared; what differs is compared again later
 *	3  the volume is stopped (relay.h): what still differs is copied, DEVICE
 *	   is flushed
 *	4  DEVICE gets the label, of the next generation; OLD's is zeroed
 *	5  the tier is on DEVICE
 *
 * What stops it, and what is there then:
 *	power cut in 1 to 3	the volume on OLD: DEVICE has no label, nothing
 *				leads to it. The next call begins anew
 *	… in 4, 5		the volume on DEVICE: of two labels of one tier the
 *				newer counts
 *	Ctrl-C in 1, 2		0 again
 *	kill -9 in 1 to 4	NAME works as it is (3, 4: I/O waits); the same call
 *				goes on, --undo goes back (not from 4 on)
 *	DEVICE fails		0 again: a write that it failed is repeated on OLD;
 *				in 4, OLD's label is written anew, to be the newer
 *	OLD fails		0 again, with its errors; if even its label cannot be
 *				read, 1 without DEVICE: a start would be refused
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "args.h"
#include "compare.h"
#include "find.h"
#include "interrupt.h"
#include "labels.h"
#include "mirror.h"
#include "names.h"
#include "params.h"
#include "probe.h"
#include "relay.h"
#include "tabled.h"
#include "term.h"

#define HEAD_BLOCKS	16	/* the labels, and nothing else: not in the mirror */
#define HEAD_SECTORS	(HEAD_BLOCKS * (u64)TERRACE_BLOCK_SECTORS)

struct replace {
	struct relay relay;
	char copy[DM_NAME_BYTES];	/* NAME-replace */
	const char *to;
	char *from;			/* path of OLD */
	u32 tier;
	struct tr_label label;
	u64 blocks;			/* of OLD that are used */
	dev_t old, new;
	bool yes, force, json, atomic, dry_run;
	bool there, begun, labelled;	/* the copy; 1 to 3; 4 */
	struct compare compare;
};

/* ---- which tier, which drive, how far? -------------------------------------------------------- */

static bool named_so(const struct tr_label *label, const char *word)
{
	char digit[2] = { (char)('0' + label->tier_index), 0 };

	return label->tier_index < TERRACE_MAX_TIERS &&
	       (!strcmp(word, digit) || label->class == class_number(word, strlen(word)));
}

static int choose_tier(struct replace *p, const struct found_volume *v, const char *word)
{
	u32 matches = 0;

	for (u32 i = 0; i < v->nr_devices; i++) {
		if (!named_so(&v->device[i].label, word))
			continue;
		p->label = v->device[i].label;
		p->tier = p->label.tier_index;
		matches++;
	}
	if (matches == 1)
		return CTL_OK;
	ctl_error("'%s' names %s of volume '%s'", word, matches ? "more than one tier" : "no tier", p->relay.name);
	return CTL_USAGE;
}

/* A tier that has its new label, or not yet: the copy still leads to OLD's. */
static int find_tier(struct replace *p, const char *word)
{
	struct found_volume *v;
	struct found found;
	struct dm_line copy;
	int r = CTL_PROBLEM;
	u64 data, meta;

	snprintf(p->copy, sizeof(p->copy), "%.100s-replace", p->relay.name);
	tabled_find(&found, p->relay.params,
		    dm_table_line(p->copy, &copy) ? 0 : makedev(copy.major, copy.minor));
	v = tabled_volume(&found, p->relay.uuid);
	if (v)
		r = choose_tier(p, v, word);
	else
		ctl_error("the devices of volume '%s' do not carry its labels", p->relay.name);
	find_free(&found);
	data = p->label.data_start + p->label.data_blocks;
	meta = p->label.meta_start + p->label.meta_blocks;
	p->blocks = data > meta ? data : meta;
	return r;
}

static dev_t parse_dev(const char *text)
{
	unsigned int a, b;

	return text && sscanf(text, "%u:%u", &a, &b) == 2 ? makedev(a, b) : 0;
}

/* One that was killed may have left what it loaded and never resumed, which holds DEVICE, or no table at all. */
static bool copy_there(const struct replace *p, struct dm_line *copy)
{
	if (dm_table_line(p->copy, copy))
		return false;
	dm_clear(p->copy);
	if (!copy->target[0])
		dm_remove(p->copy);
	return copy->target[0];
}

/* What an earlier call has left: the tier's device in the table tells. */
static int find_state(struct replace *p)
{
	char *word = params_device(p->relay.params, p->tier);
	dev_t now = parse_dev(word);
	struct dm_line copy, mirror;
	char old[32], new[32];

	free(word);
	p->old = now;
	if (copy_there(p, &copy)) {
		if (dm_table_part(p->copy, 1, &mirror) || strcmp(mirror.target, "mirror") ||
		    sscanf(mirror.params, "core 1 %*u 2 %31s %*u %31s", old, new) != 2) {
			/* made, or fallen back, and no more: OLD alone */
			if (sscanf(copy.params, "%31s", old) != 1)
				old[0] = 0;
			new[0] = 0;
		}
		p->old = parse_dev(old);
		p->new = parse_dev(new);
		p->there = true;
		p->begun = p->new;
		p->labelled = p->new && now == p->new;
		if (!p->labelled && now != p->old && now != makedev(copy.major, copy.minor)) {
			ctl_error("'%s' is of another tier, which is being replaced: finish or --undo that first", p->copy);
			return CTL_PROBLEM;
		}
	}
	p->from = find_path(p->old);
	if (p->from)
		return CTL_OK;
	ctl_error("tier %u of volume '%s' is missing: what is only there cannot be copied", p->tier, p->relay.name);
	return CTL_PROBLEM;
}

/* ---- refusals ---------------------------------------------------------------------------------- */

static int refuse_volume(const struct replace *p)
{
	struct dm_line line;

	if (dm_table_line(p->relay.name, &line) || !strcmp(line.target, "mirror"))
		ctl_error("volume '%s' is leaving: terracectl leave --undo %s first", p->relay.name, p->relay.name);
	else if (strstr(p->relay.params, " read_only"))
		ctl_error("volume '%s' is read-only", p->relay.name);
	else if (p->relay.begun || !tabled_check(p->relay.params, p->relay.uuid, p->relay.name))
		return CTL_OK;
	return CTL_PROBLEM;
}

static int refuse_device(struct replace *p, struct device *dev)
{
	char *found = NULL;
	int r = probe_contents(dev, &found);

	if (!dev->is_block)
		ctl_error("%s is no block device", p->to);
	else if (dev->blocks < p->blocks)
		ctl_error("%s has %s, tier %u uses %s: a device at least as large is needed", p->to,
			  size_text(dev->blocks), p->tier, size_text(p->blocks));
	else if (r)
		ctl_error("%s: cannot be read: %s", p->to, strerror(-r));
	else if (found && !p->force)
		ctl_error("%s %s: nothing changed; --force overwrites it", p->to, found);
	r = r || !dev->is_block || dev->blocks < p->blocks || (found && !p->force);
	free(found);
	return r ? CTL_PROBLEM : CTL_OK;
}

/* What the new drive says of itself, not what the old one did. */
static void make_label(struct replace *p, const struct device *dev)
{
	struct tr_label *label = &p->label;
	bool atomic = p->atomic || dev->atomic_bytes >= TERRACE_BLOCK_BYTES;

	if (label->align_blocks % dev->align_blocks)
		fprintf(stderr, "%s works in units of %s, the tier is aligned to %s: its writes will be slower than they could be\n",
			p->to, size_text(dev->align_blocks), size_text(label->align_blocks));
	if (label->flags & TERRACE_LABEL_ATOMIC && !atomic)
		fprintf(stderr, "%s does not say that it writes 4 KiB whole or not at all: overwrites will go out of place (--atomic, if you know better)\n",
			p->to);
	label->flags &= ~TERRACE_LABEL_ATOMIC;
	label->flags |= atomic ? TERRACE_LABEL_ATOMIC : 0;
	label->atomic_bytes = atomic && dev->atomic_bytes < TERRACE_BLOCK_BYTES ? TERRACE_BLOCK_BYTES :
									      dev->atomic_bytes;
	label->device_blocks = dev->blocks;
	label->generation++;
}

static bool confirmed(const struct replace *p)
{
	char *question = ctl_text("Copy tier %u of volume '%s' (%s, %s) to %s, and use that from then on?", p->tier,
				  p->relay.name, p->from, size_text(p->blocks), p->to);
	bool yes = p->yes || p->dry_run || term_confirm(question);

	if (p->dry_run)
		fprintf(stderr, "%s\n", question);
	free(question);
	return yes;
}

/* ---- 1: the copy takes the tier's place --------------------------------------------------------- */

static char *linear(dev_t dev)
{
	return ctl_text("%u:%u 0", major(dev), minor(dev));
}

static int make_copy(const struct replace *p)
{
	char *uuid = ctl_text("TERRACE-REPLACE-%s", uuid_text(p->relay.uuid)), *head = linear(p->old);
	char *mirror = mirror_params(p->old, p->new, HEAD_SECTORS);
	const struct dm_part parts[] = {
		{ HEAD_SECTORS, "linear", head },
		{ p->blocks * TERRACE_BLOCK_SECTORS - HEAD_SECTORS, "mirror", mirror },
	};
	struct dm_line line;
	int r = 0;

	if (dm_table_line(p->copy, &line))
		r = dm_create_suspended(p->copy, uuid, p->blocks * TERRACE_BLOCK_SECTORS, "linear", head);
	if (!r)
		r = dm_load_parts(p->copy, parts, 2);
	if (!r)
		r = dm_resume(p->copy, true);
	free(mirror);
	free(head);
	free(uuid);
	return r;
}

/* The volume stops, and starts with its tier elsewhere; unless it cannot start so. */
static int put_tier_on(struct replace *p, dev_t dev)
{
	char *word = params_device(p->relay.params, p->tier), *params;
	dev_t now = parse_dev(word);
	int r;

	free(word);
	if (now == dev && !p->relay.begun)
		return 0;
	params = params_with_device(p->relay.params, p->tier, dev);
	r = params ? tabled_check(params, p->relay.uuid, p->relay.name) : -EPROTO;
	if (!r)
		r = relay_out(&p->relay);
	if (!r)
		r = relay_in(&p->relay, params);
	if (!r)
		snprintf(p->relay.params, sizeof(p->relay.params), "%s", params);
	free(params);
	return r;
}

static int use_copy(struct replace *p)
{
	struct dm_line line;
	int r = dm_table_line(p->copy, &line);

	return r ? r : put_tier_on(p, makedev(line.major, line.minor));
}

/* ---- back ------------------------------------------------------------------------------------------ */

/* First out of the mirror: it may hold back writes that DEVICE has failed. */
static int leave_mirror(const struct replace *p)
{
	char *old = linear(p->old);
	int r = dm_load(p->copy, p->blocks * TERRACE_BLOCK_SECTORS, "linear", old);

	if (!r)
		r = dm_suspend(p->copy, true);
	if (!r)
		r = dm_resume(p->copy, true);
	free(old);
	return r;
}

static int remove_copy(const struct replace *p)
{
	int r = dm_remove(p->copy);

	if (r == -EBUSY)
		ctl_error("'%s' is in use: close it, then dmsetup remove %s", p->copy, p->copy);
	return r;
}

static int undo(struct replace *p, const char *why)
{
	int r;

	fprintf(stderr, "%s: tier %u of volume '%s' stays on %s\n", why, p->tier, p->relay.name, p->from);
	compare_free(&p->compare);
	r = leave_mirror(p);
	if (!r)
		r = put_tier_on(p, p->old);
	if (!r)
		r = remove_copy(p);
	if (r)
		ctl_error("terracectl replace --undo %s %u tries again", p->relay.name, p->tier);
	return r ? r : -ECANCELED;
}

/* ---- 4: labels -------------------------------------------------------------------------------------- */

static void encode_label(u8 *blocks, const struct tr_label *label)
{
	for (u32 i = 0; i < TERRACE_LABEL_COPIES; i++)
		tr_label_encode(blocks + i * TERRACE_BLOCK_BYTES, label);
}

/* DEVICE's, then OLD's is zeroed. Both are in use, by the copy. */
static int write_labels(const struct replace *p)
{
	u8 *blocks = ctl_alloc_blocks(TERRACE_LABEL_COPIES);
	int r;

	encode_label(blocks, &p->label);
	r = labels_write(p->to, blocks);
	memset(blocks, 0, TERRACE_LABEL_COPIES * TERRACE_BLOCK_BYTES);
	if (!r && labels_write(p->from, blocks))
		fprintf(stderr, "%s still carries its label, an older one: wipe it (wipefs -a)\n", p->from);
	free(blocks);
	return r;
}

/* OLD's own counts again, whatever DEVICE has got: it is the newer one. -ENODATA: it has none any more. */
static int write_old_label(const struct replace *p)
{
	u8 *blocks = ctl_alloc_blocks(TERRACE_LABEL_COPIES);
	struct found_volume *v;
	struct found found;
	int r = -ENODATA;

	find_volumes(&found, (char **)&p->from, 1);
	v = tabled_volume(&found, p->relay.uuid);
	if (v && v->device[0].label.tier_index == p->tier) {
		v->device[0].label.generation = p->label.generation + 1;
		encode_label(blocks, &v->device[0].label);
		r = labels_write(p->from, blocks);
	}
	find_free(&found);
	free(blocks);
	return r;
}

/* DEVICE failed when it got its label: 3 again, from where undo() can go back. */
static void keep_old(struct replace *p)
{
	struct dm_line copy;
	char *params;

	if (write_old_label(p) || dm_table_line(p->copy, &copy))
		return;
	params = params_with_device(p->relay.params, p->tier, makedev(copy.major, copy.minor));
	if (params && !relay_change(&p->relay, params))
		p->labelled = false;
	free(params);
}

/* From the labels on it goes forward only, unless there it fails: the table that is kept names DEVICE. */
static int finish(struct replace *p, const struct mirror *m)
{
	char *params = params_with_device(p->relay.params, p->tier, p->new);
	int r = params ? relay_out(&p->relay) : -EPROTO;

	if (!r)
		r = relay_stop(&p->relay);
	if (!r)
		r = mirror_in_step(m);
	if (!r)
		r = compare_settle(&p->compare);
	compare_free(&p->compare);
	if (!r)
		r = relay_change(&p->relay, params);
	if (!r) {
		p->labelled = true;
		r = write_labels(p);
		if (r)
			keep_old(p);
	}
	if (!r)
		r = relay_in(&p->relay, params);
	free(params);
	return r ? r : remove_copy(p);
}

/* Killed in 4: all that was written is on both, and nothing has been since, unless it runs below. */
static int finish_again(struct replace *p)
{
	struct dm_line line, below;
	bool has_run = !dm_table_line(p->relay.below, &below) && !strcmp(below.target, "terrace");
	int r = dm_table_line(p->relay.name, &line);

	if (!r && strcmp(line.target, "terrace")) {
		r = relay_stop(&p->relay);
		if (!r)
			r = write_labels(p);
		if (r && !has_run)
			keep_old(p);
	}
	if (!r)
		r = relay_in(&p->relay, p->relay.params);
	return r ? r : remove_copy(p);
}

/* ---- all of it ---------------------------------------------------------------------------------------- */

static int report(const struct replace *p)
{
	struct json_object *o;

	if (!p->json) {
		printf("tier %u of volume '%s' is on %s now: %llu bytes copied and compared, %llu of them again at the end; %s is free\n",
		       p->tier, p->relay.name, p->to, (unsigned long long)p->blocks * TERRACE_BLOCK_BYTES,
		       (unsigned long long)p->compare.again_bytes, p->from);
		return CTL_OK;
	}
	o = json_object_new_object();
	json_object_object_add(o, "volume", json_object_new_string(p->relay.name));
	json_object_object_add(o, "tier", json_object_new_uint64(p->tier));
	json_object_object_add(o, "from", json_object_new_string(p->from));
	json_object_object_add(o, "device", json_object_new_string(p->to));
	json_object_object_add(o, "bytes", json_object_new_uint64(p->blocks * TERRACE_BLOCK_BYTES));
	json_object_object_add(o, "compared_again_bytes", json_object_new_uint64(p->compare.again_bytes));
	json_object_object_add(o, "replaced", json_object_new_boolean(!p->dry_run));
	ctl_json_print(o);
	return CTL_OK;
}

static int copy_and_switch(struct replace *p, const struct mirror *m)
{
	int r = p->begun ? 0 : make_copy(p);

	if (!r)
		r = use_copy(p);
	if (!r)
		r = mirror_copy(m);
	if (!r)
		r = compare_devices(&p->compare, p->from, p->to, HEAD_BLOCKS, p->blocks);
	return r ? r : finish(p, m);
}

static int run_replace(struct replace *p)
{
	const struct mirror m = { .name = p->copy, .part = 1, .from = p->from, .to = p->to };
	int r;

	interrupt_watch();
	if (p->labelled)
		r = finish_again(p);
	else
		r = copy_and_switch(p, &m);
	if (r && p->labelled)
		ctl_error("the same call goes on");
	else if (r)
		undo(p, r == -EINTR ? "interrupted" : "failed");
	return r ? CTL_PROBLEM : report(p);
}

/* A new call; or one that goes on, with the same device. */
static int prepare(struct replace *p)
{
	struct device dev;
	int r;

	if (device_open(&dev, p->to, p->begun ? DEVICE_SHARED : p->dry_run ? DEVICE_READ : DEVICE_WRITE))
		return CTL_PROBLEM;
	if (p->begun && dev.rdev != p->new) {
		ctl_error("tier %u is being copied to another device: name that one, or --undo first", p->tier);
		r = CTL_PROBLEM;
	} else if (p->begun) {
		fprintf(stderr, "'%s' is there already: going on\n", p->copy);
		r = CTL_OK;
	} else {
		r = refuse_device(p, &dev);
		p->new = dev.rdev;
	}
	if (!r)
		make_label(p, &dev);
	if (!r && !p->begun && !confirmed(p))
		r = CTL_PROBLEM;
	/* nothing there may look like a label, until it is one */
	if (!r && !p->begun && !p->dry_run && (device_zero(&dev, 0, HEAD_BLOCKS) || device_flush(&dev))) {
		ctl_error("%s cannot be written", p->to);
		r = CTL_PROBLEM;
	}
	device_close(&dev);
	return r;
}

static int take_back(struct replace *p)
{
	if (!p->there || p->labelled) {
		ctl_error("tier %u of volume '%s' is not being replaced%s", p->tier, p->relay.name,
			  p->labelled ? " any more: the same call finishes it" : "");
		return CTL_PROBLEM;
	}
	return undo(p, "taken back") == -ECANCELED ? CTL_OK : CTL_PROBLEM;
}

static int replace_tier(struct replace *p, const char *name, const char *word, bool back)
{
	int r;

	if (relay_find(&p->relay, name) || refuse_volume(p))
		return CTL_PROBLEM;
	r = find_tier(p, word);
	if (!r)
		r = find_state(p);
	if (r || back)
		return r ? r : take_back(p);
	r = prepare(p);
	if (r || p->dry_run)
		return r ? r : p->json ? report(p) : CTL_OK;
	return run_replace(p);
}

static const char help_text[] =
"usage: terracectl replace --to DEVICE [OPTION]... NAME TIER\n"
"       terracectl replace --undo NAME TIER\n"
"\n"
"Puts another drive in the place of a tier's, while the volume is in use: copies\n"
"it, compares every byte, and switches. TIER is its number or its class, and\n"
"keeps both. The old drive is free then: its label is removed. Until the switch\n"
"nothing is lost: Ctrl-C or a failure of DEVICE undoes everything, a power cut\n"
"leaves the volume on the old drive. Killed, the same call goes on, and --undo\n"
"goes back. The volume is stopped and started twice, I/O waits for a second or\n"
"less each time; pins end.\n"
"\n"
"DEVICE must be at least as large as what the tier uses, not in use, and empty.\n"
"What it has more can be taken afterwards: dmsetup message NAME 0 grow_tier TIER\n"
"\n"
"  --to DEVICE  the new drive\n"
"  --atomic     it writes 4 KiB whole or not at all, though it does not say so\n"
"  --undo       take back a replace that was killed\n"
"  --yes        do not ask\n"
"  --force      overwrite what DEVICE holds (never a device in use)\n"
"  --dry-run    show the plan, write nothing\n"
"  --json       as JSON\n"
"  --help       this text\n"
"\n"
"Exit status: 0 done, 1 refused, failed or interrupted, 2 wrong usage.\n"
"\n"
"Examples:\n"
"  terracectl replace --to /dev/sdd db hdd\n"
"  terracectl replace --undo db 1\n";

static int replace_run(const struct ctl_command *cmd, int argc, char **argv)
{
	struct replace p = { 0 };
	bool back = false;
	const struct args_option options[] = {
		{ .name = "to", .text = &p.to }, { .name = "atomic", .flag = &p.atomic },
		{ .name = "undo", .flag = &back }, { .name = "yes", .flag = &p.yes },
		{ .name = "force", .flag = &p.force }, { .name = "dry-run", .flag = &p.dry_run },
		{ .name = "json", .flag = &p.json }, { .name = NULL },
	};
	int r = args_parse(cmd, argc, argv, options);

	if (r != ARGS_GO_ON)
		return r;
	if (argc - optind != 2)
		return ctl_usage(cmd, "name a volume and one of its tiers");
	if (!p.to == !back)
		return ctl_usage(cmd, "%s", back ? "--undo needs no --to" : "by which device? --to DEVICE");
	r = replace_tier(&p, argv[optind], argv[optind + 1], back);
	free(p.from);
	return r;
}

const struct ctl_command ctl_replace_command = {
	.name = "replace",
	.summary = "put another drive in the place of a tier's",
	.help = help_text,
	.run = replace_run,
};
