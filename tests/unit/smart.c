// SPDX-License-Identifier: GPL-2.0-or-later
/* SMART: the log decoded byte by byte, and drives that have none. */
#include <errno.h>
#include <libnvme.h>
#include <unistd.h>

#include "policy_lib.h"

#include "nvme_disk.h"
#include "sense/health.h"
#include "sense/smart.h"

/* Offsets of the NVMe base specification, figure "SMART / Health Information Log Page". */
static void the_log_is_decoded(void **state)
{
	unsigned char raw[512] = { 0 };
	struct smart s;

	(void)state;
	assert_int_equal(sizeof(struct nvme_smart_log), sizeof(raw));
	raw[0] = 0x05;
	raw[3] = 97;
	raw[4] = 10;
	raw[5] = 143;		/* may exceed 100 */
	raw[48] = 0x10;		/* data units written: 0x10 + 2^40 */
	raw[53] = 1;
	smart_decode((const struct nvme_smart_log *)raw, &s);
	assert_near(s.written_bytes, (16 + 1099511627776.0) * 512000, 1);
	assert_int_equal(s.percent_used, 143);
	assert_int_equal(s.spare_percent, 97);
	assert_int_equal(s.spare_threshold, 10);
	assert_int_equal(s.critical, 5);
	memset(raw, 0, sizeof(raw));
	raw[63] = 1;		/* the highest byte: no overflow */
	smart_decode((const struct nvme_smart_log *)raw, &s);
	assert_true(s.written_bytes > 1e41);
}

static void other_devices_have_none(void **state)
{
	struct smart s;
	bool unknown = false;

	(void)state;
	assert_false(nvme_disk_is(4095, 7));
	assert_int_equal(smart_read(4095, 7, &s), -ENOENT);
	assert_null(health_open(4095, 7, &unknown));
	assert_true(unknown);
	/* A disk that is there and is no NVMe drive, if there is any. */
	for (unsigned int m = 1; m < 260; m++) {
		char path[64];

		snprintf(path, sizeof(path), "/sys/dev/block/%u:0/loop", m);
		if (access(path, F_OK))
			continue;
		assert_false(nvme_disk_is(m, 0));
		assert_int_equal(smart_read(m, 0, &s), -EOPNOTSUPP);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_log_is_decoded),
		cmocka_unit_test(other_devices_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
