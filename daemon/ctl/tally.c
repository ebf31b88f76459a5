// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Results added up. See tally.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "names.h"
#include "tally.h"

void tally_init(struct tally *t)
{
	memset(t, 0, sizeof(*t));
	t->bad_region = t->bad_block = t->first_unreadable = ~0ull;
}

void tally_add(struct tally *t, const struct terrace_result *result)
{
	t->orders++;
	t->up += result->up;
	t->down += result->down;
	t->dropped += result->dropped;
	t->raced += result->raced;
	t->unreadable += result->unreadable;
	if (result->unreadable && t->first_unreadable == ~0ull)
		t->first_unreadable = result->bad_block;
	for (u32 k = 0; k < TERRACE_MAX_RESULT_TIERS; k++) {
		t->read_bytes += result->read_bytes[k];
		t->written_bytes += result->written_bytes[k];
	}
	if (result->status == TERRACE_RESULT_NO_ROOM) {
		t->no_room++;
		return;
	}
	if (result->status != TERRACE_RESULT_FAILED || result->error == -ENOENT)
		return;
	t->failed++;
	if (t->error)
		return;
	t->error = result->error;
	t->bad_region = result->region;
	t->bad_block = result->error == -EIO ? result->bad_block : ~0ull;
}

static void emit(const struct tally *t, struct json_object *o, bool interrupted)
{
	const struct {
		const char *name;
		u64 value;
	} row[] = {
		{ "orders", t->orders }, { "blocks_up", t->up }, { "blocks_down", t->down },
		{ "blocks_dropped", t->dropped }, { "blocks_raced", t->raced },
		{ "blocks_unreadable", t->unreadable }, { "regions_without_room", t->no_room },
		{ "regions_failed", t->failed }, { "read_bytes", t->read_bytes },
		{ "written_bytes", t->written_bytes },
	};

	for (u32 i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		json_object_object_add(o, row[i].name, json_object_new_uint64(row[i].value));
	json_object_object_add(o, "interrupted", json_object_new_boolean(interrupted));
	if (t->error)
		json_object_object_add(o, "error", json_object_new_string(orders_strerror(t->error)));
}

static void complain(const struct tally *t)
{
	if (t->no_room)
		ctl_error("pending: no room on the target for %llu regions: make room there and repeat the call",
			  (unsigned long long)t->no_room);
	if (t->unreadable)
		ctl_error("%llu blocks cannot be read and stay where they are; the first is block %llu",
			  (unsigned long long)t->unreadable, (unsigned long long)t->first_unreadable);
	if (t->failed && t->bad_block != ~0ull)
		ctl_error("%llu regions failed; the first: region %llu, block %llu: %s",
			  (unsigned long long)t->failed, (unsigned long long)t->bad_region,
			  (unsigned long long)t->bad_block, orders_strerror(t->error));
	else if (t->failed)
		ctl_error("%llu regions failed; the first: region %llu: %s", (unsigned long long)t->failed,
			  (unsigned long long)t->bad_region, orders_strerror(t->error));
}

int tally_report(const struct tally *t, int err, const char *what, struct json_object *o)
{
	if (o)
		emit(t, o, err == -EINTR);
	else if (t->raced)
		printf("%s: %llu blocks up, %llu down, %llu dropped, %llu written meanwhile and left\n", what,
		       (unsigned long long)t->up, (unsigned long long)t->down,
		       (unsigned long long)t->dropped, (unsigned long long)t->raced);
	else
		printf("%s: %llu blocks up, %llu down, %llu dropped\n", what, (unsigned long long)t->up,
		       (unsigned long long)t->down, (unsigned long long)t->dropped);
	complain(t);
	if (err == -EINTR)
		ctl_error("interrupted: what was done stays done; the same call goes on from there");
	return err || t->failed || t->no_room || t->unreadable ? CTL_PROBLEM : CTL_OK;
}
