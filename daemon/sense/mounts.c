// SPDX-License-Identifier: GPL-2.0-or-later
/* See mounts.h. */
#include "sense/mounts.h"

#include <errno.h>
#include <string.h>

#define LINE	4096	/* of the list; cut if longer */

/* How a mount was met in this look, the best last. */
enum { UNSEEN, IN_PART, AS_A_WHOLE, WHERE_IT_WAS };

static struct mount *mount_of(struct mounts *ms, uint32_t dev)
{
	for (int i = 0; i < MOUNTS; i++)
		if (ms->mount[i].path[0] && mount_dev(&ms->mount[i]) == dev)
			return &ms->mount[i];
	return NULL;
}

static void drop(struct mounts *ms, struct mount *m)
{
	if (m->told)
		ms->tell.unmounted(ms->tell.ctx, m);
	memset(m, 0, sizeof(*m));
}

static void refuse(struct mounts *ms, uint32_t dev, const char *path, const char *why)
{
	for (int i = 0; i < MOUNTS; i++)
		if (ms->refused[i] == dev)
			return;
	ms->refused[ms->nr_refused++ % MOUNTS] = dev;
	ms->tell.refused(ms->tell.ctx, path, why);
}

/* ---- what lies below ---------------------------------------------------------------------- */

/* Is all that had a place where it was? */
static bool extends(const struct stack *before, const struct stack *now)
{
	if (now->nr < before->nr)
		return false;
	for (uint32_t i = 0; i < before->nr; i++) {
		const struct stack_piece *a = &before->piece[i], *b = &now->piece[i];

		if (a->from != b->from || a->to != b->to || a->length > b->length)
			return false;
	}
	return true;
}

static void look_below(struct mounts *ms, struct mount *m)
{
	struct stack now;
	bool moved;

	if (m->round == ms->round)
		return;
	m->round = ms->round;
	if (stack_find(m->major, m->minor, ms->major, ms->minor, &now)) {
		refuse(ms, mount_dev(m), m->path, "devices below it have changed: it does not lie on the volume alone any more");
		drop(ms, m);
		return;
	}
	moved = !extends(&m->stack, &now);
	m->stack = now;
	if (moved && m->told)
		ms->tell.restacked(ms->tell.ctx, m);
}

const struct mount *mounts_now(struct mounts *ms, uint32_t dev)
{
	struct mount *m = mount_of(ms, dev);

	if (m)
		look_below(ms, m);
	return m && m->path[0] ? m : NULL;
}

void mounts_round(struct mounts *ms)
{
	ms->round++;
}

/* ---- the list of mounts --------------------------------------------------------------------- */

static const char *why_not(int err)
{
	return err == -E2BIG ? "it lies on the volume in too many pieces" :
	       "only part of it lies on the volume, or through devices that do more than move blocks";
}

static struct mount *add(struct mounts *ms, unsigned int major, unsigned int minor, const char *path, bool xfs)
{
	struct mount *m = NULL, one = { .major = major, .minor = minor, .xfs = xfs, .round = ms->round };
	int err = stack_find(major, minor, ms->major, ms->minor, &one.stack);

	if (err) {
		if (one.stack.nr)
			refuse(ms, mount_dev(&one), path, why_not(err));
		return NULL;
	}
	for (int i = 0; !m && i < MOUNTS; i++)
		if (!ms->mount[i].path[0])
			m = &ms->mount[i];
	if (!m || strlen(path) >= MOUNT_PATH) {
		refuse(ms, mount_dev(&one), path, m ? "its path is too long" : "too many filesystems lie on the volume");
		return NULL;
	}
	*m = one;
	for (int i = 0; i < MOUNTS; i++)	/* should it have to be refused again, that is news */
		if (ms->refused[i] == mount_dev(&one))
			ms->refused[i] = 0;
	snprintf(m->path, sizeof(m->path), "%.*s", MOUNT_PATH - 1, path);
	return m;
}

static bool is_octal(const char *digits)
{
	for (int i = 0; i < 3; i++)
		if (digits[i] < '0' || digits[i] > '7')
			return false;
	return true;
}

/* "a\040b": the list escapes space, tab, end of line and backslash. */
static void decode(char *path)
{
	char *to = path;

	for (const char *from = path; *from; from++) {
		if (*from != '\\' || !is_octal(from + 1)) {
			*to++ = *from;
			continue;
		}
		*to++ = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
		from += 3;
	}
	*to = 0;
}

static void met(struct mount *m, const char *path, bool whole)
{
	uint8_t seen = whole ? AS_A_WHOLE : IN_PART;

	if (m->told && !strcmp(m->path, path))
		seen = WHERE_IT_WAS;
	if (seen <= m->seen || strlen(path) >= MOUNT_PATH)
		return;
	m->seen = seen;
	snprintf(m->other, sizeof(m->other), "%.*s", MOUNT_PATH - 1, path);
}

/* "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw" */
static void read_line(struct mounts *ms, const char *line)
{
	const char *dash = strstr(line, " - ");
	char root[LINE], path[LINE], type[32];
	unsigned int major, minor;
	struct mount *m;
	bool xfs;

	if (!dash || sscanf(line, "%*d %*d %u:%u %4095s %4095s", &major, &minor, root, path) != 4 ||
	    sscanf(dash, " - %31s", type) != 1 || (strcmp(type, "ext4") && strcmp(type, "xfs")))
		return;
	xfs = !strcmp(type, "xfs");
	decode(path);
	m = mount_of(ms, major << 20 | minor);
	if (m && m->xfs != xfs) {	/* made anew */
		drop(ms, m);
		m = NULL;
	}
	if (!m)
		m = add(ms, major, minor, path, xfs);
	if (m)
		met(m, path, !strcmp(root, "/"));
}

static void settle(struct mounts *ms, struct mount *m)
{
	if (!m->seen) {
		drop(ms, m);
		return;
	}
	memcpy(m->path, m->other, sizeof(m->path));
	if (!m->told && ms->tell.mounted(ms->tell.ctx, m)) {
		memset(m, 0, sizeof(*m));
		return;
	}
	m->told = true;
	look_below(ms, m);
}

void mounts_read(struct mounts *ms, FILE *f)
{
	char line[LINE];

	for (int i = 0; i < MOUNTS; i++)
		ms->mount[i].seen = UNSEEN;
	while (fgets(line, sizeof(line), f))
		read_line(ms, line);
	for (int i = 0; i < MOUNTS; i++)
		if (ms->mount[i].path[0])
			settle(ms, &ms->mount[i]);
}

void mounts_look(struct mounts *ms)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");

	if (!f)
		return;
	mounts_read(ms, f);
	fclose(f);
}

uint32_t mounts_count(const struct mounts *ms)
{
	uint32_t n = 0;

	for (int i = 0; i < MOUNTS; i++)
		n += ms->mount[i].path[0] != 0;
	return n;
}

void mounts_init(struct mounts *ms, unsigned int major, unsigned int minor, const struct mounts_tell *tell)
{
	ms->tell = *tell;
	ms->major = major;
	ms->minor = minor;
}
