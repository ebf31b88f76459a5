/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Codec and cluster for a region on its way down (ZipCache): by temperature, and by
 * what a sample of its blocks gained.
 *
 * Lukewarm blocks will be read again: LZ4, one block per cluster, so a read
 * decodes 4 KiB.  Frozen ones are for keeping: zstd over 4 or 16 blocks, the larger
 * cluster only where it gains enough to pay for decoding 64 KiB per read.  What
 * does not compress is stored as it is and no CPU is spent on it.
 *
 * A gain is input size / output size as the sampler measured it; 0 = not measured,
 * which makes that combination unavailable.
 */
#ifndef DECIDE_CODEC_H
#define DECIDE_CODEC_H

#include <stdint.h>

#include "decide/tunable.h"

enum codec {
	CODEC_NONE,
	CODEC_LZ4,
	CODEC_ZSTD,
};

struct codec_tunables {
	double min_gain;
	double cluster_gain;
	double zstd_gain;
	double frozen;
	uint32_t most_cluster;
	uint32_t frozen_level;
	uint32_t acceleration;
	uint32_t try_again;
	double gain_weight;
};

extern const struct tunable_table codec_tunable_table;

struct codec_sample {
	double lz4;		/* cluster of 1 block */
	double zstd_4;		/* 16 KiB clusters */
	double zstd_16;		/* 64 KiB clusters */
};

struct codec_choice {
	enum codec codec;
	uint32_t cluster;	/* blocks: 1, 4 or 16 */
	uint32_t level;		/* zstd's level, LZ4's acceleration, 0 uncompressed */
};

/* @coldness: mean over the blocks going down, 0..1 (see coldness() in msc.h). */
struct codec_choice codec_choose(const struct codec_tunables *t, double mean_coldness,
				 const struct codec_sample *sample);

#endif
