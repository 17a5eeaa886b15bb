// SPDX-License-Identifier: GPL-2.0-only
/*
 * A plugin for QEMU's emulator that counts instructions. scripts/bench.sh builds and loads it.
 *
 * usage: qemu-system-x86_64 -plugin instructions.so,total=FILE
 *        qemu-system-x86_64 -plugin instructions.so,each=FILE
 *
 * total: whenever a program executes "nopl 0x64325049(%rax)", which does nothing otherwise, append a line with the number
 * of instructions so far. The machine's clock goes on while the processor is idle, so that it cannot tell that number.
 *
 * each: at the end write a line "ADDRESS COUNT", hexadecimal and decimal, for each instruction of the kernel's half of the
 * address space that was executed.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu_plugin.h"

#define VISIBLE		__attribute__((visibility("default")))
#define KERNEL_FROM	0xffff800000000000ULL
#define SLOTS		(1U << 22)	/* instructions; a kernel runs some 300,000 different ones here */

struct slot {
	uint64_t address;	/* 0: free */
	uint64_t count;
};

VISIBLE int qemu_plugin_version = 1;

static const uint8_t question[] = { 0x0f, 0x1f, 0x80, 'I', 'P', '2', 'd' };
static uint64_t executed;
static struct slot *slots;	/* NULL: total */
static FILE *file;

static uint64_t *count_of(uint64_t address)
{
	uint32_t at = (uint32_t)((address * 0x9e3779b97f4a7c15ULL) >> 42), n;

	for (n = 0; n < SLOTS; n++, at = (at + 1) % SLOTS) {
		if (!slots[at].address)
			slots[at].address = address;
		if (slots[at].address == address)
			return &slots[at].count;
	}
	fprintf(stderr, "instructions: no room for more than %u instructions\n", SLOTS);
	exit(1);
}

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
		uint64_t address = qemu_plugin_insn_vaddr(insn), *count = &executed;

		if (slots && address < KERNEL_FROM)
			continue;
		if (slots)
			count = count_of(address);
		qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, count, 1);
		if (!slots && qemu_plugin_insn_size(insn) == sizeof(question) &&
		    !memcmp(qemu_plugin_insn_data(insn), question, sizeof(question)))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, answer, QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
}

static void ended(qemu_plugin_id_t id, void *data)
{
	uint32_t at;

	(void)id;
	(void)data;
	for (at = 0; slots && at < SLOTS; at++)
		if (slots[at].count)
			fprintf(file, "%" PRIx64 " %" PRIu64 "\n", slots[at].address, slots[at].count);
	fclose(file);
}

VISIBLE int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	const char *path = argc == 1 ? strchr(argv[0], '=') : NULL;

	(void)info;
	if (!path || (strncmp(argv[0], "total=", 6) && strncmp(argv[0], "each=", 5))) {
		fprintf(stderr, "instructions: usage: -plugin instructions.so,total=FILE|each=FILE\n");
		return 1;
	}
	if (argv[0][0] == 'e')
		slots = calloc(SLOTS, sizeof(*slots));
	file = fopen(path + 1, "w");
	if (!file || (argv[0][0] == 'e' && !slots)) {
		perror(path + 1);
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
	return 0;
}
