// SPDX-License-Identifier: GPL-2.0-or-later
/* How full a drive says it is inside: NUSE of NCAP, drives whose NUSE says nothing, and what of it the module is told. */
#include <endian.h>
#include <libdevmapper.h>
#include <libnvme.h>

#include "policy_lib.h"

#include "act/physical.h"
#include "log.h"
#include "nvme_disk.h"
#include "sense/room.h"

static struct nvme_id_ns namespace_of(uint64_t nuse, uint64_t ncap, unsigned int lba_shift)
{
	struct nvme_id_ns ns = { .nsze = htole64(ncap), .ncap = htole64(ncap), .nuse = htole64(nuse), .flbas = 1 };

	ns.lbaf[1].ds = lba_shift;
	return ns;
}

static void blocks_are_counted_in_4_kib(void **state)
{
	struct nvme_id_ns ns = namespace_of(800, 1600, 9);
	struct port_room room;

	(void)state;
	assert_true(room_decode(&ns, &room));
	assert_int_equal(room.used, 100);
	assert_int_equal(room.limit, 200);
	ns = namespace_of(800, 1600, 12);
	assert_true(room_decode(&ns, &room));
	assert_int_equal(room.used, 800);
	assert_int_equal(room.limit, 1600);
}

/* "A controller may report NUSE equal to NCAP at all times if the product is not targeted for thin provisioning" */
static void always_full_without_thin_provisioning_is_no_report(void **state)
{
	struct nvme_id_ns ns = namespace_of(1600, 1600, 12);
	struct port_room room;

	(void)state;
	assert_false(room_decode(&ns, &room));
	ns = namespace_of(1601, 1600, 12);
	assert_false(room_decode(&ns, &room));
	ns = namespace_of(1599, 1600, 12);	/* it does count */
	assert_true(room_decode(&ns, &room));
	ns = namespace_of(1600, 1600, 12);
	ns.nsfeat = NVME_NS_FEAT_THIN;		/* it is full */
	assert_true(room_decode(&ns, &room));
	assert_int_equal(room.used, 1600);
	ns.nsfeat = (__u8)~NVME_NS_FEAT_THIN;
	assert_false(room_decode(&ns, &room));
}

static void what_makes_no_sense_is_no_report(void **state)
{
	struct port_room room;
	struct nvme_id_ns ns;

	(void)state;
	for (unsigned int lba_shift = 0; lba_shift < 256; lba_shift++) {
		ns = namespace_of(1, 2, lba_shift);
		assert_int_equal(room_decode(&ns, &room), lba_shift >= 9 && lba_shift <= 30);
	}
	ns = namespace_of(0, 1600, 12);
	assert_false(room_decode(&ns, &room));
	ns = namespace_of(0, 0, 12);
	assert_false(room_decode(&ns, &room));
	ns.nsfeat = NVME_NS_FEAT_THIN;
	assert_false(room_decode(&ns, &room));
}

/* Thinly provisioned it counts: nothing is what it holds, as it does before the first block goes there. */
static void an_empty_thin_namespace_says_so(void **state)
{
	struct nvme_id_ns ns = namespace_of(0, 1600, 12);
	struct port_room room = { .used = 1 };

	(void)state;
	ns.nsfeat = NVME_NS_FEAT_THIN;
	assert_true(room_decode(&ns, &room));
	assert_int_equal(room.used, 0);
	assert_int_equal(room.limit, 1600);
}

/* ---- what is sent on ------------------------------------------------------------------- */

/* A volume whose second tier is at home on a device that there is none of, so it is no zram device either. */
#define TABLE	"4095:1 2 4095:2 nvme slots 4095:3 csd home"

static char table[100], messages[400], said[1000];
static int tasks, tasks_run;

struct dm_task *dm_task_create(int type)
{
	(void)type;
	return (struct dm_task *)&tasks;
}

void dm_task_destroy(struct dm_task *task)
{
	(void)task;
}

int dm_task_set_major(struct dm_task *task, int major)
{
	(void)task;
	assert_int_equal(major, 253);
	return 1;
}

int dm_task_set_minor(struct dm_task *task, int minor)
{
	(void)task;
	assert_int_equal(minor, 7);
	return 1;
}

int dm_task_set_sector(struct dm_task *task, uint64_t sector)
{
	(void)task;
	assert_int_equal(sector, 0);
	return 1;
}

int dm_task_set_message(struct dm_task *task, const char *message)
{
	(void)task;
	strcat(strcat(messages, message), ";");
	return 1;
}

int dm_task_run(struct dm_task *task)
{
	(void)task;
	tasks_run++;
	return 1;
}

const char *dm_task_get_name(const struct dm_task *task)
{
	(void)task;
	return "vol";
}

void *dm_get_next_target(struct dm_task *task, void *next, uint64_t *start, uint64_t *length, char **type, char **words)
{
	static char terrace[] = "terrace";

	(void)task, (void)next;
	*start = 0;
	*length = 1;
	*type = terrace;
	*words = strcpy(table, TABLE);
	return NULL;
}

void log_line(enum log_level level, const char *volume, const char *format, ...)
{
	size_t n = strlen(said);
	va_list args;

	(void)level;
	n += (size_t)snprintf(said + n, sizeof(said) - n, "%s: ", volume);
	va_start(args, format);
	vsnprintf(said + n, sizeof(said) - n, format, args);
	va_end(args);
}

/* No drive may be asked by who calls physical_report(): one that hangs would hold the daemon. */
int nvme_disk_open(unsigned int major, unsigned int minor)
{
	fail_msg("%u:%u is asked in the tick", major, minor);
	return -1;
}

static struct port_room answer;
static int asked, looked;
static bool answers;

static bool has_room(struct health *health, uint32_t tier, unsigned int major, unsigned int minor, bool ask,
		     struct port_room *out)
{
	assert_non_null(health);
	assert_int_equal(tier, 1);
	assert_int_equal(major, 4095);
	assert_int_equal(minor, 3);
	asked += ask;
	looked++;
	*out = answer;
	return answers;
}

static void what_the_thread_has_heard_is_sent_on(void **state)
{
	struct health health = { .room = has_room };
	struct physical_heard heard = { 0 };

	(void)state;
	messages[0] = said[0] = 0;
	asked = 0;
	answers = false;
	assert_int_equal(physical_report(253, 7, &health, 10, &heard), 0);	/* no answer yet */
	assert_int_equal(asked, 1);
	answers = true;
	answer = (struct port_room){ .used = 17, .limit = 100 };
	assert_int_equal(physical_report(253, 7, &health, 12, &heard), 1);
	assert_string_equal(messages, "physical 1 17 100;");
	answers = false;
	assert_int_equal(physical_report(253, 7, &health, 14, &heard), 0);	/* nothing new: the module counts on from that */
	assert_string_equal(messages, "physical 1 17 100;");
	answers = true;
	answer = (struct port_room){ .why = "it hangs" };
	assert_int_equal(physical_report(253, 7, &health, 16, &heard), 0);	/* it has spoken once */
	assert_string_equal(messages, "physical 1 17 100;");
	assert_string_equal(said, "");
	assert_int_equal(asked, 4);
}

static void a_silent_drive_is_told_once(void **state)
{
	struct health health = { .room = has_room };
	struct physical_heard heard = { 0 };

	(void)state;
	messages[0] = said[0] = 0;
	answers = true;
	answer = (struct port_room){ .why = "it hangs" };
	for (int i = 0; i < 3; i++)
		assert_int_equal(physical_report(253, 7, &health, 10 + 2 * i, &heard), 0);
	assert_string_equal(said, "vol: tier 1: its drive does not say how full it is inside (it hangs): taken for never full");
	assert_string_equal(messages, "");
}

/* Or it would undo what the module has counted meanwhile.  The drive is asked no more often for that. */
static void an_answer_is_sent_on_in_the_tick_it_comes_in(void **state)
{
	struct health health = { .room = has_room };
	struct physical_heard heard = { 0 };

	(void)state;
	messages[0] = said[0] = 0;
	asked = looked = tasks_run = 0;
	answers = false;
	for (int i = 0; i < 3; i++)
		assert_int_equal(physical_report(253, 7, &health, 10, &heard), 0);
	assert_int_equal(asked, 1);
	assert_int_equal(looked, 3);
	answers = true;
	answer = (struct port_room){ .used = 17, .limit = 100 };
	assert_int_equal(physical_report(253, 7, &health, 10, &heard), 1);
	assert_string_equal(messages, "physical 1 17 100;");
	assert_int_equal(asked, 1);
	/* There is nothing to look for until it is asked again: not even at the table. */
	answers = false;
	tasks_run = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(physical_report(253, 7, &health, 11, &heard), 0);
	assert_int_equal(looked, 4);
	assert_int_equal(tasks_run, 0);
	assert_int_equal(physical_report(253, 7, &health, 12, &heard), 0);
	assert_int_equal(asked, 2);
	/* What had been said before it was asked is not the answer. */
	answers = true;
	assert_int_equal(physical_report(253, 7, &health, 14, &heard), 1);
	assert_int_equal(asked, 3);
	answer.used = 16;
	assert_int_equal(physical_report(253, 7, &health, 14, &heard), 1);
	assert_string_equal(messages, "physical 1 17 100;physical 1 17 100;physical 1 16 100;");
	assert_int_equal(asked, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_counted_in_4_kib),
		cmocka_unit_test(always_full_without_thin_provisioning_is_no_report),
		cmocka_unit_test(what_makes_no_sense_is_no_report),
		cmocka_unit_test(an_empty_thin_namespace_says_so),
		cmocka_unit_test(what_the_thread_has_heard_is_sent_on),
		cmocka_unit_test(a_silent_drive_is_told_once),
		cmocka_unit_test(an_answer_is_sent_on_in_the_tick_it_comes_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
