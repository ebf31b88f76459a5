// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reading a dump: JSON, or the lines of the text form, which become the same
 * objects ("KIND key=value…", below it "  LIST key=value…" or "  LIST value").
 * Each keeps the number of its line.
 *
 * The last item says how many there are before it. Text without it is cut off, or was
 * changed by hand; JSON shows by itself where it ends, and older dumps have no such item.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "restore.h"

static CTL_PRINTF(2, 3) struct json_object *no_dump(const char *path, const char *format, ...)
{
	char why[200];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	ctl_error("%s is not a dump, or is cut off: %s; nothing changed", path, why);
	return NULL;
}

static char *read_file(const char *path, size_t *bytes)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "re") : stdin;
	size_t room = 1 << 16;
	char *text = NULL;

	*bytes = 0;
	if (!f) {
		ctl_error("%s: %s", path, strerror(errno));
		return NULL;
	}
	do {
		room *= 2;
		text = ctl_realloc(text, room + 1);
		*bytes += fread(text + *bytes, 1, room - *bytes, f);
	} while (*bytes == room);
	text[*bytes] = 0;
	if (f != stdin)
		fclose(f);
	return text;
}

/* ---- JSON -------------------------------------------------------------------------- */

static struct json_object *from_json(const char *path, const char *text)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *o = json_tokener_parse_ex(tokener, text, -1), *items = NULL;
	size_t end = json_tokener_get_parse_end(tokener);
	enum json_tokener_error error = json_tokener_get_error(tokener);

	json_tokener_free(tokener);
	if (error == json_tokener_continue)
		no_dump(path, "it ends before its last bracket");
	else if (error != json_tokener_success)
		no_dump(path, "byte %zu: %s", end, json_tokener_error_desc(error));
	else if (text[end + strspn(text + end, " \t\r\n")])
		no_dump(path, "byte %zu: there is more behind its end", end);
	else if (!json_object_object_get_ex(o, "items", &items) || !json_object_is_type(items, json_type_array))
		items = no_dump(path, "it has no list of items");
	else
		json_object_get(items);
	json_object_put(o);
	return items;
}

/* ---- text --------------------------------------------------------------------------- */

struct text {
	const char *path;
	u32 line;
};

static bool bad_line(const struct text *t, const char *what, const char *word)
{
	no_dump(t->path, "line %u: %.60s%s", t->line, word, what);
	return false;
}

static void note_line(const struct text *t, struct json_object *o)
{
	json_object_set_userdata(o, (void *)(uintptr_t)t->line, NULL);
}

u32 restore_line(struct json_object *o)
{
	return (uintptr_t)json_object_get_userdata(o);
}

/* "key=value key=value" */
static bool parse_words(const struct text *t, struct json_object *o, char *words)
{
	char *next, *word = strtok_r(words, " ", &next);

	for (; word; word = strtok_r(NULL, " ", &next)) {
		char *equals = strchr(word, '=');

		if (!equals)
			return bad_line(t, " should be NAME=VALUE", word);
		*equals = 0;
		if (json_object_object_get_ex(o, word, NULL))
			return bad_line(t, " is there twice", word);
		json_object_object_add(o, word, json_object_new_string(equals + 1));
	}
	return true;
}

static bool parse_element(const struct text *t, struct json_object *item, char *line)
{
	char *rest = line + strcspn(line, " ");
	struct json_object *array, *element;

	if (!item)
		return bad_line(t, "a line that begins with blanks goes on with one that does not", "");
	if (!*rest)
		return bad_line(t, " has no value", line);
	*rest++ = 0;
	if (!json_object_object_get_ex(item, line, &array)) {
		array = json_object_new_array();
		json_object_object_add(item, line, array);
	}
	if (!json_object_is_type(array, json_type_array))
		return bad_line(t, " is a field, and no list", line);
	element = strchr(rest, '=') ? json_object_new_object() : json_object_new_string(rest);
	note_line(t, element);
	json_object_array_add(array, element);
	return json_object_is_type(element, json_type_string) || parse_words(t, element, rest);
}

static bool parse_line(const struct text *t, struct json_object *items, char *line)
{
	size_t nr = json_object_array_length(items);
	char *rest = line + strcspn(line, " ");
	struct json_object *item;

	if (!*line)
		return true;
	if (!strncmp(line, "  ", 2))
		return parse_element(t, nr ? json_object_array_get_idx(items, nr - 1) : NULL, line + 2);
	if (*rest)
		*rest++ = 0;
	item = json_object_new_object();
	note_line(t, item);
	json_object_array_add(items, item);
	json_object_object_add(item, "item", json_object_new_string(line));
	return parse_words(t, item, rest);
}

static struct json_object *from_text(const char *path, char *line)
{
	struct json_object *items = json_object_new_array();
	struct text t = { .path = path, .line = 1 };

	for (; line; t.line++) {
		char *end = strchr(line, '\n');

		if (end)
			*end++ = 0;
		if (!parse_line(&t, items, line)) {
			json_object_put(items);
			return NULL;
		}
		line = end;
	}
	return items;
}

/* ---- the end ---------------------------------------------------------------------------- */

static bool is_end(struct json_object *o)
{
	struct json_object *value;

	return json_object_is_type(o, json_type_object) && json_object_object_get_ex(o, "item", &value) &&
	       json_object_is_type(value, json_type_string) && !strcmp(json_object_get_string(value), "end");
}

/* Takes the last item away. */
static bool take_end(const char *path, struct json_object *items, bool demanded)
{
	size_t nr = json_object_array_length(items);
	struct json_object *last = nr ? json_object_array_get_idx(items, nr - 1) : NULL, *value = NULL;
	const char *says;
	bool fits;

	if (!is_end(last)) {
		if (demanded)
			no_dump(path, "its last line is not 'end items=%zu'", nr);
		return !demanded;
	}
	json_object_object_get_ex(last, "items", &value);
	says = value ? json_object_get_string(value) : "nothing";
	fits = strtoull(says, NULL, 10) == nr - 1;
	if (!fits)
		no_dump(path, "its end says that there are %.20s items, and there are %zu", says, nr - 1);
	json_object_array_del_idx(items, nr - 1, 1);
	return fits;
}

struct json_object *restore_read(const char *path)
{
	struct json_object *items;
	size_t bytes;
	char *text = read_file(path, &bytes);
	bool json;

	if (!text)
		return NULL;
	json = text[strspn(text, " \t\r\n")] == '{';
	if (strlen(text) != bytes)
		items = no_dump(path, "byte %zu is zero", strlen(text));
	else
		items = json ? from_json(path, text) : from_text(path, text);
	if (items && !take_end(path, items, !json)) {
		json_object_put(items);
		items = NULL;
	}
	free(text);
	return items;
}
