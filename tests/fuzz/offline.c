// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The offline tools, on a volume with damaged structures: terracectl's own code in this process, on
 * images in memory. Whatever the damage, each ends with 0 or 1, only repair --in-place writes, and
 * their answers agree: see the questions below.
 *
 * The volume is that of $OFFLINE/fast and slow (tests/fuzz/offline.sh), read once; what an input
 * changes is put back after it. An input is a byte that picks the question, one with bits for how
 * it is put together, and patches, each of a structure, an offset in it, a length and bytes.
 */
#include "fuzz/offline.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);

static void check_or(const char *args) { call(&ctl_check_command, args); }
static void dump(const char *args) { call(&ctl_dump_command, args); }
static void salvage(const char *args) { call(&ctl_salvage_command, args); }
static void repair(const char *args) { call(&ctl_repair_command, args); }

/* What dump cannot read, check does not call sound. */
static void agree(const char *args)
{
	hold(!call(&ctl_dump_command, "super") || call(&ctl_check_command, args));
}

/* A sound volume can be dumped (but for packs: those that the journal drops may be gone), … */
static void sound_dump(const char *args)
{
	hold(call(&ctl_check_command, "--full") || !call(&ctl_dump_command, args));
}

/* … and nothing of it is lost. */
static void sound_salvage(const char *args)
{
	hold(call(&ctl_check_command, "--full") || !call(&ctl_salvage_command, args));
}

static void sound_repair(const char *args)
{
	hold(read_only() || call(&ctl_check_command, "--full") || !call(&ctl_repair_command, args));
}

/* What was repaired without loss is sound. */
static void repaired(const char *args)
{
	int status;

	writing = true;
	status = call(&ctl_repair_command, args);
	writing = false;
	hold(status || !call(&ctl_check_command, "--full"));
}

struct question {
	void (*ask)(const char *args);
	const char *args;
};

static const struct question question[] = {
	{ agree, "" }, { agree, "--full" }, { check_or, "--full --json" },
	{ sound_dump, "journal" }, { sound_dump, "map" }, { sound_dump, "space" },
	{ sound_salvage, "--dry-run" }, { sound_repair, "--dry-run" }, { repaired, "--in-place" },
	{ dump, "journal" }, { dump, "map" }, { dump, "space" }, { dump, "packs" }, { dump, "all" }, { dump, "--json all" },
	{ salvage, "--dry-run" }, { salvage, "--dry-run --json" }, { salvage, "--dry-run --doubtful" },
	{ repair, "--dry-run" }, { repair, "--dry-run --json" },
};

/* These read the shelves from end to end: asked instead, if $SHELVES is set. */
static const struct question shelves_question[] = {
	{ check_or, "--owners" }, { dump, "--range 0 owners" }, { salvage, "--dry-run --older" },
	{ salvage, "--dry-run --from-shelves" }, { repair, "--dry-run --from-shelves" },
};

static bool shelves;

static void ask(u8 what)
{
	const struct question *q = shelves ? &shelves_question[what % ARRAY_SIZE(shelves_question)] :
					     &question[what % ARRAY_SIZE(question)];

	q->ask(q->args);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *folder = getenv("OFFLINE");

	(void)argc;
	(void)argv;
	shelves = getenv("SHELVES");
	open_image(&image[0], folder ? folder : ".", "fast");
	open_image(&image[1], folder ? folder : ".", "slow");
	find_targets();
	set_up_tools();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	damage(data + 2, size - 2, data[1]);
	ask(data[0]);
	undo_damage();
	return 0;
}
