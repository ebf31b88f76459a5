// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which instructions an I/O consists of: a plugin for QEMU (API 1) that counts, between
 * the marks of tests/bench/tools/hits.c, how often each piece of code ran, all of the
 * machine's: with one CPU nothing else runs meanwhile. Loaded by
 *
 *	scripts/vm --plugin build/bench/profile.so vtime -- …
 *
 * At the third mark DIR/profile gets a line "ADDRESS COUNT" for each piece (a straight
 * run of code): its address, 16 hexadecimal digits, and its instructions per 1000 I/Os.
 * The next run counts anew.
 */
#include "../plugin.h"

/* --- counting ------------------------------------------------------------------- */

struct piece {
	uint64_t address, insns, count;
	struct piece *next;
};

static struct piece *pieces;
static uint64_t ios;
static bool watching;

static void on_piece(unsigned int vcpu, void *data)
{
	struct piece *piece = data;

	(void)vcpu;
	if (watching)
		piece->count++;
}

static void on_begin(unsigned int vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	watching = true;
}

static void on_end(unsigned int vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	ios += watching;
	watching = false;
}

static void on_report(unsigned int vcpu, void *data)
{
	struct piece *piece;
	char path[4096];
	FILE *f;

	(void)vcpu;
	(void)data;
	snprintf(path, sizeof(path), "%s/profile", dir);
	f = fopen(path, "w");
	for (piece = pieces; piece; piece = piece->next) {
		if (f && ios && piece->count)
			fprintf(f, "%016lx %lu\n", piece->address, piece->insns * piece->count * 1000 / ios);
		piece->count = 0;
	}
	if (f)
		fclose(f);
	ios = 0;
}

/* --- translation ------------------------------------------------------------------ */

static const exec_fn mark_fn[] = { NULL, on_begin, on_end, on_report };

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	struct piece *piece = calloc(1, sizeof(*piece));
	size_t k;

	(void)id;
	if (!piece)
		abort();
	piece->address = qemu_plugin_tb_vaddr(tb);
	piece->insns = qemu_plugin_tb_n_insns(tb);
	piece->next = pieces;
	pieces = piece;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_piece, QEMU_PLUGIN_CB_NO_REGS, piece);
	for (k = 0; k < piece->insns && !(piece->address >> 63); k++)
		watch_mark(qemu_plugin_tb_get_insn(tb, k));
}
