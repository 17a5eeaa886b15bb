// SPDX-License-Identifier: GPL-2.0-only
/*
 * A plugin for QEMU's emulator: how many instructions the machine has executed, whenever a program in it asks. Its
 * clock cannot say: that goes on while the processor is idle, and how long that was no kernel tells to the instruction.
 *
 * usage: qemu-system-x86_64 -plugin instances.so,out=FILE
 *
 * Who asks executes "nopl 0x64325049(%rax)", which does nothing otherwise: it appends a line with the number to FILE.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "qemu_plugin.h"

#define VISIBLE __attribute__((visibility("default")))

VISIBLE int qemu_plugin_version = 1;

static const uint8_t question[] = { 0x0f, 0x1f, 0x80, 'I', 'P', '2', 'd' };
static uint64_t executed;
static FILE *file;

static void answer(unsigned int vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	fprintf(file, "%" PRIu64 "\n", executed);
	fflush(file);
}

/* One by one: a block may end early, at an interrupt or a fault. */
static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb), i;

	(void)id;
	for (i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, &executed, 1);
		if (qemu_plugin_insn_size(insn) == sizeof(question) &&
		    !memcmp(qemu_plugin_insn_data(insn), question, sizeof(question)))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, answer, QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
}

VISIBLE int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fprintf(stderr, "instances: usage: -plugin instances.so,out=FILE\n");
		return 1;
	}
	file = fopen(argv[0] + 4, "w");
	if (!file) {
		perror(argv[0] + 4);
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
