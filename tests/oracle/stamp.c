// SPDX-License-Identifier: GPL-2.0-or-later
/* Stamps: see stamp.h. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "stamp.h"

#define WORDS	(STAMP_SECTOR / sizeof(uint64_t))
#define STEP	0x9e3779b97f4a7c15ull

struct sector_stamp {
	uint64_t salt, version, place, check;	/* place: block * 8 + sector */
};

uint64_t stamp_mix(uint64_t x)
{
	x += STEP;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static uint64_t check_of(uint64_t salt, uint64_t version, uint64_t place)
{
	return stamp_mix(stamp_mix(salt ^ version) ^ place);
}

static void fill_sector(uint64_t *word, uint64_t salt, uint64_t version, uint64_t place)
{
	uint64_t value = check_of(salt, version, place);
	size_t i;

	word[0] = salt;
	word[1] = version;
	word[2] = place;
	for (i = 3; i < WORDS; i++) {
		word[i] = value;
		value += STEP;
	}
}

void stamp_fill(void *data, uint64_t salt, uint64_t block, uint64_t version)
{
	unsigned int s;

	for (s = 0; s < STAMP_SECTORS; s++)
		fill_sector((uint64_t *)data + s * WORDS, salt, version, block * STAMP_SECTORS + s);
}

/* The stamp of a sector; false: it carries none. */
static bool read_sector(const uint64_t *word, struct sector_stamp *stamp)
{
	uint64_t value;
	size_t i;

	stamp->salt = word[0];
	stamp->version = word[1];
	stamp->place = word[2];
	value = check_of(stamp->salt, stamp->version, stamp->place);
	stamp->check = value;
	for (i = 3; i < WORDS; i++) {
		if (word[i] != value)
			return false;
		value += STEP;
	}
	return stamp->version != 0;
}

static bool is_zero(const uint64_t *word, size_t n)
{
	while (n--)
		if (*word++)
			return false;
	return true;
}

const char *stamp_name(uint64_t version, char text[static 40])
{
	if (!version)
		return "zeros";
	snprintf(text, 40, "%llu:%llu:%llu", (unsigned long long)(version >> 32),
		 (unsigned long long)(version >> 24 & 0xff), (unsigned long long)(version & 0xffffff));
	return text;
}

/* "sectors 0-3 version 1:0:7, 4-7 zeros" */
static void describe(const uint64_t *data, uint64_t salt, uint64_t block, struct stamp_found *found)
{
	char text[STAMP_SECTORS][96], name[40];
	struct sector_stamp stamp;
	unsigned int s, first;
	size_t used = 0;

	for (s = 0; s < STAMP_SECTORS; s++) {
		const uint64_t *word = data + s * WORDS;
		const char *whose = "";

		if (is_zero(word, WORDS)) {
			strcpy(text[s], "zeros");
			continue;
		}
		if (!read_sector(word, &stamp)) {
			snprintf(text[s], sizeof(text[s]), "garbage %016llx", (unsigned long long)word[0]);
			continue;
		}
		if (stamp.salt != salt)
			whose = "alien ";
		if (stamp.place == block * STAMP_SECTORS + s)
			snprintf(text[s], sizeof(text[s]), "%sversion %s", whose, stamp_name(stamp.version, name));
		else
			snprintf(text[s], sizeof(text[s]), "%sversion %s of block %llu", whose, stamp_name(stamp.version, name),
				 (unsigned long long)(stamp.place / STAMP_SECTORS));
	}
	for (s = 0; s < STAMP_SECTORS && used < sizeof(found->text); ) {
		for (first = s++; s < STAMP_SECTORS && !strcmp(text[s], text[first]); s++)
			;
		used += snprintf(found->text + used, sizeof(found->text) - used, "%s%u-%u %s", first ? ", " : "sectors ",
				 first, s - 1, text[first]);
	}
}

void stamp_read(const void *data, uint64_t salt, uint64_t block, struct stamp_found *found)
{
	const uint64_t *word = data;
	struct sector_stamp head = { 0 }, stamp;
	unsigned int s, zeros = 0, same = 0;
	bool alien = false;

	found->block = block;
	found->version = 0;
	found->text[0] = 0;
	if (!word[1] && is_zero(word, STAMP_BLOCK / sizeof(*word))) {
		found->verdict = STAMP_ZEROS;
		return;
	}
	found->verdict = STAMP_GARBAGE;
	for (s = 0; s < STAMP_SECTORS; s++, word += WORDS) {
		if (is_zero(word, WORDS)) {
			zeros++;
			continue;
		}
		if (!read_sector(word, &stamp)) {
			describe(data, salt, block, found);
			return;
		}
		if (stamp.salt != salt)
			alien = true;
		if (!s)
			head = stamp;
		if (!zeros && stamp.version == head.version && stamp.place == head.place + s)
			same++;
	}
	if (alien)
		found->verdict = STAMP_ALIEN;
	else if (same < STAMP_SECTORS || head.place % STAMP_SECTORS)
		found->verdict = STAMP_TORN;
	else
		found->verdict = head.place / STAMP_SECTORS == block ? STAMP_WHOLE : STAMP_FOREIGN;
	if (found->verdict == STAMP_WHOLE || found->verdict == STAMP_FOREIGN) {
		found->block = head.place / STAMP_SECTORS;
		found->version = head.version;
	}
	if (found->verdict != STAMP_WHOLE)
		describe(data, salt, block, found);
}
