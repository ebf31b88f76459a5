/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples of what regions hold: a few blocks are read from the volume (io_uring, nobody waits) and
 * compressed, to learn which codec would gain what.  What was read is not kept.  To look does not
 * warm: who drives a volume is not heard by the senses.
 */
#ifndef TERRACE_ACT_SAMPLER_H
#define TERRACE_ACT_SAMPLER_H

#include "port.h"

struct sampler;

/* @disk: of the volume, /dev/dm-3.  0 or -errno. */
int sampler_open(struct sampler **out, const char *disk);
void sampler_close(struct sampler *s);

/* @blocks ascend. -EBUSY: as many as can be are under way; or why the disk cannot be opened. */
int sampler_ask(struct sampler *s, uint64_t region, const uint64_t *blocks);
/* What has come since; their number. */
int sampler_gains(struct sampler *s, struct port_gain *out, uint32_t most);

/* Input size over output size of PORT_SAMPLE_BLOCKS blocks; 1 for what does not shrink. */
void sampler_measure(const void *blocks, struct port_gain *out);

#endif
