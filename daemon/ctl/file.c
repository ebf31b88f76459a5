// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Putting a file in the place of another. See file.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"

int file_put(const char *path, const void *data, size_t bytes)
{
	char *beside = ctl_text("%s.new", path);
	FILE *f = fopen(beside, "we");
	int r = 0;

	if (!f || fwrite(data, 1, bytes, f) != bytes || fflush(f) || fsync(fileno(f)))
		r = -errno;
	if (f && fclose(f) && !r)
		r = -errno;
	if (!r && rename(beside, path))
		r = -errno;
	if (r)
		ctl_error("%s: cannot be written: %s", path, strerror(-r));
	if (r && f)
		unlink(beside);
	free(beside);
	return r;
}
