/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of the fuzzer of the offline tools say to each other:
 *   offline.c          what the tools are asked, and what has to hold
 *   offline_damage.c   what an input does to a volume, and inputs that make sense
 *   offline_tools.c    a tool's run in this process
 *   offline_images.c   the volume's devices, in memory
 */
#ifndef TESTS_FUZZ_OFFLINE_H
#define TESTS_FUZZ_OFFLINE_H

#include <stdbool.h>
#include <sys/types.h>

#include "fuzz.h"
#include "ctl/ctl.h"

/* ---- images in memory ------------------------------------------------------------ */

struct image {
	char path[32];
	int fd;
	ino_t ino;
	u64 blocks;
	u8 *is, *was;		/* as the tools find it; as it was read */
};

#define NR_IMAGES	2u

extern struct image image[NR_IMAGES];

/* Blocks that are to be put back: */
struct spot {
	struct image *image;
	u64 block;
};

extern struct spot changed[65536];
extern u32 nr_changed;

void open_image(struct image *img, const char *folder, const char *name);
void change(struct image *img, u64 block, u64 nr);

/* But for the first @keep of them, which go back, and stay noted. */
void put_back(u32 keep);

/* ---- damage ---------------------------------------------------------------------- */

#define RAW		0x01	/* checksums stay wrong */
#define ONE_LABEL	0x02	/* the label's copy stays as it was */
#define BOTH		0x04	/* the mirror of the metadata, if there is one, is damaged as well */

/* Finds what can be damaged in the images. */
void find_targets(void);

/* The patches of an input; undo_damage() puts everything back, also what tools have written. */
void damage(const uint8_t *data, size_t size, u8 how);
void undo_damage(void);

/* Of features that only allow reading check takes note, and repair does not know what it would break. */
bool read_only(void);

/* ---- the tools ------------------------------------------------------------------- */

/* May the tool write? */
extern bool writing;

void set_up_tools(void);

/* What it ended with: 0 or 1, whatever the volume is like. */
int call(const struct ctl_command *command, const char *args);

#endif
