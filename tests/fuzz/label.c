// SPDX-License-Identifier: GPL-2.0-or-later
/* Labels: what is accepted fits its device and comes out again as it went in. */
#include "fuzz.h"

static const struct tr_label good = {
	.version = TERRACE_FORMAT_VERSION, .tier_index = 1, .class = TERRACE_CLASS_NVME,
	.kind = TERRACE_KIND_SLOTS, .flags = TERRACE_LABEL_META, .atomic_bytes = 4096,
	.align_blocks = 1, .device_blocks = 100000, .data_start = 5000, .data_blocks = 95000,
	.meta_start = 16, .meta_blocks = 4000, .name = "volume",
};

static u8 block[TERRACE_BLOCK_BYTES] __aligned(8);

static void decode(void)
{
	static u8 again[TERRACE_BLOCK_BYTES] __aligned(8);
	struct tr_label label, twice;

	if (tr_label_decode(&label, block))
		return;
	hold(label.data_blocks <= label.device_blocks);
	hold(label.data_start <= label.device_blocks - label.data_blocks || !label.data_blocks);
	hold(label.meta_blocks <= label.device_blocks);
	hold(strnlen(label.name, sizeof(label.name)) < sizeof(label.name));
	tr_label_encode(again, &label);
	hold(!tr_label_decode(&twice, again));
	hold(twice.meta_start == label.meta_start && twice.flags == label.flags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	raw(block, sizeof(block), data, size);
	decode();
	tr_label_encode(block, &good);
	patch(block, sizeof(block), data, size);
	seal(block, sizeof(block), offsetof(struct terrace_label_disk, crc));
	decode();
	return 0;
}
