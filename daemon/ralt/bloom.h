/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bloom filters over hot blocks, one per page of a run.
 *
 * A filter per page has exactly the size its hot blocks need, known when the page
 * is full, so a run can be written in one pass.  20 bits a block give about one
 * false positive in 14,000 look-ups; a page without hot blocks has no filter.
 */
#ifndef RALT_BLOOM_H
#define RALT_BLOOM_H

#include <stdbool.h>
#include <stdint.h>

/* 64-bit words of a filter over @blocks. */
uint32_t bloom_words(uint32_t blocks, uint32_t bits_per_block);

/* Probes that suit @bits_per_block. */
uint32_t bloom_probes(uint32_t bits_per_block);

void bloom_add(uint64_t *words, uint32_t count, uint32_t probes, uint64_t block);
bool bloom_test(const uint64_t *words, uint32_t count, uint32_t probes, uint64_t block);

#endif
