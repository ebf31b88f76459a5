// SPDX-License-Identifier: GPL-2.0
/*
 * The layout of every structure of the control device, held against the
 * offsets that stand in the comments of uapi/terrace.h. Nothing runs; it
 * compiles or not. tests/host/abi-layout.sh holds the comments against this,
 * and compiles it for 32 bits as well.
 */
#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <linux/types.h>
#include <terrace.h>
#include <terrace_format.h>

#define AT(type, field, offset) static_assert(offsetof(struct type, field) == (offset))
#define SIZE(type, bytes) static_assert(sizeof(struct type) == (bytes))


AT(terrace_hello, bytes, 0);
AT(terrace_hello, flags, 4);
AT(terrace_hello, min_version, 8);
AT(terrace_hello, max_version, 12);
AT(terrace_hello, version, 16);
AT(terrace_hello, nr_tiers, 20);
AT(terrace_hello, features, 24);
AT(terrace_hello, virtual_blocks, 32);
AT(terrace_hello, regions, 40);
AT(terrace_hello, region_blocks, 48);
AT(terrace_hello, max_orders, 52);
AT(terrace_hello, max_batch, 56);
AT(terrace_hello, max_ranges, 60);
AT(terrace_hello, results_bytes, 64);
AT(terrace_hello, summary_bytes, 72);
AT(terrace_hello, volume_uuid, 80);
AT(terrace_hello, reserved, 96);
SIZE(terrace_hello, 128);

AT(terrace_move, region, 0);
AT(terrace_move, cookie, 8);
AT(terrace_move, mode, 16);
AT(terrace_move, tier_up, 17);
AT(terrace_move, tier_down, 18);
AT(terrace_move, codec, 19);
AT(terrace_move, level, 20);
AT(terrace_move, shift, 21);
AT(terrace_move, reserved0, 22);
AT(terrace_move, flags, 24);
AT(terrace_move, reserved1, 28);
AT(terrace_move, up, 32);
AT(terrace_move, warm, 160);
SIZE(terrace_move, 288);

AT(terrace_submit, orders, 0);
AT(terrace_submit, nr, 8);
AT(terrace_submit, order_bytes, 12);
AT(terrace_submit, flags, 16);
AT(terrace_submit, done, 20);
AT(terrace_submit, consumed, 24);
AT(terrace_submit, reserved, 32);
SIZE(terrace_submit, 80);

AT(terrace_cancel, cookie, 0);
AT(terrace_cancel, flags, 8);
AT(terrace_cancel, cancelled, 12);
SIZE(terrace_cancel, 16);

AT(terrace_result, cookie, 0);
AT(terrace_result, region, 8);
AT(terrace_result, status, 16);
AT(terrace_result, mode, 17);
AT(terrace_result, packs, 18);
AT(terrace_result, error, 20);
AT(terrace_result, down, 24);
AT(terrace_result, up, 28);
AT(terrace_result, dropped, 32);
AT(terrace_result, raced, 36);
AT(terrace_result, unreadable, 40);
AT(terrace_result, raw, 44);
AT(terrace_result, bad_block, 48);
AT(terrace_result, packed_bytes, 56);
AT(terrace_result, nanoseconds, 64);
AT(terrace_result, cpu_nanoseconds, 72);
AT(terrace_result, read_bytes, 80);
AT(terrace_result, written_bytes, 144);
AT(terrace_result, reserved, 208);
SIZE(terrace_result, 256);

AT(terrace_ring, head, 0);
AT(terrace_ring, consumed, 8);
AT(terrace_ring, mask, 16);
AT(terrace_ring, entry_bytes, 20);
AT(terrace_ring, entries_offset, 24);
AT(terrace_ring, version, 28);
AT(terrace_ring, reserved, 32);
SIZE(terrace_ring, 64);

AT(terrace_consume, tail, 0);
AT(terrace_consume, reserved, 8);
SIZE(terrace_consume, 16);

AT(terrace_summary, fast, 0);
AT(terrace_summary, dirty, 2);
AT(terrace_summary, loose, 4);
AT(terrace_summary, packed, 6);
AT(terrace_summary, garbage, 8);
AT(terrace_summary, packs, 10);
AT(terrace_summary, flags, 11);
AT(terrace_summary, age, 12);
AT(terrace_summary, overwritten, 13);
AT(terrace_summary, packed_blocks, 14);
SIZE(terrace_summary, 16);

AT(terrace_region, region, 0);
AT(terrace_region, status, 8);
AT(terrace_region, nr_packs, 12);
AT(terrace_region, present, 16);
AT(terrace_region, fast, 144);
AT(terrace_region, packed, 272);
AT(terrace_region, pack_codec, 400);
AT(terrace_region, pack_live, 408);
AT(terrace_region, pack_blocks, 424);
AT(terrace_region, pack_id, 440);
AT(terrace_region, copies, 504);
SIZE(terrace_region, 512);

AT(terrace_regions, first, 0);
AT(terrace_regions, nr, 8);
AT(terrace_regions, region_bytes, 12);
AT(terrace_regions, regions, 16);
AT(terrace_regions, flags, 24);
AT(terrace_regions, tier, 28);
SIZE(terrace_regions, 32);

AT(terrace_range, block, 0);
AT(terrace_range, nr, 8);
AT(terrace_range, what, 16);
AT(terrace_range, flags, 20);
AT(terrace_range, reserved, 24);
SIZE(terrace_range, 32);

AT(terrace_claim, timeout_ms, 0);
AT(terrace_claim, flags, 4);
AT(terrace_claim, reserved, 8);
SIZE(terrace_claim, 16);

AT(terrace_event, type, 0);
AT(terrace_event, tier, 4);
AT(terrace_event, region, 8);
AT(terrace_event, value, 16);
AT(terrace_event, nanoseconds, 24);
SIZE(terrace_event, 32);

static_assert(TERRACE_REGION_WORDS * 64 == TERRACE_REGION_BLOCKS);
static_assert(TERRACE_MAX_RESULT_TIERS == TERRACE_MAX_TIERS);
static_assert(TERRACE_MAX_TIERS <= 8);	/* leaf.c has four bits for each */
static_assert(sizeof(((struct terrace_region *)0)->pack_id) == TERRACE_PACK_SLOTS * 8);
/* The command area of an SQE128. */
static_assert(sizeof(struct terrace_submit) == 80);
