// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Is it true what salvage says of each block? $OFFLINE/blocks has, of each block that is mapped,
 * the record that wrote its last value; a block's data begin with its number and that of a record.
 * Damage that has right checksums may say anything, so here all have wrong ones.
 */
#include <json-c/json.h>

#include "fuzz/offline.h"

static u64 *truth;		/* of each block 1 + its record, 0: it is not mapped */
static bool seen[VIRTUAL_BLOCKS], written[VIRTUAL_BLOCKS];

void set_up_truth(void)
{
	const char *folder = getenv("OFFLINE");
	char *path = ctl_text("%s/blocks", folder ? folder : ".");
	FILE *f = fopen(path, "re");
	unsigned long long block, tier, place, record;

	free(path);
	if (!f)
		return;
	truth = ctl_alloc(VIRTUAL_BLOCKS * sizeof(*truth));
	while (fscanf(f, "%llu %llu %llu %llu", &block, &tier, &place, &record) == 4) {
		hold(block < VIRTUAL_BLOCKS);
		truth[block] = 1 + record;
	}
	fclose(f);
}

static const u64 *data_of(u64 block)
{
	return (const u64 *)(image[SALVAGED].is + block * TERRACE_BLOCK_BYTES);
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
	const u64 *data;

	hold(block < VIRTUAL_BLOCKS && !seen[block]);
	seen[block] = true;
	data = data_of(block);
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

	memset(seen, 0, sizeof(seen));
	memset(written, 0, sizeof(written));
	for (u32 k = 0; k < nr_changed; k++)
		if (changed[k].image == &image[SALVAGED])
			written[changed[k].block] = true;
	hold(json_object_object_get_ex(map, "ranges", &ranges));
	for (size_t k = 0; k < json_object_array_length(ranges); k++) {
		struct json_object *range = json_object_array_get_idx(ranges, k);
		u64 first = number_of(range, "block"), nr = number_of(range, "blocks");

		hold(json_object_object_get_ex(range, "state", &state));
		for (u64 b = first; b < first + nr; b++)
			judge_block(b, json_object_get_string(state), torn, doubtful);
	}
	for (u64 b = 0; b < VIRTUAL_BLOCKS; b++)
		hold(seen[b] || ((!truth[b] || !sure) && (!written[b] || is_zero(data_of(b)))));
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
