// SPDX-License-Identifier: GPL-2.0-or-later
/* Marks into a record of drives: see mark.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "mark.h"
#include "oracle.h"

int mark_open(const struct options *o, const struct ledger *l)
{
	int fd = -1;

	if (!o->marks)
		return fd;
	fd = open(o->marks, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (fd < 0)
		trouble("%s: %s", o->marks, strerror(errno));
	mark(fd, (struct mark){ .kind = MARK_NEW, .count = ledger_blocks(l), .version = ledger_salt(l) });
	return fd;
}

void mark(int fd, struct mark m)
{
	m.magic = MARK_MAGIC;
	if (fd >= 0 && write(fd, &m, sizeof(m)) != sizeof(m))
		trouble("a mark cannot be written: %s", strerror(errno));
}

void mark_close(int fd)
{
	if (fd >= 0)
		close(fd);
}
