// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a check finds. See findings.h.
 */
#include <stdarg.h>
#include <string.h>

#include "findings.h"

#define TEXT_BYTES 1024

void findings_init(struct findings *f, bool json, u64 limit)
{
	memset(f, 0, sizeof(*f));
	f->out = stdout;
	f->json = json;
	f->limit = limit;
	if (json)
		f->list = json_object_new_array();
}

const char *where(const char *format, ...)
{
	static char buffer[4][TEXT_BYTES];
	static unsigned int next;
	char *text = buffer[next++ % 4];
	va_list args;

	va_start(args, format);
	vsnprintf(text, TEXT_BYTES, format, args);
	va_end(args);
	return text;
}

static void found(struct findings *f, const char *kind, const char *place, const char *format,
		  va_list args)
{
	char text[TEXT_BYTES];
	struct json_object *o;

	if (f->limit && f->printed == f->limit)
		return;
	f->printed++;
	vsnprintf(text, sizeof(text), format, args);
	if (!f->json) {
		fprintf(f->out, "%s: %s: %s\n", kind, place, text);
		return;
	}
	o = json_object_new_object();
	json_object_object_add(o, "kind", json_object_new_string(kind));
	json_object_object_add(o, "where", json_object_new_string(place));
	json_object_object_add(o, "what", json_object_new_string(text));
	json_object_array_add(f->list, o);
}

void problem(struct findings *f, const char *place, const char *format, ...)
{
	va_list args;

	f->problems++;
	va_start(args, format);
	found(f, "problem", place, format, args);
	va_end(args);
}

void note(struct findings *f, const char *place, const char *format, ...)
{
	va_list args;

	f->notes++;
	va_start(args, format);
	found(f, "note", place, format, args);
	va_end(args);
}
