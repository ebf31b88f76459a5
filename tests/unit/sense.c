// SPDX-License-Identifier: GPL-2.0-or-later
/* The tracepoint's description and its records, as kernels 6.1 and 6.12 give them. */
#include "policy_lib.h"

#include "sense/trace.h"

static const char format[] =
	"name: block_bio_queue\nID: 1234\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	"\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n"
	"\tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n"
	"\tfield:char rwbs[8];\toffset:28;\tsize:8;\tsigned:0;\n"
	"\tfield:char comm[16];\toffset:36;\tsize:16;\tsigned:0;\n";

struct record {
	char bytes[52];
};

static struct record record(uint64_t sector, uint32_t nr, const char *rwbs)
{
	struct record r = { { 0 } };

	memcpy(r.bytes + 16, &sector, 8);
	memcpy(r.bytes + 24, &nr, 4);
	memcpy(r.bytes + 28, rwbs, strlen(rwbs));
	return r;
}

static void finds_the_fields(void **state)
{
	struct trace_format f;

	(void)state;
	assert_int_equal(trace_parse_format(TRACE_BLOCK, format, &f), 0);
	assert_int_equal(f.first, 16);
	assert_int_equal(f.count, 24);
	assert_int_equal(f.rwbs, 28);
	assert_int_equal(f.rwbs_bytes, 8);
	assert_int_equal(trace_parse_format(TRACE_BLOCK, "", &f), -EPROTO);
	assert_int_equal(trace_parse_format(TRACE_BLOCK, "\tfield:sector_t sector;\toffset:16;\tsize:4;", &f), -EPROTO);
}

static void reads_records(void **state)
{
	static const struct {
		const char *rwbs;
		enum port_op op;
	} known[] = {
		{ "R", PORT_READ }, { "RA", PORT_READ }, { "RSM", PORT_READ }, { "W", PORT_WRITE },
		{ "WS", PORT_WRITE }, { "FWFS", PORT_WRITE }, { "WFSM", PORT_WRITE }, { "D", PORT_DISCARD },
		{ "N", PORT_DISCARD },
	};
	struct trace_format f;
	struct port_access a;
	struct record r;

	(void)state;
	assert_int_equal(trace_parse_format(TRACE_BLOCK, format, &f), 0);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		r = record(80, 16, known[i].rwbs);
		assert_true(trace_parse_record(&f, r.bytes, sizeof(r.bytes), &a));
		assert_int_equal(a.op, known[i].op);
		assert_int_equal(a.block, 10);
		assert_int_equal(a.count, 2);
		assert_int_equal(a.where, PORT_UNKNOWN);
	}
	r = record(80, 0, "FFS");	/* an empty flush */
	assert_false(trace_parse_record(&f, r.bytes, sizeof(r.bytes), &a));
	r = record(80, 8, "F");
	assert_false(trace_parse_record(&f, r.bytes, sizeof(r.bytes), &a));
	r = record(80, 8, "R");
	for (uint32_t cut = 0; cut < 36; cut++)
		assert_false(trace_parse_record(&f, r.bytes, cut, &a));
}

static const char access_format[] =
	"name: terrace_access\nID: 1235\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
	"\tfield:u32 dev;\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:u32 count;\toffset:12;\tsize:4;\tsigned:0;\n"
	"\tfield:u64 block;\toffset:16;\tsize:8;\tsigned:0;\n"
	"\tfield:u32 op;\toffset:24;\tsize:4;\tsigned:0;\n"
	"\tfield:u32 where;\toffset:28;\tsize:4;\tsigned:0;\n";

/* Slow reads are never sampled away: they are marked, so that heat can thin them. */
static void reads_the_modules_own(void **state)
{
	static const struct {
		uint32_t op, where;
		enum port_where is;
		bool always;
	} known[] = {
		{ PORT_READ, 0, PORT_FAST, false }, { PORT_READ, 1 | 256, PORT_SLOW, true },
		{ PORT_READ, 1 | 256 | 512, PORT_SLOW, true }, { PORT_READ, 255 | 1024, PORT_NOWHERE, true },
		{ PORT_WRITE, 0, PORT_FAST, false }, { PORT_WRITE, 1 | 256, PORT_SLOW, false },
		{ PORT_DISCARD, 1024, PORT_NOWHERE, false },
	};
	struct trace_format f;
	struct port_access a;

	(void)state;
	assert_int_equal(trace_parse_format(TRACE_ACCESS, access_format, &f), 0);
	assert_int_equal(trace_parse_format(TRACE_ACCESS, format, &f), -EPROTO);
	assert_int_equal(trace_parse_format(TRACE_ACCESS, access_format, &f), 0);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		char r[32] = { 0 };
		uint32_t count = 3;
		uint64_t block = 1ull << 39;

		memcpy(r + 12, &count, 4);
		memcpy(r + 16, &block, 8);
		memcpy(r + 24, &known[i].op, 4);
		memcpy(r + 28, &known[i].where, 4);
		assert_true(trace_parse_record(&f, r, sizeof(r), &a));
		assert_int_equal(a.block, block);
		assert_int_equal(a.count, 3);
		assert_int_equal(a.op, known[i].op);
		assert_int_equal(a.where, known[i].is);
		assert_int_equal(a.always, known[i].always);
		assert_false(trace_parse_record(&f, r, sizeof(r) - 1, &a));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_fields),
		cmocka_unit_test(reads_records),
		cmocka_unit_test(reads_the_modules_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
