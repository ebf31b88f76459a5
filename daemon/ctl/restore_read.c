// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reading a dump: JSON, or the lines of the text form, which become the same
 * objects ("KIND key=value…", below it "  LIST key=value…" or "  LIST value").
 *
 * The last item says how many there are before it. Text without it is cut off, or was
 * changed by hand; JSON shows by itself where it ends, and older dumps have no such item.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "restore.h"

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

static struct json_object *from_json(const char *text)
{
	struct json_object *o = json_tokener_parse(text), *items = NULL;

	if (o && json_object_is_type(o, json_type_object) &&
	    json_object_object_get_ex(o, "items", &items) &&
	    json_object_is_type(items, json_type_array))
		json_object_get(items);
	else
		items = NULL;
	json_object_put(o);
	return items;
}

/* "key=value key=value": false when a word has no "=". */
static bool parse_words(struct json_object *o, char *words)
{
	char *next, *word = strtok_r(words, " ", &next);

	for (; word; word = strtok_r(NULL, " ", &next)) {
		char *equals = strchr(word, '=');

		if (!equals)
			return false;
		*equals = 0;
		json_object_object_add(o, word, json_object_new_string(equals + 1));
	}
	return true;
}

static bool parse_element(struct json_object *item, char *line)
{
	char *rest = line + strcspn(line, " ");
	struct json_object *array, *element;

	if (!*rest)
		return false;
	*rest++ = 0;
	if (!json_object_object_get_ex(item, line, &array)) {
		array = json_object_new_array();
		json_object_object_add(item, line, array);
	}
	if (!strchr(rest, '=')) {
		json_object_array_add(array, json_object_new_string(rest));
		return true;
	}
	element = json_object_new_object();
	json_object_array_add(array, element);
	return parse_words(element, rest);
}

static struct json_object *from_text(char *text)
{
	struct json_object *items = json_object_new_array(), *item = NULL;
	char *next, *line = strtok_r(text, "\n", &next);
	bool good = line;

	for (; line && good; line = strtok_r(NULL, "\n", &next)) {
		if (!strncmp(line, "  ", 2)) {
			good = item && parse_element(item, line + 2);
		} else {
			char *rest = line + strcspn(line, " ");

			if (*rest)
				*rest++ = 0;
			item = json_object_new_object();
			json_object_array_add(items, item);
			json_object_object_add(item, "item", json_object_new_string(line));
			good = parse_words(item, rest);
		}
	}
	if (good)
		return items;
	json_object_put(items);
	return NULL;
}

/* Takes the last item away. false: it is missing, though @demanded, or does not fit. */
static bool take_end(struct json_object *items, bool demanded)
{
	size_t nr = json_object_array_length(items);
	struct json_object *last = nr ? json_object_array_get_idx(items, nr - 1) : NULL, *value;
	bool fits;

	if (!last || !json_object_object_get_ex(last, "item", &value) ||
	    strcmp(json_object_get_string(value), "end"))
		return !demanded;
	fits = json_object_object_get_ex(last, "items", &value) &&
	       strtoull(json_object_get_string(value), NULL, 10) == nr - 1;
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
	items = json ? from_json(text) : from_text(text);
	if (items && !take_end(items, !json)) {
		json_object_put(items);
		items = NULL;
	}
	if (!items)
		ctl_error("%s is not a dump, or is cut off", path);
	free(text);
	return items;
}
