// SPDX-License-Identifier: GPL-2.0-or-later
/* Power-of-k choice among regions; see choose.h. */
#include "decide/choose.h"

#include <errno.h>

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_U32, choose_tunables, candidates, 8, 1, 1024,
		"k: random regions compared per choice"),
};
TUNABLE_TABLE(choose_tunable_table, "choose", rows);

const char *choose_rule_name(enum choose_rule rule)
{
	static const char *const names[CHOOSE_RULES] = {
		"precise", "approx", "random", "oldest", "hotrap",
	};

	return rule < CHOOSE_RULES ? names[rule] : NULL;
}

static double score_of(enum choose_rule rule, const struct region_view *view,
		       const struct msc *msc)
{
	switch (rule) {
	case CHOOSE_RANDOM:
		return 1.0;
	case CHOOSE_OLDEST:
		return (double)view->age + 1.0;
	case CHOOSE_HOTRAP:
		return hotrap_score(view);
	default:
		return msc->score;
	}
}

static void keep_best(struct choice *best, const struct region_view *view,
		      const struct msc *msc, double score)
{
	if (score <= best->score)
		return;
	best->view = *view;
	best->msc = *msc;
	best->score = score;
}

/* Every rule shares MSC's exclusion: a region with nothing to demote is not a candidate. */
static int scan(struct choice *best, struct choice *oldest, enum choose_rule rule,
		uint32_t k, const struct msc_tunables *msc_tunables,
		uint64_t count, choose_view_fn view_fn, void *ctx, struct prng *prng)
{
	for (uint32_t i = 0; i < k; i++) {
		struct region_view view;
		struct msc msc;

		if (!view_fn(ctx, prng_below(prng, count), &view))
			continue;
		msc_score(&view, msc_tunables, &msc);
		best->looked_at++;
		if (msc.score < 0) {
			best->skipped++;
			continue;
		}
		keep_best(best, &view, &msc, score_of(rule, &view, &msc));
		keep_best(oldest, &view, &msc, (double)view.age + 1.0);
	}
	return best->looked_at == best->skipped ? -ENOENT : 0;
}

int choose_region(struct choice *out, enum choose_rule rule,
		  const struct choose_tunables *t, const struct msc_tunables *msc,
		  uint64_t count, choose_view_fn view, void *ctx, struct prng *prng)
{
	/* Without any benefit to compare, HotRAP takes the oldest: score 0 must not win. */
	struct choice oldest = { .rule = CHOOSE_OLDEST };
	int err;

	*out = (struct choice){ .rule = rule };
	if (!count)
		return -ENOENT;
	err = scan(out, &oldest, rule, t->candidates, msc, count, view, ctx, prng);
	if (err)
		return err;
	if (out->score <= 0) {
		oldest.looked_at = out->looked_at;
		oldest.skipped = out->skipped;
		*out = oldest;
	}
	return 0;
}
