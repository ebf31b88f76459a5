// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What every call must refuse: versions that nobody speaks, flags and reserved fields that have no
 * meaning yet, calls before HELLO; and that HELLO's structure may be shorter and longer than the kernel's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "orders.h"

#define SIZED(bytes)	_IOC(_IOC_READ | _IOC_WRITE, TERRACE_IOC, 1, bytes)

static int bad;

static void says(const char *what, int fd, unsigned int call, void *ask, int wanted)
{
	int got = ioctl(fd, call, ask) ? errno : 0;

	if (got == wanted)
		return;
	printf("%s: %s instead of %s\n", what, got ? strerrorname_np(got) : "0", wanted ? strerrorname_np(wanted) : "0");
	bad++;
}

static void is(const char *what, unsigned long long got, unsigned long long wanted)
{
	if (got == wanted)
		return;
	printf("%s: %llu instead of %llu\n", what, got, wanted);
	bad++;
}

static struct terrace_hello speaks(unsigned int min, unsigned int max)
{
	return (struct terrace_hello){ .bytes = sizeof(struct terrace_hello), .min_version = min, .max_version = max };
}

static void versions(int fd)
{
	struct terrace_hello ask = speaks(TERRACE_ABI_MAX + 1, TERRACE_ABI_MAX + 9);
	struct terrace_regions regions = { 0 };

	ask.flags = 8;		/* of a version that we do not know: no matter */
	says("a newer version", fd, TERRACE_IOC_HELLO, &ask, EPROTONOSUPPORT);
	is("the kernel's oldest version", ask.min_version, TERRACE_ABI_MIN);
	is("the kernel's newest version", ask.max_version, TERRACE_ABI_MAX);
	is("the version that was agreed on", ask.version, 0);
	ask = speaks(0, TERRACE_ABI_MIN - 1);
	says("an older version", fd, TERRACE_IOC_HELLO, &ask, EPROTONOSUPPORT);
	says("a call after a HELLO that failed", fd, TERRACE_IOC_REGIONS, &regions, EPROTO);
	ask = speaks(0, TERRACE_ABI_MAX + 9);
	says("any version", fd, TERRACE_IOC_HELLO, &ask, 0);
	is("the version that was agreed on", ask.version, TERRACE_ABI_MAX);
}

/* As of another version: a structure of its own size. */
static void sizes(int fd, const struct terrace_hello *known)
{
	struct {
		struct terrace_hello hello;
		unsigned long long more[4];
	} longer = { .hello = speaks(1, 1) };
	struct terrace_hello ask = speaks(1, 1);
	const unsigned int shorter = offsetof(struct terrace_hello, features);

	memset(&ask.features, 0xaa, sizeof(ask) - shorter);	/* not there */
	ask.bytes = shorter;
	says("a shorter structure", fd, SIZED(shorter), &ask, 0);
	is("its version", ask.version, 1);
	is("its tiers", ask.nr_tiers, known->nr_tiers);
	is("what it does not have", ask.features, 0xaaaaaaaaaaaaaaaaull);
	longer.hello.bytes = sizeof(longer);
	says("a longer structure", fd, SIZED(sizeof(longer)), &longer, 0);
	is("as much as the kernel knows", longer.hello.bytes, sizeof(struct terrace_hello));
	is("the regions it tells", longer.hello.regions, known->regions);
	longer.hello = speaks(1, 1);
	longer.hello.bytes = sizeof(longer);
	longer.more[3] = 1;
	says("a longer structure with something in it", fd, SIZED(sizeof(longer)), &longer, EINVAL);
	longer.hello = speaks(7, 7);
	longer.hello.bytes = sizeof(longer);
	says("the same, of another version", fd, SIZED(sizeof(longer)), &longer, EPROTONOSUPPORT);
	ask = speaks(1, 1);
	ask.bytes = 19;
	says("too short a structure", fd, TERRACE_IOC_HELLO, &ask, EINVAL);
	ask.bytes = 4097;
	says("too long a structure", fd, TERRACE_IOC_HELLO, &ask, EINVAL);
}

#define REFUSED(what, call, type, field, value) do {			\
		type ask = good_##call;					\
									\
		ask.field = (value);					\
		says(what, fd, TERRACE_IOC_##call, &ask, EINVAL);	\
	} while (0)

static void fields(int fd)
{
	static struct terrace_region region;
	const struct terrace_hello good_HELLO = speaks(1, 1);
	const struct terrace_submit good_SUBMIT = { .nr = 1, .order_bytes = sizeof(struct terrace_move), .orders = 8 };
	const struct terrace_cancel good_CANCEL = { .cookie = 1 };
	const struct terrace_consume good_CONSUME = { 0 };
	const struct terrace_regions good_REGIONS = {
		.nr = 1, .region_bytes = sizeof(region), .regions = (uintptr_t)&region,
	};
	const struct terrace_range good_RANGE = { .block = 1 << 14, .nr = 1, .what = TERRACE_RANGE_HINT_NOHEAT };
	const struct terrace_claim good_CLAIM = { .timeout_ms = 1 };
	struct terrace_regions regions = good_REGIONS;
	struct terrace_cancel cancel = good_CANCEL;
	struct terrace_consume consume = good_CONSUME;
	struct terrace_range range = good_RANGE;

	REFUSED("flags of HELLO", HELLO, struct terrace_hello, flags, 1);
	REFUSED("a reserved field of HELLO", HELLO, struct terrace_hello, reserved[3], 1ull << 63);
	REFUSED("flags of SUBMIT", SUBMIT, struct terrace_submit, flags, 2);
	REFUSED("a reserved field of SUBMIT", SUBMIT, struct terrace_submit, reserved[0], 1);
	REFUSED("no orders", SUBMIT, struct terrace_submit, nr, 0);
	REFUSED("too many orders", SUBMIT, struct terrace_submit, nr, 1u << 31);
	REFUSED("orders of another size", SUBMIT, struct terrace_submit, order_bytes, 287);
	REFUSED("flags of CANCEL", CANCEL, struct terrace_cancel, flags, 1);
	REFUSED("a reserved field of CONSUME", CONSUME, struct terrace_consume, reserved, 1);
	REFUSED("results that are not there yet", CONSUME, struct terrace_consume, tail, 1);
	REFUSED("flags of REGIONS", REGIONS, struct terrace_regions, flags, 4);
	REFUSED("a tier without TIER", REGIONS, struct terrace_regions, tier, 1);
	REFUSED("regions of another size", REGIONS, struct terrace_regions, region_bytes, 511);
	REFUSED("flags of RANGE", RANGE, struct terrace_range, flags, 1);
	REFUSED("a reserved field of RANGE", RANGE, struct terrace_range, reserved, 1);
	REFUSED("flags of CLAIM", CLAIM, struct terrace_claim, flags, 1);
	REFUSED("a reserved field of CLAIM", CLAIM, struct terrace_claim, reserved, 1);
	/* and what was changed is what was wrong with them */
	says("REGIONS", fd, TERRACE_IOC_REGIONS, &regions, 0);
	says("CANCEL", fd, TERRACE_IOC_CANCEL, &cancel, 0);
	says("CONSUME", fd, TERRACE_IOC_CONSUME, &consume, 0);
	says("RANGE", fd, TERRACE_IOC_RANGE, &range, 0);
	says("a call that there is not", fd, _IO(TERRACE_IOC, 9), NULL, ENOTTY);
	says("a call of another size", fd, _IOWR(TERRACE_IOC, 3, struct terrace_hello), &cancel, ENOTTY);
}

int do_abi(struct volume *v, const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		die(path);
	versions(fd);
	sizes(fd, &v->hello);
	fields(fd);
	close(fd);
	return bad ? 1 : 0;
}
