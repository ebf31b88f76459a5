// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What speaks for a class, the most certain first. That flash is QLC no drive tells, only its model name.
 */
#include <endian.h>
#include <libnvme.h>
#include <string.h>

#include "names.h"
#include "suggest.h"

#define NSFEAT_ROTATES	(1u << 4)	/* RMEDIA, which libnvme 1.3 has no name for */

static const struct {
	const char *model;	/* part of the name */
	u32 class;
} models[] = {
	{ "Optane", TERRACE_CLASS_OPTANE }, { "INTEL SSDPED1", TERRACE_CLASS_OPTANE },
	{ "INTEL SSDPE21", TERRACE_CLASS_OPTANE }, { "SSDPF21", TERRACE_CLASS_OPTANE },
	{ "XL-FLASH", TERRACE_CLASS_OPTANE },
	{ "QLC", TERRACE_CLASS_QLC }, { "SSDPEKNW", TERRACE_CLASS_QLC },
	{ "SSDPEKNU", TERRACE_CLASS_QLC }, { "SSDPEVNV", TERRACE_CLASS_QLC },
	{ "SSDPF2NV", TERRACE_CLASS_QLC }, { "SSDPFWNV", TERRACE_CLASS_QLC },
	{ "QVO", TERRACE_CLASS_QLC }, { "MTFDDAK7T6QDE", TERRACE_CLASS_QLC },
	{ "6500_ION", TERRACE_CLASS_QLC }, { "5210", TERRACE_CLASS_QLC },
	{ "ScaleFlux", TERRACE_CLASS_CSD }, { "CSD", TERRACE_CLASS_CSD },
};

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static bool is(const char *text, const char *word)
{
	return text && !strcmp(text, word);
}

static bool is_remote(const struct drive_account *drive)
{
	return begins(drive->name, "nbd") || begins(drive->name, "rbd") || begins(drive->name, "drbd") ||
	       is(drive->transport, "tcp") || is(drive->transport, "rdma") || is(drive->transport, "fc");
}

/* The controller says it even where the namespace hides behind multipath. */
static u32 class_of_model(const struct drive_account *drive)
{
	char identified[sizeof(drive->ctrl->mn) + 1] = "";
	const char *model = drive->model;

	if (drive->ctrl) {
		memcpy(identified, drive->ctrl->mn, sizeof(drive->ctrl->mn));
		model = identified;
	}
	for (size_t i = 0; model && i < sizeof(models) / sizeof(models[0]); i++)
		if (strstr(model, models[i].model))
			return models[i].class;
	return 0;
}

/* Kernels before 6.13 say of every NVMe drive that it does not. */
static bool rotates(const struct drive_account *drive)
{
	return drive->rotation == ROTATION_SPINS || (drive->any_ns && drive->any_ns->nsfeat & NSFEAT_ROTATES);
}

/*
 * Thin provisioning alone is no sign: a namespace that is never said to hold less than it shows could not be
 * watched at home. Nor is a NUSE below NCAP alone: ordinary drives count what was trimmed, too. See
 * Documentation/decisions/0007-homes.md.
 */
static bool counts_what_it_holds(const struct nvme_id_ns *ns)
{
	return ns && ns->nsfeat & NVME_NS_FEAT_THIN && le64toh(ns->nuse) < le64toh(ns->nsze);
}

static u32 judge(const struct drive_account *drive, const char **why)
{
	u32 class;

	*why = "reached over a network";
	if (is_remote(drive))
		return TERRACE_CLASS_NET;
	*why = "by its model name";
	class = class_of_model(drive);
	if (class)
		return class;
	*why = "persistent memory";
	if (begins(drive->name, "pmem"))
		return TERRACE_CLASS_OPTANE;
	*why = "compresses inside";
	if (begins(drive->name, "zram"))
		return TERRACE_CLASS_CSD;
	*why = "it rotates";
	if (rotates(drive))
		return TERRACE_CLASS_HDD;
	*why = "thinly provisioned, and NUSE counts what it holds, as drives do that compress inside";
	if (counts_what_it_holds(drive->ns))
		return TERRACE_CLASS_CSD;
	*why = "an NVMe drive";
	if (begins(drive->name, "nvme"))
		return TERRACE_CLASS_NVME;
	*why = "flash: it does not rotate";
	if (drive->rotation == ROTATION_NONE)
		return TERRACE_CLASS_NVME;
	*why = "not even whether it rotates is known";
	return 0;
}

struct suggestion suggest(const struct drive_account *drive)
{
	struct suggestion s = { 0 };

	if (is(drive->zoned, "host-managed")) {
		s.refused = true;
		s.why = "a zoned drive, which takes writes only in the order of its zones";
		return s;
	}
	s.class = judge(drive, &s.why);
	s.kind = s.class ? class_default_kind(s.class) : 0;
	return s;
}
