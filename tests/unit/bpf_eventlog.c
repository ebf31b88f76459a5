// SPDX-License-Identifier: GPL-2.0-or-later
/* RocksDB's own log: compactions and levels from real lines; rotation; what must not be believed. */
#include "policy_lib.h"

#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "sense/eventlog.h"
#include "sense/logs.h"

struct told {
	int compactions;
	struct eventlog_job job[8];
};

static struct eventlog *el;
static struct told told;
static struct logs *logs;
static char folder[64];

static void on_compaction(void *ctx, const struct eventlog_job *job)
{
	struct told *t = ctx;

	if (t->compactions < 8)
		t->job[t->compactions] = *job;
	t->compactions++;
}

static int setup(void **state)
{
	(void)state;
	memset(&told, 0, sizeof(told));
	el = calloc(1, sizeof(*el));
	eventlog_init(el);
	el->compaction = on_compaction;
	el->ctx = &told;
	strcpy(folder, "/tmp/eventlog-XXXXXX");
	logs = logs_open(on_compaction, &told);
	return !el || !logs || !mkdtemp(folder);
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	free(el);
	logs_close(logs);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static char *real_lines(size_t *bytes)
{
	const char *tree = getenv("TERRACE_TREE");
	char path[512], *text = malloc(1 << 17);
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/data/rocksdb-LOG", tree ? tree : ".");
	f = fopen(path, "r");
	assert_non_null(f);
	*bytes = fread(text, 1, (1 << 17) - 1, f);
	text[*bytes] = 0;
	fclose(f);
	return text;
}

static void line(const char *text)
{
	eventlog_line(el, text, strlen(text));
}

/* ---- lines --------------------------------------------------------------------------- */

static void feed(const char *until)
{
	size_t bytes;
	char *text = real_lines(&bytes), *save = NULL;

	for (char *one = strtok_r(text, "\n", &save); one && !(until && strstr(one, until)); one = strtok_r(NULL, "\n", &save))
		line(one);
	free(text);
}

static void tells_compactions(void **state)
{
	static const uint64_t in[] = { 13, 11, 9 }, out[] = { 14, 15, 16, 17, 18 }, second[] = { 23, 20, 18 };

	(void)state;
	feed(NULL);
	assert_int_equal(told.compactions, 3);
	assert_int_equal(el->stats.compactions, 3);
	assert_int_equal(el->stats.malformed, 0);
	assert_int_equal(told.job[0].nr_inputs, 3);
	assert_int_equal(told.job[0].nr_outputs, 5);
	assert_memory_equal(told.job[0].input, in, sizeof(in));
	assert_memory_equal(told.job[0].output, out, sizeof(out));
	assert_int_equal(told.job[0].level, 1);
	assert_int_equal(told.job[1].nr_inputs, 3);
	assert_memory_equal(told.job[1].input, second, sizeof(second));
	assert_int_equal(told.job[2].level, 2);
}

static void knows_levels(void **state)
{
	const uint64_t deeper[] = { 26, 16 }, flushed[] = { 20 }, unknown[] = { 999 };

	(void)state;
	feed("\"job\": 13, \"event\": \"compaction_started\"");
	assert_int_equal(eventlog_level(el, 13), -1);	/* deleted */
	assert_int_equal(eventlog_level(el, 14), 2);	/* moved */
	assert_int_equal(eventlog_level(el, 25), 1);
	assert_int_equal(eventlog_level(el, 30), 0);	/* flushed */
	/* before the job says so: by the levels of what it reads */
	assert_int_equal(eventlog_output_level(el, deeper, 2), 2);
	assert_true(eventlog_goes_to_bottom(el, deeper, 2));
	assert_false(eventlog_goes_to_bottom(el, deeper, 1));
	assert_false(eventlog_goes_to_bottom(el, flushed, 1));
	assert_false(eventlog_goes_to_bottom(el, unknown, 1));
	assert_false(eventlog_goes_to_bottom(el, unknown, 0));
}

/* One table of level 1 that is rewritten into an empty level 2: its own level would say 1. */
static void a_job_says_where_it_writes(void **state)
{
	const uint64_t in[] = { 24 };

	(void)state;
	feed("\"job\": 13, \"event\": \"compaction_started\"");
	assert_int_equal(eventlog_output_level(el, in, 1), 1);
	line("2026/11/22-18:39:30.3 2706 [db/compaction/compaction_job.cc:1994] [default] [JOB 40] Compacting 1@1 files to L2, score 1.2");
	line("x EVENT_LOG_v1 {\"job\": 40, \"event\": \"compaction_started\", \"files_L1\": [24]}");
	assert_int_equal(eventlog_output_level(el, in, 1), 2);
	assert_true(eventlog_goes_to_bottom(el, in, 1));
	line("x EVENT_LOG_v1 {\"job\": 40, \"event\": \"compaction_finished\", \"output_level\": 2, \"lsm_state\": [0, 0, 1, 4]}");
	assert_int_equal(told.compactions, 3);
	/* now there is a deeper level */
	line("x EVENT_LOG_v1 {\"job\": 41, \"event\": \"compaction_started\", \"files_L1\": [25], \"files_L2\": [14]}");
	assert_false(eventlog_goes_to_bottom(el, (const uint64_t[]){ 25, 14 }, 2));
}

static void families_have_levels_of_their_own(void **state)
{
	(void)state;
	line("[a] [JOB 1] Compacting 1@1 files to L2, score 1");
	line("EVENT_LOG_v1 {\"job\": 1, \"event\": \"compaction_started\", \"files_L1\": [5]}");
	line("EVENT_LOG_v1 {\"cf_name\": \"a\", \"job\": 1, \"event\": \"table_file_creation\", \"file_number\": 8}");
	line("EVENT_LOG_v1 {\"job\": 1, \"event\": \"compaction_finished\", \"output_level\": 2, \"lsm_state\": [0, 0, 1]}");
	line("[b] [JOB 2] Compacting 1@4 files to L5, score 1");
	line("EVENT_LOG_v1 {\"job\": 2, \"event\": \"compaction_started\", \"files_L4\": [6]}");
	line("EVENT_LOG_v1 {\"cf_name\": \"b\", \"job\": 2, \"event\": \"table_file_creation\", \"file_number\": 9}");
	line("EVENT_LOG_v1 {\"job\": 2, \"event\": \"compaction_finished\", \"output_level\": 5, \"lsm_state\": [0, 0, 0, 0, 0, 1]}");
	assert_true(eventlog_goes_to_bottom(el, (const uint64_t[]){ 8 }, 1));
	assert_true(eventlog_goes_to_bottom(el, (const uint64_t[]){ 9 }, 1));
	/* More of them than are told apart: theirs is not known. */
	for (int i = 0; i < 40; i++) {
		char text[200];

		snprintf(text, sizeof(text), "EVENT_LOG_v1 {\"cf_name\": \"f%d\", \"job\": %d, \"event\": \"table_file_creation\", \"file_number\": %d}", i, 50 + i, 50 + i);
		line(text);
		snprintf(text, sizeof(text), "EVENT_LOG_v1 {\"job\": %d, \"event\": \"compaction_finished\", \"output_level\": 3, \"lsm_state\": [0, 0, 0, 1]}", 50 + i);
		line(text);
	}
	assert_int_equal(eventlog_level(el, 89), 3);
	assert_false(eventlog_goes_to_bottom(el, (const uint64_t[]){ 89 }, 1));
}

static void damaged_lines_change_nothing(void **state)
{
	static const char *const bad[] = {
		"EVENT_LOG_v1 ", "EVENT_LOG_v1 {", "EVENT_LOG_v1 []", "EVENT_LOG_v1 {}", "EVENT_LOG_v1 {\"job\": 3}",
		"EVENT_LOG_v1 {\"job\": -3, \"event\": \"compaction_started\"}", "EVENT_LOG_v1 {\"job\": \"x\", \"event\": \"flush_finished\"}",
		"EVENT_LOG_v1 {\"event\": 5, \"job\": 3}", "EVENT_LOG_v1 {\"job\": 5, \"event\": \"compaction_started\", \"files_L0\": [13,",
	};
	static const char *const odd[] = {
		"", "no event", "[x] [JOB 9", "[JOB 9] Compacting", "[x] [JOB 9] Compacting files to L", "[x] [JOB 9] Compacting files to L999",
		"Moving #", "Moving #5 to level-", "Moving #0 to level-3", "Moving #5 to level-4294967297", "] [JOB 9] Compacting 1@1 files to L2",
		"EVENT_LOG_v1 {\"job\": 3, \"event\": \"compaction_started\", \"files_L0\": \"x\", \"files_L99\": [1]}",
		"EVENT_LOG_v1 {\"job\": 3, \"event\": \"compaction_finished\", \"output_level\": 1000, \"lsm_state\": 7}",
		"EVENT_LOG_v1 {\"job\": 4, \"event\": \"table_file_deletion\", \"file_number\": 12345}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		line(bad[i]);
		assert_int_equal(el->stats.malformed, i + 1);
	}
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		line(odd[i]);
	assert_int_equal(el->stats.malformed, sizeof(bad) / sizeof(bad[0]));
	assert_int_equal(eventlog_level(el, 5), -1);
}

/* Each real line cut at each place, and with a byte changed: nothing to see but that it ends. */
static void bytes_that_are_wrong_do_no_harm(void **state)
{
	size_t bytes;
	char *text = real_lines(&bytes), *at = text;

	(void)state;
	for (char *end; (end = strchr(at, '\n')); at = end + 1) {
		size_t n = (size_t)(end - at);

		for (size_t cut = 0; cut < n; cut += 7)
			eventlog_line(el, at, cut);
		for (size_t k = 0; k < n; k += 11) {
			char was = at[k];

			at[k] = (char)(was ^ 0x15);
			eventlog_line(el, at, n);
			at[k] = was;
		}
	}
	free(text);
	assert_true(el->stats.malformed > 100);
}

static void jobs_and_parts_are_bounded(void **state)
{
	char text[16 * EVENTLOG_PARTS + 200];
	size_t n;

	(void)state;
	n = (size_t)snprintf(text, sizeof(text), "EVENT_LOG_v1 {\"job\": 1, \"event\": \"compaction_started\", \"files_L1\": [1");
	for (uint32_t i = 0; i < EVENTLOG_PARTS + 8; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, ", %u", 100000 + i);
	snprintf(text + n, sizeof(text) - n, "]}");
	line(text);
	line("EVENT_LOG_v1 {\"job\": 1, \"event\": \"compaction_finished\", \"output_level\": 2, \"lsm_state\": [0, 0, 1]}");
	assert_int_equal(told.compactions, 0);
	assert_int_equal(el->stats.cut, 1);
	/* The oldest of too many that never finish gives way. */
	for (uint32_t i = 0; i <= EVENTLOG_JOBS; i++) {
		snprintf(text, sizeof(text), "EVENT_LOG_v1 {\"job\": %u, \"event\": \"compaction_started\", \"files_L1\": [1]}", 100 + i);
		line(text);
	}
	line("EVENT_LOG_v1 {\"job\": 100, \"event\": \"compaction_finished\", \"output_level\": 2, \"lsm_state\": [0, 0, 1]}");
	assert_int_equal(told.compactions, 0);
	line("EVENT_LOG_v1 {\"job\": 101, \"event\": \"compaction_finished\", \"output_level\": 2, \"lsm_state\": [0, 0, 1]}");
	assert_int_equal(told.compactions, 1);
	assert_int_equal(told.job[0].nr_inputs, 1);
}

/* ---- files --------------------------------------------------------------------------- */

static const char *in_folder(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void append(const char *name, const char *text, size_t bytes)
{
	int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_APPEND, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, bytes), (ssize_t)bytes);
	close(fd);
}

static void is_found(void)
{
	struct stat st;

	assert_int_equal(stat(folder, &st), 0);
	logs_found(logs, major(st.st_dev) << 20 | minor(st.st_dev), st.st_ino, folder);
}

static struct logs_counts counts(void)
{
	struct logs_counts c;

	logs_counts(logs, &c);
	return c;
}

static uint64_t in_ms(uint64_t ms)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + ms * 1000000;
}

static void tick(void)
{
	logs_tick(logs, in_ms(20000));
}

/* A filesystem that hangs. */
static sem_t gate;
static bool hangs;

int openat(int dir, const char *name, int flags, ...)
{
	if (hangs)
		sem_wait(&gate);
	return (int)syscall(SYS_openat, dir, name, flags, 0644);
}

static void follows_as_it_grows(void **state)
{
	size_t bytes;
	char *text = real_lines(&bytes);

	(void)state;
	is_found();
	tick();	/* no LOG yet */
	for (size_t at = 0; at < bytes; at += 1000) {
		append("LOG", text + at, bytes - at < 1000 ? bytes - at : 1000);
		tick();
	}
	assert_int_equal(told.compactions, 3);
	assert_int_equal(counts().log.malformed, 0);
	assert_int_equal(counts().databases, 1);
	free(text);
}

static void rotate(const char *name)
{
	char from[128];

	strcpy(from, in_folder("LOG"));
	assert_int_equal(rename(from, in_folder(name)), 0);
}

static void reads_the_rest_of_one_that_was_renamed(void **state)
{
	size_t bytes, half;
	char *text = real_lines(&bytes);

	(void)state;
	half = (size_t)(strstr(text, "\"job\": 9, \"event\": \"compaction_started\"") - text);
	append("LOG", text, half);
	is_found();
	tick();
	assert_int_equal(told.compactions, 1);
	append("LOG", text + half, bytes - half);
	rotate("LOG.old.1795372770215355");
	append("LOG", "EVENT_LOG_v1 {\n", 15);
	tick();
	assert_int_equal(told.compactions, 3);
	assert_int_equal(counts().log.malformed, 1);
	assert_int_equal(counts().rotations, 1);
	/* renamed to what is not looked for */
	rotate("else");
	append("LOG", "EVENT_LOG_v1 {\n", 15);
	tick();
	assert_int_equal(counts().log.malformed, 2);
	assert_int_equal(counts().lost_rests, 1);
	/* cut off and begun again */
	assert_int_equal(truncate(in_folder("LOG"), 0), 0);
	append("LOG", "\n", 1);
	tick();
	append("LOG", "EVENT_LOG_v1 {\n", 15);
	tick();
	assert_int_equal(counts().log.malformed, 3);
	free(text);
}

static void starts_at_the_end_of_a_long_one(void **state)
{
	size_t bytes, n = 0;
	char *text = real_lines(&bytes);

	(void)state;
	while (n < LOGS_PAST) {
		append("LOG", text, bytes);
		n += bytes;
	}
	append("LOG", "y\n", 2);
	is_found();
	for (int i = 0; i < 40; i++)
		tick();
	assert_int_equal(counts().log.malformed, 0);	/* not begun in the middle of a line */
	assert_true(counts().log.compactions > 3 && counts().log.compactions <= 3 * (LOGS_PAST / bytes + 1));
	free(text);
}

static void passes_over_what_has_no_end(void **state)
{
	char *much = malloc(LOGS_AT_ONCE);
	size_t bytes;
	char *text = real_lines(&bytes);

	(void)state;
	memset(much, 'x', LOGS_AT_ONCE);
	is_found();
	for (int i = 0; i < 3; i++)
		append("LOG", much, LOGS_AT_ONCE);
	append("LOG", "EVENT_LOG_v1 {\n", 15);	/* still the same line */
	append("LOG", text, bytes);
	for (int i = 0; i < 10; i++)
		tick();
	assert_int_equal(told.compactions, 3);
	assert_int_equal(counts().log.malformed, 1);
	free(text);
	free(much);
}

static void reads_no_other_file(void **state)
{
	(void)state;
	append("else", "EVENT_LOG_v1 {\n", 15);
	assert_int_equal(symlink("else", in_folder("LOG")), 0);
	is_found();
	tick();
	assert_int_equal(counts().log.events, 0);
	unlink(in_folder("LOG"));
	assert_int_equal(mkfifo(in_folder("LOG"), 0600), 0);
	tick();	/* does not wait for a writer */
	unlink(in_folder("LOG"));
	append("LOG", "EVENT_LOG_v1 {\n", 15);
	tick();
	assert_int_equal(counts().log.malformed, 1);
}

static void nobody_waits_for_a_filesystem_that_hangs(void **state)
{
	uint64_t before;

	(void)state;
	append("LOG", "EVENT_LOG_v1 {\n", 15);
	is_found();
	sem_init(&gate, 0, 0);
	hangs = true;
	alarm(60);
	before = in_ms(0);
	for (int i = 0; i < 3; i++)
		logs_tick(logs, in_ms(2));
	assert_true(in_ms(0) < before + 30000000000ull);
	assert_int_equal(counts().log.malformed, 0);
	sem_post(&gate);
	tick();
	assert_int_equal(counts().log.malformed, 1);
	/* nor at the end; it ends by itself */
	append("LOG", "EVENT_LOG_v1 {\n", 15);
	logs_tick(logs, in_ms(200));
	logs_close(logs);
	logs = NULL;
	sem_post(&gate);
	hangs = false;
	usleep(200000);
	alarm(0);
}

static void databases_are_bounded(void **state)
{
	struct stat st;
	uint32_t dev;

	(void)state;
	assert_int_equal(stat(folder, &st), 0);
	dev = major(st.st_dev) << 20 | minor(st.st_dev);
	is_found();
	for (uint64_t i = 0; i < LOGS_MAX; i++)
		logs_found(logs, dev, 1000000000 + i, "/nowhere");
	assert_false(logs_used(logs, dev, st.st_ino));
	assert_true(logs_used(logs, dev, 1000000000));
	tick();
	logs_gone(logs, dev);
	assert_false(logs_used(logs, dev, 1000000000));
	assert_null(logs_of(logs, dev, 1000000000));
}

/* Tables of another kind of database lie in a folder each, and there may be many of those. */
static void folders_without_a_log_give_way(void **state)
{
	struct stat st;
	uint32_t dev;

	(void)state;
	assert_int_equal(stat(folder, &st), 0);
	dev = major(st.st_dev) << 20 | minor(st.st_dev);
	append("LOG", "EVENT_LOG_v1 {\n", 15);
	is_found();
	tick();
	for (uint64_t i = 0; i < 3 * LOGS_MAX; i++)
		logs_found(logs, dev, 1000000000 + i, "/nowhere");
	assert_true(logs_used(logs, dev, st.st_ino));
	assert_true(logs_used(logs, dev, 1000000000 + 3 * LOGS_MAX - 1));
	assert_false(logs_used(logs, dev, 1000000000));
	assert_int_equal(counts().log.malformed, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tells_compactions, setup, teardown),
		cmocka_unit_test_setup_teardown(knows_levels, setup, teardown),
		cmocka_unit_test_setup_teardown(a_job_says_where_it_writes, setup, teardown),
		cmocka_unit_test_setup_teardown(families_have_levels_of_their_own, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_lines_change_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(bytes_that_are_wrong_do_no_harm, setup, teardown),
		cmocka_unit_test_setup_teardown(jobs_and_parts_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(follows_as_it_grows, setup, teardown),
		cmocka_unit_test_setup_teardown(reads_the_rest_of_one_that_was_renamed, setup, teardown),
		cmocka_unit_test_setup_teardown(starts_at_the_end_of_a_long_one, setup, teardown),
		cmocka_unit_test_setup_teardown(passes_over_what_has_no_end, setup, teardown),
		cmocka_unit_test_setup_teardown(reads_no_other_file, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_waits_for_a_filesystem_that_hangs, setup, teardown),
		cmocka_unit_test_setup_teardown(databases_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(folders_without_a_log_give_way, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
