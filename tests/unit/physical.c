// SPDX-License-Identifier: GPL-2.0-or-later
/* How full a drive says it is inside: NUSE of NCAP, and drives whose NUSE says nothing. */
#include <endian.h>
#include <libnvme.h>

#include "policy_lib.h"

#include "act/physical.h"

static struct nvme_id_ns namespace_of(uint64_t nuse, uint64_t ncap, unsigned int lba_shift)
{
	struct nvme_id_ns ns = { .nsze = htole64(ncap), .ncap = htole64(ncap), .nuse = htole64(nuse), .flbas = 1 };

	ns.lbaf[1].ds = lba_shift;
	return ns;
}

static void blocks_are_counted_in_4_kib(void **state)
{
	struct nvme_id_ns ns = namespace_of(800, 1600, 9);
	struct physical_room room;

	(void)state;
	assert_true(physical_decode(&ns, &room));
	assert_int_equal(room.used, 100);
	assert_int_equal(room.limit, 200);
	ns = namespace_of(800, 1600, 12);
	assert_true(physical_decode(&ns, &room));
	assert_int_equal(room.used, 800);
	assert_int_equal(room.limit, 1600);
}

/* "A controller may report NUSE equal to NCAP at all times if the product is not targeted for thin provisioning" */
static void always_full_without_thin_provisioning_is_no_report(void **state)
{
	struct nvme_id_ns ns = namespace_of(1600, 1600, 12);
	struct physical_room room;

	(void)state;
	assert_false(physical_decode(&ns, &room));
	ns = namespace_of(1601, 1600, 12);
	assert_false(physical_decode(&ns, &room));
	ns = namespace_of(1599, 1600, 12);	/* it does count */
	assert_true(physical_decode(&ns, &room));
	ns = namespace_of(1600, 1600, 12);
	ns.nsfeat = NVME_NS_FEAT_THIN;		/* it is full */
	assert_true(physical_decode(&ns, &room));
	assert_int_equal(room.used, 1600);
	ns.nsfeat = (__u8)~NVME_NS_FEAT_THIN;
	assert_false(physical_decode(&ns, &room));
}

static void what_makes_no_sense_is_no_report(void **state)
{
	struct physical_room room;
	struct nvme_id_ns ns;

	(void)state;
	for (unsigned int lba_shift = 0; lba_shift < 256; lba_shift++) {
		ns = namespace_of(1, 2, lba_shift);
		assert_int_equal(physical_decode(&ns, &room), lba_shift >= 9 && lba_shift <= 30);
	}
	ns = namespace_of(0, 1600, 12);
	assert_false(physical_decode(&ns, &room));
	ns = namespace_of(0, 0, 12);
	assert_false(physical_decode(&ns, &room));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_counted_in_4_kib),
		cmocka_unit_test(always_full_without_thin_provisioning_is_no_report),
		cmocka_unit_test(what_makes_no_sense_is_no_report),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
