/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Class and kind of a drive, judged from what it says of itself. Pure: who asks the drive is classify.c.
 */
#ifndef TERRACE_CTL_SUGGEST_H
#define TERRACE_CTL_SUGGEST_H

#include <stdbool.h>
#include <linux/types.h>

struct nvme_id_ctrl;
struct nvme_id_ns;
struct nvme_id_independent_id_ns;

enum rotation {
	ROTATION_UNTOLD,
	ROTATION_NONE,
	ROTATION_SPINS,
};

/* Strings are NULL where nothing is told. */
struct drive_account {
	const char *name;		/* the kernel's: "nvme0n1", "sda" */
	const char *model;		/* as the kernel knows it */
	const char *transport;		/* of an NVMe controller: "pcie", "tcp" */
	const char *zoned;		/* "none", "host-aware", "host-managed" */
	enum rotation rotation;
	/* NULL: no NVMe drive, or it could not be asked */
	const struct nvme_id_ctrl *ctrl;
	const struct nvme_id_ns *ns;
	const struct nvme_id_independent_id_ns *any_ns;	/* what namespaces of all command sets tell */
};

struct suggestion {
	u32 class, kind;	/* 0 when nothing speaks for any */
	bool refused;		/* no tier at all, whatever class it is given */
	const char *why;	/* a phrase, static */
};

/* @drive->name is not NULL. */
struct suggestion suggest(const struct drive_account *drive);

#endif
