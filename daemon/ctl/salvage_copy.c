// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Blocks, from their places to the image. A piece that cannot be read is read
 * block by block, so that a bad sector costs one block.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "names.h"
#include "probe.h"
#include "salvage.h"
#include "term.h"

#define PIECE_BLOCKS 256u

/* ---- the image --------------------------------------------------------------------- */

static int open_file(struct salvage *s)
{
	struct device *out = &s->out;
	struct stat st;

	out->path = s->to;
	out->fd = open(s->to, O_RDWR | O_CREAT | O_CLOEXEC | (s->force ? O_TRUNC : O_EXCL), 0600);
	if (out->fd < 0 || ftruncate(out->fd, s->rb.virtual_blocks << TERRACE_BLOCK_SHIFT) ||
	    fstat(out->fd, &st)) {
		ctl_error("%s: %s%s", s->to, strerror(errno), errno == EEXIST ?
			  ": --force overwrites it" : "");
		return CTL_PROBLEM;
	}
	out->dev = st.st_dev;
	out->ino = st.st_ino;
	out->blocks = s->rb.virtual_blocks;
	return CTL_OK;
}

static int open_drive(struct salvage *s)
{
	char *found = NULL;
	int r = CTL_OK;

	if (device_open(&s->out, s->to, DEVICE_WRITE))
		return CTL_PROBLEM;
	if (s->out.blocks < s->rb.virtual_blocks) {
		ctl_error("%s is too small: it has %s, the volume %s", s->to,
			  size_text(s->out.blocks), size_text(s->rb.virtual_blocks));
		return CTL_PROBLEM;
	}
	if (probe_contents(&s->out, &found) || (found && !s->force)) {
		ctl_error("%s %s: nothing changed; --force overwrites it", s->to,
			  found ? found : "cannot be read");
		r = CTL_PROBLEM;
	}
	free(found);
	return r;
}

/* A source must not be truncated before it is noticed. */
static bool is_source(const struct salvage *s)
{
	struct stat st;

	if (stat(s->to, &st))
		return false;
	for (u32 i = 0; i < s->vol.nr_devices; i++)
		if (S_ISBLK(st.st_mode) ? s->vol.dev[i].is_block && st.st_rdev == s->vol.dev[i].rdev :
		    !s->vol.dev[i].is_block && st.st_dev == s->vol.dev[i].dev &&
		    st.st_ino == s->vol.dev[i].ino)
			return true;
	return false;
}

int salvage_open_out(struct salvage *s)
{
	struct stat st;

	if (is_source(s)) {
		ctl_error("%s is a device of the volume", s->to);
		return CTL_PROBLEM;
	}
	if (!stat(s->to, &st) && S_ISBLK(st.st_mode))
		return open_drive(s);
	return open_file(s);
}

static int put(struct salvage *s, u64 block, u64 nr, const void *data)
{
	int r = s->out.fd < 0 ? 0 : device_write(&s->out, block, nr, data);

	if (r)
		ctl_error("%s: cannot write: %s", s->to, strerror(-r));
	return r;
}

/* A file has holes there; a drive has whatever it had. */
static int put_zeros(struct salvage *s, u64 block, u64 nr)
{
	int r = s->out.fd < 0 || !s->out.is_block ? 0 : device_zero(&s->out, block, nr);

	if (r)
		ctl_error("%s: cannot write: %s", s->to, strerror(-r));
	return r;
}

/* ---- one run -------------------------------------------------------------------------- */

struct copier {
	struct salvage *s;
	u64 next;		/* blocks before it are written */
	int error;
	u8 *buf;
	u64 good_from, good_nr, good_at;	/* a range that is being collected */
};

static void end_good(struct copier *c)
{
	if (c->good_nr)
		salvage_range(c->s, c->good_from, c->good_nr, c->good_at, NULL);
	c->good_nr = 0;
}

static void good(struct copier *c, u64 block, u64 nr, u64 at)
{
	if (!c->good_nr) {
		c->good_from = block;
		c->good_at = at;
	}
	c->good_nr += nr;
	if (!c->error)
		c->error = put(c->s, block, nr, c->buf);
}

static void bad(struct copier *c, u64 block, u64 nr, u64 at, const char *why)
{
	end_good(c);
	salvage_range(c->s, block, nr, rb_make(RB_LOST, rb_source(at), rb_place(at)), why);
	if (!c->error)
		c->error = put_zeros(c->s, block, nr);
}

static u64 advanced(u64 at, u64 n)
{
	return rb_make(rb_state(at), rb_source(at), tr_place_add(rb_place(at), n));
}

static void copy_piece(struct copier *c, u64 block, u64 nr, u64 at)
{
	u32 tier = tr_place_tier(rb_place(at));
	u64 index = tr_place_index(rb_place(at));

	if (!volume_read_tier(&c->s->vol, tier, index, nr, c->buf)) {
		good(c, block, nr, at);
		return;
	}
	for (u64 i = 0; i < nr; i++) {
		int r = volume_read_tier(&c->s->vol, tier, index + i, 1, c->buf);

		if (r)
			bad(c, block + i, 1, advanced(at, i), where("cannot be read: %s", strerror(-r)));
		else
			good(c, block + i, 1, advanced(at, i));
	}
}

static void copy_places(struct copier *c, u64 block, u64 nr, u64 at)
{
	for (u64 i = 0, n; i < nr && !c->error; i += n) {
		n = nr - i < PIECE_BLOCKS ? nr - i : PIECE_BLOCKS;
		copy_piece(c, block + i, n, advanced(at, i));
		c->s->done += n;
		term_progress("reading blocks", c->s->done, c->s->total);
	}
	end_good(c);
}

static void copy_run(void *ctx, u64 block, u64 nr, u64 at)
{
	struct copier *c = ctx;
	struct salvage *s = c->s;
	u64 place = rb_place(at);

	if (!c->error && block > c->next)
		c->error = put_zeros(s, c->next, block - c->next);
	c->next = block + nr;
	if (c->error)
		return;
	if (rb_state(at) == RB_LOST) {
		bad(c, block, nr, at, NULL);
	} else if (s->vol.tier[tr_place_tier(place)] < 0) {
		s->missing += nr;
		bad(c, block, nr, at, where("on tier %u, which is missing", tr_place_tier(place)));
	} else if (rb_state(at) == RB_DOUBTFUL && !s->doubtful) {
		salvage_range(s, block, nr, at, NULL);
		c->error = put_zeros(s, block, nr);
	} else {
		copy_places(c, block, nr, at);
	}
}

int salvage_copy(struct salvage *s)
{
	struct copier c = { .s = s, .buf = ctl_alloc_blocks(PIECE_BLOCKS) };
	u64 count[RB_NR_STATES];
	int r;

	rb_count(&s->rb, count);
	for (u32 i = 0; i < RB_LOST; i++)
		s->total += count[i];
	rb_runs(&s->rb, true, copy_run, &c);
	if (!c.error && c.next < s->rb.virtual_blocks)
		c.error = put_zeros(s, c.next, s->rb.virtual_blocks - c.next);
	free(c.buf);
	r = s->out.fd < 0 || c.error ? 0 : device_flush(&s->out);
	if (r)
		ctl_error("%s: cannot write: %s", s->to, strerror(-r));
	return c.error ? c.error : r;
}
