// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The command line of terracectl format.
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>

#include "format.h"
#include "names.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-+"

enum {
	OPT_TIER = 256, OPT_META, OPT_SIZE, OPT_NAME, OPT_JOURNAL, OPT_RESERVE, OPT_MIRROR,
	OPT_OVERCOMMIT, OPT_UUID, OPT_FORCE, OPT_DRY_RUN, OPT_JSON, OPT_YES,
	OPT_FROM, OPT_CONFIG,
};

static const struct option options[] = {
	{ "tier", required_argument, NULL, OPT_TIER },
	{ "meta", required_argument, NULL, OPT_META },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "name", required_argument, NULL, OPT_NAME },
	{ "journal", required_argument, NULL, OPT_JOURNAL },
	{ "reserve", required_argument, NULL, OPT_RESERVE },
	{ "mirror", required_argument, NULL, OPT_MIRROR },
	{ "overcommit", required_argument, NULL, OPT_OVERCOMMIT },
	{ "uuid", required_argument, NULL, OPT_UUID },
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "dry-run", no_argument, NULL, OPT_DRY_RUN },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ "yes", no_argument, NULL, OPT_YES },	/* of create */
	{ "from", required_argument, NULL, OPT_FROM },	/* of convert */
	{ "config", required_argument, NULL, OPT_CONFIG },	/* of both */
	{ NULL, 0, NULL, 0 },
};

/* One word behind the class: a kind, atomic, noatomic or align-SIZE. */
static bool parse_tier_word(struct format *f, u32 nr, const char *word, size_t bytes)
{
	u32 kind = kind_number(word, bytes);
	char text[32];
	u64 align;

	if (kind) {
		f->args.tier[nr].kind = kind;
	} else if (bytes == 6 && !memcmp(word, "atomic", 6)) {
		f->atomic[nr] = ATOMIC_YES;
	} else if (bytes == 8 && !memcmp(word, "noatomic", 8)) {
		f->atomic[nr] = ATOMIC_NO;
	} else if (bytes > 6 && bytes < sizeof(text) && !memcmp(word, "align-", 6)) {
		snprintf(text, sizeof(text), "%.*s", (int)bytes - 6, word + 6);
		if (size_parse(text, &align) || !align || align > TERRACE_CHUNK_BLOCKS)
			return false;
		f->align_blocks[nr] = align;
	} else {
		return false;
	}
	return true;
}

/* CLASS[:WORD]...=DEVICE */
int format_parse_tier(struct format *f, const struct ctl_command *cmd, const char *text)
{
	const char *equals = strchr(text, '='), *word = text;
	size_t bytes = strcspn(text, ":=");
	u32 nr = f->args.nr_tiers;
	u32 class = class_number(text, bytes);

	if (f->create && *text == '/' && nr < TERRACE_MAX_TIERS) {
		f->path[nr] = text;	/* its class is proposed later */
		f->args.nr_tiers++;
		return CTL_OK;
	}
	if (!equals || !equals[1])
		return ctl_usage(cmd, "--tier %s: no device; write CLASS=DEVICE, like nvme=/dev/nvme0n1",
				 text);
	if (nr == TERRACE_MAX_TIERS)
		return ctl_usage(cmd, "--tier %s: a volume has at most %u tiers", text,
				 TERRACE_MAX_TIERS);
	if (!class)
		return ctl_usage(cmd, "--tier %s: unknown class '%.*s', known are: %s", text,
				 (int)bytes, text, CLASS_WORDS);
	f->args.tier[nr].class = class;
	f->args.tier[nr].kind = class_default_kind(class);
	for (word += bytes; *word == ':'; word += bytes) {
		word++;
		bytes = strcspn(word, ":=");
		if (!parse_tier_word(f, nr, word, bytes))
			return ctl_usage(cmd, "--tier %s: '%.*s' is none of: %s, atomic, noatomic, align-SIZE (up to 64M)",
					 text, (int)bytes, word, KIND_WORDS);
	}
	f->path[nr] = equals + 1;
	f->args.nr_tiers++;
	return CTL_OK;
}

static int parse_size(const struct ctl_command *cmd, const char *option, const char *text,
		      u64 *blocks)
{
	int r = size_parse(text, blocks);

	if (r)
		return ctl_usage(cmd, "--%s %s: %s", option, text, size_strerror(r));
	if (!*blocks)
		return ctl_usage(cmd, "--%s %s: must be more than 0", option, text);
	return CTL_OK;
}

static int parse_name(struct format *f, const struct ctl_command *cmd, const char *text)
{
	size_t bytes = strlen(text);

	if (!bytes || bytes >= TERRACE_NAME_BYTES || strspn(text, NAME_CHARACTERS) != bytes)
		return ctl_usage(cmd, "--name '%s': 1 to %u letters, digits or any of _.-+", text,
				 TERRACE_NAME_BYTES - 1);
	memset(f->args.name, 0, sizeof(f->args.name));	/* padded with NUL on disk */
	memcpy(f->args.name, text, bytes);
	return CTL_OK;
}

static int parse_mirror(struct format *f, const struct ctl_command *cmd, const char *text)
{
	static const char *const words[] = {
		[TR_MIRROR_AUTO] = "auto", [TR_MIRROR_NONE] = "none",
		[TR_MIRROR_LAZY] = "lazy", [TR_MIRROR_SYNC] = "sync",
	};

	for (u32 i = 0; i < 4; i++) {
		if (!strcmp(text, words[i])) {
			f->args.mirror = i;
			return CTL_OK;
		}
	}
	return ctl_usage(cmd, "--mirror %s: must be auto, sync, lazy or none", text);
}

static int parse_reserve(struct format *f, const struct ctl_command *cmd, const char *text)
{
	char *end;
	double percent = strtod(text, &end);

	if (end != text && *end == '%')
		end++;
	if (end == text || *end || !(percent >= 0.1) || percent * 10 > TR_RESERVE_MAX_PERMILLE)
		return ctl_usage(cmd, "--reserve %s: must be a percentage from 0.1 to %u", text,
				 TR_RESERVE_MAX_PERMILLE / 10);
	f->args.reserve_permille = (u32)lround(percent * 10);
	return CTL_OK;
}

static int parse_uuid(struct format *f, const struct ctl_command *cmd, const char *text)
{
	if (uuid_parse(text, f->args.uuid) || uuid_is_null(f->args.uuid))
		return ctl_usage(cmd, "--uuid %s: not a UUID", text);
	return CTL_OK;
}

static int parse_option(struct format *f, const struct ctl_command *cmd, int opt, bool *help)
{
	switch (opt) {
	case OPT_TIER:
		return format_parse_tier(f, cmd, optarg);
	case OPT_META:
		if (f->meta_path)
			return ctl_usage(cmd, "--meta given twice");
		f->meta_path = optarg;
		return CTL_OK;
	case OPT_FROM:
		if (!f->convert)
			return ctl_usage(cmd, "--from: it is terracectl convert that takes a device's data");
		f->from = optarg;
		return CTL_OK;
	case OPT_CONFIG:
		if (!f->create)
			return ctl_usage(cmd, "--config: format activates nothing; terracectl set --keep is for later");
		f->config = optarg;
		return CTL_OK;
	case OPT_SIZE:
		if (f->convert)
			return ctl_usage(cmd, "--size: the volume gets the size of what it is made from");
		return parse_size(cmd, "size", optarg, &f->args.virtual_blocks);
	case OPT_NAME:
		return parse_name(f, cmd, optarg);
	case OPT_JOURNAL:
		return parse_size(cmd, "journal", optarg, &f->args.journal_blocks);
	case OPT_RESERVE:
		return parse_reserve(f, cmd, optarg);
	case OPT_MIRROR:
		return parse_mirror(f, cmd, optarg);
	case OPT_OVERCOMMIT:
		return parse_size(cmd, "overcommit", optarg, &f->args.overcommit_blocks);
	case OPT_UUID:
		return parse_uuid(f, cmd, optarg);
	case OPT_FORCE:
		f->force = true;
		return CTL_OK;
	case OPT_DRY_RUN:
		f->dry_run = true;
		return CTL_OK;
	case OPT_JSON:
		f->json = true;
		return CTL_OK;
	case OPT_YES:
		if (!f->create)
			return ctl_usage(cmd, "--yes: format does not ask; --force overwrites");
		f->yes = true;
		return CTL_OK;
	case 'h':
		*help = true;
		return CTL_OK;
	default:
		return ctl_usage(cmd, "wrong option");	/* getopt has said which */
	}
}

int format_parse(struct format *f, const struct ctl_command *cmd, int argc, char **argv,
		 bool *help)
{
	int opt, r = CTL_OK;

	strcpy(f->args.name, "terrace");
	uuid_generate(f->args.uuid);
	while (!r && !*help && (opt = getopt_long(argc, argv, "h", options, NULL)) != -1)
		r = parse_option(f, cmd, opt, help);
	if (r || *help)
		return r;
	if (f->create && optind == argc)
		return ctl_usage(cmd, "no name given: terracectl %s NAME --tier ...", cmd->name);
	if (f->create && parse_name(f, cmd, argv[optind++]))
		return CTL_USAGE;
	if (optind < argc)
		return ctl_usage(cmd, "'%s': devices are named with --tier CLASS=DEVICE", argv[optind]);
	if (f->args.nr_tiers < TR_MIN_TIERS)
		return ctl_usage(cmd, "a volume has at least %u tiers, %u given", TR_MIN_TIERS,
				 f->args.nr_tiers);
	f->nr_devices = f->args.nr_tiers;
	if (f->meta_path) {
		f->args.has_meta = true;
		f->path[f->nr_devices++] = f->meta_path;
	}
	return CTL_OK;
}
