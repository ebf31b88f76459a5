// SPDX-License-Identifier: GPL-2.0-or-later
/* Which codec and cluster a pack gets; see codec.h. */
#include "decide/codec.h"

static const struct tunable rows[] = {
	TUNABLE(TUNABLE_DOUBLE, codec_tunables, min_gain, 1.1, 1.0, 10.0,
		"gain below which blocks are stored uncompressed"),
	TUNABLE(TUNABLE_DOUBLE, codec_tunables, cluster_gain, 1.08, 1.0, 10.0,
		"gain of 16-block over 4-block clusters that pays for the longer decode"),
	TUNABLE(TUNABLE_DOUBLE, codec_tunables, zstd_gain, 1.05, 1.0, 10.0,
		"gain of zstd over LZ4 below which frozen blocks stay with LZ4"),
	TUNABLE(TUNABLE_DOUBLE, codec_tunables, frozen, 0.9, 0.0, 1.0,
		"mean coldness from which blocks count as frozen"),
	TUNABLE(TUNABLE_U32, codec_tunables, most_cluster, 16, 1, 16,
		"blocks of a cluster of frozen ones, at most: below 4 each is alone, below 16 there are 4"),
	TUNABLE(TUNABLE_U32, codec_tunables, frozen_level, 3, 1, 19, "zstd level"),
	TUNABLE(TUNABLE_U32, codec_tunables, acceleration, 1, 1, 64,
		"LZ4's acceleration: 8 fills a drive of 250 MB/s with 2 CPUs, and gains a sixth less"),
	TUNABLE(TUNABLE_U32, codec_tunables, try_again, 64, 1, 1000000000,
		"where no samples come: decisions after which a codec that gained too little is tried once more"),
	TUNABLE(TUNABLE_DOUBLE, codec_tunables, gain_weight, 0.1, 0.001, 1.0,
		"weight of one result or sample in what is known of a codec's gain, for orders that have no sample"),
};
TUNABLE_TABLE(codec_tunable_table, "codec", rows);

static struct codec_choice lukewarm(const struct codec_tunables *t,
				    const struct codec_sample *s)
{
	if (s->lz4 >= t->min_gain)
		return (struct codec_choice){ CODEC_LZ4, 1, t->acceleration };
	return (struct codec_choice){ CODEC_NONE, 1, 0 };
}

struct codec_choice codec_choose(const struct codec_tunables *t, double mean_coldness,
				 const struct codec_sample *s)
{
	const int wide = t->most_cluster >= 16 && s->zstd_16 >= s->zstd_4 * t->cluster_gain;
	const double zstd = wide ? s->zstd_16 : s->zstd_4;
	const uint32_t narrow = t->most_cluster >= 4 ? 4 : 1;

	if (mean_coldness < t->frozen)
		return lukewarm(t, s);
	if (zstd < t->min_gain || zstd < s->lz4 * t->zstd_gain)
		return lukewarm(t, s);
	return (struct codec_choice){ CODEC_ZSTD, wide ? 16 : narrow, t->frozen_level };
}
