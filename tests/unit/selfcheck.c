// SPDX-License-Identifier: GPL-2.0-or-later
/* Header, selfcheck.c and format.md name the same fields at the same offsets. */
#include "core_lib.h"
#include <regex.h>

#define HEADER	"uapi/terrace_format.h"
#define CHECKS	"kmod/core/selfcheck.c"
#define PAGE	"Documentation/format.md"

struct field {
	char type[40];
	char name[40];
	unsigned long offset;
};

#define MAX_FIELDS	300
static struct field header[MAX_FIELDS];
static u32 nr_header;

static char *read_text(const char *path)
{
	const char *tree = getenv("TERRACE_TREE");
	char full[4096];
	size_t bytes;

	snprintf(full, sizeof(full), "%s/%s", tree ? tree : ".", path);
	return read_whole(full, &bytes);
}

static void compile(regex_t *re, const char *pattern)
{
	assert_int_equal(regcomp(re, pattern, REG_EXTENDED | REG_NEWLINE), 0);
}

static void copy(char *to, size_t room, const char *text, const regmatch_t *m)
{
	snprintf(to, room, "%.*s", (int)(m->rm_eo - m->rm_so), text + m->rm_so);
}

/* The fields of every struct terrace_*_disk, in order; last a "size" if it is stated. */
static int read_header(void **state)
{
	char *text = read_text(HEADER), *line, *rest = text, type[40] = "";
	regex_t open, field, end;
	regmatch_t m[4];

	(void)state;
	compile(&open, "^struct (terrace_[a-z_]+_disk) [{]$");
	compile(&field, "^\t(struct [a-z_]+|__[a-z0-9]+)[ \t]+([a-z_0-9]+)(\\[[^;]*)?;[ \t]*/[*] +([0-9]+)");
	compile(&end, "^[}];[ \t]*(/[*] +([0-9]+) [*]/)?");
	while ((line = strsep(&rest, "\n"))) {
		struct field *f = &header[nr_header];
		regmatch_t n[5];

		assert_true(nr_header < MAX_FIELDS);
		if (!regexec(&open, line, 2, m, 0)) {
			copy(type, sizeof(type), line, &m[1]);
		} else if (type[0] && !regexec(&field, line, 5, n, 0)) {
			strcpy(f->type, type);
			copy(f->name, sizeof(f->name), line, &n[2]);
			f->offset = strtoul(line + n[4].rm_so, NULL, 10);
			nr_header++;
		} else if (type[0] && !regexec(&end, line, 3, m, 0)) {
			if (m[2].rm_so >= 0) {
				strcpy(f->type, type);
				strcpy(f->name, "size");
				f->offset = strtoul(line + m[2].rm_so, NULL, 10);
				nr_header++;
			}
			type[0] = 0;
		} else if (type[0] && strchr(line, ';') && !strchr(line, '*')) {
			fail_msg("%s: no offset in %s: %s", HEADER, type, line);
		}
	}
	regfree(&open);
	regfree(&field);
	regfree(&end);
	free(text);
	return nr_header > 130 ? 0 : -1;
}

static void the_compiler_holds_every_offset_of_the_header(void **state)
{
	char *text = read_text(CHECKS), line[200];
	u32 i;

	(void)state;
	for (i = 0; i < nr_header; i++) {
		if (strcmp(header[i].name, "size"))
			snprintf(line, sizeof(line), "\nAT(%s, %s, %lu);\n", header[i].type,
				 header[i].name, header[i].offset);
		else
			snprintf(line, sizeof(line), "\nSIZE(%s, %lu);\n", header[i].type,
				 header[i].offset);
		if (!strstr(text, line))
			fail_msg("%s has no line %s", CHECKS, line + 1);
	}
	free(text);
}

/* The table of @type in the page: right after its heading, up to an empty line. */
static char *find_table(char *text, const char *type)
{
	char heading[80], *at;

	snprintf(heading, sizeof(heading), "\n### `%s`,", type);
	at = strstr(text, heading);
	if (!at)
		fail_msg("%s has no table of %s", PAGE, type);
	at = strstr(at, "|---:|---:|---|---|\n");
	assert_non_null(at);
	return strchr(at, '\n') + 1;
}

/* Checks one row, returns the next; *@end is where this field ends. */
static char *check_row(char *at, const struct field *f, unsigned long *end)
{
	unsigned long offset, count, size = 1;
	char name[40];
	int used = 0;

	if (sscanf(at, "| %lu | %lu × %lu | `%39[a-z_0-9]` |%n", &offset, &count, &size, name, &used) != 4 ||
	    !used) {
		size = 1;
		if (sscanf(at, "| %lu | %lu | `%39[a-z_0-9]` |%n", &offset, &count, name, &used) != 3) {
			count = 0; /* the open end of a map page */
			if (sscanf(at, "| %lu | … | `%39[a-z_0-9]` |%n", &offset, name, &used) != 2)
				fail_msg("%s: %s.%s: bad row: %.60s", PAGE, f->type, f->name, at);
		}
	}
	if (strcmp(name, f->name) || offset != f->offset)
		fail_msg("%s: %s at %lu, the header has %s.%s at %lu", PAGE, name, offset,
			 f->type, f->name, f->offset);
	*end = offset + count * size;
	return strchr(at, '\n') + 1;
}

static void the_page_has_every_field_where_the_header_has_it(void **state)
{
	char *text = read_text(PAGE), *at = NULL;
	unsigned long end = 0;
	u32 i;

	(void)state;
	for (i = 0; i < nr_header; i++) {
		if (!i || strcmp(header[i].type, header[i - 1].type)) {
			at = find_table(text, header[i].type);
			end = 0;
		}
		if (end != header[i].offset)
			fail_msg("%s: %s: %lu bytes before %s, the header has %lu", PAGE, header[i].type,
				 end, header[i].name, header[i].offset);
		if (strcmp(header[i].name, "size"))
			at = check_row(at, &header[i], &end);
		else if (*at == '|')
			fail_msg("%s: %s: a row too many: %.60s", PAGE, header[i].type, at);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_compiler_holds_every_offset_of_the_header),
		cmocka_unit_test(the_page_has_every_field_where_the_header_has_it),
	};

	return cmocka_run_group_tests(tests, read_header, NULL);
}
