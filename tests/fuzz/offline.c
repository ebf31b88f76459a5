// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The offline tools, on a volume with damaged structures: terracectl's own code in this process, on
 * images in memory. Whatever the damage, each ends with 0 or 1, only repair and restore write, where
 * they may, and their answers agree: see the questions below.
 *
 * The volume is that of $OFFLINE/fast, slow and perhaps meta (tests/fuzz/offline.sh), read once;
 * what an input changes is put back after it. An input is a byte that picks the question, one with
 * bits for how it is put together, and patches, each of a structure, an offset in it, a length and
 * bytes. A question is one run of a tool, or some that must agree.
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

/* Without a device nothing is sound, nor when a label says that it is another one. */
static bool all_given(void) { return given == (1u << nr_images) - 1 && devices_as_before(); }

/* What was repaired is sound, also if something was lost. */
static void repaired(const char *args)
{
	u64 before = newest_generation();
	int status;

	writable = given;
	status = call(&ctl_repair_command, args);
	writable = 0;
	if (all_given() && (!status || newest_generation() > before))
		hold(!call(&ctl_check_command, "--full"));
}

/* When it is killed, the same call does all that it would have done, or finds it done. */
static void killed(const char *args)
{
	int would = call(&ctl_repair_command, "--dry-run --in-place");
	u64 before = newest_generation();
	bool done;

	writable = given;
	killed_at = 1 + 3 * (how >> 5);
	call(&ctl_repair_command, args);
	killed_at = 0;
	done = newest_generation() > before;
	hold(call(&ctl_repair_command, args) == (done ? CTL_OK : would));
	writable = 0;
	hold(newest_generation() == before || !all_given() || !call(&ctl_check_command, "--full"));
}

/* The tiers, and what is to be their metadata from now on. */
static u32 with_spare(void)
{
	struct tr_label label;
	u32 devices = 1u << SPARE;

	for (u32 i = 0; i < nr_images; i++)
		if (given & 1u << i && (!label_of(&image[i], &label) || label.tier_index != TERRACE_META_DEVICE))
			devices |= 1u << i;
	return devices;
}

/* What a repair to a new device that is killed, and begun again, comes to is what comes of one that is not. */
static void killed_to(const char *args, int status, bool made)
{
	struct tr_label label;

	clear_image(&image[SPARE]);
	killed_at = 1 + 3 * (how >> 5);
	call(&ctl_repair_command, args);
	killed_at = 0;
	if (!label_of(&image[SPARE], &label))
		hold(call(&ctl_repair_command, args) == status && label_of(&image[SPARE], &label) == made);
}

/* The labels of the tiers stay as they are, damaged ones as well; and a second one is refused. */
static void repaired_to(const char *args)
{
	struct tr_label label;
	int status;
	bool made;

	writable = 1u << SPARE;
	status = call(&ctl_repair_command, args);
	made = label_of(&image[SPARE], &label);
	hold(made || status);
	if (how >> 5)
		killed_to(args, status, made);
	hold(!made || (call(&ctl_repair_command, args) == CTL_PROBLEM && !writes));
	writable = 0;
	if (made && all_given() && !label_hit()) {
		given = with_spare();
		hold(!call(&ctl_check_command, "--full"));
	}
}

static void same_files(u32 a, u32 b)
{
	size_t bytes_a, bytes_b;
	char *text_a = file_read(a, &bytes_a), *text_b = file_read(b, &bytes_b);

	hold(bytes_a == bytes_b && !memcmp(text_a, text_b, bytes_a));
	free(text_a);
	free(text_b);
}

/* What was restored is dumped as before, and a sound volume is sound again. */
static void dumped_and_back(const char *args)
{
	bool sound = !call(&ctl_check_command, "--full");
	char *words = ctl_text("--all %s", args);
	int status = call_into(&ctl_dump_command, words, DUMP);

	hold(!sound || !status);
	wipe();
	writable = given;
	status = call(&ctl_restore_command, "--force DUMP");
	writable = 0;
	hold(!sound || (!status && !call(&ctl_check_command, "--full")));
	if (!status) {
		call_into(&ctl_dump_command, words, DUMP_AGAIN);
		same_files(DUMP, DUMP_AGAIN);
	}
	free(words);
}

/*
 * And how often each is asked, of 256: what takes ten times as long a tenth as often, so that no few of
 * them take most of the time. Each has its own tools' runs to tell about.
 */
static const struct question question[] = {
	{ agree, "", 16 }, { agree, "--full", 16 }, { check_or, "--full --json", 14 },
	{ sound_dump, "journal", 10 }, { sound_dump, "map", 10 }, { sound_dump, "space", 10 },
	{ sound_salvage, "--dry-run", 10 }, { sound_repair, "--dry-run", 14 }, { repaired, "--in-place", 10 },
	{ dump, "journal", 16 }, { dump, "map", 16 }, { dump, "space", 16 }, { dump, "packs", 16 }, { dump, "all", 3 },
	{ dump, "--json all", 3 }, { salvage, "--dry-run", 6 }, { salvage, "--dry-run --json", 6 },
	{ salvage, "--dry-run --doubtful", 6 }, { repair, "--dry-run", 10 }, { repair, "--dry-run --json", 10 },
	{ repaired, "--in-place --accept-older", 7 }, { killed, "--in-place", 5 },
	{ repaired_to, "--to SPARE", 3 }, { repaired_to, "--to SPARE --accept-older", 3 },
	{ dumped_and_back, "", 3 }, { dumped_and_back, "--json", 3 }, { honest, "", 7 }, { honest, "--doubtful", 7 },
};

/* These read the shelves from end to end: asked instead, if $SHELVES is set. */
static const struct question shelves_question[] = {
	{ check_or, "--owners", 56 }, { dump, "--range 0 owners", 24 }, { salvage, "--dry-run --older", 40 },
	{ salvage, "--dry-run --from-shelves", 40 }, { repair, "--dry-run --from-shelves", 40 },
	{ repaired_to, "--from-shelves --size 16M --to SPARE", 8 }, { honest, "--older", 24 }, { honest, "--from-shelves", 24 },
};

u8 how;
static bool shelves, restore;
static u32 asked[256];		/* by the question's number */

/* What the counts of inputs are made of. */
__attribute__((destructor)) static void print_counts(void)
{
	u32 nr = restore ? 0 : shelves ? ARRAY_SIZE(shelves_question) : ARRAY_SIZE(question), least = ~0u;

	for (u32 k = 0; k < nr; k++)
		least = asked[k] < least ? asked[k] : least;
	if (nr)
		fprintf(stderr, "each of %u questions was asked %u times or more\n", nr, least);
	fprintf(stderr, "tools ran %llu times\n", tool_runs);
}

static const struct question *question_of(u8 what)
{
	const struct question *q = shelves ? shelves_question : question;

	for (u32 left = what; left >= q->often; q++)
		left -= q->often;
	asked[q - (shelves ? shelves_question : question)]++;
	return q;
}

static u32 often_in_all(const struct question *q, u32 nr)
{
	u32 sum = 0;

	while (nr--)
		sum += q++->often;
	return sum;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	hold(often_in_all(question, ARRAY_SIZE(question)) == 256);
	hold(often_in_all(shelves_question, ARRAY_SIZE(shelves_question)) == 256);
	shelves = getenv("SHELVES");
	restore = getenv("RESTORE");
	open_images();
	find_targets();
	set_up_truth();
	set_up_tools();
	given = (1u << nr_images) - 1;
	if (restore)
		set_up_restore();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct question *q;

	if (size < 2)
		return 0;
	how = data[1];
	given = (1u << nr_images) - 1;
	if (restore) {
		restore_changed(data, size);
		undo_damage();
		return 0;
	}
	q = question_of(data[0]);
	if (q->ask == honest)
		how |= RAW;
	if (LEFT_OUT(how))
		given &= ~(1u << (LEFT_OUT(how) - 1));
	damage(data + 2, size - 2, how);
	q->ask(q->args);
	undo_damage();
	return 0;
}
