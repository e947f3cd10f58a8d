/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "check/probes.h"
#include "kernel_cast.h"
#include "offcpu_abi.h"
#include "system/privileges.h"

#include "offcpu.skel.h"
#if __has_include("offcpu-raw.skel.h")
#include "offcpu-raw.skel.h"
#define HAVE_RAW
#endif

#include <bpf/bpf.h>
#include <errno.h>
#include <gelf.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/mman.h>

#define ANY UINT32_MAX
#define RAW (1U << PROGPROBE_RAW_TP)

/* The kinds of programs that call the helpers in section NAME. */
static uint32_t kinds_of(const char *name)
{
	if (strncmp(name, "kern_tp/", 8) == 0)
		return 1U << PROGPROBE_TP_BTF;
	if (strncmp(name, "kern_iter.s/", 12) == 0)
		return 1U << PROGPROBE_SLEEPABLE;
	if (strncmp(name, "kern_iter/", 10) == 0)
		return 1U << PROGPROBE_ITER;
	if (strncmp(name, "raw_tp/", 7) == 0 || strncmp(name, "tp/", 3) == 0)
		return RAW;
	if (strcmp(name, "clock") == 0)
		return 1U << PROGPROBE_CLOCK;
	return ANY; /* .text: called by any kind */
}

static bool listed(uint32_t id, uint32_t kinds)
{
	const struct progprobe_helper *list;
	size_t n;

	list = progprobe_helpers(&n);
	for (size_t i = 0; i < n; i++)
		if (list[i].id == id && (kinds == ANY ? list[i].kinds : (list[i].kinds & kinds)))
			return true;
	tap_diag("helper %u of kinds %x is not in the list", id, kinds);
	return false;
}

/* Is every helper that the LEN bytes at CODE call in the list? Adds them to the bit set USED. */
static bool calls_listed(
	const struct bpf_insn *code, size_t len, uint32_t kinds, uint64_t used[4], int *calls)
{
	bool all = true;

	for (size_t i = 0; i < len / sizeof(*code); i++) {
		if (code[i].code != (BPF_JMP | BPF_CALL) || code[i].src_reg != 0 ||
			code[i].imm == KERNEL_CAST)
			continue;
		++*calls;
		if (code[i].imm >= 0 && code[i].imm < 256)
			used[code[i].imm / 64] |= UINT64_C(1) << (code[i].imm % 64);
		all &= listed((uint32_t)code[i].imm, kinds);
	}
	return all;
}

/* Test every call in the object of SIZE bytes. */
static void test_object(struct tap *t, const char *name, const void *bytes, size_t size, uint64_t used[4])
{
	Elf_Scn *section = NULL;
	size_t names;
	bool all = true;
	int calls = 0;
	/* libelf takes a pointer to non-const bytes, but does not change them */
	Elf *elf = elf_memory((char *)(uintptr_t)bytes, size);

	if (!elf || elf_getshdrstrndx(elf, &names) != 0) {
		tap_ok(t, false, "%s is an ELF file", name);
		return;
	}
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_PROGBITS ||
			!(header.sh_flags & SHF_EXECINSTR))
			continue;
		data = elf_getdata(section, NULL);
		if (data && data->d_buf)
			all &= calls_listed(data->d_buf, data->d_size,
				kinds_of(elf_strptr(elf, names, header.sh_name)), used, &calls);
	}
	elf_end(elf);
	tap_ok(t, all && calls > 50,
		"each helper that %s calls is listed for that kind of program (%d calls)", name, calls);
}

static void test_list(struct tap *t)
{
	const struct progprobe_helper *list;
	uint64_t used[4] = { 0 };
	const void *bytes;
	bool needed = true;
	uint32_t tried = ~RAW;
	size_t size, n;

	elf_version(EV_CURRENT);
	bytes = offcpu_bpf__elf_bytes(&size);
	test_object(t, "offcpu.bpf.c", bytes, size, used);
#ifdef HAVE_RAW
	bytes = offcpu_raw_bpf__elf_bytes(&size);
	test_object(t, "offcpu-raw.bpf.c", bytes, size, used);
	tried = ANY;
#endif
	list = progprobe_helpers(&n);
	for (size_t i = 0; i < n; i++) {
		bool is = used[list[i].id / 64] & UINT64_C(1) << (list[i].id % 64);

		if (is || !(list[i].kinds & tried))
			continue;
		tap_diag("%s is listed, but no program calls it", list[i].name);
		needed = false;
	}
	tap_ok(t, needed, "each listed helper is called by a program (%zu)", n);
}

static void try(struct tap *t, probe_fn fn, const char *want, const char *name)
{
	char found[256] = "";
	struct err e = { 0 };
	int rc = fn(found, sizeof(found), &e);

	if (!tap_ok(t, rc == 0 && strstr(found, want), "%s", name))
		tap_diag("%d %s%s", rc, found, e.msg);
}

/* Load a program of N instructions, all of which the verifier must process. */
static int load_long(int n)
{
	struct bpf_insn code[4000];

	if (n > 4000)
		return -E2BIG;
	for (int i = 0; i < n - 1; i++)
		code[i] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = i };
	code[n - 1] = (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
	return bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "longest_one", "GPL", code, (size_t)n, NULL);
}

static void test_programs(struct tap *t)
{
	struct progprobe_program p[3] = { { .insns = 0 } };
	int file = memfd_create("programs", 0), small, large;
	struct err e = { 0 };
	ssize_t bytes;

	tap_ok(t, progprobe_programs("none", file, &e) == 0 && lseek(file, 0, SEEK_END) == 0,
		"without a loaded program the list is empty");
	small = load_long(10);
	large = load_long(3000);
	tap_ok(t, progprobe_programs("raw", file, &e) == 0,
		"the programs that this process has loaded are listed");
	bytes = pread(file, p, sizeof(p), 0);
	tap_eq_u64(t, (uint64_t)bytes, 2 * sizeof(p[0]), "each loaded program is listed once");
	tap_ok(t, strcmp(p[1].mode, "raw") == 0 && strcmp(p[1].name, "longest_one") == 0,
		"a listed program has its mode and name");
	if (p[1].insns)
		tap_ok(t, MAX(p[0].insns, p[1].insns) == 3000 && MIN(p[0].insns, p[1].insns) == 10,
			"a listed program has the number of instructions that the verifier processed");
	else
		tap_skip(t, "a listed program has the number of instructions that the verifier processed",
			"the kernel does not count (Linux 5.16)");
	close(small);
	close(large);
	close(file);
}

/* What a kernel lacks must be detected: here a helper that this kind of program may not call. */
static void test_absent(struct tap *t)
{
	/* a socket helper at a raw tracepoint: known to the kernel, but not allowed for that kind */
	struct bpf_insn code[] = { { .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_skb_store_bytes },
		{ .code = BPF_JMP | BPF_EXIT } };
	char log[4096] = "";
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .log_buf = log, .log_size = sizeof(log), .log_level = 1);
	int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "probe", "GPL", code, ARRAY_LEN(code), &opts);

	tap_ok(t,
		fd < 0 && (strstr(log, "unknown func ") || strstr(log, "invalid func ") ||
				  strstr(log, "cannot use helper ")),
		"the verifier's message about a forbidden helper is one that the probes recognize");
	if (fd >= 0)
		close(fd);
}

int main(void)
{
	const int caps[] = { CAP_BPF, CAP_PERFMON };
	struct tap t = { 0 };
	char why[128];

	test_list(&t);
	if (priv_missing(caps, ARRAY_LEN(caps), why, sizeof(why))) {
		tap_skip(&t, "kinds of programs", "%s", why);
		return tap_done(&t);
	}
	test_programs(&t);
	test_absent(&t);
	try(&t, progprobe_tail_call, "a tail call arrives", "a tail call works");
	try(&t, progprobe_raw_run, "runs", "a program is run without being attached");
	try(&t, progprobe_iterator, "goes through all tasks", "a task iterator is read");
	try(&t, progprobe_sleepable_iterator, "may sleep goes", "a task iterator that may sleep is read");
	if (libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_SYSCALL, NULL) == 1)
		try(&t, progprobe_sleepable, "runs", "a program that may sleep runs");
	else
		tap_skip(&t, "a program that may sleep runs", "this kernel has no such type of program");
	if (libbpf_probe_bpf_helper(BPF_PROG_TYPE_TRACEPOINT, BPF_FUNC_loop, NULL) == 1)
		try(&t, progprobe_helper_calls, "at tp_btf",
			"every helper may be called at tp_btf and in iterators");
	else
		tap_skip(&t, "every helper may be called",
			"this kernel has no bpf_loop, the second newest helper");
	try(&t, progprobe_raw_calls, "at raw_tp", "every helper may be called at raw tracepoints");
	try(&t, progprobe_kfuncs, "bpf_rcu_read_lock",
		"available and missing kernel functions are distinguished");
	return tap_done(&t);
}
