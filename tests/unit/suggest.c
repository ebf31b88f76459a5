// SPDX-License-Identifier: GPL-2.0-or-later
/* Class and kind proposed for a drive, from what it says of itself, and the reason that is given. */
#include <libnvme.h>

#include "policy_lib.h"

#include "../../daemon/ctl/names.c"
#include "../../daemon/ctl/suggest.c"

static struct nvme_id_ctrl ctrl;

/* As Identify has it: padded with spaces, without an end. */
static struct drive_account nvme(const char *model)
{
	memset(ctrl.mn, ' ', sizeof(ctrl.mn));
	memcpy(ctrl.mn, model, strlen(model));
	return (struct drive_account){ .name = "nvme0n1", .transport = "pcie", .zoned = "none",
				       .rotation = ROTATION_NONE, .ctrl = &ctrl };
}

static struct drive_account disk(const char *name, const char *model, enum rotation rotation)
{
	return (struct drive_account){ .name = name, .model = model, .zoned = "none", .rotation = rotation };
}

static void assert_suggested(const struct drive_account *drive, u32 class, u32 kind, const char *why)
{
	struct suggestion s = suggest(drive);

	assert_string_equal(s.why, why);
	assert_int_equal(s.class, class);
	assert_int_equal(s.kind, kind);
	assert_false(s.refused);
}

static void model_names_tell_optane_qlc_and_drives_that_compress(void **state)
{
	static const struct {
		const char *model;
		u32 class, kind;
	} all[] = {
		{ "INTEL SSDPE21D280GA", TERRACE_CLASS_OPTANE, TERRACE_KIND_SLOTS },
		{ "INTEL SSDPF21Q800GB", TERRACE_CLASS_OPTANE, TERRACE_KIND_SLOTS },
		{ "INTEL SSDPEKNW010T8", TERRACE_CLASS_QLC, TERRACE_KIND_SHELVES },
		{ "INTEL SSDPF2NV153TZ", TERRACE_CLASS_QLC, TERRACE_KIND_SHELVES },
		{ "CSD-3310", TERRACE_CLASS_CSD, TERRACE_KIND_HOME },
		{ "ScaleFlux CSD-2000", TERRACE_CLASS_CSD, TERRACE_KIND_HOME },
		{ "Intel Optane SSD DC P5800X with 40 chars", TERRACE_CLASS_OPTANE, TERRACE_KIND_SLOTS },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct drive_account drive = nvme(all[i].model);

		assert_suggested(&drive, all[i].class, all[i].kind, "by its model name");
	}
}

/* What Identify says goes before what the kernel says; where it says nothing that is left. */
static void the_drive_itself_is_heard_first(void **state)
{
	struct drive_account drive = nvme("Samsung SSD 980 PRO 1TB");

	(void)state;
	drive.model = "INTEL SSDPEKNW010T8";
	assert_suggested(&drive, TERRACE_CLASS_NVME, TERRACE_KIND_SLOTS, "an NVMe drive");
	drive.ctrl = NULL;
	assert_suggested(&drive, TERRACE_CLASS_QLC, TERRACE_KIND_SHELVES, "by its model name");
	drive = disk("sda", "Samsung SSD 870 QVO 1TB", ROTATION_NONE);
	assert_suggested(&drive, TERRACE_CLASS_QLC, TERRACE_KIND_SHELVES, "by its model name");
}

static void other_flash_is_nvme(void **state)
{
	struct drive_account drive = nvme("SAMSUNG MZQL23T8HCLS-00A07");

	(void)state;
	assert_suggested(&drive, TERRACE_CLASS_NVME, TERRACE_KIND_SLOTS, "an NVMe drive");
	drive = disk("sda", "Samsung SSD 860 EVO 1TB", ROTATION_NONE);
	assert_suggested(&drive, TERRACE_CLASS_NVME, TERRACE_KIND_SLOTS, "flash: it does not rotate");
}

static void what_rotates_is_hdd(void **state)
{
	struct drive_account drive = disk("sda", "ST8000NM000A-2KE1", ROTATION_SPINS);

	(void)state;
	assert_suggested(&drive, TERRACE_CLASS_HDD, TERRACE_KIND_SHELVES, "it rotates");
}

/* Of an NVMe drive old kernels do not know it: the drive is asked. */
static void an_nvme_drive_that_rotates_is_hdd(void **state)
{
	struct nvme_id_independent_id_ns any_ns = { .nsfeat = (__u8)~NSFEAT_ROTATES };
	struct drive_account drive = nvme("ST24000NM000E-3KS133");

	(void)state;
	drive.any_ns = &any_ns;
	assert_suggested(&drive, TERRACE_CLASS_NVME, TERRACE_KIND_SLOTS, "an NVMe drive");
	any_ns.nsfeat = NSFEAT_ROTATES;
	assert_suggested(&drive, TERRACE_CLASS_HDD, TERRACE_KIND_SHELVES, "it rotates");
	drive.any_ns = NULL;
	drive.rotation = ROTATION_SPINS;
	assert_suggested(&drive, TERRACE_CLASS_HDD, TERRACE_KIND_SHELVES, "it rotates");
}

#define THIN "thinly provisioned, and NUSE counts what it holds, as drives do that compress inside"

static struct nvme_id_ns namespace_of(uint64_t nsze, uint64_t ncap, uint64_t nuse, __u8 nsfeat)
{
	return (struct nvme_id_ns){ .nsze = htole64(nsze), .ncap = htole64(ncap), .nuse = htole64(nuse), .nsfeat = nsfeat };
}

static void a_thin_namespace_that_counts_what_it_holds_is_csd(void **state)
{
	static const struct {
		uint64_t nsze, ncap, nuse;
	} all[] = {
		{ 1ull << 32, 1ull << 31, 1ull << 20 },	/* more blocks than flash */
		{ 1ull << 32, 1ull << 31, 1ull << 31 },	/* the same, full */
		{ 1ull << 32, 1ull << 32, 1 },
		{ 1ull << 32, 1ull << 32, 0 },		/* nothing written yet */
	};
	struct drive_account drive = nvme("a name that tells nothing");

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct nvme_id_ns ns = namespace_of(all[i].nsze, all[i].ncap, all[i].nuse, NVME_NS_FEAT_THIN);

		drive.ns = &ns;
		assert_suggested(&drive, TERRACE_CLASS_CSD, TERRACE_KIND_HOME, THIN);
		ns.nsfeat = 0xff;
		assert_suggested(&drive, TERRACE_CLASS_CSD, TERRACE_KIND_HOME, THIN);
	}
}

/* Ordinary drives: NUSE is NSZE always, or counts what was trimmed; it says nothing of compression then. */
static void an_ordinary_namespace_is_nvme_whatever_it_counts(void **state)
{
	static const uint64_t nuse[] = { 0, 1, 0x6b6b9548, 0x773bd2b0, UINT64_MAX };
	struct drive_account drive = nvme("a name that tells nothing");
	struct nvme_id_ns ns;

	(void)state;
	drive.ns = &ns;
	for (size_t i = 0; i < sizeof(nuse) / sizeof(nuse[0]); i++) {
		ns = namespace_of(0x773bd2b0, 0x773bd2b0, nuse[i], (__u8)~NVME_NS_FEAT_THIN);
		assert_suggested(&drive, TERRACE_CLASS_NVME, TERRACE_KIND_SLOTS, "an NVMe drive");
	}
	/* Against the specification, but seen: less capacity than size without thin provisioning. */
	ns = namespace_of(0x1c400000, 0xedb2800, 0x21a800, NVME_NS_FEAT_NATOMIC);
	assert_suggested(&drive, TERRACE_CLASS_NVME, TERRACE_KIND_SLOTS, "an NVMe drive");
	/* Thick, though it could be thin: nothing would tell when a home is full. */
	ns = namespace_of(1 << 20, 1 << 20, 1 << 20, NVME_NS_FEAT_THIN);
	assert_suggested(&drive, TERRACE_CLASS_NVME, TERRACE_KIND_SLOTS, "an NVMe drive");
}

/* What is more certain goes first. */
static void thin_and_something_else(void **state)
{
	struct nvme_id_ns ns = namespace_of(1 << 20, 1 << 19, 1 << 10, NVME_NS_FEAT_THIN);
	struct drive_account drive = nvme("INTEL SSDPE21D280GA");

	(void)state;
	drive.ns = &ns;
	assert_suggested(&drive, TERRACE_CLASS_OPTANE, TERRACE_KIND_SLOTS, "by its model name");
	drive = nvme("a name that tells nothing");
	drive.ns = &ns;
	drive.rotation = ROTATION_SPINS;
	assert_suggested(&drive, TERRACE_CLASS_HDD, TERRACE_KIND_SHELVES, "it rotates");
	drive.transport = "tcp";	/* a storage system's volume */
	assert_suggested(&drive, TERRACE_CLASS_NET, TERRACE_KIND_SHELVES, "reached over a network");
}

static void drivers_tell_by_their_names(void **state)
{
	struct drive_account drive = disk("zram0", NULL, ROTATION_NONE);

	(void)state;
	assert_suggested(&drive, TERRACE_CLASS_CSD, TERRACE_KIND_HOME, "compresses inside");
	drive = disk("pmem0", NULL, ROTATION_NONE);
	assert_suggested(&drive, TERRACE_CLASS_OPTANE, TERRACE_KIND_SLOTS, "persistent memory");
}

/* Whatever it is at the other end. */
static void what_is_behind_a_network_is_net(void **state)
{
	static const char *const transports[] = { "tcp", "rdma", "fc" }, *const names[] = { "nbd0", "rbd0", "drbd0" };
	struct drive_account drive = nvme("INTEL SSDPE21D280GA");

	(void)state;
	for (int i = 0; i < 3; i++) {
		drive.transport = transports[i];
		assert_suggested(&drive, TERRACE_CLASS_NET, TERRACE_KIND_SHELVES, "reached over a network");
	}
	for (int i = 0; i < 3; i++) {
		drive = disk(names[i], NULL, ROTATION_SPINS);
		assert_suggested(&drive, TERRACE_CLASS_NET, TERRACE_KIND_SHELVES, "reached over a network");
	}
}

static void zones_that_must_be_written_in_order_are_refused(void **state)
{
	struct drive_account drive = nvme("WZS4C8T4TDSP303");
	struct suggestion s;

	(void)state;
	drive.zoned = "host-managed";
	s = suggest(&drive);
	assert_true(s.refused);
	assert_int_equal(s.class, 0);
	assert_string_equal(s.why, "a zoned drive, which takes writes only in the order of its zones");
	drive.transport = "tcp";
	assert_true(suggest(&drive).refused);
	drive = disk("sda", "ST8000AS0022", ROTATION_SPINS);
	drive.zoned = "host-aware";	/* it takes them in any */
	assert_suggested(&drive, TERRACE_CLASS_HDD, TERRACE_KIND_SHELVES, "it rotates");
}

static void nothing_told_is_nothing_suggested(void **state)
{
	struct drive_account drive = { .name = "" };

	(void)state;
	assert_suggested(&drive, 0, 0, "not even whether it rotates is known");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(model_names_tell_optane_qlc_and_drives_that_compress),
		cmocka_unit_test(the_drive_itself_is_heard_first),
		cmocka_unit_test(other_flash_is_nvme),
		cmocka_unit_test(what_rotates_is_hdd),
		cmocka_unit_test(an_nvme_drive_that_rotates_is_hdd),
		cmocka_unit_test(a_thin_namespace_that_counts_what_it_holds_is_csd),
		cmocka_unit_test(an_ordinary_namespace_is_nvme_whatever_it_counts),
		cmocka_unit_test(thin_and_something_else),
		cmocka_unit_test(drivers_tell_by_their_names),
		cmocka_unit_test(what_is_behind_a_network_is_net),
		cmocka_unit_test(zones_that_must_be_written_in_order_are_refused),
		cmocka_unit_test(nothing_told_is_nothing_suggested),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
