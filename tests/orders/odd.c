// SPDX-License-Identifier: GPL-2.0-or-later
/* Orders from memory that is not there, and orders whose giver does not wait for them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "orders.h"

int do_given(struct volume *v, const char *path)
{
	struct terrace_submit submit = { .nr = 1, .order_bytes = sizeof(struct terrace_move) };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *page = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

	if (page == MAP_FAILED)
		die(path);
	submit.orders = (uintptr_t)page;
	puts(ioctl(v->fd, TERRACE_IOC_SUBMIT, &submit) ? strerrorname_np(errno) : "taken");
	return 0;
}

int do_left(struct volume *v, const struct terrace_move *move)
{
	struct terrace_submit submit = {
		.orders = (uintptr_t)move, .nr = 1, .order_bytes = sizeof(*move),
	};

	if (ioctl(v->fd, TERRACE_IOC_SUBMIT, &submit))
		die("SUBMIT");
	puts("given");
	fflush(stdout);
	pause();
	return 0;
}
