/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of the fuzzer of the offline tools say to each other:
 *   offline.c          what the tools are asked, and what has to hold
 *   offline_restore.c  restore, from dumps that were changed
 *   offline_truth.c    is it true what salvage calls certain?
 *   offline_damage.c   what an input does to a volume, and inputs that make sense
 *   offline_tools.c    a tool's run in this process
 *   offline_calls.c    what it asks of the system
 *   offline_heap.c     its memory
 *   offline_images.c   the volume's devices, in memory
 */
#ifndef TESTS_FUZZ_OFFLINE_H
#define TESTS_FUZZ_OFFLINE_H

#include <setjmp.h>
#include <stdbool.h>
#include <sys/types.h>

#include "fuzz.h"
#include "ctl/ctl.h"

/* ---- images in memory ------------------------------------------------------------ */

struct image {
	char path[32];
	int fd;
	u64 blocks;
	u8 *is, *was;		/* as the tools find it; as it was read */
	bool *has_data;		/* of each block: it may be something else than zeros */
};

#define SPARE		3u	/* none of the volume: new, zeros */
#define MOST_IMAGES	(SPARE + 1)
#define SALVAGED	MOST_IMAGES	/* what salvage makes, OUT in its arguments */
#define ALL_IMAGES	(SALVAGED + 1)
#define VIRTUAL_BLOCKS	((16u << 20) / TERRACE_BLOCK_BYTES)

extern struct image image[ALL_IMAGES];	/* fast, slow, and perhaps one of the metadata */
extern u32 nr_images;			/* of the volume */

/* Blocks that are to be put back: */
struct spot {
	struct image *image;
	u64 block;
};

extern struct spot changed[1 << 18];
extern u32 nr_changed;

/* Those of $OFFLINE. */
void open_images(void);
void change(struct image *img, u64 block, u64 nr);

/* As a tool reads it: holes, most of the volume, come from nowhere. */
void read_image(const struct image *img, u8 *to, u64 block, u64 nr);

/* All, and the first @keep of them stay noted. */
void put_back(u32 keep);
void clear_image(struct image *img);	/* SPARE, SALVAGED: zeros again */

/* What its labels say, the newer one's word; false: nothing. */
bool label_of(const struct image *img, struct tr_label *label);

/* ---- damage ---------------------------------------------------------------------- */

#define RAW		0x01	/* checksums stay wrong */
#define ONE_LABEL	0x02	/* the label's copy stays as it was */
#define BOTH		0x04	/* the mirror of the metadata, if there is one, is damaged as well */
#define LEFT_OUT_BITS	0x18
#define LEFT_OUT(how)	(((how) & LEFT_OUT_BITS) >> 3)	/* the device that the tools do not get, counted from 1; 0: they get all */

/* Finds what can be damaged: of the metadata the primary or, with $MIRROR set, their copy. */
void find_targets(void);

/* The patches of an input; undo_damage() puts everything back, also what tools have written. */
void damage(const uint8_t *data, size_t size, u8 how);
void undo_damage(void);

/* Of features that only allow reading check takes note, and repair does not know what it would break. */
bool read_only(void);

bool label_hit(void);

/* Does each label still say which tier it is, and where the metadata are? */
bool devices_as_before(void);


/* The last block of the journal, or the one behind: the end may not be told from where a crash tore it. */
bool journal_end_hit(void);

/* Of all superblocks that are good. */
u64 newest_generation(void);

/* Labels and metadata become noise. */
void wipe(void);

/* ---- the tools ------------------------------------------------------------------- */

/* What tools get, and what they may write to: a bit for each image. */
extern u32 given, writable;

/* How often it has written; the turn at which it is killed instead, counted from 1, 0: it lives. */
extern u32 writes, killed_at;

#define KILLED		99

/* Files of its own, in memory, which it may write as it likes. */
enum { DUMP, DUMP_AGAIN, MAP, NR_FILES };

extern u64 tool_runs;	/* so far */

void set_up_tools(void);
void file_write(u32 file, const char *text, size_t bytes);
/* To be freed. */
char *file_read(u32 file, size_t *bytes);

/*
 * What it ended with: 0 or 1, whatever the volume is like; restore with 2 as well, if the dump has
 * another number of devices. In @args are SPARE, DUMP, OUT, MAP for what they stand for.
 */
int call(const struct ctl_command *command, const char *args);

/* The same, and what it prints becomes @file. */
int call_into(const struct ctl_command *command, const char *args, u32 file);

/* Its calls: while it is running exit() leaves, with 1 + the status. */
extern bool running;
extern jmp_buf leave;
void calls_close_all(int first_fd);

/* Its memory: what it left when it ended by itself, which must not be large, is forgotten, or all is given back. */
void set_up_heap(void);
void heap_forget(void);
void heap_give_back(void);

/* ---- questions ------------------------------------------------------------------- */

struct question {
	void (*ask)(const char *args);
	const char *args;
	u32 often;
};

extern u8 how;		/* the input's second byte */

/* offline_restore.c: an input changes a dump instead of the volume. */
void set_up_restore(void);
void restore_changed(const uint8_t *data, size_t size);
size_t change_of_dump(uint8_t *data, size_t size, size_t most, uint64_t seed);

/* offline_truth.c */
void set_up_truth(void);
void honest(const char *args);

#endif
