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
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the part of qemu-plugin.h that is used (Debian does not ship it) ------- */

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { QEMU_PLUGIN_CB_NO_REGS };

typedef void (*exec_fn)(unsigned int vcpu, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*fn)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, exec_fn fn, int flags, void *data);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, exec_fn fn, int flags, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t n);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;
int EXPORT qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv);

/* --- counting ------------------------------------------------------------------- */

struct piece {
	uint64_t address, insns, count;
	struct piece *next;
};

static const char *dir = ".";
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

/* nopl 0x7e44ace0+N(%rax) */
static int mark_of(const uint8_t *code, size_t size)
{
	static const uint8_t nop[] = { 0x0f, 0x1f, 0x80 }, tail[] = { 0xac, 0x44, 0x7e };

	if (size != 7 || memcmp(code, nop, 3) || memcmp(code + 4, tail, 3))
		return 0;
	return code[3] - 0xe0;
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	static const exec_fn fn[] = { NULL, on_begin, on_end, on_report };
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
	for (k = 0; k < piece->insns && !(piece->address >> 63); k++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, k);
		int mark = mark_of(qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn));

		if (mark >= 1 && mark <= 3)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, fn[mark], QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	int k;

	(void)info;
	for (k = 0; k < argc; k++)
		if (!strncmp(argv[k], "dir=", 4))
			dir = strdup(argv[k] + 4);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
