/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A page of a run: up to (page_bytes - 16) / 16 records of ascending blocks.
 *
 *	0	8	checksum of the rest, seeded with run id and page number
 *	8	4	page number
 *	12	2	records
 *	14	2	version
 *	16	...	records (record.h), the rest zero
 */
#ifndef RALT_PAGE_H
#define RALT_PAGE_H

#include <stdint.h>

#include "ralt/record.h"

#define RALT_PAGE_HEADER	16u
#define RALT_PAGE_VERSION	1u

static inline uint32_t page_capacity(uint32_t page_bytes)
{
	return (page_bytes - RALT_PAGE_HEADER) / RALT_RECORD_BYTES;
}

static inline uint8_t *page_record(uint8_t *page, uint32_t n)
{
	return page + RALT_PAGE_HEADER + n * RALT_RECORD_BYTES;
}

/* Completes a page whose first @records are in place. */
void page_seal(uint8_t *page, uint32_t page_bytes, uint64_t run, uint32_t number, uint32_t records);

/* Number of records, or -EBADMSG for a damaged or misplaced page. */
int page_open(const uint8_t *page, uint32_t page_bytes, uint64_t run, uint32_t number);

/* The first of its @records records that is of @block or one behind it; @records: none. */
uint32_t page_find(uint8_t *page, uint32_t records, uint64_t block);

#endif
