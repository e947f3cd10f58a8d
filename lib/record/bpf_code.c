/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/bpf_code.h"

#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stddef.h>

/* Replace NUMBER, which an instruction of two slots loads, by VALUE wherever it is. */
static void put_number(struct bpf_insn *insns, size_t n, uint64_t number, uint64_t value)
{
	for (size_t i = 0; i + 1 < n; i++) {
		if (insns[i].code != (BPF_LD | BPF_IMM | BPF_DW))
			continue;
		if (!insns[i].src_reg && (uint32_t)insns[i].imm == (uint32_t)number &&
			(uint32_t)insns[i + 1].imm == number >> 32) {
			insns[i].imm = (int32_t)(uint32_t)value;
			insns[i + 1].imm = (int32_t)(value >> 32);
		}
		i++;
	}
}

void bpf_code_set(struct bpf_program *prog, const struct bpf_code *code)
{
	/* libbpf's own copy of what it loads later; it offers no other way to change one before that */
	struct bpf_insn *insns = (void *)(uintptr_t)bpf_program__insns(prog);
	size_t n = bpf_program__insn_cnt(prog);

	if (!code->who)
		return;
	put_number(insns, n, OFFCPU_CODE_WHO, code->who);
	put_number(insns, n, OFFCPU_CODE_ID, code->id);
	put_number(insns, n, OFFCPU_CODE_LEVEL, code->level);
	put_number(insns, n, OFFCPU_CODE_SUBSYS, code->subsys);
}
