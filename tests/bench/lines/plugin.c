// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What virtual time does not price: cache misses and shared atomics, counted
 * by watching the emulated CPU. A plugin for QEMU (API 1), loaded by
 *
 *	scripts/vm --plugin build/bench/lines.so vtime -- …
 *
 * Between two marks of tests/bench/tools/hits.c, which is one I/O, it looks
 * at every instruction of one kernel module. Where that module's code lies is
 * read from DIR/text ("START END", hexadecimal) at the first mark; when the
 * program ends its run (third mark) DIR/lines gets one line of name=value:
 *
 *	ios		I/Os seen
 *	insns		instructions of the module, per I/O (mean)
 *	misses		cache lines not in the model, per I/O (mean, in 1/100)
 *	misses_max	… in the worst I/O of all but one in a hundred
 *	depth		objects with such lines, per I/O (mean, in 1/100)
 *	depth_max	… in the worst I/O of all but one in a hundred
 *	atomics		locked instructions, by the module or what it calls
 *	stores		lines written that the model did not have (in 1/100)
 *
 * The model is an LRU cache of 256 KiB in 64-byte lines, 16 ways, that sees
 * nothing but the module's own accesses. Lines of one object (256 bytes,
 * aligned, as the allocator lays out regions) are fetched side by side from
 * one pointer, so the length of a chain of dependent misses is at most the
 * number of objects.
 */
#include "../plugin.h"

/* --- the model ---------------------------------------------------------------- */

#define WAYS	16
#define SETS	256		/* of 64-byte lines: 256 KiB */
#define OBJECTS	64
#define MAX_IOS	100000

static uint64_t cache[SETS][WAYS];	/* line numbers, the latest first */

/* Was the line there? It is now. */
static bool cached(uint64_t line)
{
	uint64_t *set = cache[line % SETS];
	unsigned int way;

	for (way = 0; way < WAYS - 1 && set[way] != line; way++)
		;
	bool hit = set[way] == line;

	memmove(set + 1, set, way * sizeof(*set));
	set[0] = line;
	return hit;
}

/* --- one I/O ------------------------------------------------------------------ */

static uint64_t text_start, text_end;
static bool watching, calling;
static uint64_t ios, insns, misses, depths, atomics, stores;
static unsigned int io_misses, io_objects;
static uint64_t object[OBJECTS];
static uint16_t miss_of[MAX_IOS], depth_of[MAX_IOS];

static bool in_text(uint64_t pc)
{
	return pc >= text_start && pc < text_end;
}

/* Code is translated, and so chosen, before it is known where the module is. */
static void on_insn(unsigned int vcpu, void *data)
{
	(void)vcpu;
	if (!watching || !in_text((uint64_t)data))
		return;
	calling = false;
	insns++;
}

static void on_call(unsigned int vcpu, void *data)
{
	on_insn(vcpu, data);
	if (watching && in_text((uint64_t)data))
		calling = true;
}

static void on_atomic(unsigned int vcpu, void *data)
{
	uint64_t pc = (uint64_t)data;

	(void)vcpu;
	if (watching && (calling || in_text(pc)))
		atomics++;
}

static void on_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
	unsigned int k;

	(void)vcpu;
	if (!watching || !in_text((uint64_t)data) || cached(vaddr / 64))
		return;
	misses++;
	io_misses++;
	stores += qemu_plugin_mem_is_store(info);
	for (k = 0; k < io_objects && object[k] != vaddr / 256; k++)
		;
	if (k == io_objects && k < OBJECTS)
		object[io_objects++] = vaddr / 256;
}

/* --- marks -------------------------------------------------------------------- */

static void read_text(void)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/text", dir);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%lx %lx", &text_start, &text_end) != 2)
		fprintf(stderr, "lines: no START END in %s\n", path);
	if (f)
		fclose(f);
}

static void on_begin(unsigned int vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	if (!text_start)
		read_text();
	io_misses = 0;
	io_objects = 0;
	calling = false;
	watching = true;
}

static void on_end(unsigned int vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	if (!watching)
		return;
	watching = false;
	if (ios < MAX_IOS) {
		miss_of[ios] = io_misses;
		depth_of[ios] = io_objects;
	}
	depths += io_objects;
	ios++;
}

static int by_size(const void *a, const void *b)
{
	return *(const uint16_t *)a - *(const uint16_t *)b;
}

static unsigned int percentile99(uint16_t *of)
{
	uint64_t nr = ios < MAX_IOS ? ios : MAX_IOS;

	qsort(of, nr, sizeof(*of), by_size);
	return of[(nr - 1) * 99 / 100];
}

/* Results, and everything from the start: the next run is another one. */
static void on_report(unsigned int vcpu, void *data)
{
	char path[4096];
	FILE *f;

	(void)vcpu;
	(void)data;
	snprintf(path, sizeof(path), "%s/lines", dir);
	f = fopen(path, "w");
	if (f && ios)
		fprintf(f, "ios=%lu insns=%lu misses=%lu misses_max=%u depth=%lu depth_max=%u atomics=%lu stores=%lu\n",
			ios, insns / ios, misses * 100 / ios, percentile99(miss_of), depths * 100 / ios,
			percentile99(depth_of), atomics, stores * 100 / ios);
	if (f)
		fclose(f);
	ios = insns = misses = depths = atomics = stores = 0;
}

/* --- translation: which instructions to watch ------------------------------------ */

static const exec_fn mark_fn[] = { NULL, on_begin, on_end, on_report };

/* Prefix lock, or exchange with memory, which locks by itself; not per CPU. */
static bool is_atomic(const uint8_t *code, size_t size)
{
	bool lock = false, local = false;
	size_t k;

	for (k = 0; k < size; k++) {
		if (code[k] == 0xf0)
			lock = true;
		else if (code[k] == 0x65)
			local = true;
		else if (code[k] != 0x66 && code[k] != 0xf2 && code[k] != 0xf3 && code[k] != 0x3e &&
			 (code[k] & 0xf0) != 0x40)
			break;
	}
	if (k + 1 < size && (code[k] == 0x86 || code[k] == 0x87) && code[k + 1] < 0xc0)
		lock = true;
	return lock && !local;
}

static bool is_call(const uint8_t *code, size_t size)
{
	return code[0] == 0xe8 || (size > 1 && code[0] == 0xff && (code[1] >> 3 & 7) == 2);
}

#define MODULES_START	0xffffffffc0000000ull
#define KERNEL_START	0xffffffff80000000ull

static void watch_insn(struct qemu_plugin_insn *insn)
{
	const uint8_t *code = qemu_plugin_insn_data(insn);
	size_t size = qemu_plugin_insn_size(insn);
	uint64_t pc = qemu_plugin_insn_vaddr(insn);

	if (pc < KERNEL_START) {
		watch_mark(insn);
		return;
	}
	if (is_atomic(code, size))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_atomic, QEMU_PLUGIN_CB_NO_REGS, (void *)pc);
	if (pc < MODULES_START)
		return;
	qemu_plugin_register_vcpu_insn_exec_cb(insn, is_call(code, size) ? on_call : on_insn,
					       QEMU_PLUGIN_CB_NO_REGS, (void *)pc);
	qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, (void *)pc);
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t k;

	(void)id;
	for (k = 0; k < qemu_plugin_tb_n_insns(tb); k++)
		watch_insn(qemu_plugin_tb_get_insn(tb, k));
}
