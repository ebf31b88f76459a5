// SPDX-License-Identifier: GPL-2.0-or-later
/* See eventlog.h. */
#include "sense/eventlog.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK		"EVENT_LOG_v1 "
#define LEVELS		64
#define OTHERS		(EVENTLOG_FAMILIES - 1)
#define LINE_MOST	65536u	/* what json-c is given; RocksDB's longest have some thousand inputs */

/* ---- families and files ------------------------------------------------------------------ */

static uint8_t family_of(struct eventlog *l, const char *name)
{
	uint32_t n = 0;

	while (n < l->nr_families && strncmp(l->family[n].name, name, sizeof(l->family[n].name) - 1))
		n++;
	if (n < l->nr_families)
		return (uint8_t)n;
	if (n == OTHERS)
		return OTHERS;
	snprintf(l->family[n].name, sizeof(l->family[n].name), "%s", name);
	l->family[n].bottom = -1;
	l->nr_families++;
	return (uint8_t)n;
}

static void place_file(struct eventlog *l, uint64_t number, int level, uint8_t family)
{
	uint32_t n = number % EVENTLOG_FILES;

	if (!number || level >= LEVELS)
		return;
	l->file[n].number = number;
	l->file[n].level = (int8_t)level;
	l->file[n].family = family;
}

static bool knows(const struct eventlog *l, uint64_t number)
{
	return number && l->file[number % EVENTLOG_FILES].number == number;
}

static void move_file(struct eventlog *l, uint64_t number, int level)
{
	uint8_t family = l->file[number % EVENTLOG_FILES].family;

	place_file(l, number, level, family);
	if (family != OTHERS && level > l->family[family].bottom)
		l->family[family].bottom = level;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static struct eventlog_job *find_job(struct eventlog *l, uint64_t number)
{
	for (uint32_t i = 0; i < EVENTLOG_JOBS; i++)
		if (l->job[i].serial && l->job[i].number == number)
			return &l->job[i];
	return NULL;
}

static struct eventlog_job *job_of(struct eventlog *l, uint64_t number)
{
	struct eventlog_job *job = find_job(l, number);

	if (job)
		return job;
	job = &l->job[0];
	for (uint32_t i = 0; i < EVENTLOG_JOBS; i++)
		if (l->job[i].serial < job->serial)
			job = &l->job[i];
	memset(job, 0, sizeof(*job));
	job->serial = ++l->serial;
	job->number = number;
	job->level = -1;
	job->family = OTHERS;
	return job;
}

static void add_part(struct eventlog_job *job, uint64_t *part, uint32_t *nr, uint64_t number)
{
	if (*nr == EVENTLOG_PARTS)
		job->cut = true;
	else
		part[(*nr)++] = number;
}

/* ---- events ------------------------------------------------------------------------------------ */

static bool get_number(struct json_object *o, const char *key, uint64_t *value)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, key, &v) || !json_object_is_type(v, json_type_int) ||
	    json_object_get_int64(v) < 0)
		return false;
	*value = (uint64_t)json_object_get_int64(v);
	return true;
}

static const char *get_text(struct json_object *o, const char *key)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, key, &v) || !json_object_is_type(v, json_type_string))
		return NULL;
	return json_object_get_string(v);
}

/* "files_L3": [12, 13] */
static void started(struct eventlog *l, struct eventlog_job *job, struct json_object *o)
{
	job->compacts = true;
	json_object_object_foreach(o, key, v) {
		unsigned int level;

		if (sscanf(key, "files_L%u", &level) != 1 || level >= LEVELS || !json_object_is_type(v, json_type_array))
			continue;
		for (size_t i = 0; i < json_object_array_length(v); i++) {
			uint64_t number = (uint64_t)json_object_get_int64(json_object_array_get_idx(v, i));

			add_part(job, job->input, &job->nr_inputs, number);
			place_file(l, number, (int)level, job->family);
		}
	}
}

/* Files of each level: the deepest that has some is the bottom. */
static void note_bottom(struct eventlog *l, uint8_t family, struct json_object *o)
{
	struct json_object *v;

	if (family == OTHERS || !json_object_object_get_ex(o, "lsm_state", &v) || !json_object_is_type(v, json_type_array))
		return;
	l->family[family].bottom = -1;
	for (size_t i = 0; i < json_object_array_length(v) && i < LEVELS; i++)
		if (json_object_get_int64(json_object_array_get_idx(v, i)) > 0)
			l->family[family].bottom = (int)i;
}

static void finished(struct eventlog *l, struct eventlog_job *job, struct json_object *o)
{
	uint64_t level;

	if (get_number(o, "output_level", &level) && level < LEVELS)
		job->level = (int)level;
	for (uint32_t i = 0; i < job->nr_outputs; i++)
		place_file(l, job->output[i], job->level, job->family);
	note_bottom(l, job->family, o);
	l->stats.compactions += job->compacts && !job->cut;
	l->stats.cut += job->cut;
	if (job->compacts && !job->cut && l->compaction)
		l->compaction(l->ctx, job);
	job->serial = 0;
}

/* Of a flush, a compaction, or a recovery: its end says which. */
static void table_created(struct eventlog *l, struct eventlog_job *job, struct json_object *o)
{
	const char *family = get_text(o, "cf_name");
	uint64_t number;

	if (!get_number(o, "file_number", &number))
		return;
	if (family)
		job->family = family_of(l, family);
	add_part(job, job->output, &job->nr_outputs, number);
}

static bool event(struct eventlog *l, struct json_object *o)
{
	const char *what = get_text(o, "event");
	struct eventlog_job *job;
	uint64_t number, file;

	if (!what || !get_number(o, "job", &number))
		return false;
	if (!strcmp(what, "table_file_deletion")) {
		if (get_number(o, "file_number", &file) && knows(l, file))
			l->file[file % EVENTLOG_FILES].number = 0;
	} else if (!strcmp(what, "compaction_started")) {
		started(l, job_of(l, number), o);
	} else if (!strcmp(what, "table_file_creation")) {
		table_created(l, job_of(l, number), o);
	} else if (!strcmp(what, "compaction_finished") || !strcmp(what, "flush_finished") ||
		   !strcmp(what, "recovery_finished")) {
		job = find_job(l, number);
		if (job && what[0] != 'c')
			job->level = 0;
		if (job)
			finished(l, job, o);
	}
	return true;
}

/* "... [FAMILY] [JOB 9] Compacting 2@0 + 1@1 files to L1, score ..."; "... Moving #18 to level-2 ..." */
static void prose(struct eventlog *l, const char *line)
{
	const char *to = strstr(line, "Compacting "), *at = strstr(line, "] [JOB "), *name;
	unsigned long long number;
	struct eventlog_job *job;
	unsigned int level;
	char family[32];

	if (to && at && at < to && sscanf(at, "] [JOB %llu", &number) == 1) {
		name = at;
		while (name > line && name[-1] != '[')
			name--;
		snprintf(family, sizeof(family), "%.*s", (int)(at - name < 31 ? at - name : 31), name);
		to = strstr(to, "files to L");
		if (!to || sscanf(to, "files to L%u", &level) != 1 || level >= LEVELS)
			return;
		job = job_of(l, number);
		job->family = family_of(l, family);
		job->level = (int)level;
		return;
	}
	to = strstr(line, "Moving #");
	if (to && sscanf(to, "Moving #%llu to level-%u", &number, &level) == 2 && level < LEVELS && knows(l, number))
		move_file(l, number, (int)level);
}

void eventlog_line(struct eventlog *l, const char *line, size_t bytes)
{
	struct json_object *o = NULL;
	const char *mark;
	char *text;

	if (bytes >= LINE_MOST) {
		l->stats.malformed++;
		return;
	}
	text = strndup(line, bytes);
	if (!text)
		return;
	mark = strstr(text, MARK);
	if (!mark) {
		prose(l, text);
		free(text);
		return;
	}
	o = json_tokener_parse(mark + strlen(MARK));
	l->stats.events++;
	l->stats.malformed += !o || !json_object_is_type(o, json_type_object) || !event(l, o);
	json_object_put(o);
	free(text);
}

void eventlog_init(struct eventlog *l)
{
	l->family[OTHERS].bottom = -1;
}

/* ---- what is known ------------------------------------------------------------------------------ */

int eventlog_level(const struct eventlog *l, uint64_t file)
{
	return knows(l, file) ? l->file[file % EVENTLOG_FILES].level : -1;
}

static bool reads(const struct eventlog_job *job, uint64_t file)
{
	for (uint32_t i = 0; i < job->nr_inputs; i++)
		if (job->input[i] == file)
			return true;
	return false;
}

/* By the job that has been told of; else the deepest level of what is read: a table that meets none below is moved. */
int eventlog_output_level(const struct eventlog *l, const uint64_t *input, uint32_t nr)
{
	int deepest = -1;

	for (uint32_t i = 0; nr && i < EVENTLOG_JOBS; i++)
		if (l->job[i].serial && l->job[i].level >= 0 && reads(&l->job[i], input[0]))
			return l->job[i].level;
	for (uint32_t i = 0; i < nr; i++) {
		int level = eventlog_level(l, input[i]);

		if (level < 0)
			return -1;
		deepest = level > deepest ? level : deepest;
	}
	return deepest;
}

bool eventlog_goes_to_bottom(const struct eventlog *l, const uint64_t *input, uint32_t nr)
{
	int level = eventlog_output_level(l, input, nr), bottom;

	if (level <= 0 || !knows(l, input[0]))
		return false;
	bottom = l->family[l->file[input[0] % EVENTLOG_FILES].family].bottom;
	return bottom >= 0 && level >= bottom;
}
