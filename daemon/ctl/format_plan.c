// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The plan of a new volume, in words, in JSON and as a device-mapper table.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "names.h"

static const char *mirror_word(const struct tr_plan *plan)
{
	if (plan->mirror == TR_NO_DEVICE)
		return "none";
	return plan->mirror_lazy ? "lazy" : "sync";
}

/* "tier 1 (hdd, /dev/sda)", in a static buffer. */
static const char *device_text(const struct format *f, u32 nr)
{
	static char text[512];

	if (nr == f->args.nr_tiers)
		snprintf(text, sizeof(text), "metadata device (%s)", f->path[nr]);
	else
		snprintf(text, sizeof(text), "tier %u (%s, %s)", nr,
			 class_name(f->args.tier[nr].class), f->path[nr]);
	return text;
}

void format_print_guess(const struct format *f, u32 nr)
{
	const u32 class = f->args.tier[nr].class;

	if (f->guessed[nr])
		ctl_error("that %s is of class %s is a guess: if it is wrong, write --tier CLASS=%s", f->path[nr],
			  class_name(class), f->path[nr]);
}

void format_print_fault(const struct format *f, const struct tr_plan_fault *fault)
{
	const char *who = fault->device == TR_NO_DEVICE ? "" : device_text(f, fault->device);
	u64 have = fault->have, need = fault->need;

	switch (fault->error) {
	case TR_PLAN_TIERS:
		ctl_error("%llu tiers given, a volume has %u to %u", have, TR_MIN_TIERS,
			  TERRACE_MAX_TIERS);
		break;
	case TR_PLAN_ORDER:
		ctl_error("%s is faster than the tier before it (%s): name the tiers from fast to slow",
			  who, class_name(need));
		format_print_guess(f, fault->device - 1);
		format_print_guess(f, fault->device);
		break;
	case TR_PLAN_NO_SLOTS:
		ctl_error("no tier is of kind slots, so nothing could be overwritten in place: give one, like %s:slots=%s",
			  class_name(f->args.tier[0].class), f->path[0]);
		break;
	case TR_PLAN_ALIGN:
		ctl_error("%s: alignment of %s must be a power of two of at least 4 KiB and at most %s",
			  who, size_text(have), size_text(need));
		break;
	case TR_PLAN_JOURNAL:
		ctl_error("a journal of %s is too %s: it must have %s to %s", size_text(have),
			  have < need ? "small" : "large", size_text(TR_JOURNAL_MIN),
			  size_text(TR_JOURNAL_MAX));
		break;
	case TR_PLAN_TOO_SMALL:
		ctl_error("%s is too small: it has %s, this volume needs at least %s there", who,
			  size_text(have), size_text(need));
		break;
	case TR_PLAN_TOO_BIG:
		ctl_error("%s is too big: it has %s, a tier has at most %s", who, size_text(have),
			  size_text(need));
		break;
	case TR_PLAN_VIRTUAL:
		ctl_error("size %s does not fit: the tiers hold %s (%llu bytes)%s; more is possible with --overcommit SIZE",
			  size_text(have), size_text(need), need * TERRACE_BLOCK_BYTES,
			  f->args.overcommit_blocks ? " with the overcommit given" : " after reserves");
		break;
	case TR_PLAN_VIRTUAL_MAX:
		ctl_error("size %s is too big: a volume has at most %s", size_text(have),
			  size_text(need));
		break;
	case TR_PLAN_PAGES:
		ctl_error("the metadata area, whose size was fixed at format, has %s for pages; with this tier %s would be needed",
			  size_text(have), size_text(need));
		break;
	default:
		ctl_error("%s%scannot plan this volume (reason %d: %llu, %llu)", who,
			  *who ? ": " : "", fault->error, have, need);
	}
}

/* What `dmsetup create NAME --table` takes; to be freed. */
static char *table_line(const struct format *f)
{
	const struct tr_super *super = &f->plan.super;
	char *line = ctl_text("0 %llu terrace %s %u",
			      super->virtual_blocks * TERRACE_BLOCK_SECTORS,
			      f->meta_path ? f->meta_path : "-", super->nr_tiers);

	for (u32 i = 0; i < super->nr_tiers; i++) {
		char *longer = ctl_text("%s %s %s %s", line, f->path[i],
					class_name(super->tier[i].class),
					kind_name(super->tier[i].kind));

		free(line);
		line = longer;
	}
	return line;
}

static void print_device(const struct format *f, u32 nr)
{
	const struct tr_label *label = &f->plan.label[nr];
	bool atomic = label->flags & TERRACE_LABEL_ATOMIC;

	if (nr == f->args.nr_tiers)
		printf("  %-7s %-6s %-8s %10s  %s\n", "meta", "-", "-",
		       size_text(label->device_blocks), f->path[nr]);
	else
		printf("  tier %-2u %-6s %-8s %10s  %s: data %s, reserve %s, %s 4 KiB writes\n", nr,
		       class_name(label->class), kind_name(label->kind),
		       size_text(label->device_blocks), f->path[nr],
		       size_text(label->data_blocks),
		       size_text(f->plan.super.tier[nr].reserve_blocks),
		       atomic ? "atomic" : "non-atomic");
}

void format_print_plan(const struct format *f)
{
	const struct tr_plan *plan = &f->plan;
	const struct tr_super *super = &plan->super;
	char *line = table_line(f);

	printf("Volume '%s' %s: %s (%llu bytes)\n", f->args.name, uuid_text(f->args.uuid),
	       size_text(super->virtual_blocks), super->virtual_blocks * TERRACE_BLOCK_BYTES);
	if (super->overcommit_blocks)
		printf("  overcommitted by %s: writes can meet a full volume\n",
		       size_text(super->overcommit_blocks));
	for (u32 i = 0; i < plan->nr_devices; i++)
		print_device(f, i);
	printf("  metadata %s on %s, of it journal %s\n", size_text(super->meta_blocks),
	       f->path[plan->primary], size_text(super->journal_blocks));
	if (plan->mirror == TR_NO_DEVICE)
		puts("  no mirror: losing that device loses the volume");
	else
		printf("  %s mirror on %s\n", plan->mirror_lazy ? "lazy" : "synchronous",
		       f->path[plan->mirror]);
	printf("\ndmsetup create %s --table '%s 0'\n", f->args.name, line);
	free(line);
}

static struct json_object *device_json(const struct format *f, u32 nr)
{
	const struct tr_label *label = &f->plan.label[nr];
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "device", json_object_new_string(f->path[nr]));
	json_object_object_add(o, "class", json_object_new_string(class_name(label->class)));
	json_object_object_add(o, "kind", json_object_new_string(kind_name(label->kind)));
	json_object_object_add(o, "atomic",
			       json_object_new_boolean(label->flags & TERRACE_LABEL_ATOMIC));
	json_object_object_add(o, "align_blocks", json_object_new_uint64(label->align_blocks));
	json_object_object_add(o, "device_blocks", json_object_new_uint64(label->device_blocks));
	json_object_object_add(o, "data_start", json_object_new_uint64(label->data_start));
	json_object_object_add(o, "data_blocks", json_object_new_uint64(label->data_blocks));
	if (nr < f->args.nr_tiers)
		json_object_object_add(o, "reserve_blocks", json_object_new_uint64(
				       f->plan.super.tier[nr].reserve_blocks));
	json_object_object_add(o, "meta_start", json_object_new_uint64(label->meta_start));
	return o;
}

struct json_object *format_plan_json(const struct format *f)
{
	const struct tr_plan *plan = &f->plan;
	struct json_object *o = json_object_new_object(), *tiers = json_object_new_array();
	char *line = table_line(f), *table = ctl_text("%s 0", line);

	json_object_object_add(o, "name", json_object_new_string(f->args.name));
	json_object_object_add(o, "uuid", json_object_new_string(uuid_text(f->args.uuid)));
	json_object_object_add(o, "virtual_blocks",
			       json_object_new_uint64(plan->super.virtual_blocks));
	json_object_object_add(o, "room_blocks", json_object_new_uint64(plan->room_blocks));
	json_object_object_add(o, "overcommit_blocks",
			       json_object_new_uint64(plan->super.overcommit_blocks));
	json_object_object_add(o, "meta_blocks", json_object_new_uint64(plan->super.meta_blocks));
	json_object_object_add(o, "journal_blocks",
			       json_object_new_uint64(plan->super.journal_blocks));
	json_object_object_add(o, "metadata", json_object_new_string(f->path[plan->primary]));
	json_object_object_add(o, "mirror", json_object_new_string(mirror_word(plan)));
	if (plan->mirror != TR_NO_DEVICE)
		json_object_object_add(o, "mirror_device",
				       json_object_new_string(f->path[plan->mirror]));
	for (u32 i = 0; i < f->args.nr_tiers; i++)
		json_object_array_add(tiers, device_json(f, i));
	json_object_object_add(o, "tiers", tiers);
	if (f->args.has_meta)
		json_object_object_add(o, "meta_device", device_json(f, f->args.nr_tiers));
	json_object_object_add(o, "table", json_object_new_string(table));
	json_object_object_add(o, "written", json_object_new_boolean(!f->dry_run));
	free(table);
	free(line);
	return o;
}
