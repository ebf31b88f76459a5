/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an NVMe drive says about itself.
 */
#ifndef TERRACE_CTL_NVME_H
#define TERRACE_CTL_NVME_H

/* Bytes that a write keeps whole across a power cut, at any multiple of 4 KiB;
 * 0: not an NVMe drive, or it cannot be asked.
 */
unsigned int nvme_atomic_bytes(int fd);

#endif
