// SPDX-License-Identifier: GPL-2.0-only
/*
 * A plugin for QEMU's emulator: how often each instruction of the kernel was executed. scripts/bench.sh profile builds
 * and loads it; selftests/bench/profile.py reads what it writes.
 *
 * usage: qemu-system-x86_64 -plugin profile.so,out=FILE
 *
 * Writes one line "ADDRESS COUNT", in hexadecimal and decimal, for each instruction of the kernel's half of the address
 * space, at the end of the machine.
 */
#include <inttypes.h>
#include <stdbool.h>
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

static struct slot *slots;
static const char *path;

static struct slot *slot_of(uint64_t address)
{
	uint32_t at = (uint32_t)((address * 0x9e3779b97f4a7c15ULL) >> 42), n;

	for (n = 0; n < SLOTS; n++, at = (at + 1) % SLOTS) {
		if (!slots[at].address)
			slots[at].address = address;
		if (slots[at].address == address)
			return &slots[at];
	}
	fprintf(stderr, "profile: no room for more than %u instructions\n", SLOTS);
	exit(1);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb), i;

	(void)id;
	for (i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t address = qemu_plugin_insn_vaddr(insn);

		if (address >= KERNEL_FROM)
			qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64,
								   &slot_of(address)->count, 1);
	}
}

static void ended(qemu_plugin_id_t id, void *data)
{
	FILE *file = fopen(path, "w");
	uint32_t at;

	(void)id;
	(void)data;
	if (!file) {
		perror(path);
		return;
	}
	for (at = 0; at < SLOTS; at++)
		if (slots[at].count)
			fprintf(file, "%" PRIx64 " %" PRIu64 "\n", slots[at].address, slots[at].count);
	fclose(file);
}

VISIBLE int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fprintf(stderr, "profile: usage: -plugin profile.so,out=FILE\n");
		return 1;
	}
	path = strdup(argv[0] + 4);
	slots = calloc(SLOTS, sizeof(*slots));
	if (!path || !slots)
		return 1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
	return 0;
}
