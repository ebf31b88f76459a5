// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writes a trace: block numbers, 8 bytes each, native order.
 *
 * usage: trace KIND clustered|hashed BLOCKS HOT_SHARE SEED STAGES ACCESSES_PER_STAGE > FILE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

int main(int argc, char **argv)
{
	struct workload w;
	uint64_t stages, accesses;

	if (argc != 8 ||
	    !workload_init(&w, argv[1], strtoull(argv[3], NULL, 0), !strcmp(argv[2], "hashed"),
			   atof(argv[4]), strtoull(argv[5], NULL, 0))) {
		fprintf(stderr, "usage: trace KIND clustered|hashed BLOCKS HOT_SHARE SEED STAGES ACCESSES_PER_STAGE\n");
		return 2;
	}
	stages = strtoull(argv[6], NULL, 0);
	accesses = strtoull(argv[7], NULL, 0);
	for (uint64_t s = 0; s < stages; s++) {
		workload_stage(&w, s);
		for (uint64_t i = 0; i < accesses; i++) {
			uint64_t block = workload_next(&w);

			if (fwrite(&block, sizeof(block), 1, stdout) != 1)
				return 1;
		}
	}
	workload_exit(&w);
	return fflush(stdout) ? 1 : 0;
}
