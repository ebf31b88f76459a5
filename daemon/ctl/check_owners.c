// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Do the shelves describe themselves? Each block that the map has on a shelf
 * must be named by an owner block or the owner table of that shelf: without
 * them nothing could be salvaged when map and journal are lost.
 *
 * A shelf that was emptied and opened again may still hold owner blocks of
 * its earlier life, which do not count. Of all that name an offset the one with
 * the newest record number does.
 *
 * The map says where a block is, here it must say who is at a place: it is
 * walked again for each window of shelves, so that memory stays bounded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "life.h"

#define WINDOW_CHUNKS	1024u	/* 128 MiB of memory for 64 GiB of shelves */
#define PIECE_BLOCKS	256u
#define NOBODY		(~0ull)

struct shelf {
	u64 owner[TERRACE_CHUNK_BLOCKS];
	u64 seq[TERRACE_CHUNK_BLOCKS];	/* of the structure that says so; 0: none */
	u64 life;
	bool known;			/* … is the present one */
};

static void offer(struct shelf *shelf, u32 offset, u64 block, u64 seq)
{
	if (offset >= TERRACE_CHUNK_BLOCKS || seq < shelf->seq[offset])
		return;
	shelf->owner[offset] = block;
	shelf->seq[offset] = seq;
}

static bool of_present_life(const struct shelf *shelf, u64 id)
{
	return !shelf->known || id == shelf->life;
}

static void read_block(const struct check *c, const void *block, u64 place, struct shelf *shelf)
{
	u64 owners[TERRACE_TABLE_OWNERS];
	struct tr_owners head;
	struct tr_table table;
	struct tr_owner owner;

	if (!tr_owners_decode(block, &head, place, c->vol.super->volume_uuid)) {
		for (u32 i = 0; i < head.nr && of_present_life(shelf, head.shelf_id); i++) {
			tr_owners_get(block, i, &owner);
			offer(shelf, owner.offset, owner.block, head.record_seq + 1);
		}
	} else if (!tr_table_decode(block, &table, owners, place, c->vol.super->volume_uuid)) {
		for (u32 i = 0; i < table.nr && of_present_life(shelf, table.shelf_id); i++)
			if (owners[i] != TERRACE_NO_OWNER)
				offer(shelf, table.first_offset + i, owners[i],
				      table.record_seq + 1);
	}
}

static int read_shelf(const struct check *c, u32 tier, u64 chunk, u8 *buf, struct shelf *shelf)
{
	u64 first = chunk * TERRACE_CHUNK_BLOCKS;

	memset(shelf, 0, sizeof(*shelf));
	shelf->known = life_read(&c->vol, c->vol.super->volume_uuid, tier, first, buf,
				 &shelf->life);
	for (u32 at = 0; at < TERRACE_CHUNK_BLOCKS; at += PIECE_BLOCKS) {
		int r = volume_read_tier(&c->vol, tier, first + at, PIECE_BLOCKS, buf);

		if (r)
			return r;
		for (u32 i = 0; i < PIECE_BLOCKS; i++)
			read_block(c, buf + i * TERRACE_BLOCK_BYTES, tr_place(tier, first + at + i),
				   shelf);
	}
	return 0;
}

static void compare(struct check *c, u32 tier, u64 chunk, const u64 *user, const struct shelf *shelf)
{
	for (u32 i = 0; i < TERRACE_CHUNK_BLOCKS; i++) {
		const char *place;

		if (user[i] == NOBODY || (shelf->seq[i] && shelf->owner[i] == user[i]))
			continue;
		place = where("%s: tier %u shelf %llu offset %u", volume_tier_name(&c->vol, tier), tier,
			      chunk, i);
		if (!shelf->seq[i])
			problem(&c->findings, place, "block %llu lives there, but no owner block says so",
				user[i]);
		else
			problem(&c->findings, place,
				"block %llu lives there, but the newest owner block says it is block %llu",
				user[i], shelf->owner[i]);
	}
}

/* Called for each block of the map while a window is filled. */
void check_owners_user(struct check *c, u64 block, u64 place)
{
	u64 chunk = tr_place_index(place) / TERRACE_CHUNK_BLOCKS, k;

	if (tr_place_tier(place) != c->window_tier || chunk < c->window_first ||
	    chunk - c->window_first >= WINDOW_CHUNKS)
		return;
	k = chunk - c->window_first;
	if (!c->window[k]) {
		c->window[k] = ctl_alloc(TERRACE_CHUNK_BLOCKS * sizeof(u64));
		memset(c->window[k], 0xff, TERRACE_CHUNK_BLOCKS * sizeof(u64));
	}
	c->window[k][tr_place_index(place) % TERRACE_CHUNK_BLOCKS] = block;
}

static void check_window(struct check *c, u32 tier, u64 first, u8 *buf, struct shelf *shelf)
{
	c->window_tier = tier;
	c->window_first = first;
	c->window = ctl_alloc(WINDOW_CHUNKS * sizeof(*c->window));
	check_map_again(c, CHECK_OWNERS);
	for (u32 k = 0; k < WINDOW_CHUNKS; k++) {
		int r;

		if (!c->window[k])
			continue;
		r = read_shelf(c, tier, first + k, buf, shelf);
		if (r)
			problem(&c->findings, where("%s: tier %u shelf %llu",
						    volume_tier_name(&c->vol, tier), tier, first + k),
				"cannot be read: %s", strerror(-r));
		else
			compare(c, tier, first + k, c->window[k], shelf);
		free(c->window[k]);
	}
	free(c->window);
	c->window = NULL;
}

void check_owners(struct check *c)
{
	struct shelf *shelf = ctl_alloc(sizeof(*shelf));
	u8 *buf = ctl_alloc_blocks(PIECE_BLOCKS);

	for (u32 i = 0; i < c->vol.super->nr_tiers; i++) {
		if (c->vol.super->tier[i].kind != TERRACE_KIND_SHELVES || c->vol.tier[i] < 0)
			continue;
		for (u64 first = 0; first < c->tier[i].nr_chunks; first += WINDOW_CHUNKS)
			check_window(c, i, first, buf, shelf);
	}
	free(buf);
	free(shelf);
}
