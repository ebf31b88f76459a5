// SPDX-License-Identifier: GPL-2.0-or-later
/* Which life a shelf is in. See life.h. */
#include "core/geometry.h"
#include "life.h"

bool life_read(const struct volume *vol, const u8 *uuid, u32 tier, u64 first, void *buf, u64 *id)
{
	u64 at = first + TERRACE_CHUNK_BLOCKS - TERRACE_TABLE_BLOCKS, named[TERRACE_TABLE_OWNERS];
	struct tr_owners owners;
	struct tr_table table;

	if (volume_read_tier(vol, tier, at, 1, buf))
		return false;
	if (!tr_owners_decode(buf, &owners, tr_place(tier, at), uuid))
		*id = owners.shelf_id;
	else if (!tr_table_decode(buf, &table, named, tr_place(tier, at), uuid))
		*id = table.shelf_id;
	else
		return false;
	return true;
}
