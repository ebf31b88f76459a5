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
static bool is_source(const struct salvage *s, const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	for (u32 i = 0; i < s->vol.nr_devices; i++)
		if (S_ISBLK(st.st_mode) ? s->vol.dev[i].is_block && st.st_rdev == s->vol.dev[i].rdev :
		    !s->vol.dev[i].is_block && st.st_dev == s->vol.dev[i].dev &&
		    st.st_ino == s->vol.dev[i].ino)
			return true;
	return false;
}

/* Anything but an older map. */
static bool holds_data(const char *path)
{
	char first = '{';
	FILE *f = fopen(path, "r");

	if (f && fread(&first, 1, 1, f) != 1)
		first = '{';
	if (f)
		fclose(f);
	return first != '{';
}

/* Without the file's name the option takes the drive that comes next for it. */
int salvage_refuse_map(const struct salvage *s)
{
	struct stat st;

	if (!s->map_path)
		return 0;
	if (s->to && !strcmp(s->to, s->map_path))
		ctl_error("--map and --to name the same file");
	else if (stat(s->map_path, &st))
		return 0;
	else if (S_ISBLK(st.st_mode))
		ctl_error("--map %s is a device: name a file", s->map_path);
	else if (is_source(s, s->map_path))
		ctl_error("--map %s is a device of the volume", s->map_path);
	else if (S_ISREG(st.st_mode) && !s->force && holds_data(s->map_path))
		ctl_error("--map %s exists, and is no map: --force overwrites it", s->map_path);
	else
		return 0;
	return CTL_PROBLEM;
}

int salvage_open_out(struct salvage *s)
{
	struct stat st;

	if (is_source(s, s->to)) {
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
	u64 from, nr, at;	/* a range that is being collected */
	char why[256];		/* "": it is good */
	struct unpack *unpack;
};

static void end_range(struct copier *c)
{
	if (c->nr)
		salvage_range(c->s, c->from, c->nr, c->at, *c->why ? c->why : NULL);
	c->nr = 0;
}

/* Blocks of one run follow each other: only why they are bad may differ. */
static void collect(struct copier *c, u64 block, u64 nr, u64 at, const char *why)
{
	if (c->nr && strncmp(c->why, why, sizeof(c->why) - 1))
		end_range(c);
	if (!c->nr) {
		c->from = block;
		c->at = at;
		snprintf(c->why, sizeof(c->why), "%s", why);
	}
	c->nr += nr;
}

static void good(struct copier *c, u64 block, u64 nr, u64 at)
{
	collect(c, block, nr, at, "");
	if (!c->error)
		c->error = put(c->s, block, nr, c->buf);
}

static void bad(struct copier *c, u64 block, u64 nr, u64 at, const char *why)
{
	collect(c, block, nr, rb_change(at, RB_LOST, rb_source(at)),
		why ? why : rb_source_text(rb_source(at)));
	if (!c->error)
		c->error = put_zeros(c->s, block, nr);
}

static bool is_there(const struct copier *c, u64 place)
{
	return place != TR_NO_PLACE && c->s->vol.tier[tr_place_tier(place)] >= 0;
}

/* A block that is in a pack, perhaps with a clean slot, which then did not read. */
static void copy_packed(struct copier *c, u64 block, u64 at, const char *why)
{
	const char *wrong = unpack_block(c->unpack, block / TERRACE_REGION_BLOCKS, rb_pack(at),
					 block % TERRACE_REGION_BLOCKS, c->buf);

	if (!wrong)
		good(c, block, 1, at);
	else
		bad(c, block, 1, at, why ? where("%s, and %s", why, wrong) : wrong);
}

static u64 advanced(u64 at, u64 n)
{
	return rb_make_packed(rb_state(at), rb_source(at), tr_place_add(rb_place(at), n), rb_pack(at));
}

static void copy_piece(struct copier *c, u64 block, u64 nr, u64 at)
{
	u32 tier = tr_place_tier(rb_place(at));
	u64 index = tr_place_index(rb_place(at));

	if (!is_there(c, rb_place(at))) {
		for (u64 i = 0; i < nr; i++)
			copy_packed(c, block + i, advanced(at, i), NULL);
		return;
	}
	if (!volume_read_tier(&c->s->vol, tier, index, nr, c->buf)) {
		good(c, block, nr, at);
		return;
	}
	for (u64 i = 0; i < nr; i++) {
		int r = volume_read_tier(&c->s->vol, tier, index + i, 1, c->buf);

		if (r && rb_pack(at))
			copy_packed(c, block + i, advanced(at, i), where("cannot be read: %s", strerror(-r)));
		else if (r)
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
	end_range(c);
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
		end_range(c);
	} else if (!rb_pack(at) && !is_there(c, place)) {
		s->missing += nr;
		bad(c, block, nr, at, where("on tier %u, which is missing", tr_place_tier(place)));
		end_range(c);
	} else if (rb_state(at) == RB_DOUBTFUL && !s->doubtful) {
		salvage_range(s, block, nr, at, NULL);
		c->error = put_zeros(s, block, nr);
	} else {
		copy_places(c, block, nr, at);
	}
}

int salvage_copy(struct salvage *s)
{
	struct unpack *unpack = ctl_alloc(sizeof(*unpack));
	struct copier c = { .s = s, .buf = ctl_alloc_blocks(PIECE_BLOCKS), .unpack = unpack };
	u64 count[RB_NR_STATES];
	int r;

	unpack->rb = &s->rb;
	rb_count(&s->rb, count);
	for (u32 i = 0; i < RB_LOST; i++)
		s->total += count[i];
	rb_runs(&s->rb, true, copy_run, &c);
	if (!c.error && c.next < s->rb.virtual_blocks)
		c.error = put_zeros(s, c.next, s->rb.virtual_blocks - c.next);
	free(c.buf);
	unpack_end(unpack);
	free(unpack);
	r = s->out.fd < 0 || c.error ? 0 : device_flush(&s->out);
	if (r)
		ctl_error("%s: cannot write: %s", s->to, strerror(-r));
	return c.error ? c.error : r;
}
