// SPDX-License-Identifier: GPL-2.0-or-later
/* Whose files count: by their names, and by how they were written; LevelDB's ways. */
#include <stdio.h>

#include "policy_lib.h"

#include "sense/files.h"

#define SIZE	(2ull << 20)

static struct files files;
static int tables, left, jobs, compactions;
static uint32_t inputs, outputs;
static uint64_t size;	/* of what happens next */

static void on_table(void *ctx, const struct file *file)
{
	(void)ctx;
	(void)file;
	tables++;
}

static void on_left(void *ctx, const struct file *file)
{
	(void)ctx;
	(void)file;
	left++;
}

static void on_job(void *ctx, const struct file_job *job)
{
	(void)ctx;
	(void)job;
	jobs++;
}

static void on_compaction(void *ctx, const struct file_job *job)
{
	(void)ctx;
	inputs = job->nr_inputs;
	outputs = job->nr_outputs;
	compactions++;
}

static int setup(void **state)
{
	const struct files_tell tell = { .table = on_table, .left = on_left, .job = on_job, .compaction = on_compaction };

	(void)state;
	memset(&files, 0, sizeof(files));
	tables = left = jobs = compactions = 0;
	size = SIZE;
	files_init(&files, FILE_PROFILES, &tell);
	return 0;
}

static void happens(uint8_t what, uint64_t inode, const char *name, uint32_t flags)
{
	struct terrace_file_event e = {
		.what = what, .inode = inode, .generation = 1, .dev = 7, .thread = 5, .process = 5, .flags = flags,
		.size = what == TERRACE_FILE_UNLINKED ? 0 : size, .to = size,
	};

	snprintf(e.name, sizeof(e.name), "%s", name);
	files_event(&files, &e);
}

/* In a row, told as the kernel tells it. */
static void is_read(uint64_t inode, uint64_t from, uint64_t to)
{
	struct terrace_file_event e = {
		.what = TERRACE_FILE_READ, .inode = inode, .generation = 1, .dev = 7, .thread = 5, .process = 5, .size = size,
	};

	for (e.from = from; e.from < to; e.from = e.to) {
		e.to = e.from + TERRACE_FILE_STEP < to ? e.from + TERRACE_FILE_STEP : to;
		files_event(&files, &e);
	}
}

/* @in, read through, becomes @out, and is deleted. */
static void compact(uint64_t in, uint64_t out)
{
	happens(TERRACE_FILE_READ, in, "", 0);
	happens(TERRACE_FILE_CREATED, out, "000010.sst", 0);
	happens(TERRACE_FILE_WRITTEN, out, "", 0);
	happens(TERRACE_FILE_READ, in, "", 0);
	happens(TERRACE_FILE_SYNCED, out, "", 0);
	happens(TERRACE_FILE_CLOSED, out, "", 0);
	happens(TERRACE_FILE_UNLINKED, in, "", 0);
	happens(TERRACE_FILE_DIED, in, "", 0);
}

static void knows_names(void **state)
{
	(void)state;
	assert_int_equal(file_kind_of("000123.sst", FILE_PROFILES), FILE_TABLE);
	assert_int_equal(file_kind_of("000123.ldb", FILE_PROFILES), FILE_TABLE);
	assert_int_equal(file_kind_of("nb-1-big-Data.db", FILE_PROFILES), FILE_TABLE);
	assert_int_equal(file_kind_of("nb-1-big-Index.db", FILE_PROFILES), FILE_META);
	assert_int_equal(file_kind_of("000123.log", FILE_PROFILES), FILE_LOG);
	assert_int_equal(file_pins_of("000123.sst", FILE_PROFILES), FILE_PINS_END);
	assert_int_equal(file_pins_of("nb-1-big-Data.db", FILE_PROFILES), FILE_PINS_NOTHING);
	assert_int_equal(file_pins_of("nb-1-big-Index.db", FILE_PROFILES), FILE_PINS_ALL);
	assert_int_equal(file_pins_of("nb-1-big-Filter.db", FILE_PROFILES), FILE_PINS_ALL);
	assert_int_equal(file_pins_of("nb-1-big-Filter.db", FILE_PROFILE_ROCKSDB), FILE_PINS_NOTHING);
	assert_int_equal(file_pins_of("000123.log", FILE_PROFILES), FILE_PINS_NOTHING);
	assert_int_equal(file_kind_of("MANIFEST-000001", FILE_PROFILES), FILE_META);
	assert_int_equal(file_kind_of("000123.dbtmp", FILE_PROFILES), FILE_META);
	assert_int_equal(file_kind_of("segment.17", FILE_PROFILES), FILE_UNKNOWN);
	assert_int_equal(file_kind_of("", FILE_PROFILES), FILE_UNKNOWN);
}

/* Names of databases that are not asked for are other files' names, and those may be tables only if all may. */
static void profiles_are_names(void **state)
{
	static const struct {
		uint32_t profile;
		const char *table, *log;
	} of[] = {
		{ FILE_PROFILE_ROCKSDB, "000123.blob", "000124.log" },
		{ FILE_PROFILE_LEVELDB, "000123.ldb", "000124.log" },
		{ FILE_PROFILE_CASSANDRA, "nb-1-big-Data.db", "CommitLog-7-1.log" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		assert_int_equal(file_kind_of(of[i].table, of[i].profile), FILE_TABLE);
		assert_int_equal(file_kind_of(of[i].log, of[i].profile), FILE_LOG);
		assert_int_equal(file_kind_of(of[i].table, FILE_PROFILE_GENERIC), FILE_UNKNOWN);
	}
	assert_int_equal(file_kind_of("nb-1-big-Data.db", FILE_PROFILE_ROCKSDB | FILE_PROFILE_LEVELDB), FILE_OTHER);
	assert_int_equal(file_kind_of("000123.sst", FILE_PROFILE_CASSANDRA), FILE_OTHER);
	assert_int_equal(file_kind_of("backup.tar", FILE_PROFILES & ~FILE_PROFILE_GENERIC), FILE_OTHER);
	assert_int_equal(file_kind_of("backup.tar", FILE_PROFILES), FILE_UNKNOWN);
}

/* What no profile knows is no table, whatever happens to it; what one knows still is. */
static void other_files_are_nothing(void **state)
{
	(void)state;
	files_profiles(&files, FILE_PROFILE_CASSANDRA);
	compact(1, 11);
	assert_int_equal(tables, 0);
	assert_int_equal(compactions, 0);
	files_profiles(&files, FILE_PROFILE_ROCKSDB);
	compact(2, 21);
	assert_int_equal(tables, 1);
	assert_int_equal(compactions, 1);
}

/* Closed, but its cursor in the kernel had to give way: nobody knows how it was written, and nobody waits for it. */
static void a_forgotten_writer_is_not_waited_for(void **state)
{
	(void)state;
	happens(TERRACE_FILE_READ, 1, "", 0);
	happens(TERRACE_FILE_CREATED, 11, "000010.sst", 0);
	happens(TERRACE_FILE_CLOSED, 11, "", TERRACE_FILE_UNSEEN);
	assert_int_equal(tables, 0);
	assert_int_equal(left, 1);
	assert_int_equal(files.stats.forgotten_writers, 1);
	/* one that was there before is nobody's business */
	happens(TERRACE_FILE_CLOSED, 99, "", TERRACE_FILE_UNSEEN);
	assert_int_equal(files.stats.forgotten_writers, 1);
	compact(1, 21);
	assert_int_equal(compactions, 1);
	assert_int_equal(outputs, 1);
}

static void dies(uint64_t inode)
{
	happens(TERRACE_FILE_UNLINKED, inode, "", 0);
	happens(TERRACE_FILE_DIED, inode, "", 0);
}

static void writes(uint64_t out, uint64_t bytes)
{
	happens(TERRACE_FILE_CREATED, out, "000010.ldb", 0);
	size = bytes;
	happens(TERRACE_FILE_SYNCED, out, "", 0);
	happens(TERRACE_FILE_CLOSED, out, "", 0);
	size = SIZE;
}

/* The end of a small table is mapped since it was opened: reading it by faults is not seen. */
static void the_end_of_a_small_table_is_mapped(void **state)
{
	const uint64_t small = 485044;

	(void)state;
	is_read(1, 0, SIZE / 2);
	size = small;
	is_read(2, 0, 65536);
	happens(TERRACE_FILE_CREATED, 11, "000011.ldb", 0);
	is_read(2, 65536, small - 65536);
	size = SIZE;
	is_read(1, SIZE / 2, SIZE);
	happens(TERRACE_FILE_CLOSED, 11, "", 0);
	dies(1);
	dies(2);
	assert_int_equal(compactions, 1);
	assert_int_equal(inputs, 2);
}

/* Its last output may be smaller than what a read is told of; so may what it flushes meanwhile, which is no end. */
static void a_small_output_is_no_flush(void **state)
{
	(void)state;
	is_read(1, 0, SIZE);
	for (uint64_t out = 11; out <= 12; out++) {
		happens(TERRACE_FILE_CREATED, out, "000010.ldb", 0);
		is_read(2, (out - 11) * SIZE / 2, (out - 10) * SIZE / 2);
		happens(TERRACE_FILE_CLOSED, out, "", 0);
		writes(out + 10, 95712);
		happens(TERRACE_FILE_CREATED, 99, "MANIFEST-000002", 0);
		happens(TERRACE_FILE_SYNCED, 99, "", 0);
	}
	assert_int_equal(jobs, 0);
	dies(1);
	dies(2);
	assert_int_equal(compactions, 1);
	assert_int_equal(inputs, 2);
	assert_int_equal(outputs, 4);
}

/* What it flushes otherwise is as large as its memory, and none. */
static void a_flush_is_no_output(void **state)
{
	(void)state;
	is_read(1, 0, SIZE / 2);
	happens(TERRACE_FILE_CREATED, 11, "000010.ldb", 0);
	is_read(1, SIZE / 2, SIZE);
	happens(TERRACE_FILE_CLOSED, 11, "", 0);
	writes(12, 2 * TERRACE_FILE_STEP);
	dies(1);
	assert_int_equal(compactions, 1);
	assert_int_equal(outputs, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(knows_names, setup),
		cmocka_unit_test_setup(profiles_are_names, setup),
		cmocka_unit_test_setup(other_files_are_nothing, setup),
		cmocka_unit_test_setup(a_forgotten_writer_is_not_waited_for, setup),
		cmocka_unit_test_setup(the_end_of_a_small_table_is_mapped, setup),
		cmocka_unit_test_setup(a_small_output_is_no_flush, setup),
		cmocka_unit_test_setup(a_flush_is_no_output, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
