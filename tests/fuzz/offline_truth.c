// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Is it true what salvage says of each block? $OFFLINE/blocks has, of each block that is mapped,
 * the record that wrote its last value; a block's data begin with its number and that of a record.
 * Damage that has right checksums may say anything, so here all have wrong ones.
 */
#include <json-c/json.h>
#include <unistd.h>

#include "fuzz/offline.h"

static u64 *truth;		/* of each block 1 + its record, 0: it is not mapped */
static bool *seen;
static u64 nr_blocks;

void set_up_truth(void)
{
	const char *folder = getenv("OFFLINE");
	char *path = ctl_text("%s/blocks", folder ? folder : ".");
	FILE *f = fopen(path, "re");
	unsigned long long block, tier, place, record;

	free(path);
	if (!f)
		return;
	nr_blocks = (16 << 20) / TERRACE_BLOCK_BYTES;
	truth = ctl_alloc(nr_blocks * sizeof(*truth));
	seen = ctl_alloc(nr_blocks * sizeof(*seen));
	while (fscanf(f, "%llu %llu %llu %llu", &block, &tier, &place, &record) == 4) {
		hold(block < nr_blocks);
		truth[block] = 1 + record;
	}
	fclose(f);
}

static bool is_zero(const u64 *data)
{
	for (u32 k = 0; k < TERRACE_BLOCK_BYTES / sizeof(u64); k++)
		if (data[k])
			return false;
	return true;
}

static u64 number_of(struct json_object *o, const char *name)
{
	struct json_object *value;

	hold(json_object_object_get_ex(o, name, &value));
	return json_object_get_uint64(value);
}

static bool is_true(struct json_object *o, const char *name)
{
	struct json_object *value;

	hold(json_object_object_get_ex(o, name, &value));
	return json_object_get_boolean(value);
}

/* If the last records may be missing, a block may be older than what is called certain. */
static void judge_block(u64 block, const char *state, bool torn, bool doubtful)
{
	u64 data[TERRACE_BLOCK_BYTES / sizeof(u64)];

	hold(block < nr_blocks && !seen[block]);
	seen[block] = true;
	hold(pread(file_fd(OUT), data, sizeof(data), block * TERRACE_BLOCK_BYTES) == sizeof(data));
	if (!strcmp(state, "certain") && !torn)
		hold(truth[block] && data[0] == block && data[1] + 1 == truth[block]);
	else if (!strcmp(state, "certain"))
		hold(is_zero(data) || data[0] == block);
	else if (!strcmp(state, "possibly older"))
		hold(data[0] == block && (!truth[block] || data[1] < truth[block]));
	else
		hold(is_zero(data) || (doubtful && !strcmp(state, "doubtful")));
}

static void judge(struct json_object *map, bool torn, bool doubtful)
{
	struct json_object *ranges, *state;
	bool sure = is_true(map, "unmapped_certain") && !torn;
	u64 data[TERRACE_BLOCK_BYTES / sizeof(u64)];

	memset(seen, 0, nr_blocks * sizeof(*seen));
	hold(json_object_object_get_ex(map, "ranges", &ranges));
	for (size_t k = 0; k < json_object_array_length(ranges); k++) {
		struct json_object *range = json_object_array_get_idx(ranges, k);
		u64 first = number_of(range, "block"), nr = number_of(range, "blocks");

		hold(json_object_object_get_ex(range, "state", &state));
		for (u64 b = first; b < first + nr; b++)
			judge_block(b, json_object_get_string(state), torn, doubtful);
	}
	for (u64 b = 0; b < nr_blocks; b++) {
		if (seen[b])
			continue;
		hold(!truth[b] || !sure);
		hold(pread(file_fd(OUT), data, sizeof(data), b * TERRACE_BLOCK_BYTES) == sizeof(data) && is_zero(data));
	}
}

void honest(const char *args)
{
	char *words = ctl_text("--force --to OUT --map MAP %s", args), *text;
	struct json_object *map;
	size_t bytes;

	if (truth) {
		file_write(MAP, "", 0);
		call(&ctl_salvage_command, words);
		text = file_read(MAP, &bytes);
		map = bytes ? json_tokener_parse(text) : NULL;
		hold(!bytes || map);
		if (map)
			judge(map, is_true(map, "journal_torn") || journal_end_hit(), strstr(args, "--doubtful"));
		json_object_put(map);
		free(text);
	}
	free(words);
}
