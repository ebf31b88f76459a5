/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Words and sizes, as they are typed and printed.
 */
#ifndef TERRACE_CTL_NAMES_H
#define TERRACE_CTL_NAMES_H

#include "core/place.h"

/* "?" for an unknown number. */
const char *class_name(u32 class);
const char *kind_name(u32 kind);
/* 0 for an unknown word; @bytes of @word count. Classes and kinds of tiers only. */
u32 class_number(const char *word, size_t bytes);
u32 kind_number(const char *word, size_t bytes);
/* The kind a class has when none is given. */
u32 class_default_kind(u32 class);

/* "optane, nvme, …" */
#define CLASS_WORDS "optane, nvme, qlc, hdd, csd, net"
#define KIND_WORDS "slots, shelves, home"

/*
 * Reads "4096", "64K", "1.5G", "2TiB" as blocks of 4 KiB. -EINVAL: not a
 * size; -EDOM: not a multiple of 4 KiB; -ERANGE: too large.
 */
int size_parse(const char *text, u64 *blocks);

/* The message for what size_parse() returned. */
const char *size_strerror(int err);

/* "1.5 GiB", in one of a few static buffers. */
const char *size_text(u64 blocks);

/* "40 s", "12 min", "84 days", likewise; @seconds is not negative. */
const char *span_text(double seconds);

#define UUID_TEXT_BYTES 37
/* In one of a few static buffers. */
const char *uuid_text(const u8 *uuid);

#endif
