/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two boots that differ only in the addresses of the kernel, its modules and its
 * BPF programs must give the same addresses in a capture.
 */
#include "base/tap.h"
#include "capture/reader.h"
#include "record/stacks.h"

#include <string.h>

#define N 8

/* The start addresses in one boot. The layout inside each never changes. */
struct boot {
	uint64_t kernel, module, other, bpf;
};

static const struct boot boots[2] = {
	{ 0xffffffff81000000, 0xffffffffc0100000, 0xffffffffc0200000, 0xffffffffc0300000 },
	{ 0xffffffff9a200000, 0xffffffffc09a0000, 0xffffffffc0510000, 0xffffffffc0007000 },
};

static void write_symbols(const struct boot *b, const char *path)
{
	FILE *f = fopen(path, "we");

	if (!f)
		abort();
	fprintf(f, "%016llx T _stext\n", (unsigned long long)b->kernel);
	fprintf(f, "%016llx T kernel_one\n", (unsigned long long)b->kernel + 0x1000);
	fprintf(f, "%016llx T kernel_two\n", (unsigned long long)b->kernel + 0x2000);
	fprintf(f, "%016llx T _etext\n", (unsigned long long)b->kernel + 0x3000);
	fprintf(f, "%016llx t mod_one\t[mod]\n", (unsigned long long)b->module + 0x40);
	fprintf(f, "%016llx t mod_two\t[mod]\n", (unsigned long long)b->module + 0x340);
	fprintf(f, "%016llx t other_one\t[other]\n", (unsigned long long)b->other + 0x40);
	fprintf(f, "%016llx t bpf_prog_1_x\t[bpf]\n", (unsigned long long)b->bpf + 0x10);
	fclose(f);
}

/* A kernel stack of boot B: in the kernel, two modules and a BPF program, and at an unknown address. */
static void frames_of(const struct boot *b, __u64 frames[N])
{
	frames[0] = b->kernel + 0x1010;
	frames[1] = b->kernel + 0x2020;
	frames[2] = b->module + 0x50;
	frames[3] = b->module + 0x350;
	frames[4] = b->other + 0x44;
	frames[5] = b->bpf + 0x18;
	frames[6] = b->bpf - 0x100000000;
	frames[7] = b->kernel + 0x1010;
}

/* Write the stack of boot B with a table that hides addresses, and read it back. The caller frees *C. */
static void through(const struct boot *b, struct cap_reader **c)
{
	char symbols[] = "/tmp/unit-kernel_mask.XXXXXX", path[] = "/tmp/unit-kernel_mask.XXXXXX";
	struct offcpu_ev_stack ev = { .type = OFFCPU_EV_STACK, .kind = CAPTURE_STACK_KERNEL, .len = N };
	struct stack_table *tab = NULL;
	struct cap_writer *w = NULL;
	struct kallsyms *ks = NULL;

	close(mkstemp(symbols));
	close(mkstemp(path));
	write_symbols(b, symbols);
	ev.id = (struct offcpu_stack_id){ 1, 1 };
	ev.verdict = VERDICT_COMPLETE;
	frames_of(b, ev.frames);
	if (kallsyms_load(symbols, &ks, NULL) != 0 || stack_table_new(127, &tab, NULL) != 0 ||
		stack_table_mask(tab, NULL) != 0 || cap_writer_open(path, true, &w, NULL) != 0)
		abort();
	stack_table_symbols(tab, ks);
	stack_table_add(tab, &ev);
	stack_table_emit(tab, CAPTURE_STACK_KERNEL, &ev.id, w, NULL);
	if (cap_writer_finish(w, &(struct cap_trailer){ .stop_ns = 2, .why = "end" }, NULL) != 0 ||
		cap_reader_load(path, c, NULL) != 0 || (*c)->n_stacks != 1 || (*c)->stacks[0].len != N)
		abort();
	cap_writer_close(w);
	stack_table_free(tab);
	kallsyms_free(ks);
	unlink(symbols);
	unlink(path);
}

/* "name+offset" of ADDR by the capture's symbols. */
static const char *name_of(const struct cap_reader *c, uint64_t addr, char *buf, size_t cap)
{
	snprintf(buf, cap, "?");
	for (size_t i = 0; i < c->n_ksyms; i++)
		if (addr > c->ksyms[i].start && addr <= c->ksyms[i].end)
			snprintf(buf, cap, "%s+%llx", c->ksyms[i].name,
				(unsigned long long)(addr - c->ksyms[i].start));
	return buf;
}

static bool is_reported(const struct cap_reader *c, const struct boot *b)
{
	__u64 real[N];

	frames_of(b, real);
	for (size_t i = 0; i < N; i++)
		for (size_t k = 0; k < N; k++)
			if (c->stacks[0].frames[i] == real[k])
				return true;
	return false;
}

int main(void)
{
	static const char *const want[N] = { "kernel_one+10", "kernel_two+20", "mod_one+10", "mod_two+10",
		"other_one+4", "bpf_prog_1_x+8", "?", "kernel_one+10" };
	struct cap_reader *c[2];
	struct tap t = { 0 };
	const uint64_t *a, *b;
	char buf[64];

	for (int i = 0; i < 2; i++)
		through(&boots[i], &c[i]);
	a = c[0]->stacks[0].frames;
	b = c[1]->stacks[0].frames;
	tap_ok(&t, memcmp(a, b, N * sizeof(*a)) == 0,
		"two boots with other addresses give the same capture, so it does not reveal them");
	tap_ok(&t, !is_reported(c[1], &boots[1]), "no address in the capture is a real one");
	for (size_t i = 0; i < N; i++)
		tap_eq_str(&t, name_of(c[1], b[i], buf, sizeof(buf)), want[i],
			"a frame has its name and offset");
	tap_ok(&t, a[0] == KERNEL_MASK_STEXT + 0x1010 && a[7] == a[0],
		"an address of the kernel is that of a kernel that was not moved");
	tap_ok(&t, a[3] - a[2] == 0x300, "distances inside a module are kept");
	cap_reader_free(c[0]);
	cap_reader_free(c[1]);
	kernel_mask_free(NULL);
	return tap_done(&t);
}
