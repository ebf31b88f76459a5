// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Blocks out of packs: header or the copy of it, CRCs, decompression.
 */
#include <errno.h>
#include <string.h>

#include "salvage.h"

static void open_pack(struct unpack *u, u64 region, u32 number)
{
	if (u->number == number && u->region == region)
		return;
	rb_run_close(&u->run);
	u->number = number;
	u->region = region;
	u->error = rb_run_open(u->rb, region, &u->rb->region[region]->pack[number - 1].ref, &u->run);
	if (!u->codec)
		u->codec = pack_codec_create(0);
	if (!u->codec)
		u->error = -ENOMEM;
}

static const char *header_text(const struct unpack *u)
{
	const struct tr_pack *ref = &u->rb->region[u->region]->pack[u->number - 1].ref;
	u32 tier = tr_place_tier(ref->place);

	if (ref->place == TR_NO_PLACE)
		return where("in pack %llu, which is nowhere to be found", ref->id);
	if (u->error == -ENODEV)
		return where("in a pack on tier %u, which is missing", tier);
	return where("in pack %llu at place %llu of tier %u, whose header is %s", ref->id,
		     tr_place_index(ref->place), tier,
		     u->error == -ESTALE ? "another pack's" : decode_strerror(u->error));
}

const char *unpack_block(struct unpack *u, u64 region, u32 number, u32 i, void *data)
{
	struct tr_pack_where at;
	struct tr_pack_head head;

	open_pack(u, region, number);
	if (u->error)
		return header_text(u);
	if (!tr_pack_find(u->run.header, i, &at))
		return "the header of their pack does not have them";
	tr_pack_head(u->run.header, &head);
	if (tr_pack_decode(u->run.header, &at, u->run.bytes + at.offset, u->cluster,
			   pack_codec_ops(head.codec), u->codec))
		return "their bytes in the pack are damaged";
	memcpy(data, (u8 *)u->cluster + at.slot * TERRACE_BLOCK_BYTES, TERRACE_BLOCK_BYTES);
	return NULL;
}

void unpack_end(struct unpack *u)
{
	rb_run_close(&u->run);
	pack_codec_destroy(u->codec);
}
