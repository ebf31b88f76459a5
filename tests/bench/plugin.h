/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The part of QEMU's plugin interface (API 1) that lines/ and profile/ use, which Debian
 * does not ship as a header, and the marks between which they watch: see tools/hits.c.
 * A plugin has on_translate() and mark_fn[].
 */
#ifndef BENCH_PLUGIN_H
#define BENCH_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { QEMU_PLUGIN_CB_NO_REGS };
enum { QEMU_PLUGIN_MEM_RW = 3 };

typedef void (*exec_fn)(unsigned int vcpu, void *data);
typedef void (*mem_fn)(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*fn)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, exec_fn fn, int flags, void *data);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, exec_fn fn, int flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, mem_fn fn, int flags, int rw, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t n);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;
int EXPORT qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv);

/* what the plugin has: what is done at marks 1 to 3, and with each piece of code */
static const exec_fn mark_fn[4];
static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);

/* the machine's $OUT */
static const char *dir = ".";

/* nopl 0x7e44ace0+N(%rax) */
static int mark_of(const uint8_t *code, size_t size)
{
	static const uint8_t nop[] = { 0x0f, 0x1f, 0x80 }, tail[] = { 0xac, 0x44, 0x7e };

	if (size != 7 || memcmp(code, nop, 3) || memcmp(code + 4, tail, 3))
		return 0;
	return code[3] - 0xe0;
}

/* An instruction of a program: if it is a mark, what is to be done there. */
static void watch_mark(struct qemu_plugin_insn *insn)
{
	int mark = mark_of(qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn));

	if (mark >= 1 && mark <= 3)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, mark_fn[mark], QEMU_PLUGIN_CB_NO_REGS, NULL);
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

#endif
