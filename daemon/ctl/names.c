// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Words and sizes, as they are typed and printed.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>

#include "names.h"

static const char *const classes[] = {
	[TERRACE_CLASS_OPTANE] = "optane",
	[TERRACE_CLASS_NVME] = "nvme",
	[TERRACE_CLASS_QLC] = "qlc",
	[TERRACE_CLASS_HDD] = "hdd",
	[TERRACE_CLASS_CSD] = "csd",
	[TERRACE_CLASS_NET] = "net",
	[TERRACE_CLASS_META] = "meta",
};

static const char *const kinds[] = {
	[TERRACE_KIND_SLOTS] = "slots",
	[TERRACE_KIND_SHELVES] = "shelves",
	[TERRACE_KIND_HOME] = "home",
	[TERRACE_KIND_NONE] = "none",
};

const char *class_name(u32 class)
{
	return class && class <= TERRACE_CLASS_META ? classes[class] : "?";
}

const char *kind_name(u32 kind)
{
	return kind && kind <= TERRACE_KIND_NONE ? kinds[kind] : "?";
}

static u32 word_number(const char *const *words, u32 last, const char *word, size_t bytes)
{
	for (u32 i = 1; i <= last; i++)
		if (strlen(words[i]) == bytes && !memcmp(words[i], word, bytes))
			return i;
	return 0;
}

u32 class_number(const char *word, size_t bytes)
{
	return word_number(classes, TERRACE_CLASS_NET, word, bytes);
}

u32 kind_number(const char *word, size_t bytes)
{
	return word_number(kinds, TERRACE_KIND_HOME, word, bytes);
}

u32 class_default_kind(u32 class)
{
	switch (class) {
	case TERRACE_CLASS_OPTANE:
	case TERRACE_CLASS_NVME:
		return TERRACE_KIND_SLOTS;
	case TERRACE_CLASS_CSD:
		return TERRACE_KIND_HOME;
	default:
		return TERRACE_KIND_SHELVES;
	}
}

int size_parse(const char *text, u64 *blocks)
{
	static const char units[] = "KMGTPE";
	long double bytes;
	const char *unit;
	char *end;

	if (!isdigit((unsigned char)*text) || strspn(text, "0123456789.") == 0)
		return -EINVAL;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return -EINVAL;
	bytes = strtold(text, &end);
	if (end != text + strspn(text, "0123456789."))
		return -EINVAL;
	unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (unit) {
		bytes = ldexpl(bytes, 10 * (int)(unit - units + 1));
		end += strncmp(end + 1, "iB", 2) ? 1 : 3;
	}
	if (*end)
		return -EINVAL;
	if (bytes >= ldexpl(1, 63))
		return -ERANGE;
	if (strchr(text, '.'))	/* 1.2G: as near as whole blocks come */
		bytes -= fmodl(bytes, TERRACE_BLOCK_BYTES);
	if (fmodl(bytes, TERRACE_BLOCK_BYTES) != 0)
		return -EDOM;
	*blocks = (u64)(bytes / TERRACE_BLOCK_BYTES);
	return 0;
}

const char *size_strerror(int err)
{
	switch (err) {
	case -EDOM:
		return "not a multiple of 4 KiB";
	case -ERANGE:
		return "too large";
	default:
		return "not a size like 4096, 64K, 1.5G or 2T";
	}
}

#define NR_BUFFERS 8

const char *size_text(u64 blocks)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	static char buffer[NR_BUFFERS][32];
	static unsigned int next;
	char *text = buffer[next++ % NR_BUFFERS];
	double size = (double)blocks * 4;
	size_t unit = 0;

	while (size >= 1024 && unit < 5) {
		size /= 1024;
		unit++;
	}
	snprintf(text, sizeof(buffer[0]), size == floor(size) ? "%.0f %s" : "%.2f %s", size,
		 units[unit]);
	return text;
}

const char *span_text(double seconds)
{
	static const struct { double from, unit; const char *format; } units[] = {
		{ 864000, 86400, "%.0f days" }, { 172800, 86400, "%.1f days" }, { 7200, 3600, "%.1f hours" },
		{ 120, 60, "%.0f min" }, { 0, 1, "%.0f s" },
	};
	static char buffer[NR_BUFFERS][32];
	static unsigned int next;
	char *text = buffer[next++ % NR_BUFFERS];
	size_t i = 0;

	while (seconds < units[i].from)
		i++;
	snprintf(text, sizeof(buffer[0]), units[i].format, seconds / units[i].unit);
	return text;
}

const char *uuid_text(const u8 *uuid)
{
	static char buffer[NR_BUFFERS][UUID_TEXT_BYTES];
	static unsigned int next;
	char *text = buffer[next++ % NR_BUFFERS];

	uuid_unparse_lower(uuid, text);
	return text;
}
