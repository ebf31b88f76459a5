// SPDX-License-Identifier: GPL-2.0-or-later
/* Token bucket; see budget.h. */
#include "decide/budget.h"

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_DOUBLE, budget_tunables, bytes_per_second, 256e6, 0.0, 1e12,
		"bandwidth that moves may take on a tier, reads and writes together; 0: no limit"),
	TUNABLE(TUNABLE_DOUBLE, budget_tunables, net_bytes_per_second, 100e6, 0.0, 1e12,
		"the same on a tier of class net, where that is less and bytes_per_second was not set for the tier itself; 0: as others"),
	TUNABLE(TUNABLE_DOUBLE, budget_tunables, burst_seconds, 1.0, 0.01, 3600.0,
		"how long a rest may be saved up"),
	TUNABLE(TUNABLE_U32, budget_tunables, in_flight, 16, 1, 256,
		"orders under way at a time"),
};
TUNABLE_TABLE(budget_tunable_table, "budget", rows);

static double full(const struct budget_tunables *t)
{
	return t->bytes_per_second * t->burst_seconds;
}

void budget_init(struct budget *b, const struct budget_tunables *t, uint64_t now_ns)
{
	*b = (struct budget){ .tokens = full(t), .last_ns = now_ns, .share = 1, .turn = 1 };
}

void budget_refill(struct budget *b, const struct budget_tunables *t, uint64_t now_ns, double share)
{
	if (now_ns > b->last_ns)
		b->tokens += (double)(now_ns - b->last_ns) * 1e-9 * t->bytes_per_second * share;
	b->last_ns = now_ns;
	b->share = share < 1 ? share : 1;
	if (b->tokens > full(t) * b->share)
		b->tokens = full(t) * b->share;
	b->turn = (b->turn >= 1 ? b->turn - 1 : b->turn) + b->share;
}

static bool has_turn(const struct budget *b, const struct budget_tunables *t)
{
	return t->bytes_per_second > 0 || (b->turn >= 1 && (!b->under_way || b->under_way < t->in_flight * b->share));
}

bool budget_take(struct budget *b, const struct budget_tunables *t, double bytes)
{
	if (b->under_way >= t->in_flight || !has_turn(b, t))
		return false;
	if (t->bytes_per_second > 0) {
		if (b->tokens <= 0)
			return false;
		b->tokens -= bytes;
	}
	b->under_way++;
	return true;
}

void budget_charge(struct budget *b, const struct budget_tunables *t, double bytes)
{
	if (t->bytes_per_second > 0)
		b->tokens -= bytes;
}

bool budget_is_spent(const struct budget *b, const struct budget_tunables *t)
{
	return t->bytes_per_second > 0 ? b->tokens <= 0 : b->turn < 1;
}

void budget_settle(struct budget *b, const struct budget_tunables *t, double taken, double used)
{
	if (b->under_way)
		b->under_way--;
	if (t->bytes_per_second <= 0)
		return;
	b->tokens += taken - used;
	if (b->tokens > full(t) * b->share)
		b->tokens = full(t) * b->share;
}
