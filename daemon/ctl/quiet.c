// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Standing still, and asked. See quiet.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "quiet.h"

static u64 word_of(const char *status, const char *word)
{
	const char *at = strstr(status, word);

	return at ? strtoull(at + strlen(word), NULL, 10) : 0;
}

/* Did the module write down what it has acknowledged? If not, or if it does not say that it did: what would be lost. */
static char *unwritten(const char *device)
{
	struct dm_line line;
	u64 records;

	if (!dm_status_line(device, &line) && !strcmp(line.params, "not started"))
		return NULL;
	if (strstr(line.params, "mode=fail") || !strstr(line.params, " records="))
		return ctl_text("it");
	records = word_of(line.params, " records=") - word_of(line.params, " durable=");
	if (!records || strstr(line.params, "mode=write "))
		return NULL;
	return ctl_text("%llu record%s of its journal", (unsigned long long)records, records == 1 ? "" : "s");
}

void quiet_end(const char *device)
{
	/* Or it would be stopped by whoever resumes it next. */
	if (!dm_clear(device))
		dm_resume(device, false);
}

int quiet_begin(const char *device, const char *name)
{
	int r = dm_suspend(device, false);
	char *what = r ? NULL : unwritten(device);

	if (!r && !what)
		return 0;
	quiet_end(device);
	if (r)
		return r;
	ctl_error("what was last written to '%s' cannot be written to its devices: it is not stopped, for %s would be lost. Copy what is needed from " DM_FOLDER "%s, which can be read; then unmount it, and: terracectl deactivate --force %s",
		  name, what, name, name);
	free(what);
	return -EROFS;
}
