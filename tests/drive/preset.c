// SPDX-License-Identifier: GPL-2.0
/*
 * Presets: drives with published figures. Documentation/drive-model.md says
 * where each number comes from. A latency is the published 4 KiB figure less
 * the transfer of 4 KiB, since the model adds that.
 */
#include <linux/kernel.h>

#include "drive.h"

#define MB	1000000ULL
#define GB	(1000 * MB)
#define KIB	1024ULL
#define MIB	(1024 * KIB)
#define GIB	(1024 * MIB)

#define COMMON								\
	.powercut = 1, .cache_bytes = 64 * MIB, .atom = 4 * KIB,	\
	.reorder = 1, .survive = 40, .tear = 20, .seed = 1

static const struct drive_config presets[] = {
	{
		/* no time at all: caches, cuts and faults only */
		COMMON,
		.preset = "ram",
		.discard = 1,
		.lbs = 512,
		.pbs = 4096,
		.cache = 1,
		.model.channels = 1,
	}, {
		/* Optane as in PrismDB: 6 us, 2.5 / 2.2 GB/s, in-place, no cache */
		COMMON,
		.preset = "optane",
		.discard = 1,
		.lbs = 4096,
		.pbs = 4096,
		.model.channels = 7,
		.model.read_lat_ns = 4360,
		.model.write_lat_ns = 4140,
		.model.discard_lat_ns = 10000,
		.model.read_bw = 2500 * MB,
		.model.write_bw = 2200 * MB,
	}, {
		/* data centre TLC: 80 us reads, writes into protected RAM 20 us */
		COMMON,
		.preset = "nvme-tlc",
		.discard = 1,
		.lbs = 4096,
		.pbs = 4096,
		.erase_bytes = 24 * MIB,
		.model.channels = 64,
		.model.read_lat_ns = 78720,
		.model.write_lat_ns = 17950,
		.model.flush_lat_ns = 20000,
		.model.discard_lat_ns = 30000,
		.model.read_bw = 3200 * MB,
		.model.write_bw = 2000 * MB,
	}, {
		/* QLC as in PrismDB: 391 us reads; consumer cache, SLC buffer */
		COMMON,
		.preset = "qlc",
		.discard = 1,
		.lbs = 512,
		.cache = 1,
		.pbs = 16 * KIB,
		.io_opt = 16 * KIB,
		.erase_bytes = 96 * MIB,
		.model.channels = 32,
		.model.read_lat_ns = 388720,
		.model.write_lat_ns = 28000,
		.model.flush_lat_ns = 1000000,
		.model.flush_bw = 1000 * MB,
		.model.discard_lat_ns = 50000,
		.model.read_bw = 1800 * MB,
		.model.write_bw = 1800 * MB,
		.model.slc_bytes = 256 * MIB,
		.model.fold_bw = 100 * MB,
		.model.iu_bytes = 16 * KIB,
	}, {
		/* 10,000 rpm: 3.6 ms mean seek and 3 ms half a turn make 6.6 ms */
		COMMON,
		.preset = "hdd",
		.lbs = 512,
		.pbs = 4096,
		.cache = 1,
		.rotational = 1,
		.model.channels = 1,
		.model.seek_min_ns = 700000,
		.model.seek_max_ns = 6137500,
		.model.rev_ns = 6000000,
		.model.read_bw = 200 * MB,
		.model.write_bw = 200 * MB,
		.model.flush_lat_ns = 6000000,
		.model.discard_lat_ns = 100000,
		.model.ahead_bytes = 2 * MIB,
	}, {
		/* the same mean as a constant, whatever the distance */
		COMMON,
		.preset = "hdd-simple",
		.lbs = 512,
		.pbs = 4096,
		.cache = 1,
		.rotational = 1,
		.model.channels = 1,
		.model.read_lat_ns = 6600000,
		.model.write_lat_ns = 6600000,
		.model.flush_lat_ns = 6000000,
		.model.discard_lat_ns = 100000,
	}, {
		/* 7,200 rpm nearline: 8.2 ms mean seek, 4.17 ms half a turn */
		COMMON,
		.preset = "hdd-7200",
		.lbs = 512,
		.pbs = 4096,
		.cache = 1,
		.rotational = 1,
		.model.channels = 1,
		.model.seek_min_ns = 1000000,
		.model.seek_max_ns = 14500000,
		.model.rev_ns = 8333333,
		.model.read_bw = 250 * MB,
		.model.write_bw = 250 * MB,
		.model.flush_lat_ns = 8333333,
		.model.discard_lat_ns = 100000,
		.model.ahead_bytes = 2 * MIB,
	}, {
		/* a block volume over the network: 500 us, 250 MB/s, replicated */
		COMMON,
		.preset = "net",
		.discard = 1,
		.lbs = 512,
		.pbs = 4096,
		.model.channels = 64,
		.model.read_lat_ns = 500000,
		.model.write_lat_ns = 500000,
		.model.flush_lat_ns = 500000,
		.model.discard_lat_ns = 500000,
		.model.read_bw = 250 * MB,
		.model.write_bw = 250 * MB,
	},
};

/* Returns NULL if there is no preset of that name. */
const struct drive_config *drive_preset(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(presets); i++)
		if (!strcmp(presets[i].preset, name))
			return &presets[i];
	return NULL;
}
