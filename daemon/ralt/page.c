// SPDX-License-Identifier: GPL-2.0-or-later
/* Sealing and checking pages; see page.h. */
#include "ralt/page.h"

#include <errno.h>
#include <string.h>

#include "ralt/bytes.h"

static uint64_t checksum(const uint8_t *page, uint32_t page_bytes, uint64_t run, uint32_t number)
{
	return ralt_checksum(run * 0x9e3779b97f4a7c15ull + number, page + 8, page_bytes - 8);
}

void page_seal(uint8_t *page, uint32_t page_bytes, uint64_t run, uint32_t number, uint32_t records)
{
	uint32_t used = RALT_PAGE_HEADER + records * RALT_RECORD_BYTES;

	put_le32(page + 8, number);
	put_le32(page + 12, records | RALT_PAGE_VERSION << 16);
	memset(page + used, 0, page_bytes - used);
	put_le64(page, checksum(page, page_bytes, run, number));
}

int page_open(const uint8_t *page, uint32_t page_bytes, uint64_t run, uint32_t number)
{
	uint32_t word = get_le32(page + 12), records = word & 0xffff;

	if (get_le64(page) != checksum(page, page_bytes, run, number))
		return -EBADMSG;
	if (get_le32(page + 8) != number || word >> 16 != RALT_PAGE_VERSION ||
	    records > page_capacity(page_bytes))
		return -EBADMSG;
	return (int)records;
}

uint32_t page_find(uint8_t *page, uint32_t records, uint64_t block)
{
	uint32_t lo = 0, hi = records;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (ralt_record_block(page_record(page, mid)) < block)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}
