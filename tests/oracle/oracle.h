/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the oracle share: options, the device, trouble. */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "judge.h"
#include "stamp.h"

enum kind { KIND_WRITE, KIND_FUA, KIND_READ, KIND_DISCARD, KIND_ZERO, KIND_FLUSH, KIND_STREAM, NR_KINDS };
extern const char * const kind_names[NR_KINDS];

enum { EXIT_GOOD, EXIT_BROKEN, EXIT_TROUBLE, EXIT_DARK };

struct options {
	const char *device, *ledger;
	const char *marks;		/* run: a record of drives, NULL: none */
	uint64_t seed, ops;
	uint32_t blocks, first, seconds, threads, depth;
	uint32_t max_blocks;		/* of one I/O */
	uint32_t min_discard;		/* blocks; 0: small ones are likelier */
	uint32_t max_discard;
	uint32_t stream_ops;		/* writes in a row, of max_blocks each */
	uint32_t hot;			/* percent of operations to the hot sixteenth */
	uint32_t overlap;		/* percent of operations that may overlap others under way */
	uint32_t weight[NR_KINDS];
	bool nospc_ok;			/* ENOSPC is an answer */
	bool eio_ok;			/* run: goes on after I/O errors; each such write may have come or not */
	const char *eio;		/* verify: the blocks that cannot be read go there, and are not wrong */
	bool quiet;			/* only what is wrong is printed */
	bool crash, touched, keep;	/* verify */
	bool older;			/* verify: any value that the block ever had */
	const char *only;		/* verify: only the blocks that stand there */
	uint32_t sample;		/* verify: of the untouched blocks, one in so many */
	uint32_t limit;			/* violations printed */
};

struct device {
	int fd;
	bool is_file;
	uint64_t bytes;
};

void device_open(struct device *d, const char *path, bool writable);
void *io_buffer(size_t bytes);
__attribute__((format(printf, 1, 2), noreturn)) void trouble(const char *format, ...);

int run_workload(const struct options *o, struct ledger *l);
int verify(const struct options *o, struct ledger *l);

#endif
